"""Monotonicity of predicates in a column, which makes them bounds that a sorted index can look up.

direction(a.price > b.price + 10, a.price)   →   +1     as it grows, TRUE stays TRUE
direction(a.price > b.price + 10, b.price)   →   −1     as it grows, FALSE stays FALSE
"""

from math import isfinite

from squallpy.base.types import BOOLEAN, Kind
from squallpy.logical.expressions import FALSE, Call, Cast, Column, Expr, Literal, columns, substitute
from squallpy.logical.null_folding import fold_nulls

RISING, STEADY, FALLING = 1, 0, -1


def direction(predicate: Expr, column: Column) -> int | None:
    """Find the direction of a predicate: RISING, FALLING, or STEADY if it does not read the column; None if unknown.

    A rising or falling predicate is not TRUE where the column is NULL.
    """
    if column not in columns(predicate):
        return STEADY
    match predicate:
        case Call("<" | "<=", (small, great)):
            return _least_sum(great, small, column)
        case Call(">" | ">=", (great, small)):
            return _least_sum(great, small, column)
        case Call("and", args):
            return _common_direction(*(direction(arg, column) for arg in args))
        case Call("or", args) if not column.nullable or all(_rejects_null(arg, column) for arg in args):
            return _common_direction(*(direction(arg, column) for arg in args))
        case Call("not", (Call("is_null", (arg,)),)) if arg == column:
            return STEADY
    return None


def _rejects_null(predicate: Expr, column: Column) -> bool:
    """True if it is not TRUE where the column is NULL."""
    return fold_nulls(substitute(predicate, {column.id: Literal(None, column.type)})) in (FALSE, Literal(None, BOOLEAN))


def _least_sum(great: Expr, small: Expr, column: Column) -> int | None:
    return _common_direction(slope(great, column), _reverse(slope(small, column)))


def slope(expr: Expr, column: Column) -> int | None:
    """Find the direction in which a value changes with the column, never the opposite."""
    if expr == column:
        return RISING
    if column not in columns(expr):
        return STEADY
    if column.type.kind is Kind.DOUBLE:  # NB: ∞ − ∞ is NaN, which is above everything, also if it is taken away
        match expr:
            case Call("+" | "-", (a, Literal(float() as given))) | Call("+", (Literal(float() as given), a)):
                return slope(a, column) if isfinite(given) else None
        return None
    match expr:
        case Call("+" | "add_days" | "add_micros", (a, b)):
            return _common_direction(slope(a, column), slope(b, column))
        case Call("-" | "days_between", (a, b)):
            return _common_direction(slope(a, column), _reverse(slope(b, column)))
        case Call("negate", (a,)):
            return _reverse(slope(a, column))
        case Call("micros", (a,)):
            return slope(a, column)
        case Call("least" | "greatest", args) if not column.nullable:  # NB: they pass over NULL, which others may be
            return _common_direction(*(slope(arg, column) for arg in args))
        case Call("*", (a, b)) if column not in columns(a):
            return _times(sign(a), slope(b, column))
        case Call("*" | "/", (a, b)):
            return _times(sign(b), slope(a, column))
        case Cast(arg, type) if type.is_numeric or type.is_temporal:
            return slope(arg, column) if arg.type.is_numeric or arg.type.is_temporal else None
    return None


def sign(expr: Expr) -> int | None:
    """Find the sign of a constant that is not 0."""
    match expr:
        case Cast(arg):
            return sign(arg)
        case Call("negate", (arg,)):
            return _reverse(sign(arg))
        case Literal(int() | float() as value) if value:
            return 1 if value > 0 else -1
    return None


def _reverse(slope_: int | None) -> int | None:
    return None if slope_ is None else -slope_


def _times(factor: int | None, slope_: int | None) -> int | None:
    return None if factor is None or slope_ is None else factor * slope_


def _common_direction(*all_directions: int | None) -> int | None:
    directions = {each for each in all_directions if each != STEADY}
    return STEADY if not directions else directions.pop() if len(directions) == 1 else None
