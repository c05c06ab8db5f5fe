"""The order of ARRAYs and STRUCTs: that of their parts, one after the other, NULL first, as in Spark.

They are held as JSON, whose order is another one: 10 is before 9 there. Where the order counts, a text whose order is
that of the values stands for each.

    STRUCT(a, s) < STRUCT(b, t)   →   order_text('{"a":…}', '(nt)') < order_text(…)
    MAX(STRUCT(t, x))             →   value_in_order(MAX(order_with_value('{"t":…}', '(tn)')))
"""

from collections.abc import Callable, Sequence

from squallpy.base.errors import SquallError
from squallpy.base.types import DOUBLE, VARCHAR, Shape, Type, unify
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Cast, Expr, Literal


def order_code(type: Type) -> str | None:
    """Write the shape of a type with n for exact numbers, d for DOUBLEs and t for others; None with a MAP in it."""
    if type.nested is None:
        return "n" if type.is_exact else "d" if type == DOUBLE else "t"
    parts = [order_code(each) for each in type.nested.types]
    if type.nested.shape is Shape.MAP or None in parts:
        return None
    inner = "".join(part or "" for part in parts)
    return f"({inner})" if type.nested.shape is Shape.STRUCT else f"[{inner}"


def _coded(operation: str, value: Expr) -> Expr:
    if (code := order_code(value.type)) is None:
        raise SquallError("SQ2005", f"{value.type} has no order", hint="take MAP_ENTRIES, an ARRAY")
    return call(operation, Cast(value, VARCHAR), Literal(code, VARCHAR))


def in_order(values: Sequence[Expr]) -> list[Expr]:
    """Return what has the order of each value: the value itself unless it is nested; SQ2005 for MAPs."""
    return [_coded("order_text", value) if value.type.nested else value for value in values]


def compare(operator: str, a: Expr, b: Expr) -> Expr:
    """Build a comparison of two values; SQ2005 if they have no common type."""
    is_ordered = operator[0] in "<>" and operator not in ("<>", "<=>")
    if is_ordered and unify([a.type, b.type]) is not None:
        a, b = in_order((a, b))
    return call(operator, a, b)


def nested_extreme(of: Callable[[Expr], Expr], value: Expr) -> Expr:
    """Build the MIN or MAX of ARRAYs or STRUCTs, with what builds that of texts."""
    return Cast(call("value_in_order", of(_coded("order_with_value", value))), value.type)
