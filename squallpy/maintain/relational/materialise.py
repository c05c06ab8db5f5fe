"""Recursive materialisation (`dbtoaster-batch-ivm` §2.2): from a query to views and triggers.

For each delta of each view, the parts that the batch does not change are materialised, each connected component on its
own; then the same for those views, until deltas read no relation. Views equal up to renaming are shared, those that
nests are made of among them.

    Q(b) = Sum_[b](R(a,b) ⋈ S(b,c) ⋈ T(c,d))   →   Q(b), M_RS(b,c), M_ST(b), M_R(b), M_S(b,c), M_T(c)
"""

from dataclasses import dataclass, replace

from squallpy.catalog.relation import Relation
from squallpy.maintain.program import Monomial, Program, Ref, Statement, Trigger, View
from squallpy.maintain.relational.calculus import Prod, Sum, Values
from squallpy.maintain.relational.delta import delta, monomials
from squallpy.maintain.relational.lower import Lowered
from squallpy.maintain.relational.registry import Registry
from squallpy.maintain.relational.units import Split, Unit, split


def materialise(lowered: Lowered) -> Program:
    """The trigger program that keeps a query fresh; static relations only have triggers that load them."""
    registry = Registry("M_")
    own = {view.name: view for view in (lowered.view, *(n.view for n in lowered.nests if len(n.view.terms) > 1))}
    relations = (*lowered.relations, *(nest.relation for nest in lowered.nests))
    views: dict[str, View] = {}
    changes: dict[tuple[str, str], list[_Change]] = {}  # by view and relation
    while True:  # until no statement asks for a view or a lane that is not there yet
        nests = tuple(replace(nest, source=_source(nest.view, registry)) for nest in lowered.nests)
        found = own | {v.name: v for v in registry.views}
        new = [view for name, view in found.items() if views.get(name) != view]
        if not new:
            break
        for view in new:
            for relation in relations:
                changes[view.name, relation.name] = _changes(view, relation, registry)
        views = found

    triggers = []
    for relation in sorted(relations, key=lambda r: r.stream):  # static tables are loaded before the first changes
        deltas = Registry("Δ", "′")
        statements = [
            change.statement(view, deltas)
            for view in sorted(views.values(), key=lambda v: -v.degree)
            for change in changes[view.name, relation.name]
        ]
        if statements:
            triggers.append(Trigger(relation, deltas.views, tuple(statements)))
    return Program(tuple(views.values()), tuple(triggers), lowered.finish, nests)


def _source(view: View, registry: Registry) -> Ref:
    """The view that a nest is made of, shared where it is one product."""
    if len(view.terms) > 1:
        return Ref(view.name, view.keys, tuple(range(len(view.terms[0].lanes))))
    (term,) = view.terms
    return Ref(*registry.request(Unit(term.body, view.keys, term.lanes)))


@dataclass(frozen=True, slots=True)
class _Change:
    """A monomial of a delta in its parts, and the views that hold them; None for what the batch itself has."""

    parts: Split
    refs: tuple[Ref | None, ...]

    def statement(self, view: View, deltas: Registry) -> Statement:
        pairs = zip(self.parts.units, self.refs, strict=True)
        refs = tuple(Ref(*deltas.request(unit)) if ref is None else ref for unit, ref in pairs)
        return Statement(view.name, view.keys, refs, self.parts.filters, self.parts.lanes)


def _changes(view: View, relation: Relation, views: Registry) -> list[_Change]:
    """What a batch of changes to `relation` adds to `view`, each monomial of the delta apart."""
    found = []
    for term in (t for t in view.terms if _reads(t, relation)):
        change = delta(Sum(view.keys, Prod((*term.body, Values(term.lanes)))), relation.name)
        for factors, values in monomials(change):
            parts = split(factors, values, view.keys)
            refs = (None if unit.is_delta else Ref(*views.request(unit)) for unit in parts.units)
            found.append(_Change(parts, tuple(refs)))
    return found


def _reads(term: Monomial, relation: Relation) -> bool:
    """Whether there are statements for it: for streams, and for all relations where only static tables are read."""
    read = [atom.relation for atom in term.atoms]
    return relation in read and (relation.stream or not any(r.stream for r in read))
