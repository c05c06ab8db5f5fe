"""View trees computed in Python, over any ring, a user's own, too: what a trigger program has to store.

evaluate(V@k() ⟨x⟩ over R(k, x), {"R": {(1, 2): 1, (1, 3): 1}}, ring)   →   {(): g_x(2) + g_x(3)}
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.view_tree import ViewNode
from squallpy.testing.rings.abstract_ring import AbstractRing, Element, FormalSums

Key = tuple[Any, ...]
Relations = Mapping[str, Mapping[Key, int]]
"""Rows of each leaf with their multiplicities."""
Contents = Mapping[Key, Element]


class PowerSums(FormalSums[tuple[str, ...]]):
    """Sums of products of up to `most` variables: the cofactor ring, of degree 1 for `most` 2."""

    def __init__(self, most: int = 2) -> None:
        self._most = most

    @property
    def unit(self) -> tuple[str, ...]:
        return ()

    def product(self, a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...] | None:
        return tuple(sorted((*a, *b))) if len(a) + len(b) <= self._most else None

    def lift(self, variable: str, value: Any) -> Mapping[tuple[str, ...], float]:
        return {(variable,) * power: value**power for power in range(self._most + 1) if value or not power}


def evaluate(part: ViewNode | Leaf, data: Relations, ring: AbstractRing[Element]) -> Contents[Element]:
    """Compute the contents of a view from those of its children, as it would be stored, then as it is read."""
    if isinstance(part, Leaf):
        return {row: ring.scale(ring.one, n) for row, n in data[part.name].items()}
    inputs = [(c.keys if isinstance(c, ViewNode) else c.variables, evaluate(c, data, ring)) for c in part.children]
    stored = _join(inputs, part.stored_keys, () if part.keeps_rows else part.lifts, ring)
    return _join([(part.stored_keys, stored)], part.keys, part.lifts, ring) if part.keeps_rows else stored


def evaluate_join(join: JoinGraph, data: Relations, ring: AbstractRing[Element]) -> Contents[Element]:
    """Compute the root's contents without a tree: all features of each row of the join are lifted at once."""
    inputs = [(leaf.variables, evaluate(leaf, data, ring)) for leaf in join.leaves]
    return _join(inputs, join.free, join.features, ring)


def _join(
    inputs: Sequence[tuple[Sequence[Column], Contents[Element]]],
    keys: Iterable[Column],
    lifts: Sequence[Column],
    ring: AbstractRing[Element],
) -> Contents[Element]:
    """Join inputs, lift variables, and add up by keys."""
    found: dict[Key, Element] = {}
    for row, payload in _rows(inputs, ring):
        for v in lifts:
            payload = ring.multiply(payload, ring.lift(v.name, row[v]))
        key = tuple(row[v] for v in keys)
        found[key] = ring.add(found.get(key, ring.zero), payload)
    return {key: payload for key, payload in found.items() if payload != ring.zero}


def _rows(
    inputs: Sequence[tuple[Sequence[Column], Contents[Element]]], ring: AbstractRing[Element]
) -> Iterator[tuple[dict[Column, Any], Element]]:
    for records in product(*(contents.items() for _, contents in inputs)):
        row, payload = dict[Column, Any](), ring.one
        for (columns, _), (key, factor) in zip(inputs, records, strict=True):
            if any(row.setdefault(v, value) != value for v, value in zip(columns, key, strict=True)):
                break
            payload = ring.multiply(payload, factor)
        else:
            yield row, payload
