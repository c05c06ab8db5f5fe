"""The registry of materialised views: views that are equal up to the names of their variables are one view.

A view is requested with the lanes that a statement reads; lanes (and their fields) that a known view lacks are added to
it, so that all aggregates over one join share one pool: its payload is their product ring.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from itertools import count, islice

from squallpy.base.free_names import FreeNames
from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr, columns, substitute
from squallpy.program.calculus import Assign, Factor, Lane, Rel
from squallpy.program.canonical_form import CanonicalForm, spell
from squallpy.program.components import Component, prune
from squallpy.program.views import Monomial, View


@dataclass(slots=True)
class _Term:
    """A term of a view in the making. `own_columns` leads from canonical variables (by id) to those of the view."""

    atoms: list[Rel]
    other_factors: tuple[Factor, ...]
    own_columns: dict[int, Column]

    def take(self, spelling: CanonicalForm, product: Collection[Expr], ids: Iterator[int]) -> Lane:
        """Translate a lane in canonical variables to those of the view, whose atoms get the fields that it reads."""
        read = frozenset().union(*map(columns, product))
        for number, (mine, theirs) in enumerate(zip(self.atoms, spelling.atoms, strict=True)):
            for name, v in theirs.fields:
                canonical = spelling.renaming[v.id]
                if canonical.id not in self.own_columns and canonical in read:
                    self.own_columns[canonical.id] = new = replace(v, id=next(ids))
                    mine = self.atoms[number] = replace(mine, fields=(*mine.fields, (name, new)))
        return tuple(substitute(f, dict(self.own_columns)) for f in product)


@dataclass(slots=True)
class _Entry:
    """A view in the making."""

    name: str
    keys: tuple[Column, ...]
    terms: list[_Term]
    lanes: list[tuple[Lane | None, ...]] = field(default_factory=list)
    """Its lanes by number, each as it is in each term."""
    numbers: dict[tuple[frozenset[tuple[Expr, int]] | None, ...], int] = field(default_factory=dict)
    """The lanes by their factors in canonical variables, each with how often it is there."""

    @property
    def view(self) -> View:
        lanes = zip(*self.lanes, strict=True) if self.lanes else ((),) * len(self.terms)
        terms = zip(self.terms, lanes, strict=True)
        return View(self.name, self.keys, tuple(Monomial((*t.atoms, *t.other_factors), own) for t, own in terms))


Request = tuple[str, tuple[Column, ...], tuple[int, ...]]


@dataclass(slots=True)
class ViewRegistry:
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
            self.requests[unit] = self._request((unit,), lambda: self._name(unit))
        return self.requests[unit]

    def request_view(self, view: View) -> Request:
        """Find or make the view that a view is equal to up to names; if none is, it has its own name."""
        return self._request([Component(t.body, view.keys, t.lanes) for t in view.terms], lambda: view.name)

    def _request(self, terms: Sequence[Component], name: Callable[[], str]) -> Request:
        keys, spellings = terms[0].keys, [spell(term) for term in terms]
        # NB: terms that have the same texts, but the keys in other places, are no equal sums
        crossed = [tuple(spelling.renaming[v.id].id for v in keys) for spelling in spellings]
        first = sorted(range(len(keys)), key=crossed[0].__getitem__)
        text = "\n+ ".join(f"{[ids[i] for i in first]} {s.text}" for ids, s in zip(crossed, spellings, strict=True))
        entry = self.entries.get(text) or self._enter(text, terms, spellings, name())
        theirs = dict(zip(crossed[0], keys, strict=True))
        canonical = {v.id: number for number, v in entry.terms[0].own_columns.items()}
        ordered = tuple(theirs[canonical[key.id]] for key in entry.keys)
        lanes = list(zip(*(term.lanes for term in terms), strict=True))
        numbers = {lane: self._lane(entry, spellings, lane) for lane in dict.fromkeys(lanes)}
        return entry.name, ordered, tuple(map(numbers.__getitem__, lanes))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries.values())

    def names_from(self, number: int) -> Iterator[str]:
        """Yield the names of all views from a number on, the last one first."""
        return (entry.name for entry in islice(reversed(self.entries.values()), len(self.entries) - number))

    @property
    def views(self) -> tuple[View, ...]:
        return tuple(entry.view for entry in self.entries.values())

    def _enter(self, text: str, terms: Sequence[Component], spellings: Sequence[CanonicalForm], name: str) -> _Entry:
        made = [_term(term, spelling) for term, spelling in zip(terms, spellings, strict=True)]
        entry = self.entries[text] = _Entry(name, terms[0].keys, made)
        return entry

    def _lane(self, entry: _Entry, spellings: Sequence[CanonicalForm], lanes: tuple[Lane | None, ...]) -> int:
        """Find or add the lane that is these in the terms."""
        if all(lane is None for lane in lanes):
            return -1
        renamed = [
            None if lane is None else tuple(substitute(f, dict(spelling.renaming)) for f in lane)
            for lane, spelling in zip(lanes, spellings, strict=True)
        ]
        product = tuple(None if lane is None else frozenset(Counter(lane).items()) for lane in renamed)
        if product not in entry.numbers:
            entry.numbers[product] = len(entry.lanes)
            parts = zip(entry.terms, spellings, renamed, strict=True)
            entry.lanes.append(tuple(lane if lane is None else t.take(s, lane, self.ids) for t, s, lane in parts))
        return entry.numbers[product]

    def _name(self, unit: Component) -> str:
        names = [f.relation.name.upper() for f in unit.body if isinstance(f, Rel)]
        base = self.prefix + ("" if all(len(n) == 1 for n in names) else "_").join(names)
        return self._free.take(base)


def _term(term: Component, spelling: CanonicalForm) -> _Term:
    """Begin a term without the fields that only lanes read."""
    core = prune(term.body, term.keys, ())
    skeleton = {v for atom in core if isinstance(atom, Rel) for _, v in atom.fields}
    atoms = [replace(a, fields=tuple(pair for pair in a.fields if pair[1] in skeleton)) for a in spelling.atoms]
    rest = tuple(f for f in core if not isinstance(f, Rel))
    bound = (v for f in (*atoms, *rest) for v in _binds(f))
    return _Term(atoms, rest, {spelling.renaming[v.id].id: v for v in bound})


def _binds(factor: Factor) -> tuple[Column, ...]:
    match factor:
        case Rel(_, fields):
            return tuple(v for _, v in fields)
        case Assign(variable):
            return (variable,)
    return ()
