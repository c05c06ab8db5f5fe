"""CAST and TRY_CAST, and the types that they name."""

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import TIMESTAMP, VARCHAR, Kind, Type
from squallpy.frontend.schema_text import read_schema
from squallpy.frontend.type_names import declared_type, named_type
from squallpy.logical.bind.datetime import intervals
from squallpy.logical.bind.datetime.calendar import convert, last_multiple
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, Literal

if TYPE_CHECKING:
    from squallpy.logical.bind.expressions import Scalars


def bind_try_cast(s: "Scalars", node: exp.TryCast) -> Expr:
    """Bind TRY_CAST, which is NULL where CAST would fail."""
    target, value = target_of(s, node), s.bind_value(node.this)
    note_lost_fraction(s, node, value, target)
    if isinstance(value, Literal):
        convert(s.ctx.column("x", value.type, True), target)  # is there such a cast?
        try:
            return cut_seconds(node, convert(value, target, tries=True))
        except SquallError:
            return Literal(None, target)
    found = convert(value, target, tries=True)
    return cut_seconds(node, call("tried", found) if found is not value else found)


def bind_cast(s: "Scalars", node: exp.Cast) -> Expr:
    """Bind CAST(x AS type); CAST('5 minutes' AS INTERVAL) of a constant alone."""
    if node.args["to"].this == exp.DType.INTERVAL and isinstance(node.this, exp.Literal) and node.this.is_string:
        return intervals.interval(s.ctx, exp.Interval(this=node.this))
    target, value = target_of(s, node), s.bind_value(node.this)
    note_lost_fraction(s, node, value, target)
    if value.type.nested and target == VARCHAR:
        from squallpy.logical.bind.nested_values import text_of

        return text_of(value)
    return cut_seconds(node, convert(value, target))


def cut_seconds(node: exp.Cast | exp.TryCast, value: Expr) -> Expr:
    """Cut the fraction of a second to the digits that TIMESTAMP(3) names, of six."""
    written = node.args["to"].expressions if value.type == TIMESTAMP else ()
    digits = int(written[0].name) if written else 6
    return value if digits >= 6 else last_multiple(value, 10 ** (6 - digits))


def note_lost_fraction(s: "Scalars", node: exp.Expr, value: Expr, target: Type) -> None:
    """Tell that DECIMAL without digits has none behind the point, if the value may have some."""
    written = node.args.get("to")
    if target.kind is not Kind.DECIMAL or (written is not None and written.expressions):
        return
    has_fraction = value.type.kind in (Kind.DOUBLE, Kind.VARCHAR) or value.type.scale > 0
    if isinstance(value, Literal) and has_fraction:
        has_fraction = (
            value.value is not None and "." in str(value) and not str(value).strip("'").rstrip("0").endswith(".")
        )
    if has_fraction:
        hint = "write how many digits there are: DECIMAL(18,2)"
        s.ctx.note("DECIMAL without digits is DECIMAL(10,0), as in Spark: the fraction is rounded off", node, hint)


def target_of(s: "Scalars", node: exp.Cast | exp.TryCast) -> Type:
    """Read the target type of a cast."""
    target = node.args["to"]
    s.ctx.refuse_other_args(target, "this", "expressions", "nested")
    if target.args.get("nested"):
        try:
            return read_schema(target.sql())
        except SquallError:
            raise SquallError("SQ2008", f"{target.sql()[:80]} is not a type we have") from None
    if isinstance(target.this, exp.Interval) or target.this == exp.DType.INTERVAL:
        return declared_type(target.sql())
    plain = isinstance(target.this, exp.DType)
    if not plain or not all(re.fullmatch("[0-9]{1,9}", p.name) for p in target.expressions):
        raise SquallError("SQ2008", f"{target.sql()[:80]} is not a type we have")
    parameters = [int(p.name) for p in target.expressions]
    name = "TIMESTAMP" if target.this.value.startswith("TIMESTAMP") else target.this.value
    return named_type(name, parameters)
