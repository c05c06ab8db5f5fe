"""Expiry: the rows that leave a window, as its bound follows the watermark of its streams.

RANGE 10 SEC, the watermark goes from 15 to 22   →   the bound goes from 5 to 12: rows of the times 6 to 12 expire
"""

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.catalog.window_spec import UNBOUNDED, WindowSpec
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store
from squallpy.runtime.time.watermark import idle_clocks, set_time, time_layout, time_of

_NO_GROUP = np.empty((1, 0), np.int64)


def bound_layout(relation: str) -> PoolLayout:
    """Return the layout of the pool that holds the bound of a window."""
    return time_layout(PoolName(relation, Role.BOUND))


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
        self._touched = Pool(width, Payload((Ring.COUNT,)))

    def advance(self, store: Store) -> tuple[int, int]:
        """Move the bound, and return the one before the batch and the present one."""
        latest = {
            name: value for name in self._clocks if (value := time_of(store[PoolName(name, Role.CLOCK)])) is not None
        }
        before = time_of(store[self._bound])
        old = UNBOUNDED if before is None else before
        new = self._window.lower_bound(latest, idle_clocks(store, self._window.clocks))
        if new > old:
            set_time(store[self._bound], new)
        return old, max(old, new)

    def find_expired(self, pool: Pool, bound: int, keys: Words) -> Words:
        """Find the rows that the bound has reached, except `keys`; rows without a time never expire."""
        index = pool.sorted[self._order]
        _, places = index.find_below(_NO_GROUP, bound + 1)
        columns = [index.column(i, places) for i in range(pool.key_width)]
        found = np.ascontiguousarray(np.stack(columns, axis=1))
        self._touched.clear()
        self._touched.upsert(keys, np.ones((len(keys), 1), np.int64))
        return found[self._touched.probe(found) < 0]
