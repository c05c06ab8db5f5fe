"""Delta rules for batches of inserts and deletes, and polynomial normal form (`dbtoaster-batch-ivm` §3.1).

Δ_R(R(a,b) ⋈ S(b,c))      →  ΔR(a,b) ⋈ S(b,c)
Δ_R(R(a,b) ⋈ R(b,c))      →  ΔR(a,b) ⋈ R(b,c)  +  R(a,b) ⋈ ΔR(b,c)  +  ΔR(a,b) ⋈ ΔR(b,c)
"""

from dataclasses import replace
from itertools import product

from squallpy.maintain.relational.calculus import ZERO, Factor, Lane, Plus, Prod, Rel, Sum, Term, Values, relations


def delta(term: Term, relation: str) -> Term:
    """The change of `term` when `relation` changes by its batch; ZERO for what does not read it."""
    if relation not in relations(term):
        return ZERO
    match term:
        case Rel():
            return replace(term, delta=True)
        case Plus(terms):
            return Plus(tuple(delta(t, relation) for t in terms))
        case Prod((first, *rest)):
            tail = Prod(tuple(rest))
            if relation not in relations(first):
                return Prod((first, delta(tail, relation)))
            if relation not in relations(tail):
                return Prod((delta(first, relation), tail))
            head_change, tail_change = delta(first, relation), delta(tail, relation)
            return Plus((Prod((head_change, tail)), Prod((first, tail_change)), Prod((head_change, tail_change))))
        case Sum(keys, inner):
            return Sum(keys, delta(inner, relation))
    raise AssertionError(f"no delta rule for {term}")


def monomials(term: Term) -> list[tuple[tuple[Factor, ...], Values]]:
    """Polynomial normal form: a sum of products, each as its factors and one vector of values.

    Inner sums need no marker, as every variable that is not a key of the whole is summed away in the end.
    """
    match term:
        case Plus(terms):
            return [m for t in terms for m in monomials(t)]
        case Prod(terms):
            return [_multiply(choice) for choice in product(*(monomials(t) for t in terms))]
        case Sum(_, inner):
            return monomials(inner)
        case Values():
            return [((), term)]
    return [((term,), Values(((),)))]


def _multiply(choice: tuple[tuple[tuple[Factor, ...], Values], ...]) -> tuple[tuple[Factor, ...], Values]:
    factors = tuple(f for some, _ in choice for f in some)
    width = max((len(values.lanes) for _, values in choice), default=1)
    lanes: list[Lane | None] = [()] * width
    for _, values in choice:  # NB: a single lane is a scalar and embeds diagonally
        factors_of = values.lanes * (width if len(values.lanes) == 1 else 1)
        lanes = [None if a is None or b is None else a + b for a, b in zip(lanes, factors_of, strict=True)]
    return factors, Values(tuple(lanes))
