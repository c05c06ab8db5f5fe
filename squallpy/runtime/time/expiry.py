"""Expiry: the rows that leave a window, as its bound follows the watermark of its streams.

RANGE 10 SEC, the watermark goes from 15 to 22   →   the bound goes from 5 to 12: rows of the times 6 to 12 expire
"""

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.catalog.window_spec import UNBOUNDED, WindowSpec
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_index import SortedIndex
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store
from squallpy.runtime.time.pauses import last_pause
from squallpy.runtime.time.watermark import idle_clocks, set_time, time_layout, time_of

_NO_GROUP = np.empty((1, 0), np.int64)


NEVER = 2**63 - 1  # the end of a window that rows cannot be ahead of


def bound_layouts(window: WindowSpec, relation: str) -> tuple[PoolLayout, ...]:
    """Return the layouts of the pools that hold the bounds of a window."""
    roles = (Role.BOUND, Role.END) if window.is_ahead else (Role.BOUND,)
    return tuple(time_layout(PoolName(relation, role)) for role in roles)


class Expiry:
    """The expiry of a window's rows.

    Args:
        relation: The window's rows as an auxiliary relation.
        order: The sorted index of the rows by time.
        width: Keys of a row.
    """

    def __init__(self, window: WindowSpec, relation: str, order: int, width: int) -> None:
        self._window, self._order = window, order
        self._clocks, self._bound = [c.name for c in window.clocks], PoolName(relation, Role.BOUND)
        self._end = PoolName(relation, Role.END)
        self._touched = Pool(width, Payload((Ring.COUNT,)))

    def advance(self, store: Store) -> tuple[int, int]:
        """Move the bound, and return the one before the batch and the present one."""
        latest = self._latest(store)
        before = time_of(store[self._bound])
        old = UNBOUNDED if before is None else before
        new = self._window.lower_bound(latest, idle_clocks(store, self._window.clocks))
        for clock in self._window.clocks:
            if clock.gap and clock.name in latest:
                new = last_pause(store[PoolName(clock.name, Role.ACTIVITY)], clock, latest[clock.name])
        if new > old:
            set_time(store[self._bound], new)
        return old, max(old, new)

    def advance_end(self, store: Store) -> tuple[int, int]:
        """Move the bound that rows may not exceed, and return the one before the batch and the present one."""
        if not self._window.is_ahead:
            return NEVER, NEVER
        before = time_of(store[self._end])
        old = UNBOUNDED if before is None else before
        new = self._window.upper_bound(self._latest(store))
        assert new is not None
        if new > old:
            set_time(store[self._end], new)
        return old, max(old, new)

    def _latest(self, store: Store) -> dict[str, int]:
        """Read the latest value of each clock that has one."""
        times = ((name, time_of(store[PoolName(name, Role.CLOCK)])) for name in self._clocks)
        return {name: value for name, value in times if value is not None}

    def find_entering(self, pool: Pool, before: int, end: int) -> Words:
        """Find the rows that are behind a bound and up to another."""
        index = pool.sorted[self._order]
        _, places = index.find_entries(_NO_GROUP, np.array([before + 1]), np.array([end]))
        return self._rows(index, places)

    def find_expired(self, pool: Pool, bound: int, keys: Words) -> Words:
        """Find the rows that the bound has reached, except `keys`; rows without a time never expire."""
        index = pool.sorted[self._order]
        _, places = index.find_below(_NO_GROUP, bound + 1)
        return self.without(self._rows(index, places), keys)

    def without(self, rows: Words, keys: Words) -> Words:
        """Leave out the rows that are among some keys."""
        self._touched.clear()
        self._touched.upsert(keys, np.ones((len(keys), 1), np.int64))
        return rows[self._touched.probe(rows) < 0]

    def _rows(self, index: SortedIndex, places: Words) -> Words:
        """Read rows at places of the index."""
        columns = [index.column(i, places) for i in range(self._touched.key_width)]
        return np.ascontiguousarray(np.stack(columns, axis=1))
