"""Calls of operations, for the binder and the passes.

`call(name, *args)` checks and casts the arguments and derives type and nullability, by the registry
(`squallpy.functions.registry`), so that a Call always fits its arguments.

    call("+", a INT, 0.5)  →  Call("+", (CAST(a AS DECIMAL(12,1)), 0.5), DECIMAL(13,1))
"""

from collections.abc import Mapping
from dataclasses import replace

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import MOST_DIGITS, Kind, unify
from squallpy.functions.entries import Argument
from squallpy.functions.registry import OPERATIONS
from squallpy.functions.type_rules import booleans, smallest, type_nulls
from squallpy.logical.coercion import coerce, coerce_exactly
from squallpy.logical.expressions import (
    ROUNDED,
    Call,
    Case,
    Column,
    Expr,
    Literal,
    children,
    is_nullable,
    not_null,
    rebuild,
)

Args = tuple[Expr, ...]

OPERATORS = {operator: name for name, operator in ROUNDED.items()}


def arithmetic(operator: str, left: Expr, right: Expr) -> Call:
    """Build arithmetic on two numbers, exact; where that may take more than 38 digits, rounded as in Spark."""
    args = type_nulls((argument(left), argument(right)))
    if (
        operator in OPERATORS
        and all(arg.type.is_exact for arg in args)
        and not all(arg.type.is_integer for arg in args)
    ):
        (p, s), (q, t) = ((type.precision, type.scale) for type in map(smallest, args))
        needed = p + q if operator == "*" else max(p - s, q - t) + max(s, t)
        found = call(OPERATORS[operator], left, right)
        if needed > MOST_DIGITS and (operator == "%" or found.type.scale < (s + t if operator == "*" else max(s, t))):
            return found
    return call(operator, left, right)


def argument(expr: Expr) -> Argument:
    """Describe an expression for type rules."""
    return Argument(expr.type, expr.value, True) if isinstance(expr, Literal) else Argument(expr.type)


def call(name: str, *args: Expr) -> Call:
    """Build the Call of an operation; SQ2004 for an unknown name, SQ2005 for arguments that do not fit."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise SquallError("SQ2004", f'unknown function "{name}"', hint=nearest(name, OPERATIONS))
    if len(args) < operation.min_arguments or (
        operation.max_arguments is not None and len(args) > operation.max_arguments
    ):
        counts = sorted({operation.min_arguments, operation.max_arguments or operation.min_arguments})
        expected = " to ".join(map(str, counts)) + ("" if operation.max_arguments else " or more")
        raise SquallError("SQ2005", f"{name.upper()} takes {expected} arguments, not {len(args)}")
    types, type = operation.rule(name, [argument(arg) for arg in args])
    fit = coerce_exactly if operation.is_exactly_typed else coerce
    fitted = tuple(fit(arg, expected) for arg, expected in zip(args, types, strict=True))
    return Call(name, fitted, type, is_nullable(operation, fitted))


def case(whens: list[tuple[Expr, Expr]], otherwise: Expr) -> Case | Literal:
    """Build a CASE with values of their common type, a bare NULL if they all are; SQ2005 if they have none."""
    values = [value for _, value in whens] + [otherwise]
    target = unify([value.type for value in values])
    if target is None:
        types = ", ".join(dict.fromkeys(str(value.type) for value in values))
        raise SquallError("SQ2005", f"the branches of a CASE have no common type: {types}")
    conditions = [coerce(condition, booleans("when", [argument(condition)])[1]) for condition, _ in whens]
    if target.kind is Kind.NULL:
        return Literal(None, target)
    fitted = tuple((c, coerce_exactly(v, target)) for c, (_, v) in zip(conditions, whens, strict=True))
    return Case(fitted, coerce_exactly(otherwise, target), target)


def not_distinct(a: Expr, b: Expr) -> Call:
    """Test that a = b, or both are NULL."""
    return call("<=>" if a.nullable or b.nullable else "=", a, b)


def coalesce(*args: Expr) -> Expr:
    """Build COALESCE(a, b)  →  CASE WHEN NOT a IS NULL THEN a ELSE b END."""
    *tested, last = args
    return case([(not_null(arg), arg) for arg in tested], last) if tested else last


def replace_known(expr: Expr, known: Mapping[Expr, Column]) -> Expr:
    """Replace the largest known parts of an expression by the columns that hold them.

    year(d) + 1 with {year(d): y}  →  y + 1
    """
    if not isinstance(expr, Literal) and expr in known:
        return known[expr]
    given = children(expr)
    new = rebuild(expr, tuple(replace_known(child, known) for child in given))
    if isinstance(new, Call) and new.name not in ("is_null", "<=>"):
        # NB: a key that is NOT NULL may be NULL where ROLLUP leaves it out
        became = any(now.nullable and not was.nullable for was, now in zip(given, new.args, strict=True))
        return replace(new, nullable=new.nullable or became)
    return new
