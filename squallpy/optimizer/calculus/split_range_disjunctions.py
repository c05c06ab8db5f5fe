"""Split of a disjunction that bounds a variable from both sides: the sum of two ranges, less their intersection.

    BIDS(b, p) ⋈ ASKS(b, q) ⋈ (q > p + 10 OR q < p - 10)
 →  BIDS ⋈ ASKS ⋈ (q > p + 10)  +  BIDS ⋈ ASKS ⋈ (q < p - 10)  −  BIDS ⋈ ASKS ⋈ (q > p + 10) ⋈ (q < p - 10)

Each range of a sorted index costs a logarithm, where the disjunction would scan all asks of a broker. n disjunctions
make 3ⁿ products: all but the first few stay filters.
"""

from dataclasses import replace

from squallpy.logical.expressions import Call, Column, Expr, columns, disjunction, disjuncts
from squallpy.logical.monotonicity import FALLING, RISING, direction
from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.calculus import MINUS, Cmp
from squallpy.program.trigger_program import Lowered
from squallpy.program.views import Monomial, View

MOST_SPLITS = 3  # disjunctions of a product


def split_range_disjunctions(lowered: Lowered, _: PassContext) -> Lowered:
    """Split disjunctions that bound a column from both sides into sums of ranges, in the query and its subqueries."""
    auxiliary = tuple(replace(aux, view=_split(aux.view)) for aux in lowered.auxiliary)
    return replace(lowered, views=tuple(map(_split, lowered.views)), auxiliary=auxiliary)


def _split(view: View) -> View:
    return replace(view, terms=tuple(part for term in view.terms for part in _split_term(term, MOST_SPLITS)))


def _split_term(term: Monomial, most: int) -> list[Monomial]:
    for i, factor in enumerate(term.body) if most else ():
        match factor:
            case Cmp(Call("or") as predicate) if _is_split(predicate, term):
                first, *more = disjuncts(predicate)
                one, others = (Cmp(first),), (Cmp(disjunction(more)),)
                taken = tuple(None if lane is None else (*lane, MINUS) for lane in term.lanes)
                parts = ((one, term.lanes), (others, term.lanes), ((*one, *others), taken))
                before, after = term.body[:i], term.body[i + 1 :]
                return [
                    p for body, lanes in parts for p in _split_term(Monomial((*before, *body, *after), lanes), most - 1)
                ]
    return [term]


def _is_split(predicate: Expr, term: Monomial) -> bool:
    """True if the disjuncts bound a variable of one atom from both sides, by variables of others."""
    read = columns(predicate)
    if any(read <= {v for _, v in atom.fields} for atom in term.atoms):
        return False
    return any(_sides(predicate, column) == {RISING, FALLING} for column in read)


def _sides(predicate: Expr, column: Column) -> set[int | None]:
    return {direction(part, column) for part in disjuncts(predicate)}
