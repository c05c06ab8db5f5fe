"""The registry of materialised views: views that are equal up to the names of their variables are one view.

A view is requested with the lanes that a statement reads; lanes (and their fields) that a known view lacks are added to
it, so that all aggregates over one join share one pool: its payload is their product ring.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from squallpy.base.free_names import FreeNames
from squallpy.logical.expressions import Column, Expr, columns, substitute
from squallpy.maintain.relational.canonical_form import CanonicalForm, spell
from squallpy.program.calculus import Assign, Factor, Lane, Rel
from squallpy.program.components import Component, prune
from squallpy.program.views import Monomial, View


@dataclass(slots=True)
class _Entry:
    """A view in the making. `own_columns` leads from canonical variables (by id) to those of the view."""

    name: str
    keys: tuple[Column, ...]
    atoms: list[Rel]
    other_factors: tuple[Factor, ...]
    own_columns: dict[int, Column]
    lanes: list[Lane] = field(default_factory=list)
    numbers: dict[frozenset[tuple[Expr, int]], int] = field(default_factory=dict)
    """The lanes by their factors in canonical variables, each with how often it is there."""

    @property
    def view(self) -> View:
        return View(self.name, self.keys, (Monomial((*self.atoms, *self.other_factors), tuple(self.lanes)),))


Request = tuple[str, tuple[Column, ...], tuple[int, ...]]


@dataclass(slots=True)
class Registry:
    """Views in the order in which they were asked for; `prefix` begins their names, `mark` numbers those alike."""

    prefix: str
    mark: str = "_"
    entries: dict[str, _Entry] = field(default_factory=dict)
    requests: dict[Component, Request] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=lambda: count(1_000_000))
    _free: FreeNames = field(init=False)

    def __post_init__(self) -> None:
        self._free = FreeNames(mark=self.mark)

    def request(self, unit: Component) -> Request:
        """Find or make the view of a unit: its name, the unit's variables in key order, and the numbers of its lanes.

        A lane that is None has the number −1.
        """
        if unit not in self.requests:
            self.requests[unit] = self._request(unit)
        return self.requests[unit]

    def _request(self, unit: Component) -> Request:
        spelling = spell(unit)
        entry = self.entries.get(spelling.text) or self._enter(unit, spelling)
        theirs = {spelling.renaming[v.id].id: v for v in unit.keys}
        canonical = {v.id: number for number, v in entry.own_columns.items()}
        ordered = tuple(theirs[canonical[key.id]] for key in entry.keys)
        lanes = {lane: self._lane(entry, spelling, lane) for lane in unit.lanes if lane is not None}
        return entry.name, ordered, tuple(-1 if lane is None else lanes[lane] for lane in unit.lanes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries.values())

    @property
    def views(self) -> tuple[View, ...]:
        return tuple(entry.view for entry in self.entries.values())

    def _enter(self, unit: Component, spelling: CanonicalForm) -> _Entry:
        core = prune(unit.body, unit.keys, ())
        kept = {atom.fields for atom in core if isinstance(atom, Rel)}
        skeleton = {v for fields in kept for _, v in fields}
        atoms = [replace(a, fields=tuple(pair for pair in a.fields if pair[1] in skeleton)) for a in spelling.atoms]
        rest = tuple(f for f in core if not isinstance(f, Rel))
        bound = (v for f in (*atoms, *rest) for v in _binds(f))
        own = {spelling.renaming[v.id].id: v for v in bound}
        entry = self.entries[spelling.text] = _Entry(self._name(unit), unit.keys, atoms, rest, own)
        return entry

    def _lane(self, entry: _Entry, spelling: CanonicalForm, lane: Lane) -> int:
        names: dict[int, Expr] = {**spelling.renaming}
        renamed = tuple(substitute(f, names) for f in lane)
        product = frozenset(Counter(renamed).items())
        if product not in entry.numbers:
            read = frozenset().union(*map(columns, lane))
            for number, (mine, theirs) in enumerate(zip(entry.atoms, spelling.atoms, strict=True)):
                for name, v in theirs.fields:
                    canonical = spelling.renaming[v.id]
                    if canonical.id not in entry.own_columns and v in read:
                        entry.own_columns[canonical.id] = new = replace(v, id=next(self.ids))
                        mine = entry.atoms[number] = replace(mine, fields=(*mine.fields, (name, new)))
            entry.numbers[product] = len(entry.lanes)
            entry.lanes.append(tuple(substitute(f, dict(entry.own_columns)) for f in renamed))
        return entry.numbers[product]

    def _name(self, unit: Component) -> str:
        names = [f.relation.name.upper() for f in unit.body if isinstance(f, Rel)]
        base = self.prefix + ("" if all(len(n) == 1 for n in names) else "_").join(names)
        return self._free.take(base)


def _binds(factor: Factor) -> tuple[Column, ...]:
    match factor:
        case Rel(_, fields):
            return tuple(v for _, v in fields)
        case Assign(variable):
            return (variable,)
    return ()
