"""Pools for views that are looked up by ranges alone: sorted indexes, which have the records as well.

pool = SortedPool(2, Payload((Ring.COUNT,)), (Order((1, 0), 0),))
pool.upsert([[7, 20], [8, 10]], [[1], [1]])
pool.rows()                                                 →   [[8, 10], [7, 20]], [[1], [1]]
"""

import numpy as np

from squallpy.base.index_order import Order
from squallpy.base.rings import Payload
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.kernels.sorted_index import SortedIndex
from squallpy.runtime.kernels.view_container import OrderedContainer


class SortedPool(OrderedContainer):
    """A container whose records are in its sorted indexes, and nowhere else."""

    def __init__(
        self, key_width: int, payload: Payload, orders: tuple[Order, ...], storage: Storage = HEAP, name: str = "pool"
    ) -> None:
        assert orders, f"{name} has nothing to keep records in"
        self.key_width, self.payload = key_width, payload
        self.sorted = tuple(SortedIndex(order, payload, storage, f"{name}.sorted{i}") for i, order in enumerate(orders))

    def upsert(self, keys: Words, words: Words) -> None:
        for index in self.sorted:
            index.upsert(keys, words)

    def rows(self) -> tuple[Words, Words]:
        """Copy the contents as (keys, words), in the order of the first index."""
        return self.sorted[0].copy_after(np.empty((0, self.key_width), np.int64), 1, 1)

    def clear(self) -> None:
        for index in self.sorted:
            index.clear()

    def __len__(self) -> int:
        return len(self.sorted[0])

    @property
    def usage(self) -> dict[str, int]:
        """Records, and bytes in use."""
        return {"records": len(self), "sorted": sum(index.nbytes for index in self.sorted)}
