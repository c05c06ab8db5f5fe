"""Recursive materialisation (`dbtoaster-batch-ivm` §2.2): from a query to views and triggers.

For each delta of each view, the parts that the batch does not change are materialised, each connected component on its
own; then the same for those views, until deltas read no relation. Views equal up to renaming are shared.

    Q(b) = Sum_[b](R(a,b) ⋈ S(b,c) ⋈ T(c,d))   →   Q(b), M_RS(b,c), M_ST(b), M_R(b), M_S(b,c), M_T(c)
"""

from squallpy.catalog.relation import Relation
from squallpy.maintain.program import Finish, Program, Ref, Statement, Trigger, View
from squallpy.maintain.relational.calculus import Prod, Rel, Sum, Values
from squallpy.maintain.relational.delta import delta, monomials
from squallpy.maintain.relational.registry import Registry
from squallpy.maintain.relational.units import split


def materialise(result: View, finish: Finish, relations: tuple[Relation, ...]) -> Program:
    """The trigger program that keeps `result` fresh; static relations only have triggers that load them."""
    registry = Registry("M_")
    views = {result.name: result}
    while True:  # until no statement asks for a view or a lane that is not there yet
        for view in views.values():
            for relation in _changing(view, relations):
                _statements(view, relation, registry, Registry("Δ", "′"))
        found = {result.name: result} | {v.name: v for v in registry.views}
        if found == views:
            break
        views = found

    triggers = []
    for relation in sorted(relations, key=lambda r: r.stream):  # static tables are loaded before the first changes
        deltas = Registry("Δ", "′")
        statements = [
            statement
            for view in sorted(views.values(), key=lambda v: -v.degree)
            if relation in _changing(view, relations)
            for statement in _statements(view, relation, registry, deltas)
        ]
        if statements:
            triggers.append(Trigger(relation, deltas.views, tuple(statements)))
    return Program(tuple(views.values()), tuple(triggers), finish)


def _changing(view: View, relations: tuple[Relation, ...]) -> list[Relation]:
    """The relations for which a view has statements: streams, and all of them where it reads static tables alone."""
    read = {atom.relation.name for atom in view.atoms}
    static = not any(r.stream for r in relations if r.name in read)
    return [r for r in relations if r.name in read and (r.stream or static)]


def _statements(view: View, relation: Relation, views: Registry, deltas: Registry) -> list[Statement]:
    """What a batch of changes to `relation` adds to `view`, one statement for each monomial of the delta."""
    statements = []
    change = delta(Sum(view.keys, Prod((*view.body, Values(view.lanes)))), relation.name)
    for factors, values in monomials(change):
        parts = split(factors, values, view.keys)
        refs = []
        for unit in parts.units:
            changed = any(isinstance(f, Rel) and f.delta for f in unit.body)
            refs.append(Ref(*(deltas if changed else views).request(unit)))
        statements.append(Statement(view.name, view.keys, tuple(refs), parts.filters, parts.lanes))
    return statements
