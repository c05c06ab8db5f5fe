"""Delta rules for batches of inserts and deletes, and polynomial normal form (`dbtoaster-batch-ivm` §3.1).

Δ_R(R(a,b) ⋈ S(b,c))            →  ΔR(a,b) ⋈ S(b,c)
Δ_R(R(a,b) ⋈ R(b,c) ⋈ R(c,d))   →  ΔR(a,b) ⋈ R(b,c) ⋈ R(c,d)  +  NEW R(a,b) ⋈ ΔR(b,c) ⋈ R(c,d)
                                   +  NEW R(a,b) ⋈ NEW R(b,c) ⋈ ΔR(c,d)

The paper's rule for products, ΔA ⋈ B + A ⋈ ΔB + ΔA ⋈ ΔB, has 2ⁿ − 1 terms for n factors that change. With one delta
per term, factors to its left after the batch (NEW R = R + ΔR) and factors to its right before it, there are n terms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.program.calculus import ZERO, Factor, Lane, Plus, Prod, Rel, Sum, Term, Values, relations, variables


def delta(term: Term, relation: str) -> Term:
    """Derive the change of `term` when a batch changes `relation`; ZERO for a term that does not read it."""
    if relation not in relations(term):
        return ZERO
    match term:
        case Rel():
            return replace(term, delta=True)
        case Plus(terms):
            return Plus(tuple(delta(t, relation) for t in terms))
        case Prod(terms):
            changed = [i for i, t in enumerate(terms) if relation in relations(t)]
            later = [replace_after_batch(t, relation) for t in terms]
            return Plus(tuple(Prod((*later[:i], delta(terms[i], relation), *terms[i + 1 :])) for i in changed))
        case Sum(keys, inner):
            return Sum(keys, delta(inner, relation))
    raise AssertionError(f"no delta rule for {term}")


def replace_after_batch(term: Term, relation: str) -> Term:
    """Replace the contents of `relation` in the term by those after its batch."""
    match term:
        case Rel():
            return replace(term, is_after=True) if term.relation.name == relation and not term.delta else term
        case Plus(terms):
            return Plus(tuple(replace_after_batch(t, relation) for t in terms))
        case Prod(terms):
            return Prod(tuple(replace_after_batch(t, relation) for t in terms))
        case Sum(keys, inner):
            return Sum(keys, replace_after_batch(inner, relation))
    return term


def telescope(body: Sequence[Factor], relation: Relation) -> list[int]:
    """Order a product's factors so that its delta takes them one after the other.

    R(a,b) ⋈ R(b,c) ⋈ R(c,d)   →   R(a,b), R(b,c), R(c,d): before and after the batch lie on either side of ΔR(b,c)

    Atoms of `relation` are taken from one end to the other along what ties atoms together. So those behind any of them
    are joined with it without those before it.
    """
    mine = [i for i, f in enumerate(body) if isinstance(f, Rel) and f.relation == relation]
    if len(mine) < 2:
        return list(range(len(body)))
    near = _ties(body)
    far = _distances(near, mine[0])
    seen, stack = dict[int, None](), [*mine, max(mine, key=lambda i: (far.get(i, 0), i))]
    while stack:
        if (at := stack.pop()) not in seen:
            seen[at] = None
            stack += sorted(near[at] - seen.keys())
    order = iter([i for i in reversed(seen) if i in mine])
    return [next(order) if i in mine else i for i in range(len(body))]


def _ties(body: Sequence[Factor]) -> dict[int, set[int]]:
    """Find the atoms that share variables, or a comparison."""
    ties: dict[Column, set[int]] = {}
    for i, f in enumerate(body):
        for v in variables(f):
            ties.setdefault(v, set()).add(i)
    near = {i: set[int]().union(*(ties[v] for v in variables(f))) for i, f in enumerate(body)}
    atoms = {i for i, f in enumerate(body) if isinstance(f, Rel)}
    through = {i: set[int]().union(*(near[j] for j in near[i] - atoms)) for i in atoms}
    return {i: (near[i] | through[i]) & atoms - {i} for i in atoms}


def _distances(near: Mapping[int, Iterable[int]], start: int) -> dict[int, int]:
    """Compute the distances of all atoms from one."""
    found, ring = {start: 0}, [start]
    while ring:
        ring = [j for i in ring for j in near[i] if j not in found and found.setdefault(j, found[i] + 1)]
    return found


def monomials(term: Term) -> list[tuple[tuple[Factor, ...], Values]]:
    """Expand to polynomial normal form: a sum of products, each as its factors and one vector of values.

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
        if values.lanes == ((),):
            continue
        factors_of = values.lanes * (width if len(values.lanes) == 1 else 1)
        lanes = [None if a is None or b is None else a + b for a, b in zip(lanes, factors_of, strict=True)]
    return factors, Values(tuple(lanes))
