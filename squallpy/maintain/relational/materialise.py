"""Recursive materialisation (`dbtoaster-batch-ivm` §2.2): from a query to views and triggers.

For each delta of each view, the factors that the batch does not change are materialised, each connected component as a
view; then the same for those views, until deltas read no relation. Views equal up to renaming are shared, including the
ones of auxiliary relations.

    Q(b) = Sum_[b](R(a,b) ⋈ S(b,c) ⋈ T(c,d))   →   Q(b), M_RS(b,c), M_ST(b), M_R(b), M_S(b,c), M_T(c)

A star of n relations has 2ⁿ joins, each of them read by some delta. If a query's views would be far more than its
relations, the relations are materialised one by one, and its deltas join them: first-order maintenance.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import or_
from typing import TYPE_CHECKING

from squallpy.base.errors import SquallError
from squallpy.base.free_names import FreeNames
from squallpy.base.records import dataclass
from squallpy.base.settings import MOST_STATEMENTS
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.maintain.relational.delta_rules import delta, monomials, telescope
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Prod, Sum, Values
from squallpy.program.components import Component, MixedVersionsError, Split, joins_read_by_deltas, split
from squallpy.program.trigger_program import Lowered, Statement, Trigger, TriggerProgram
from squallpy.program.view_registry import ViewRegistry
from squallpy.program.views import Monomial, Ref, View, index_atoms

if TYPE_CHECKING:
    from squallpy.maintain.factorised.compile_view_tree import FactorisedView

Joined = tuple[str, ...]  # the relations of a query or auxiliary relation
MOST = 8  # views for each relation of a query or auxiliary relation, before they are too many
MOST_TERMS = 3  # of a delta, for each time that the relation is joined


def materialise(lowered: Lowered, most: int = MOST_STATEMENTS) -> TriggerProgram:
    """Compile the trigger program that maintains a query; static relations only have triggers that load them.

    Raises SQ3001 for one of more than `most` statements.
    """
    root = lowered.views[0]
    apart = frozenset([_relations_joined(root)] if _has_too_many_joins(root, len(lowered.auxiliary)) else ())
    while True:
        try:
            return _materialise(lowered, apart, most)
        except _TooManyViews as many:
            apart |= {many.joined}


def _has_too_many_joins(root: View, others: int) -> bool:
    """True if it can be told before they are made that the first query's deltas would read too many views.

    Args:
        others: The number of views that may have been made for others first.
    """
    most, joins = MOST * len(_relations_joined(root)) + others, set[frozenset[str]]()
    for term in root.terms:
        joins |= {*islice(joins_read_by_deltas(term.body), most)}
    return len(joins) >= most


class _TooManyViews(Exception):
    """Too many views for the deltas of a query or auxiliary relation, and the deltas of those."""

    def __init__(self, joined: Joined) -> None:
        super().__init__(joined)
        self.joined = joined


class _Origins:
    """The first requester of each view, and the number of views that each requested first."""

    def __init__(self) -> None:
        self.roots, self.counts = dict[str, str](), Counter[str]()

    def add(self, name: str, root: str) -> None:
        """Note a request of a view, unless it is not the first one."""
        if name not in self.roots:
            self.roots[name] = root
            self.counts[root] += 1


def _maintain_model(aux: AuxiliaryRelation, free_names: FreeNames) -> "tuple[AuxiliaryRelation, FactorisedView] | None":
    """Build what maintains the view of a model's rows; None for other auxiliary relations."""
    if not isinstance(aux.kind, ModelRows):
        return None
    from squallpy.maintain.factorised.models import maintain_model  # NB: only queries with models import it

    return maintain_model(aux, free_names)


def _materialise(lowered: Lowered, apart: frozenset[Joined], most: int) -> TriggerProgram:
    """Compile the program with the relations of some joins `apart`; raise _TooManyViews for a join that has to be."""
    registry = ViewRegistry("M_")
    free_names = FreeNames((*(v.name for v in lowered.views), *(n.view.name for n in lowered.auxiliary)))
    models = [_maintain_model(aux, free_names) for aux in lowered.auxiliary]
    given = (model[0] if model else n for n, model in zip(lowered.auxiliary, models, strict=True))
    lowered = replace(lowered, auxiliary=tuple(given))
    plain = [n for n, model in zip(lowered.auxiliary, models, strict=True) if model is None]
    factorised = [model[1] for model in models if model]
    roots = (*lowered.views, *(n.view for n in plain))
    joined = {view.name: _relations_joined(view) for view in roots}
    origins = _Origins()
    for view in roots:
        origins.add(view.name, view.name)
    own = {view.name: view for view in (*lowered.views, *(n.view for n in plain if _is_own(n)))}
    relations = (*lowered.relations, *(aux.relation for aux in lowered.auxiliary))
    views: dict[str, View] = {}
    changes: dict[str, dict[str, list[_Change]]] = {relation.name: {} for relation in relations}  # by view
    found_so_far = named = 0
    while True:  # NB: until no statement reads a view or a lane that does not exist yet
        sources = [_source(aux, registry) for aux in lowered.auxiliary]
        auxiliary = tuple(replace(n, source=source) for n, source in zip(lowered.auxiliary, sources, strict=True))
        for n, source in zip(auxiliary, sources, strict=True):
            origins.add(source.name, n.view.name)
        found = own | {v.name: v for v in registry.views}
        new = [view for name, view in found.items() if views.get(name) != view]
        if not new:
            break
        for view in new:
            root = origins.roots[view.name]
            uses = index_atoms((view,))
            for relation in (r for r in relations if r.name in uses):
                terms = {id(term): term for _, term, _ in uses[relation.name]}.values()
                made = [c for t in terms for c in _changes(view, t, relation, registry, joined[root] in apart)]
                found_so_far += len(made) - len(changes[relation.name].get(view.name, ()))
                changes[relation.name][view.name] = made
            for name in registry.names_from(named):
                origins.add(name, root)
            named = len(registry.entries)
            if joined[root] not in apart and origins.counts[root] > MOST * len(joined[root]):
                raise _TooManyViews(joined[root])
            if found_so_far > most:
                raise _too_many_statements(found_so_far, most)
        views = found

    complex_first = {view.name: number for number, view in enumerate(sorted(views.values(), key=lambda v: -v.degree))}
    triggers = []
    for relation in sorted(relations, key=lambda r: r.stream):  # NB: static tables are loaded before the first changes
        deltas = ViewRegistry("Δ", "′", ids=registry.ids)  # NB: they read variables named by the other one
        changed = sorted(changes[relation.name], key=complex_first.__getitem__)
        statements = [c.statement(views[name], deltas) for name in changed for c in changes[relation.name][name]]
        statements += [s for tree in factorised for s in tree.statements(relation, deltas)]
        if statements:
            triggers.append(Trigger(relation, deltas.views, tuple(statements)))
    stored = (*views.values(), *(view for tree in factorised for view in tree.views))
    return TriggerProgram(stored, tuple(triggers), lowered.outputs, lowered.result_of, auxiliary)


