"""Maintenance of range-extreme spans: the value at each x of a group, and between which x it is the highest.

V(k, x, v): (7, 10, 3) (7, 20, 9) (7, 30, 4)    N1 = (7, 10, 3, NULL, 20) (7, 20, 9, NULL, NULL) (7, 30, 4, 20, NULL)
+ (7, 25, 5)  →  ΔN1 = {(7, 25, 5, 20, NULL): +1, (7, 30, 4, 20, NULL): −1, (7, 30, 4, 25, NULL): +1}

Beside the view stands what is at each x, in a sorted index that knows how high it is below each of its nodes, so that
the next x that is higher is found in a logarithm. Where the value at x is another than before, the ends of those spans
change that one sees from there: each higher than all on the way, and no higher than what came, or went.
"""

from typing import NamedTuple

import numpy as np

from squallpy.base.index_order import Order
from squallpy.base.keys import NULL
from squallpy.base.rings import Payload, Ring
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.kind import is_double
from squallpy.program.auxiliary.range_extreme_spans import RangeExtremeSpans
from squallpy.runtime.auxiliary.extremes import end_of
from squallpy.runtime.auxiliary.maintainer import ChangeMaintainer, Mask, drop_repeated, titles
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_index import GREATEST, SortedIndex
from squallpy.runtime.messages.deltas import numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

_ENDS = Payload((Ring.COUNT,) * 3)  # 1, and the ends of the span


class _Tops(NamedTuple):
    """Highest values at some places, if anything is there."""

    there: Mask
    values: Words

    def take(self, which: Mask) -> "_Tops":
        return _Tops(self.there[which], self.values[which])


class SpanMaintainer(ChangeMaintainer):
    """A maintainer of the span of the highest value at each x."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        spans = aux.kind
        assert isinstance(spans, RangeExtremeSpans)
        columns = [*aux.grouped, spans.x, spans.value]
        super().__init__(feed, aux, titles(aux.output, [*columns, spans.before, spans.behind]))
        self._state, self._great, self._n = PoolName(feed.relation.name, Role.SPANS), spans.great, len(aux.group)
        self._columns = [aux.source.keys.index(column) for column in columns]

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pool that holds the spans: by (group, x, value) their ends, NULL for none."""
        assert isinstance(aux.kind, RangeExtremeSpans)
        n = len(aux.group)
        order = Order(tuple(range(n + 2)), n, real=is_double(aux.kind.x), heights=aux.kind.heights)
        name = PoolName(feed.relation.name, Role.SPANS)
        return (PoolLayout(name, n + 2, _ENDS, orders=(order,), numbered=numbered(aux.grouped)),)

    def _find_changes(self, store: Store, pool: Pool, keys: Words, came: Mask) -> tuple[Words, Words]:
        """Find the rows (group, x, value, before, behind) that go, and those that come, and bring the state up to
        date."""
        state = store.pool(self._state)
        index, places = state.sorted[0], np.ascontiguousarray(keys[:, self._columns[:-1]])
        places = drop_repeated(places)
        old, new = self._read_tops(index, places), self._find_tops(pool, places)
        moved = (old.there != new.there) | (old.values != new.values)
        places, old, new = places[moved], old.take(moved), new.take(moved)
        gone, come = (np.column_stack([places, top.values])[top.there] for top in (old, new))
        lost = state.get(gone)
        ids = np.zeros((len(come), 3), np.int64)
        ids[:, 0] = 1
        state.upsert(np.concatenate([gone, come]), np.concatenate([-lost, ids]))

        seen = self._find_affected(index, places, old, new)
        every = drop_repeated(np.concatenate([come, seen]))
        ends, were = self._find_ends(index, every), state.get(every)
        others = np.flatnonzero((ends != were).any(axis=1) | (np.arange(len(every)) < len(come)))
        every, ends, were = every[others], ends[others], were[others]
        state.upsert(every, ends - were)
        before = np.flatnonzero(others >= len(come))
        gone = np.column_stack([np.concatenate([gone, every[before]]), np.concatenate([lost, were[before]])[:, 1:]])
        return gone, np.column_stack([every, ends[:, 1:]])

    def _read_tops(self, index: SortedIndex, places: Words) -> _Tops:
        """Read the highest values at places from the state."""
        ranks = index.rank(places[:, self._n])
        found = index.find_ends(self._groups(places), ranks, ranks, greatest=True)
        return _gather_tops(index, self._n + 1, found)

    def _find_tops(self, pool: Pool, places: Words) -> _Tops:
        """Find the highest values at places of the view; NULL where it has nothing else."""
        index, every = pool.sorted[self._order], np.full(len(places), GREATEST)
        found = end_of(index, self._count, places, (~every + 1, every), greatest=self._great)
        tops = _gather_tops(index, self._columns[-1], found)
        keys = np.empty((len(places), len(self._columns)), np.int64)
        keys[:, self._columns] = np.column_stack([places, tops.values])
        return _Tops(tops.there | (pool.get(keys)[:, self._count] > 0), tops.values)

    def _find_affected(self, index: SortedIndex, places: Words, old: _Tops, new: _Tops) -> Words:
        """Find the keys whose spans may begin or end elsewhere as the values at places have changed."""
        both, (a, b) = old.there & new.there, (index.height(top.values) for top in (old, new))
        low, high = np.where(both, np.minimum(a, b), NULL), np.where(both, np.maximum(a, b), np.where(old.there, a, b))
        groups, ranks, some = self._groups(places), index.rank(places[:, self._n]), high > NULL
        _, before = index.find_ascent(groups[some], ranks[some], low[some], high[some] - 1, back=True)
        _, behind = index.find_ascent(groups, ranks, low + both, high, back=False)
        return self._keys(index, np.concatenate([before, behind]))

    def _find_ends(self, index: SortedIndex, keys: Words) -> Words:
        """Find the ends of keys' spans: the nearest before that are as high, and the nearest behind that are higher."""
        groups, ranks = self._groups(keys), index.rank(keys[:, self._n])
        heights = index.height(np.ascontiguousarray(keys[:, self._n + 1]))
        out = np.full((len(keys), 3), NULL)
        out[:, 0], topmost = 1, heights == GREATEST
        higher, tops = np.where(topmost, heights, heights + 1), np.where(topmost, NULL, GREATEST)
        for column, froms, back in ((1, heights, True), (2, higher, False)):
            every = np.full(len(keys), GREATEST) if back else tops
            rows, places = index.find_ascent(groups, ranks, froms, every, back=back, steps=1)
            out[rows, column] = index.column(self._n, places)
        return out

    def _groups(self, keys: Words) -> Words:
        return np.ascontiguousarray(keys[:, : self._n])

    def _keys(self, index: SortedIndex, places: Words) -> Words:
        """Gather the keys at places of the state's index."""
        return np.column_stack([index.column(i, places) for i in range(self._n + 2)])


def _gather_tops(index: SortedIndex, column: int, found: Words) -> _Tops:
    """Gather a column at places, −1 for none."""
    there = found >= 0
    values = np.full(len(found), NULL)
    values[there] = index.column(column, found[there])
    return _Tops(there, values)
