"""Counts that only say whether a group has rows, kept at one at most."""

from collections.abc import Iterable
from dataclasses import replace

from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Call, Column, Expr, Literal, children
from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign, Rel, variables
from squallpy.program.trigger_program import Lowered
from squallpy.program.views import Monomial, View, index_atoms


def clamp_existence_counts(lowered: Lowered, _: PassContext) -> Lowered:
    """Make counts that are only compared with 0 one at most, so that one more or less is no change.

    N(k, found) ⋈ (found > 0)   →   N(k, LEAST(found, 1)) ⋈ (found > 0)
    """
    uses = index_atoms((*lowered.views, *(aux.view for aux in lowered.auxiliary)))
    clamped = (_clamp_counts(n) if counts_only_existence(n, uses[n.relation.name]) else n for n in lowered.auxiliary)
    return replace(lowered, auxiliary=tuple(clamped))


def _clamp_counts(aux: AuxiliaryRelation) -> AuxiliaryRelation:
    """Clamp counts to at most 1."""
    counts = {measure.column for measure in aux.output.measures}
    items = ((title, call("least", e, Literal(1, e.type)) if e in counts else e) for title, e in aux.output.items)
    return replace(aux, output=replace(aux.output, items=tuple(items)))


def has_plain_items(aux: AuxiliaryRelation) -> bool:
    """True if the fields of its rows are distinct keys and measures, unchanged."""
    shown = [expr for _, expr in aux.output.items]
    return len(set(shown)) == len(shown) and all(isinstance(expr, Column) for expr in shown)


def counts_only_existence(aux: AuxiliaryRelation, uses: Iterable[tuple[Rel, Monomial, View]]) -> bool:
    """True if its counts are only compared with 0 where it is used."""
    output = aux.output
    if output.aggregated_key or output.having or output.times or not aux.is_by_group or not has_plain_items(aux):
        return False
    if not output.measures or any(measure.function != "count" for measure in output.measures):
        return False
    counts = {title for title, expr in output.items if expr in {measure.column for measure in output.measures}}
    for atom, term, view in uses:
        counts_read = {v for title, v in atom.fields if title in counts}
        lanes = (factor for lane in term.lanes for factor in lane or ())
        others = [f for f in term.body if f is not atom]
        joined = (v for f in others if isinstance(f, Rel) for v in variables(f))
        predicates = (f.value if isinstance(f, Assign) else f.predicate for f in others if not isinstance(f, Rel))
        if any(_reads_more(expr, counts_read) for expr in (*view.keys, *lanes, *joined, *predicates)):
            return False
    return True


def _reads_more(expr: Expr, counts: set[Column]) -> bool:
    """True if an expression reads counts other than by comparing them with 0."""
    match expr:
        case Column():
            return expr in counts
        case Call(">", (Column(), Literal(0))):
            return False
    return any(_reads_more(child, counts) for child in children(expr))
