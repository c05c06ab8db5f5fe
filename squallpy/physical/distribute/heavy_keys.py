"""Equi-joins that cost has hashed, with grids for those of their keys that turn out heavy (thesis §4.4.4).

    M_R(k, v) by k, M_S(k, w) by k   →   by k, if heavy by rows of its grid; by k, if heavy by columns

So `auto` is Hybrid where a joiner holds tuples by key: which keys are heavy is observed, and where none is, tuples go
where they would have gone. Nothing is observed where there can be no heavy key, or where a grid would not help: of what
is added up before it is sent, a key has few records.
"""

from collections.abc import Iterator

from squallpy.catalog.relation import Relation
from squallpy.physical.distribute.initial_grids import fields_of, side_of
from squallpy.physical.distribute.program import Keyed, Places
from squallpy.physical.unique_keys import finds_one, known_keys
from squallpy.program.program import Program
from squallpy.program.views import Monomial, View

SHARE = 1 / 16  # of the mean joiner's work makes a key heavy
Field = tuple[str, str]  # a relation's
Compared = tuple[
    frozenset[Field], ...
]  # what a view is hashed by: for each of its keys all fields that are equal to it


def why_light(program: Program, places: Places) -> dict[str, str]:
    """By view that is hashed: why none of its keys can need a grid; empty if one can."""
    found = {name: "what is added up has few records of a key" for name, at in places.items() if isinstance(at, tuple)}
    for names in _groups(program, places):
        found |= dict.fromkeys(names, "keys are unique" if _are_unique(program, places, names) else "")
    return found


def with_heavy(program: Program, places: Places) -> Iterator[Places]:
    """The places with grids for the heavy keys of one comparison, that of most streams first."""
    views = {view.name: view for view in program.views}
    for names in _groups(program, places):
        if not _are_unique(program, places, names):
            known = {relation for name in names for relation in _of(views[name])}
            first = next(atom.relation.name for atom in program.result.atoms if atom.relation in known)
            hashed = _hashed(program, places, names)
            yield {**places, **{view.name: Keyed(side_of(view, first), by) for view, by in hashed}}


def _are_unique(program: Program, places: Places, names: list[str]) -> bool:
    """Has a key one record at most, in all of the views?"""
    keys = known_keys(program)
    return all(finds_one(v, [v.keys[i] for i in by], keys) for v, by in _hashed(program, places, names))


def _groups(program: Program, places: Places) -> list[list[str]]:
    """The views of rows that are hashed by what is compared, together those that are by the same."""
    if not program.output.repeat:
        return []
    equal = {field: same for term in program.result.terms for same in _equal(term) for field in same}
    found: dict[Compared, list[str]] = {}
    for view in program.views[1:]:
        place = places.get(view.name)
        if isinstance(place, tuple) and place and len(compared := _compared(view, place, equal)) == len(place):
            found.setdefault(compared, []).append(view.name)
    streams = {view.name: sum(r.stream for r in _of(view)) for view in program.views}
    return sorted(found.values(), key=lambda names: -sum(streams[name] for name in names))


def _equal(term: Monomial) -> Iterator[frozenset[Field]]:
    """Fields that atoms have in common."""
    for variable, fields in fields_of(term).items():
        if sum(variable in dict(atom.fields).values() for atom in term.atoms) > 1:
            yield frozenset(fields)


def _compared(view: View, place: tuple[int, ...], equal: dict[Field, frozenset[Field]]) -> Compared:
    """What the keys of a place are compared with, as far as they are."""
    fields = {v: (atom.relation.name, f) for atom in view.atoms for f, v in atom.fields}
    return tuple(equal[fields[v]] for v in (view.keys[i] for i in place) if v in fields and fields[v] in equal)


def _hashed(program: Program, places: Places, names: list[str]) -> Iterator[tuple[View, tuple[int, ...]]]:
    for view in program.views:
        if view.name in names:
            place = places[view.name]
            assert isinstance(place, tuple)
            yield view, place


def _of(view: View) -> list[Relation]:
    return [atom.relation for atom in view.atoms]
