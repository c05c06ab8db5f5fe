"""Maintenance of skylines: of each group the values that none before them, in the order of x, equals or exceeds.

V(k, x, v): (7, 10, 3) (7, 20, 2) (7, 30, 5)    N1 = (7, 10, 3) (7, 30, 5)
− (7, 10, 3)  →  ΔN1 = {(7, 10, 3): −1, (7, 20, 2): +1}        + (7, 5, 9)  →  ΔN1 = {(7, 10, 3): −1, (7, 30, 5): −1, …}

Beside the view, with its sorted index by group and x, stands the skyline, by x and by value: both ascend along it. What
has come hides those of it that follow and are no higher; where one of it has gone, the values up to the next are looked
through, for those that it has hidden.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from squallpy.base.index_order import Order
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.kind import is_double
from squallpy.program.auxiliary.skyline import Skyline
from squallpy.runtime.auxiliary.maintainer import COUNT, ChangeMaintainer, Mask, titles
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.radix_sort import ascending
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex
from squallpy.runtime.messages.deltas import numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

_BY_X, _BY_VALUE = 0, 1  # the sorted indexes of a skyline


class _Points(NamedTuple):
    """Keys (group, x, value), and x and value as ranks that ascend along a skyline."""

    keys: Words
    along: Words
    up: Words

    def take(self, which: Mask | Words) -> "_Points":
        return _Points(self.keys[which], self.along[which], self.up[which])


class SkylineMaintainer(ChangeMaintainer):
    """A maintainer of the skyline of each group."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        assert isinstance(aux.kind, Skyline)
        columns = [*aux.grouped, *aux.kind.along]
        super().__init__(feed, aux, titles(aux.output, columns))
        self._state, self._line, self._group = PoolName(feed.relation.name, Role.SKYLINE), aux.kind, len(aux.group)
        self._columns = [aux.source.keys.index(column) for column in columns]

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pool that holds the skylines: keys (group, x, value)."""
        assert isinstance(aux.kind, Skyline)
        n = len(aux.group)
        group, (x, value) = tuple(range(n)), (n, n + 1)
        orders = (
            Order((*group, x, value), n, real=is_double(aux.kind.x)),
            Order((*group, value, x), n, real=is_double(aux.kind.value)),
        )
        name = PoolName(feed.relation.name, Role.SKYLINE)
        return (PoolLayout(name, n + 2, COUNT, orders=orders, numbered=numbered(aux.grouped)),)

    def _find_changes(self, store: Store, pool: Pool, keys: Words, came: Mask) -> tuple[Words, Words]:
        index, state = pool.sorted[self._order], store.pool(self._state)
        points = self._points(state, np.ascontiguousarray(keys[:, self._columns]))
        gone = points.take(~came & (state.probe(points.keys) >= 0))
        ids = points.take(came)
        shown = self._find_uncovered(index, state, gone)
        hidden = self._find_hidden(state, ids)
        ahead = self._find_previous(state, _Points(*(np.concatenate(pair) for pair in zip(ids, gone, strict=True))))
        every = self._points(state, np.concatenate([ids.keys, shown, hidden, ahead]))
        every = every.take(self._sort_once(every))
        left = np.isin(_rows_as_one(every.keys), _rows_as_one(gone.keys), invert=True)
        every = every.take(left)
        stands, stood = self._mark_tops(every), state.probe(every.keys) >= 0
        went, come = np.concatenate([gone.keys, every.keys[stood & ~stands]]), every.keys[stands & ~stood]
        state.upsert(np.concatenate([went, come]), np.repeat([-1, 1], [len(went), len(come)])[:, None])
        return went, come

    def _points(self, state: Pool, keys: Words) -> _Points:
        """Rank keys."""
        x = state.sorted[_BY_X].rank(keys[:, self._group])
        value = state.sorted[_BY_VALUE].rank(keys[:, self._group + 1])
        return _Points(keys, x if self._line.rising else ~x, value if self._line.great else ~value)

    def _groups(self, points: _Points) -> Words:
        return np.ascontiguousarray(points.keys[:, : self._group])

    def _between(self, low: Words, high: Words, turned: bool) -> tuple[Words, Words]:
        """Convert bounds along the skyline to bounds in the order of an index."""
        return (np.maximum(~high, LEAST), ~low) if turned else (low, high)

    def _keys(self, index: SortedIndex, places: Words) -> Words:
        """Gather keys of the skyline at places of one of its indexes."""
        return np.column_stack([index.column(i, places) for i in range(self._group + 2)])

    def _find_uncovered(self, index: SortedIndex, state: Pool, gone: _Points) -> Words:
        """Find the view's points from points of the skyline that have gone up to the next ones."""
        n, by_x = len(gone.along), state.sorted[_BY_X]
        bounds = self._between(_after(gone.along), np.full(n, GREATEST), not self._line.rising)
        following = by_x.find_ends(self._groups(gone), *bounds, greatest=not self._line.rising)
        following = np.where(gone.along == GREATEST, -1, following)
        until = np.full(n, GREATEST)
        some = following >= 0
        x = by_x.rank(by_x.column(self._group, following[some]))
        until[some] = (x if self._line.rising else ~x) - 1
        bounds = self._between(gone.along, until, not self._line.rising)
        _, places = index.find_entries(self._groups(gone), *bounds)
        there = places[index.entries[places, index.payload_at + self._count] > 0]
        return np.column_stack([index.column(column, there) for column in self._columns])

    def _find_hidden(self, state: Pool, ids: _Points) -> Words:
        """Find the points of the skyline that follow others and are no higher."""
        n, by_x, by_value = len(ids.along), state.sorted[_BY_X], state.sorted[_BY_VALUE]
        groups = self._groups(ids)
        bounds = self._between(np.full(n, LEAST), ids.up, not self._line.great)
        last = by_value.find_ends(groups, *bounds, greatest=self._line.great)
        until, some = np.full(n, LEAST), last >= 0
        x = by_x.rank(by_value.column(self._group, last[some]))
        until[some] = x if self._line.rising else ~x
        some &= until >= ids.along
        bounds = self._between(ids.along[some], until[some], not self._line.rising)
        _, places = by_x.find_entries(np.ascontiguousarray(groups[some]), *bounds)
        return self._keys(by_x, places)

    def _find_previous(self, state: Pool, points: _Points) -> Words:
        """Find the last points of the skyline before others, or beside them."""
        n, by_x = len(points.along), state.sorted[_BY_X]
        before = np.where(points.along == LEAST, LEAST, points.along - 1)
        found = []
        for until in (points.along, before):  # NB: one beside it may be the one that has gone
            bounds = self._between(np.full(n, LEAST), until, not self._line.rising)
            places = by_x.find_ends(self._groups(points), *bounds, greatest=self._line.rising)
            found.append(self._keys(by_x, places[places >= 0]))
        return np.concatenate(found)

    def _sort_once(self, points: _Points) -> Words:
        """Sort positions of points, each once: by group, along the skyline, the highest first."""
        columns = np.column_stack([self._groups(points), points.along, ~points.up])
        order = ascending(columns)
        columns = columns[order]
        first = np.append(True, (columns[1:] != columns[:-1]).any(axis=1))[: len(order)]
        return np.asarray(order[first])

    def _mark_tops(self, points: _Points) -> Mask:
        """Mark the points, in order, that are higher than all before them in their groups."""
        n, groups = len(points.along), self._groups(points)
        if not n:
            return np.zeros(0, bool)
        begins = np.append(False, (groups[1:] != groups[:-1]).any(axis=1))
        height = np.cumsum(begins) * n + np.unique(points.up, return_inverse=True)[1]
        before = np.append(-1, np.maximum.accumulate(height)[:-1])
        tops: Mask = height > before
        return tops


def _after(along: Words) -> Words:
    return np.where(along == GREATEST, GREATEST, along + 1)


def _rows_as_one(keys: Words) -> npt.NDArray[np.void]:
    """View rows as single values, to be compared."""
    keys = np.ascontiguousarray(keys)
    return keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).reshape(-1)
