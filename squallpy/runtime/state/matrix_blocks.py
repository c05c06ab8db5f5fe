"""Blocks: matrices of a store, in rows that can become more and longer.

block = MatrixBlock(BlockLayout("A rows", "float64"), storage)
block.resize((3, 4), 0.0);  block.values[1] += 2       (3, 4), in place, for whoever opens the storage next
"""

from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.runtime.kernels.memory_regions import Storage

Array = npt.NDArray[Any]

_HEAD = 8  # words in front, a cache line: how many rows and columns there are
_LINE = 8  # words of a cache line
_PAGE = 512  # words; what lies a multiple of them apart shares few lines of the cache


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Layout of a block: rows of a `dense` one follow each other, those of others begin at cache lines."""

    name: str
    dtype: str
    dense: bool = False


class MatrixBlock:
    """A matrix in a region of its own."""

    def __init__(self, layout: BlockLayout, storage: Storage) -> None:
        self.layout = layout
        self._region = storage.region(f"block.{quote(layout.name, safe=' ')}", _HEAD, is_looked_up=False)

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self._region.array()[:2].tolist()
        return rows, columns

    @property
    def values(self) -> Array:
        """(rows, columns), in place until the block is resized."""
        rows, columns = self.shape
        width = self._width(rows, columns)
        self._region.grow(_HEAD + rows * width)  # NB: another process may have made it larger
        words = self._region.array()[_HEAD : _HEAD + rows * width].reshape(rows, width)
        found: Array = words.view(self.layout.dtype)[:, :columns]
        return found

    def resize(self, shape: tuple[int, int], fill: Any) -> None:
        """Add rows and columns of one value, or remove some."""
        if shape == self.shape:
            return
        old = self.values.copy()
        self._reshape(shape)
        values = self.values
        values[:] = fill
        high, wide = min(len(old), shape[0]), min(old.shape[1], shape[1])
        values[:high, :wide] = old[:high, :wide]

    def assign(self, values: Array) -> None:
        """Replace the values, by any shape."""
        if values.shape != self.shape:
            self._reshape((values.shape[0], values.shape[1]))
        self.values[:] = values

    def _reshape(self, shape: tuple[int, int]) -> None:
        self._region.grow(_HEAD + shape[0] * self._width(*shape))
        self._region.array()[:2] = shape

    def _width(self, rows: int, columns: int) -> int:
        """Number of words in a row."""
        words = -(-columns * np.dtype(self.layout.dtype).itemsize // 8)
        if self.layout.dense or rows < 2:
            return words
        words = -(-words // _LINE) * _LINE
        return words + _LINE * (words > 0 and words % _PAGE == 0)

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        rows, columns = self.shape
        return (_HEAD + rows * self._width(rows, columns)) * 8
