"""Comparisons solved for a column that is added or subtracted once: its bound is a sum of the other terms.

solved(x - v <= 1, v)                    →   v >= x − 1
solved(DAYS_BETWEEN(v, x) > n, v)        →   v >  x + n

Only of numbers of one scale, dates and moments, which are held as whole numbers: the sum is exact, if it is not made
to fit a type on the way.
"""

from typing import NamedTuple

from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import Call, Cast, Column, Expr, columns

_SUMS, _DIFFERENCES = ("+", "add_days", "add_micros"), ("-", "days_between")


class Solved(NamedTuple):
    """A bound: the sum of terms, each with its sign, and whether it is excluded."""

    terms: tuple[tuple[int, Expr], ...]
    strict: bool


def solved(predicate: Expr, column: Column) -> Solved | None:
    """What a comparison bounds a column by; None where it is no comparison of sums, or they are not exact."""
    match predicate:
        case Call("<" | "<=" | ">" | ">=" as name, (a, b)):
            found = _terms(a, 1) + _terms(b, -1)
            ours = [sign for sign, term in found if term == column]
            rest = [(sign, term) for sign, term in found if term != column]
            alone = len(ours) == 1 and not any(column in columns(term) for _, term in rest)
            if not alone or not all(_alike(term.type, column.type) for _, term in found):
                return None
            return Solved(tuple((-sign * ours[0], term) for sign, term in rest), name in ("<", ">"))
    return None


def _terms(expr: Expr, sign: int) -> list[tuple[int, Expr]]:
    """x - (v + 1)   →   +x, −v, −1"""
    match expr:
        case Call(name, (a, b)) if name in _SUMS:
            return _terms(a, sign) + _terms(b, sign)
        case Call(name, (a, b)) if name in _DIFFERENCES:
            return _terms(a, sign) + _terms(b, -sign)
        case Call("negate", (a,)):
            return _terms(a, -sign)
        case Call("micros", (a,)):  # which is how moments are held
            return _terms(a, sign)
        case Cast(arg, type) if type.kind is Kind.BIGINT and arg.type.is_integer:
            return _terms(arg, sign)
    return [(sign, expr)]


def _alike(a: Type, b: Type) -> bool:
    """Are both whole numbers of one unit, with room in 64 bits? What is added to dates and moments has their unit."""
    return all((t.is_exact or t.is_temporal) and not t.is_wide for t in (a, b)) and a.scale == b.scale
