"""Canonical spellings: components that are equal up to the names of their variables have one text.

    Sum_[a](R(a, b) ⋈ S(b, c))   =   Sum_[z](S(x, y) ⋈ R(z, x))

Variables are coloured by their properties without names (which fields and expressions of which factors
have them, next to which colours) until nothing changes: colour refinement. If some are still equal, each of them is
individualised in turn, and the least text wins; a branch that leads to a known text is pruned, as it is symmetric to an
earlier one.

Source: McKay, Piperno, "Practical graph isomorphism, II", 2014.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Generic, TypeVar

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr, transform, walk
from squallpy.program.calculus import Assign, Cmp, Factor, Rel
from squallpy.program.components import Component, prune

V = TypeVar("V", Column, int)
K = TypeVar("K", bound=Hashable)
Colours = dict[int, int]  # by the numbers of variables
Path = tuple[int, ...]  # the numbers of individualised variables


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
        names = [f.name for f in atom.relation.fields]
        for name, v in atom.fields:
            renaming.setdefault(v.id, _variable(-1 - position * 10_000 - names.index(name), v))
    return CanonicalForm(f"{len(keys)} keys\n{text}", atoms, renaming)


@lru_cache(maxsize=1 << 12)  # NB: the parts of a chain of copies are alike
def _least_text(shapes: tuple[_Shape[int], ...], keys: frozenset[int]) -> tuple[str, Colours]:
    """Spell shapes by the colours that give the least text."""
    search = _Search(shapes)
    search.run(search.refine({v: int(v in keys) for shape in shapes for v in shape.variables}), ())
    text, (_, colours) = min(search.leaves.items(), key=lambda leaf: leaf[0])
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
    """All that the least text may be, by the ways to it."""

    def __init__(self, shapes: tuple[_Shape[int], ...]) -> None:
        self._shapes, self._places = shapes, defaultdict[int, list[tuple[int, _Shape[int]]]](list)
        for shape in shapes:
            for place, v in enumerate(shape.variables):
                self._places[v].append((place, shape))
        self.leaves: dict[str, tuple[Path, Colours]] = {}

    def run(self, colours: Colours, path: Path) -> int | None:
        """Spell what can be reached from here; if another path led to the same, return the length that they share."""
        alike = defaultdict[int, list[int]](list)
        for v, colour in colours.items():
            alike[colour].append(v)
        tied = [colour for colour, mine in alike.items() if len(mine) > 1]
        if not tied:
            text = "\n".join(sorted(map(str, (_colour(shape, colours) for shape in self._shapes))))
            known, _ = self.leaves.setdefault(text, (path, colours))
            return None if known is path else _common_prefix(known, path)
        for one in alike[min(tied)]:
            singled = {v: 2 * colour + (v != one) for v, colour in colours.items()}
            back = self.run(self.refine(singled), (*path, one))
            if back is not None and back < len(path):
                return back
        return None

    def refine(self, colours: Colours) -> Colours:
        """Refine colours until they distinguish all that the given ones and the factors do.

        A colour is the number of variables of lesser colours, so that it stays the same when others are divided.
        """
        classes, found, start = _by_key((colour, v) for v, colour in colours.items()), dict(colours), 0
        members = dict[int, list[int]]()
        for colour in sorted(classes):
            members[start] = classes[colour]
            found |= dict.fromkeys(members[start], start)
            start += len(members[start])
        changed = set(found)
        while changed:
            near = {v for u in changed for _, shape in self._places[u] for v in shape.variables}
            divided = list[tuple[int, list[list[int]]]]()
            for colour in {found[v] for v in near}:
                # NB: of variables that have nothing changed beside them, all have the mark of one
                same = [v for v in members[colour] if v not in near]
                some = [v for v in members[colour] if v in near] + same[:1] if len(members[colour]) > 1 else []
                marks = _by_key((self._mark(v, found), v) for v in some)
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

    def _mark(self, v: int, colours: Colours) -> tuple[tuple[int, tuple[str, tuple[int, ...]]], ...]:
        """Describe where a variable stands, beside which colours."""
        return tuple(sorted((place, _colour(shape, colours)) for place, shape in self._places[v]))


def _by_key(items: Iterable[tuple[K, int]]) -> dict[K, list[int]]:
    """Group numbers by keys."""
    found = defaultdict[K, list[int]](list)
    for key, number in items:
        found[key].append(number)
    return found


def _common_prefix(a: Path, b: Path) -> int:
    """Measure the length of a common prefix."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
