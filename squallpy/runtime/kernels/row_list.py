"""Lists of rows as they come, without an index, for views that are only read whole.

rows = RowList(1, Payload((Ring.COUNT,)))
rows.upsert([[7], [8]], [[1], [1]]); rows.upsert([[7]], [[-1]])
rows.rows()                                                 →   [[7], [8], [7]], [[1], [1], [-1]]
"""

import numpy as np

from squallpy.base.rings import Payload
from squallpy.runtime.kernels.memory_area import SCALARS, Area
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.kernels.view_container import Container

_BIRTH = 512  # words of a region at first: a page


class RowList(Container):
    """A container whose rows are changes, a key perhaps several times."""

    def __init__(self, key_width: int, payload: Payload, storage: Storage = HEAP, name: str = "rows") -> None:
        self.key_width, self.payload = key_width, payload
        self._widths = key_width, payload.width
        self._area = Area(storage, name, {"keys": _BIRTH, "words": _BIRTH}, scalars=1)

    def upsert(self, keys: Words, words: Words) -> None:
        """Append rows."""
        self._area.current()
        start, stop = len(self), len(self) + len(keys)
        for region, (width, rows) in enumerate(zip(self._widths, (keys, words), strict=True)):
            if stop * width > self._area.words(region):
                self._area.grow(region, max(stop * width, 2 * self._area.words(region)))
            self._area.array(region)[start * width : stop * width] = np.reshape(rows, -1)
        self._area.head[SCALARS] = stop

    def rows(self) -> tuple[Words, Words]:
        return self._column(0), self._column(1)

    def clear(self) -> None:
        self._area.current()
        self._area.head[SCALARS] = 0

    def __len__(self) -> int:
        return self._area.head[SCALARS]

    @property
    def usage(self) -> dict[str, int]:
        """Rows, and bytes in use."""
        return {"records": len(self), "rows": 8 * len(self) * sum(self._widths)}

    def _column(self, region: int) -> Words:
        self._area.current()
        width = self._widths[region]
        return self._area.array(region)[: len(self) * width].reshape(len(self), width)
