"""Scalar expressions as sums of products whose factors each read one atom, so that atoms are summed separately.

    SUM(l.price * (1 - l.discount) - ps.cost * l.quantity)
    →  1 · ⟨l.price * (1 - l.discount)⟩  +  -1 · ⟨ps.cost, l.quantity⟩

A product is 0 if a factor is NULL, as NULL inputs add nothing to a SUM. If a sum is split, each part is therefore
multiplied by "the other part is not NULL". CASE over several atoms becomes indicators (TPC-H Q14).
"""

from collections.abc import Callable

from squallpy.base.types import BOOLEAN, Kind
from squallpy.logical.expressions import FALSE, TRUE, Call, Case, Cast, Column, Expr, Literal, columns, not_null
from squallpy.program.calculus import Lane

Polynomial = list[tuple[int, Lane]]  # Σ coefficient · product of factors
Owner = Callable[[Column], int]  # the atom that binds a column


def linear(expr: Expr, owner: Owner) -> Polynomial:
    """Write `expr` (0 if NULL) as a polynomial over factors of single atoms, as far as its operators allow."""
    match expr:
        case Literal(None | 0, _):
            return []
        case Literal(value, type) if type.is_integer:
            return [(int(value), ())] if value else []
        case _ if len({owner(c) for c in columns(expr)}) <= 1:
            return [(1, (expr,))]
        case Call("+", (left, right)):
            return _mask(left, right, owner) + _mask(right, left, owner)
        case Call("-", (left, right)):
            return _mask(left, right, owner) + _scale(-1, _mask(right, left, owner))
        case Call("negate", (arg,)):
            return _scale(-1, linear(arg, owner))
        case Call("*", (left, right)) if expr.type.kind is not Kind.DECIMAL or _keeps_scale(expr):
            return _times(linear(left, owner), linear(right, owner))
        case Call("product_rest"):  # sums of doubles of several atoms are multiplied in two words each, without one
            return []
        case Call("and", args):
            product: Polynomial = [(1, ())]
            for arg in args:
                product = _times(product, indicator(arg, owner))
            return product
        case Cast(arg, type) if type.is_exact and arg.type.is_exact and type.scale >= arg.type.scale:
            return _scale(10 ** (type.scale - arg.type.scale), linear(arg, owner))
        case Cast(Call("*", (left, right)), type) if type.kind is Kind.DOUBLE:
            return _times(linear(Cast(left, type), owner), linear(Cast(right, type), owner))
        case Case(whens, otherwise):
            return [
                term for guard, value in _arms(whens, otherwise, owner) for term in _times(guard, linear(value, owner))
            ]
    return [(1, (expr,))]


def indicator(condition: Expr, owner: Owner) -> Polynomial:
    """Write a condition as 1 where it is TRUE, else 0."""
    match condition:
        case Literal(value):
            return [(1, ())] if value else []
        case _ if len({owner(c) for c in columns(condition)}) <= 1:
            return [(1, (condition,))]
        case Call("and"):
            return linear(condition, owner)
    return [(1, (condition,))]


def present(expr: Expr, owner: Owner) -> Polynomial:
    """Write 1 where `expr` is not NULL, else 0."""
    if not expr.nullable:
        return [(1, ())]
    if isinstance(expr, Literal):
        return []
    if len({owner(c) for c in columns(expr)}) <= 1:
        return [(1, (not_null(expr),))]
    match expr:
        case Call("+" | "-" | "*" | "product_rest", args):
            product: Polynomial = [(1, ())]
            for arg in args:
                product = _times(product, present(arg, owner))
            return product
        case Call("negate", (arg,)) | Cast(arg, _):
            return present(arg, owner)
        case Case(whens, otherwise):
            return [
                term for guard, value in _arms(whens, otherwise, owner) for term in _times(guard, present(value, owner))
            ]
    return [(1, (not_null(expr),))]


def not_true(condition: Expr) -> Expr:
    """Write a condition that is TRUE where another one is FALSE or NULL."""
    if not condition.nullable:
        return Call("not", (condition,), BOOLEAN, False)
    return Case(((condition, FALSE),), TRUE, BOOLEAN)


def _arms(whens: tuple[tuple[Expr, Expr], ...], otherwise: Expr, owner: Owner) -> list[tuple[Polynomial, Expr]]:
    """List each value of a CASE with the indicator of its turn."""
    arms: list[tuple[Polynomial, Expr]] = []
    before: Polynomial = [(1, ())]
    for condition, value in whens:
        arms.append((_times(before, indicator(condition, owner)), value))
        before = _times(before, indicator(not_true(condition), owner))
    return [*arms, (before, otherwise)]


def _mask(expr: Expr, other: Expr, owner: Owner) -> Polynomial:
    return _times(linear(expr, owner), present(other, owner))


def _keeps_scale(product: Call) -> bool:
    return product.type.scale == sum(arg.type.scale for arg in product.args)


def _scale(coefficient: int, polynomial: Polynomial) -> Polynomial:
    return [(coefficient * c, lane) for c, lane in polynomial]


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    return [(a * b, (*x, *y)) for a, x in left for b, y in right]
