"""Placement of a join of many relations on a hypercube of joiners.

    R(a, x), S(a, y), T(z) joined by r.a = s.a AND r.x < t.z    →   dimension 0: the hash of a, for R and S
                                                                    dimension 1: the hash of T's rows (its ticket)

Streams send their rows to the joiners that have their coordinates, and to all along the other dimensions. There each
joiner maintains its own part of every view, so nothing but rows of streams is exchanged. An equality of columns is a
dimension on which all its relations are hashed; a relation without one has a dimension of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.physical.distribute.distributed_program import CellPlacement, Placement, Placements
from squallpy.physical.distribute.initial_grids import fields_of, max_records
from squallpy.physical.distribute.location_tags import EVERYWHERE
from squallpy.physical.joins.hypercube import Hypercube, JoinInput, find_best_hypercube
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.views import Monomial, View

Fields = tuple[str, ...]  # of a relation, in one order for all its deltas


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of the hypercube: its relations, each with the fields whose hash is the coordinate."""

    hashed: Mapping[str, Fields]
    is_equality: bool

    def __str__(self) -> str:
        names = sorted(self.hashed)
        return " = ".join(f"{name}.{self.hashed[name][0]}" for name in names) if self.is_equality else names[0]


@dataclass(frozen=True, slots=True)
class HypercubeJoin:
    """A join whose relations are on the dimensions of a hypercube; one of which no field is read is at all joiners.

    Args:
        has_theta: Some of its relations are joined without an equality.
    """

    dimensions: tuple[Dimension, ...]
    relations: tuple[str, ...]
    has_theta: bool

    def of(self, relation: str) -> tuple[int, ...]:
        """List the dimensions of a relation."""
        return tuple(i for i, dimension in enumerate(self.dimensions) if relation in dimension.hashed)

    def placements(self, program: TriggerProgram) -> dict[str, Placement]:
        """Place the views over its relations alone, and the deltas that are sent to them."""
        sources = {aux.materialised.name for aux in program.auxiliary}
        known = {*self.relations}
        deltas = (delta for trigger in program.triggers for delta in trigger.deltas)
        views = chain((view for view in program.stored if view.name not in sources), deltas)
        read = ((view, {atom.relation.name for atom in view.atoms}) for view in views)
        return {view.name: self._place(view, names) for view, names in read if names and names <= known}

    def _place(self, view: View, names: Iterable[str]) -> Placement:
        on = tuple(sorted({dimension for name in names for dimension in self.of(name)}))
        if not on:
            return EVERYWHERE
        found = (_positions(view, self.dimensions[dimension].hashed) for dimension in on)
        return CellPlacement(on, len(self.dimensions), tuple(found))

    def tickets(self, program: TriggerProgram) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Yield the deltas of its relations, each with the positions of the fields that all deltas of that have."""
        for trigger in program.triggers:
            if trigger.relation.name in self.relations:
                common = _common_fields(program, trigger.relation.name)
                for delta in trigger.deltas:
                    fields = dict(delta.atoms[0].fields)
                    yield delta.name, trigger.relation.name, tuple(delta.keys.index(fields[name]) for name in common)

    def inputs(self, sizes: Mapping[str, float]) -> tuple[JoinInput, ...]:
        """List the relations' sizes with their dimensions."""
        return tuple((sizes.get(name, 0), self.of(name)) for name in self.relations)


def _positions(view: View, hashed: Mapping[str, Fields]) -> tuple[int, ...]:
    """List the positions of the keys that a dimension hashes; () where the view has summed some away."""
    for atom in view.atoms:
        if atom.relation.name in hashed:
            found = [dict(atom.fields).get(name) for name in hashed[atom.relation.name]]
            keys = [view.keys.index(v) for v in found if v is not None and v in view.keys]
            if len(keys) == len(found):
                return tuple(keys)
    return ()


def find_hypercube_join(program: TriggerProgram) -> HypercubeJoin | None:
    """Find the widest join of the program that a hypercube suits: three relations or more, each at one place of it."""
    sources = {aux.materialised.name for aux in program.auxiliary}
    roots = [*program.results, *(view for view in program.stored if view.name in sources)]
    for root in sorted(roots, key=lambda view: -view.degree):
        if root.degree >= 3 and (found := _dimensions_of(program, root)):
            return found
    return None


def _dimensions_of(program: TriggerProgram, root: View) -> HypercubeJoin | None:
    names = [atom.relation.name for atom in root.terms[0].atoms]
    if len({*names}) < len(names) or any({a.relation.name for a in t.atoms} != {*names} for t in root.terms):
        return None
    common = {name: _common_fields(program, name) for name in names}
    equalities = [
        {name: field for name, field in equal.items() if field in common[name]} for equal in _equalities(root.terms)
    ]
    shared = [equal for equal in equalities if len(equal) > 1]
    found = [Dimension({name: (field,) for name, field in equal.items()}, True) for equal in shared]
    hashed = {name for dimension in found for name in dimension.hashed}
    found += [Dimension({name: common[name]}, False) for name in names if name not in hashed and common[name]]
    return HypercubeJoin(tuple(found), tuple(names), _count_components(names, equalities) > 1) if found else None


def _common_fields(program: TriggerProgram, relation: str) -> Fields:
    """List the fields that all deltas of a relation have as keys."""
    deltas = [d for t in program.triggers if t.relation.name == relation for d in t.deltas]
    fields = [{name for name, v in delta.atoms[0].fields if v in delta.keys} for delta in deltas]
    return tuple(sorted(set[str].intersection(*fields))) if fields else ()


def _equalities(terms: Sequence[Monomial]) -> Iterator[dict[str, str]]:
    """Yield the fields that every term equates, one of each relation."""
    first, *others = (_classes(term) for term in terms)
    for equal in first:
        if all(equal in classes for classes in others):
            yield dict(sorted(equal, reverse=True))


def _classes(term: Monomial) -> list[frozenset[tuple[str, str]]]:
    found: dict[Column, set[tuple[str, str]]] = fields_of(term)
    return [frozenset(fields) for fields in found.values() if len({name for name, _ in fields}) > 1]


def _count_components(names: Sequence[str], equalities: Iterable[Mapping[str, str]]) -> int:
    """Count the groups of relations that equalities connect."""
    group = {name: name for name in names}
    for equal in equalities:
        merged = {group[name] for name in equal}
        group = {name: min(merged) if of in merged else of for name, of in group.items()} if merged else group
    return len({*group.values()})


def hypercube_of(
    program: TriggerProgram, places: Placements, join: HypercubeJoin | None, sizes: Mapping[str, int], partitions: int
) -> Hypercube | None:
    """Choose the parts with the least load, over the largest power of two of partitions; None without such views."""
    if join is None or not any(isinstance(place, CellPlacement) for place in places.values()):
        return None
    joiners = 1 << (partitions.bit_length() - 1)
    return find_best_hypercube(joiners, len(join.dimensions), join.inputs(relation_sizes(program, sizes)))


def relation_sizes(program: TriggerProgram, sizes: Mapping[str, int]) -> dict[str, float]:
    """Bound the rows of all relations, those of auxiliary ones by what they are made of."""
    views = {view.name: view for view in program.views}
    made = {aux.relation.name: max_records(views[aux.materialised.name], sizes) for aux in program.auxiliary}
    return {**made, **sizes}
