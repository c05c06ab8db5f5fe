"""Isolation of a column in a comparison where it is added or subtracted once: its bound is the sum of the other terms.

isolate(x - v <= 1, v)                   →   v >= x − 1
isolate(DAYS_BETWEEN(v, x) > n, v)       →   v >  x + n

Only for numbers of one scale, dates and timestamps, which are held as integers: the sum is exact, unless a cast of a
term rounds.
"""

from typing import NamedTuple

from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import Call, Cast, Column, Expr, columns

_SUMS, _DIFFERENCES = ("+", "add_days", "add_micros"), ("-", "days_between")


class IsolatedBound(NamedTuple):
    """A bound: the sum of signed terms, and whether it is excluded."""

    terms: tuple[tuple[int, Expr], ...]
    strict: bool


def isolate(predicate: Expr, column: Column) -> IsolatedBound | None:
    """Isolate a column of a comparison; None if it does not compare sums, or they are not exact."""
    match predicate:
        case Call("<" | "<=" | ">" | ">=" as name, (a, b)):
            found = _terms(a, 1) + _terms(b, -1)
            ours = [sign for sign, term in found if term == column]
            rest = [(sign, term) for sign, term in found if term != column]
            alone = len(ours) == 1 and not any(column in columns(term) for _, term in rest)
            if not alone or not all(_have_one_unit(term.type, column.type) for _, term in found):
                return None
            return IsolatedBound(tuple((-sign * ours[0], term) for sign, term in rest), name in ("<", ">"))
    return None


def split_difference(a: Expr, b: Expr, type: Type) -> list[tuple[int, Expr]] | None:
    """Split a − b into signed terms of one unit, that of a type; None if there are others.

    Terms of doubles are added up with rounding; of others the sum is exact.
    """
    found = _terms(a, 1) + _terms(b, -1)
    if type.kind is Kind.DOUBLE:
        return found if all(term.type.kind is Kind.DOUBLE for _, term in found) else None
    return found if all(_have_one_unit(term.type, type) for _, term in found) else None


def _terms(expr: Expr, sign: int) -> list[tuple[int, Expr]]:
    """Split a sum into signed terms: x - (v + 1)   →   +x, −v, −1."""
    match expr:
        case Call(name, (a, b)) if name in _SUMS:
            return _terms(a, sign) + _terms(b, sign)
        case Call(name, (a, b)) if name in _DIFFERENCES:
            return _terms(a, sign) + _terms(b, -sign)
        case Call("negate", (a,)):
            return _terms(a, -sign)
        case Call("micros", (a,)):  # NB: a TIMESTAMP is held in microseconds
            return _terms(a, sign)
        case Cast(arg, type) if type.kind is Kind.BIGINT and arg.type.is_integer:
            return _terms(arg, sign)
    return [(sign, expr)]


def _have_one_unit(a: Type, b: Type) -> bool:
    """True if both are integers of one unit within 64 bits; intervals added to dates and moments have their unit."""
    return all((t.is_exact or t.is_temporal) and not t.is_wide for t in (a, b)) and a.scale == b.scale
