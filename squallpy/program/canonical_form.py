"""Canonical spellings: components that are equal up to the names of their variables have one text.

    Sum_[a](R(a, b) ⋈ S(b, c))   =   Sum_[z](S(x, y) ⋈ R(z, x))

Variables are coloured by their properties without names (which fields and expressions of which factors
have them, next to which colours) until nothing changes: colour refinement. Variables that are still equal fall apart
into components, which are settled one by one. In a component, each variable of a colour is individualised in turn, and
the least text wins; of twins, which can be exchanged, one is enough.

Source: McKay, Piperno, "Practical graph isomorphism, II", 2014.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable
from dataclasses import replace
from functools import cache, lru_cache
from typing import Generic, TypeVar

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr, transform, walk
from squallpy.program.calculus import Assign, Cmp, Factor, Rel
from squallpy.program.components import Component, prune

V = TypeVar("V", Column, int)
K = TypeVar("K", bound=Hashable)
Colours = dict[int, int]  # by the numbers of variables
_Mark = tuple[int, tuple[str, tuple[int, ...]]]  # a position in a shape, and the shape with colours for variables


@dataclass(frozen=True, slots=True)
class CanonicalForm:
    """A unit in canonical variables: its text, its atoms in canonical order, and the renaming (by variable id)."""

    text: str
    atoms: tuple[Rel, ...]
    renaming: dict[int, Column]


@dataclass(frozen=True, slots=True)
class _Shape(Generic[V]):
    """A factor without the names of its variables: its text, and the variables in order of position."""

    text: str
    variables: tuple[V, ...]


def _colour(shape: _Shape[int], colours: Colours) -> tuple[str, tuple[int, ...]]:
    """Replace the variables of a shape by their colours."""
    return shape.text, tuple(colours[v] for v in shape.variables)


def spell(unit: Component) -> CanonicalForm:
    """Compute the spelling of a unit, whatever its lanes: fields that only lanes read are named by position."""
    core = prune(unit.body, unit.keys, ())
    named = [_shape(factor) for factor in core]
    keys = {v.id for v in unit.keys}
    variables = {v.id: v for shape in named for v in shape.variables}
    numbers = {id: number for number, id in enumerate(variables)}
    shapes = tuple(_Shape(shape.text, tuple(numbers[v.id] for v in shape.variables)) for shape in named)
    text, colours = _least_text(shapes, frozenset(numbers[id] for id in keys if id in numbers))
    renaming = {id: _variable(colours[numbers[id]], v) for id, v in variables.items()}
    mine = [shape for shape, factor in zip(shapes, core, strict=True) if isinstance(factor, Rel)]
    theirs = [factor for factor in unit.body if isinstance(factor, Rel)]
    pairs = sorted(zip(mine, theirs, strict=True), key=lambda pair: _colour(pair[0], colours))
    atoms = tuple(atom for _, atom in pairs)
    for position, atom in enumerate(atoms):
        if unnamed := [(name, v) for name, v in atom.fields if v.id not in renaming]:
            names = [f.name for f in atom.relation.fields]
            for name, v in unnamed:
                renaming.setdefault(v.id, _variable(-1 - position * 10_000 - names.index(name), v))
    return CanonicalForm(f"{len(keys)} keys\n{text}", atoms, renaming)


@lru_cache(maxsize=1 << 12)  # NB: the parts of a chain of copies are alike
def _least_text(shapes: tuple[_Shape[int], ...], keys: frozenset[int]) -> tuple[str, Colours]:
    """Spell shapes by the colours that give the least text."""
    search, variables = _Search(shapes), list(dict.fromkeys(v for shape in shapes for v in shape.variables))
    inner = sum(v not in keys for v in variables)
    colours = search.refine(variables, {v: inner if v in keys else 0 for v in variables}, set(variables))
    colours = search.settle(variables, colours)
    text = "\n".join(sorted(str(_colour(shape, colours)) for shape in shapes))
    return text, colours


def _variable(id: int, like: Column) -> Column:
    return Column(id, f"x{id}", like.type, like.nullable)


@lru_cache(maxsize=1 << 14)  # NB: a factor is in many components
def _shape(factor: Factor) -> _Shape[Column]:
    """Split a factor into shape and variables: R(a x, b y) → R(a, b), (x, y)"""
    match factor:
        case Rel(relation, fields, delta):
            places = sorted(fields, key=lambda pair: pair[0])
            names = ", ".join(name for name, _ in places)
            return _Shape(f"{relation.name}{'Δ' if delta else ''}({names})", tuple(v for _, v in places))
        case Cmp(predicate):
            return _Shape(_skeleton(predicate), columns_of(predicate))
        case Assign(variable, value):
            return _Shape(f":= {_skeleton(value)}", (variable, *columns_of(value)))


def columns_of(expr: Expr) -> tuple[Column, ...]:
    return tuple(e for e in walk(expr) if isinstance(e, Column))


def _skeleton(expr: Expr) -> str:
    return repr(transform(expr, lambda e: replace(e, id=0, name="") if isinstance(e, Column) else None))


class _Search:
    """The search for colours that distinguish all variables, and give equal units one text."""

    def __init__(self, shapes: tuple[_Shape[int], ...]) -> None:
        self._shapes, self._places = shapes, defaultdict[int, list[tuple[int, int]]](list)
        """By variable, its positions in shapes, with the numbers of these."""
        self._having = defaultdict[int, set[int]](set)
        """By variable, the numbers of the shapes that have it."""
        for number, shape in enumerate(shapes):
            for place, v in enumerate(shape.variables):
                self._places[v].append((place, number))
                self._having[v].add(number)

    def settle(self, some: Collection[int], colours: Colours) -> Colours:
        """Give variables different colours, where the given ones are refined, and different outside of these variables.

        Variables that only share factors with variables of other colours are settled apart from each other: components
        of one text are symmetric, in whichever order they are.
        """
        cells = _by_key((colours[v], v) for v in some)
        tied = [v for cell in cells.values() if len(cell) > 1 for v in cell]
        components = self._components(tied)
        if len(components) == 1 and len(tied) == len(some):
            return self._individualise(tied, cells[min(cells)], colours)
        settled = {v: colours[v] for cell in cells.values() if len(cell) == 1 for v in cell}
        parts = [self.settle(component, colours) for component in components]
        counts = Counter[int]()
        for part in sorted(parts, key=lambda part: self.text(part, colours)):
            for v in sorted(part, key=part.__getitem__):
                settled[v] = colours[v] + counts[colours[v]]
                counts[colours[v]] += 1
        return settled

    def _individualise(self, some: Collection[int], cell: list[int], colours: Colours) -> Colours:
        """Settle variables by the one of a cell that gives the least text, if it is the first; of twins, by one."""
        found, tried = list[tuple[str, Colours]](), list[int]()
        for one in cell:
            if any(self._are_twins(one, other) for other in tried):
                continue
            tried.append(one)
            singled = colours | {v: colours[v] + 1 for v in cell if v != one}
            settled = self.settle(some, self.refine(some, singled, {one}))
            found.append((self.text(settled, colours), settled))
        return min(found, key=lambda leaf: leaf[0])[1]

    def text(self, settled: Colours, colours: Colours) -> str:
        """Spell the shapes that have some of these variables, by their colours."""
        near, colours = set[int]().union(*(self._having[v] for v in settled)), colours | settled
        return "\n".join(sorted(str(_colour(self._shapes[number], colours)) for number in near))

    def _are_twins(self, one: int, other: int) -> bool:
        """True if all shapes are the same with two variables exchanged."""
        near, exchanged = self._having[one] | self._having[other], {one: other, other: one}
        shapes = Counter(self._shapes[number] for number in near)
        return shapes == Counter(
            _Shape(s.text, tuple(exchanged.get(v, v) for v in s.variables)) for s in shapes.elements()
        )

    def _components(self, some: Collection[int]) -> list[list[int]]:
        """Split variables into those that share shapes, directly or by others of them."""
        found, left = list[list[int]](), set(some)
        for first in some:
            if first in left:
                left.remove(first)
                component = [first]
                for v in component:  # NB: which grows
                    near = {u for number in self._having[v] for u in self._shapes[number].variables if u in left}
                    left -= near
                    component += sorted(near)
                found.append(component)
        return found

    def refine(self, some: Collection[int], colours: Colours, changed: set[int]) -> Colours:
        """Refine the colours of some variables until they distinguish all that the given ones and the factors do.

        A colour is the number of variables of lesser colours, so that it stays the same when others are divided.

        Args:
            changed: the variables whose colours may distinguish others; all, or a new one where colours were refined.
        """
        found, own = dict(colours), set(some)
        members = _by_key((colours[v], v) for v in some)
        while changed:
            numbers = set[int]().union(*(self._having[u] for u in changed))
            near = {v for number in numbers for v in self._shapes[number].variables if v in own}
            divided = list[tuple[int, list[list[int]]]]()
            for colour in {found[v] for v in near}:
                if len(members[colour]) == 1:
                    continue
                # NB: of variables that have nothing changed beside them, all have the mark of one
                same = [v for v in members[colour] if v not in near]
                compared = [v for v in members[colour] if v in near] + same[:1]
                marks = self._by_mark(compared, found)
                parts = [marks[mark] for mark in sorted(marks)]
                divided.append((colour, [part + same[1:] if same and same[0] in part else part for part in parts]))
            changed = set()
            for colour, parts in divided:
                for part in parts if len(parts) > 1 else ():
                    members[colour] = part
                    changed |= {v for v in part if found[v] != colour}
                    found |= dict.fromkeys(part, colour)
                    colour += len(part)
        return found

    def _by_mark(self, some: Iterable[int], colours: Colours) -> dict[tuple[_Mark, ...], list[int]]:
        """Group variables by their positions, beside which colours."""
        coloured = cache(lambda number: _colour(self._shapes[number], colours))
        return _by_key((tuple(sorted((place, coloured(n)) for place, n in self._places[v])), v) for v in some)


def _by_key(items: Iterable[tuple[K, int]]) -> dict[K, list[int]]:
    """Group numbers by keys."""
    found = defaultdict[K, list[int]](list)
    for key, number in items:
        found[key].append(number)
    return found