def _too_many_statements(statements: int, most: int) -> SquallError:
    """Make the error for a query of at least this many statements."""
    message = f"the query needs at least {statements:,} statements to be maintained, more than {most:,}"
    return SquallError("SQ3001", message, hint=f"join fewer copies of a stream, or --set statements={10 * most}")


def _relations_joined(view: View) -> Joined:
    """List each relation as often as one product joins it: a LEFT JOIN doubles the products, not the relations."""
    times = (Counter(atom.relation.name for atom in term.atoms) for term in view.terms)
    return tuple(sorted(reduce(or_, times, Counter[str]()).elements()))


def _is_own(aux: AuxiliaryRelation) -> bool:
    """True if its view is not shared: it is no product, or the relation itself changes it."""
    return len(aux.view.terms) > 1 or aux.kind.owns_view


def _source(aux: AuxiliaryRelation, registry: ViewRegistry) -> Ref:
    """Materialise the view that an auxiliary relation is made of, shared where possible."""
    view = aux.view
    if isinstance(aux.kind, ModelRows):
        return Ref(view.name, view.keys, (0,))
    if _is_own(aux):
        return Ref(view.name, view.keys, tuple(range(len(view.terms[0].lanes))))
    (term,) = view.terms
    return Ref(*registry.request(Component(term.body, view.keys, term.lanes)))


@dataclass(frozen=True, slots=True)
class _Change:
    """A monomial of a delta in its components, with their views; None for a delta."""

    parts: Split
    refs: tuple[Ref | None, ...]

    def statement(self, view: View, deltas: ViewRegistry) -> Statement:
        pairs = zip(self.parts.components, self.refs, strict=True)
        refs = tuple(Ref(*deltas.request(unit)) if ref is None else ref for unit, ref in pairs)
        return Statement(view.name, view.keys, refs, self.parts.filters, self.parts.lanes)


def _changes(view: View, term: Monomial, relation: Relation, views: ViewRegistry, apart: bool) -> Iterator[_Change]:
    """Yield the changes of a view by a batch of a relation that a term of it reads, one for each monomial of the delta.

    A static relation changes only what reads no stream.
    """
    if not relation.stream and any(atom.relation.stream for atom in term.atoms):
        return
    for parts in _split_delta(term, relation, view.keys, apart):
        refs = (
            None if unit.is_delta else Ref(*views.request(unit), is_after=unit.is_after) for unit in parts.components
        )
        yield _Change(parts, tuple(refs))


def _split_delta(term: Monomial, relation: Relation, keys: tuple[Column, ...], apart: bool) -> list[Split]:
    """List the monomials of a delta, each in units of one version.

    NEW R(a,b) ⋈ ΔR(b,c) ⋈ R(c,a)   →   R(a,b) ⋈ ΔR(b,c) ⋈ R(c,a)  +  ΔR(a,b) ⋈ ΔR(b,c) ⋈ R(c,a)

    An atom of after the batch is so made one of before it and its change, where it would else be in a component with
    those of before it. If that made more than MOST_TERMS for each atom, the component is cut.
    """
    body, found = list(term.body), list[Split]()
    order = telescope(body, relation)
    ordered = Prod((*(body[i] for i in order), Values(term.lanes)))
    places = {place: at for at, place in enumerate(order)}
    first = [
        (tuple(factors[places[i]] for i in range(len(body))), values)
        for factors, values in monomials(delta(Sum(keys, ordered), relation.name))
    ]
    left = first[::-1]
    while left and len(left) + len(found) <= MOST_TERMS * len(first):
        factors, values = left.pop()
        try:
            found.append(split(factors, values, keys, apart))
        except MixedVersionsError as mixed:
            for version in (replace(mixed.atom, is_after=False, delta=True), replace(mixed.atom, is_after=False)):
                left.append((tuple(version if f is mixed.atom else f for f in factors), values))
    return [split(factors, values, keys, apart, split_versions=True) for factors, values in first] if left else found
