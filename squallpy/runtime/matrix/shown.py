"""What a query has been told of a matrix, and how that changes.

shown.change(values now)   →   the cells that went and came, as words: (i, j, value), -1 and +1
"""

import numpy as np
import pyarrow as pa

from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.physical.matrices import ALL, Reading, Some
from squallpy.runtime.evaluate.vector import arrow_type
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.matrix.cells import as_words, of_words
from squallpy.runtime.matrix.views import Array
from squallpy.runtime.sources.source import MULT

CANCELLED = 1e-12  # of the largest value that a cell has had: what is left below it is rounding


def indices(some: Some, size: int) -> "slice | Array":
    """Those of a dimension that are read."""
    if some == ALL:
        return slice(None)
    parts = [np.arange(max(low or 0, 0), min(size - 1 if high is None else high, size - 1) + 1) for low, high in some]
    return np.concatenate([np.zeros(0, np.int64), *parts])


class Shown:
    """The cells of a reading as they have been told: as many as the reading has, in one array."""

    def __init__(self, reading: Reading, ring: Semiring) -> None:
        self.reading, self._ring = reading, ring
        self._values: Array = np.empty((0, 0), ring.dtype)
        self._most: Array = np.empty((0, 0))  # the largest that each cell has been, where numbers are rounded
        self._shape = (0, 0)

    def where(self) -> tuple["slice | Array", "slice | Array"]:
        """The rows and columns that are read."""
        return indices(self.reading.rows, self._shape[0]), indices(self.reading.cols, self._shape[1])

    def resize(self, shape: tuple[int, int]) -> None:
        """The matrix has grown: what is new is zero."""
        if shape == self._shape:
            return
        self._shape = shape
        extents = (len(np.arange(size)[some]) for size, some in zip(shape, self.where(), strict=True))
        values, old = np.full(tuple(extents), self._ring.zero, self._ring.dtype), self._values
        values[: old.shape[0], : old.shape[1]] = old
        self._values = values
        if self._ring is ARITHMETIC:
            self._most = np.abs(values)

    def change(self, now: Array | None) -> tuple[Words, Words]:
        """Keys (i, j, word of the value) and multiplicities of the cells that are not as they were; None: all zero."""
        old = self._values
        new = np.full_like(old, self._ring.zero) if now is None else np.array(now)
        if self._ring is ARITHMETIC and now is not None:
            size = np.abs(new)
            new[size <= CANCELLED * self._most] = 0.0
            np.maximum(self._most, np.where(np.isfinite(size), size, 0.0), out=self._most)
        at = np.nonzero(_bits(new) != _bits(old))
        self._values = new
        gone, come = self._keys(at, old), self._keys(at, new)
        return np.vstack([gone, come]), np.repeat(np.array([-1, 1]), [len(gone), len(come)])

    def _keys(self, at: tuple[Array, ...], values: Array) -> Words:
        some = values[at]
        there = some != self._ring.zero
        places = (np.arange(size)[some] for size, some in zip(self._shape, self.where(), strict=True))
        columns = [place[where[there]] for place, where in zip(places, at, strict=True)]
        return np.column_stack([*columns, as_words(some[there])]).astype(np.int64, copy=False)

    def restore(self, keys: Words) -> None:
        """What had been told: keys (i, j, word)."""
        places = [np.full(size, -1) for size in self._shape]
        for place, size, some in zip(places, self._shape, self.where(), strict=True):
            chosen = np.arange(size)[some]
            place[chosen] = np.arange(len(chosen))
        self._values[places[0][keys[:, 0]], places[1][keys[:, 1]]] = of_words(keys[:, 2], self._ring.dtype)
        if self._ring is ARITHMETIC:
            self._most = np.abs(self._values)


def table_of(reading: Reading, keys: Words, mult: Words) -> pa.Table:
    """Cells, keys (i, j, word), as rows of a reading's relation."""
    names, type = [field.name for field in reading.relation.fields], arrow_type(reading.relation.fields[2].type)
    values = pa.array(of_words(keys[:, 2], np.dtype(type.to_pandas_dtype()).name), type)
    return pa.table([pa.array(keys[:, 0]), pa.array(keys[:, 1]), values, pa.array(mult)], [*names, MULT])


def _bits(values: Array) -> Array:
    """Values to compare: NaN is itself."""
    return as_words(values) if values.dtype.kind == "f" else values
