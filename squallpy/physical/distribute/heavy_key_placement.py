"""Equi-joins placed by hash, with grids for keys that prove heavy (thesis §4.4.4).

    M_R(k, v) by k, M_S(k, w) by k   →   by k, if heavy by rows of its grid; by k, if heavy by columns

So `auto` is Hybrid where a joiner stores tuples by key: heavy keys are found by observation, and without any, tuples
are routed as by hashing. Nothing is observed where no key can be heavy, or where a grid would not help: pre-aggregated
deltas have few records per key.
"""

from collections.abc import Iterator

from squallpy.catalog.relation import Relation
from squallpy.physical.distribute.distributed_program import KeyHashing, Placements
from squallpy.physical.distribute.initial_grids import fields_of, side_of
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.unique_keys import finds_one, known_keys
from squallpy.program.views import Monomial, View

HEAVY_FRACTION = 1 / 16  # of the mean joiner's work makes a key heavy
RelationField = tuple[str, str]  # a relation's
EquatedFields = tuple[
    frozenset[RelationField], ...
]  # the hash key of a view: for each of its keys all fields that are equal to it


def why_light(program: TriggerProgram, places: Placements) -> dict[str, str]:
    """List hashed views with the reason why no key of theirs can need a grid, empty if one can."""
    found = {
        name: "pre-aggregated deltas have few records per key" for name, at in places.items() if isinstance(at, tuple)
    }
    for names in _hashed_groups(program, places):
        found |= dict.fromkeys(names, "keys are unique" if _are_unique(program, places, names) else "")
    return found


def add_heavy_key_grids(program: TriggerProgram, places: Placements) -> Iterator[Placements]:
    """Yield placements with grids for the heavy keys of one equality, that of most streams first."""
    views = {view.name: view for view in program.views}
    for names in _hashed_groups(program, places):
        if not _are_unique(program, places, names):
            known = {relation for name in names for relation in _relations(views[name])}
            read = (atom.relation for view in program.results for atom in view.atoms)
            first = next(relation.name for relation in read if relation in known)
            hashed = _hashed_views(program, places, names)
            yield {**places, **{view.name: KeyHashing(side_of(view, first), by) for view, by in hashed}}


def _are_unique(program: TriggerProgram, places: Placements, names: list[str]) -> bool:
    """True if a key has at most one record in each of the views."""
    keys = known_keys(program)
    return all(finds_one(v, [v.keys[i] for i in by], keys) for v, by in _hashed_views(program, places, names))


def _hashed_groups(program: TriggerProgram, places: Placements) -> list[list[str]]:
    """Group the hashed views of rows by the equality that hashes them."""
    results = [view for output, view in program.printed if output.repeat]
    terms = [term for view in results for term in view.terms]
    equal = {field: same for term in terms for same in _equated_fields(term) for field in same}
    found: dict[EquatedFields, list[str]] = {}
    for view in program.stored if results else ():
        place = places.get(view.name)
        if isinstance(place, tuple) and place and len(equated := _equated_keys(view, place, equal)) == len(place):
            found.setdefault(equated, []).append(view.name)
    streams = {view.name: sum(r.stream for r in _relations(view)) for view in program.views}
    return sorted(found.values(), key=lambda names: -sum(streams[name] for name in names))


def _equated_fields(term: Monomial) -> Iterator[frozenset[RelationField]]:
    """Yield the sets of fields that atoms equate."""
    for variable, fields in fields_of(term).items():
        if sum(variable in dict(atom.fields).values() for atom in term.atoms) > 1:
            yield frozenset(fields)


def _equated_keys(
    view: View, place: tuple[int, ...], equal: dict[RelationField, frozenset[RelationField]]
) -> EquatedFields:
    """List the fields equated with each key of a placement, as far as there are any."""
    fields = {v: (atom.relation.name, f) for atom in view.atoms for f, v in atom.fields}
    return tuple(equal[fields[v]] for v in (view.keys[i] for i in place) if v in fields and fields[v] in equal)


def _hashed_views(
    program: TriggerProgram, places: Placements, names: list[str]
) -> Iterator[tuple[View, tuple[int, ...]]]:
    for view in program.views:
        if view.name in names:
            place = places[view.name]
            assert isinstance(place, tuple)
            yield view, place


def _relations(view: View) -> list[Relation]:
    return [atom.relation for atom in view.atoms]
