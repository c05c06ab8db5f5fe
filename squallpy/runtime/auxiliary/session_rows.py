"""Maintenance of session rows: the sessions of each group, in which neighbouring times are at most a gap apart.

V(k, at): (7, 10) (7, 12) (7, 30), gap 5    N1 = (7, 10, following 30, last 12) (7, 30, OPEN, 30)
− (7, 12), + (7, 34)  →  ΔN1 = {(7, 10, 30, 12): −1, (7, 10, 30, 10): +1, (7, 30, OPEN, 30): −1, (7, 30, OPEN, 34): +1}

A time starts a session if the time before it in the view's sorted index is more than the gap away. Only for times that
came or went, and for those right after them, can that be another answer than before. The sessions stand in a pool of
their own with a sorted index by start, so that each change costs logarithms, however long the sessions are.
"""

import numpy as np

from squallpy.base.index_order import Order
from squallpy.base.rings import Payload, Ring
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.session_rows import OPEN, SessionRows
from squallpy.runtime.auxiliary.extremes import end_of
from squallpy.runtime.auxiliary.maintainer import ChangeMaintainer, Mask, drop_repeated, titles
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex
from squallpy.runtime.messages.deltas import numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

_SESSION = Payload((Ring.COUNT,) * 3)  # 1, the start of the following session, the last time


class SessionMaintainer(ChangeMaintainer):
    """A maintainer of the sessions of groups."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        kind = aux.kind
        assert isinstance(kind, SessionRows)
        columns = [*aux.grouped, kind.time]
        super().__init__(feed, aux, titles(aux.output, [*columns, kind.following, kind.last]))
        self._state, self._gap, self._n = PoolName(feed.relation.name, Role.SESSIONS), kind.gap, len(aux.group)
        self._columns = [aux.source.keys.index(column) for column in columns]

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pool that holds the sessions: by (group, start) the start of the following one, and the last
        time."""
        n, name = len(aux.group), PoolName(feed.relation.name, Role.SESSIONS)
        return (
            PoolLayout(name, n + 1, _SESSION, orders=(Order((*range(n + 1),), n),), numbered=numbered(aux.grouped)),
        )

    def _find_changes(self, store: Store, pool: Pool, keys: Words, came: Mask) -> tuple[Words, Words]:
        """Find the rows (group, start, following, last) that go, and those that come, and bring the state up to
        date."""
        state, view = store.pool(self._state), pool.sorted[self._order]
        sessions, times = state.sorted[0], np.ascontiguousarray(keys[:, self._columns])
        gone, come = self._find_moved_starts(view, state, times, came)
        lost = state.get(gone)
        begun = np.zeros((len(come), 3), np.int64)
        begun[:, 0] = 1
        state.upsert(np.concatenate([gone, come]), np.concatenate([-lost, begun]))

        before = self._find_beside(
            sessions, 0, np.concatenate([times, _shifted(gone, -1), _shifted(come, -1)]), above=False
        )
        every = drop_repeated(np.concatenate([come, before]))
        now, were = self._read_sessions(view, sessions, every), state.get(every)
        others = np.flatnonzero((now != were).any(axis=1) | (np.arange(len(every)) < len(come)))
        every, now, were = every[others], now[others], were[others]
        state.upsert(every, now - were)
        old = others >= len(come)
        went = np.column_stack([np.concatenate([gone, every[old]]), np.concatenate([lost, were[old]])[:, 1:]])
        return went, np.column_stack([every, now[:, 1:]])

    def _find_moved_starts(self, view: SortedIndex, state: Pool, times: Words, came: Mask) -> tuple[Words, Words]:
        """Find the (group, start) of sessions that are no more, and of those that are new.

        Args:
            times: The (group, time) that `came` or went.
        """
        after = self._find_beside(view, self._count, _shifted(times, 1), above=True)
        every = drop_repeated(np.concatenate([times, after]))
        there = np.ones(len(every), bool)
        there[: len(times)] = came
        found = self._find_places(view, self._count, _shifted(every, -1), above=False)
        near = found >= 0
        near[near] = every[near, -1] - view.column(view.ranged, found[near]) <= self._gap
        starts = there & ~near
        started = state.get(every)[:, 0] > 0
        return every[started & ~starts], every[starts & ~started]

    def _read_sessions(self, view: SortedIndex, sessions: SortedIndex, starts: Words) -> Words:
        """Read the payloads of sessions off both indexes."""
        out = np.ones((len(starts), 3), np.int64)
        found = self._find_places(sessions, 0, _shifted(starts, 1), above=True)
        out[:, 1] = OPEN
        out[found >= 0, 1] = sessions.column(self._n, found[found >= 0])
        ends = np.column_stack([starts[:, :-1], out[:, 1] - 1])
        out[:, 2] = view.column(view.ranged, self._find_places(view, self._count, ends, above=False))
        return out

    def _find_beside(self, index: SortedIndex, count: int, times: Words, *, above: bool) -> Words:
        """Find the nearest (group, time) at or above some, or at or below; those that have none are left out."""
        places = self._find_places(index, count, times, above=above)
        found = places >= 0
        return np.column_stack([times[found, :-1], index.column(index.ranged, places[found])])

    def _find_places(self, index: SortedIndex, count: int, times: Words, *, above: bool) -> Words:
        """Find the places of the nearest (group, time) at or above some, or at or below; −1 for none.

        Args:
            count: The word of the index's payload that counts rows.
        """
        groups, bounds = np.ascontiguousarray(times[:, :-1]), np.ascontiguousarray(times[:, -1])
        every = np.full(len(times), GREATEST if above else LEAST)
        return end_of(index, count, groups, (bounds, every) if above else (every, bounds), greatest=not above)


def _shifted(times: Words, by: int) -> Words:
    """Shift the times of (group, time) by some microseconds."""
    out = times.copy()
    out[:, -1] += by
    return out
