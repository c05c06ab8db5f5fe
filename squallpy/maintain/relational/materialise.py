"""Recursive materialisation (`dbtoaster-batch-ivm` §2.2): from a query to views and triggers.

For each delta of each view, the parts that the batch does not change are materialised, each connected component on its
own; then the same for those views, until deltas read no relation. Views equal up to renaming are shared, those that
nests are made of among them.

    Q(b) = Sum_[b](R(a,b) ⋈ S(b,c) ⋈ T(c,d))   →   Q(b), M_RS(b,c), M_ST(b), M_R(b), M_S(b,c), M_T(c)
"""

from dataclasses import replace

from squallpy.catalog.relation import Relation
from squallpy.maintain.program import Monomial, Program, Ref, Statement, Trigger, View
from squallpy.maintain.relational.calculus import Prod, Rel, Sum, Values
from squallpy.maintain.relational.delta import delta, monomials
from squallpy.maintain.relational.lower import Lowered
from squallpy.maintain.relational.registry import Registry
from squallpy.maintain.relational.units import Unit, split


def materialise(lowered: Lowered) -> Program:
    """The trigger program that keeps a query fresh; static relations only have triggers that load them."""
    registry = Registry("M_")
    own = {view.name: view for view in (lowered.view, *(n.view for n in lowered.nests if len(n.view.terms) > 1))}
    relations = (*lowered.relations, *(nest.relation for nest in lowered.nests))
    views: dict[str, View] = {}
    while True:  # until no statement asks for a view or a lane that is not there yet
        nests = tuple(replace(nest, source=_source(nest.view, registry)) for nest in lowered.nests)
        found = own | {v.name: v for v in registry.views}
        new = [view for name, view in found.items() if views.get(name) != view]
        if not new:
            break
        for view in new:
            for relation in relations:
                _statements(view, relation, registry, Registry("Δ", "′"))
        views = found

    triggers = []
    for relation in sorted(relations, key=lambda r: r.stream):  # static tables are loaded before the first changes
        deltas = Registry("Δ", "′")
        statements = [
            statement
            for view in sorted(views.values(), key=lambda v: -v.degree)
            for statement in _statements(view, relation, registry, deltas)
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


def _changes(term: Monomial, relation: Relation) -> bool:
    """Whether there are statements for it: for streams, and for all relations where only static tables are read."""
    read = [atom.relation for atom in term.atoms]
    return relation in read and (relation.stream or not any(r.stream for r in read))


def _statements(view: View, relation: Relation, views: Registry, deltas: Registry) -> list[Statement]:
    """What a batch of changes to `relation` adds to `view`, one statement for each monomial of the delta."""
    statements = []
    for term in (t for t in view.terms if _changes(t, relation)):
        change = delta(Sum(view.keys, Prod((*term.body, Values(term.lanes)))), relation.name)
        for factors, values in monomials(change):
            parts = split(factors, values, view.keys)
            refs = []
            for unit in parts.units:
                changed = any(isinstance(f, Rel) and f.delta for f in unit.body)
                refs.append(Ref(*(deltas if changed else views).request(unit)))
            statements.append(Statement(view.name, view.keys, tuple(refs), parts.filters, parts.lanes))
    return statements
