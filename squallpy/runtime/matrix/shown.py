"""What a query has been told of a matrix, and how that changes.

shown.change(read, touched)   →   the cells that went and came, as words: (i, j, value), -1 and +1
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.physical.matrices import ALL, Reading, Some
from squallpy.runtime.evaluate.vector import arrow_type
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.matrix.cells import as_words, of_words
from squallpy.runtime.matrix.views import Array
from squallpy.runtime.sources.source import MULT

Touch = tuple[Array, Array]  # which rows, which columns
Read = Callable[["slice | Array", "slice | Array"], Array]
CANCELLED = 1e-12  # of the largest value that a cell has had: what is left below it is rounding
ALIKE = 1e-13  # relative: what differs by less is not told, for an evaluation rounds otherwise than an update


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
        self._numbers: tuple[Array, Array] = (np.zeros(0, np.int64), np.zeros(0, np.int64))  # of rows and columns

    def nbytes(self, shape: tuple[int, int]) -> int:
        """What it takes for a matrix of a shape."""
        cells = 1
        for some, size in zip((self.reading.rows, self.reading.cols), shape, strict=True):
            ends = ((max(low or 0, 0), size - 1 if high is None else min(high, size - 1)) for low, high in some)
            cells *= sum(max(last - first + 1, 0) for first, last in ends)
        return cells * np.dtype(self._ring.dtype).itemsize * (2 if self._ring is ARITHMETIC else 1)

    def resize(self, shape: tuple[int, int]) -> None:
        """The matrix has grown: what is new is zero."""
        if shape == self._shape:
            return
        self._shape, old = shape, self._values
        some = (indices(which, size) for which, size in zip((self.reading.rows, self.reading.cols), shape, strict=True))
        self._numbers = tuple(np.arange(size)[w] for size, w in zip(shape, some, strict=True))  # type: ignore[assignment]
        self._values = np.full([len(numbers) for numbers in self._numbers], self._ring.zero, self._ring.dtype)
        self._values[: old.shape[0], : old.shape[1]] = old
        if self._ring is ARITHMETIC:
            self._most = np.abs(self._values)

    def change(self, read: Read | None, touched: Touch | None = None) -> tuple[Words, Words]:
        """Keys (i, j, word of the value) and multiplicities of the cells that are not as they were.

        `read` gives the matrix at rows and columns; None: it is zero. It can differ where rows and columns are
        `touched` alone; None: anywhere.
        """
        numbers, where = self._looked_at(touched)
        old, most = (self._values, self._most) if where is None else (self._values[where], self._rounded(where))
        if read is None:
            new = np.full_like(old, self._ring.zero)
        else:
            new = np.array(read(*(self._all() if where is None else numbers)))
            if self._ring is ARITHMETIC:
                size = np.abs(new)
                new[size <= CANCELLED * most] = 0.0
                with np.errstate(invalid="ignore"):  # ∞ - ∞
                    alike = np.abs(new - old) <= ALIKE * np.abs(old)
                new[alike] = old[alike]
                most = np.maximum(most, np.where(np.isfinite(size), size, 0.0))
        self._keep(where, new, most)
        at = np.nonzero(_bits(new) != _bits(old))
        gone, come = self._keys(numbers, at, old), self._keys(numbers, at, new)
        return np.vstack([gone, come]), np.repeat(np.array([-1, 1]), [len(gone), len(come)])

    def _looked_at(self, touched: Touch | None) -> tuple[tuple[Array, Array], tuple[Array, ...] | None]:
        """The numbers of the rows and columns to look at, and where these are; None: everywhere."""
        if touched is None:
            return self._numbers, None
        at = [np.flatnonzero(t[numbers]) for t, numbers in zip(touched, self._numbers, strict=True)]
        if 2 * len(at[0]) * len(at[1]) > self._values.size:
            return self._numbers, None
        return (self._numbers[0][at[0]], self._numbers[1][at[1]]), np.ix_(*at)

    def _all(self) -> tuple[slice | Array, slice | Array]:
        some = self.reading.rows, self.reading.cols
        rows, cols = (indices(which, size) for which, size in zip(some, self._shape, strict=True))
        return rows, cols

    def _rounded(self, where: tuple[Array, ...]) -> Array:
        return self._most[where] if self._ring is ARITHMETIC else self._most

    def _keep(self, where: tuple[Array, ...] | None, new: Array, most: Array) -> None:
        if where is None:
            self._values, self._most = new, most
            return
        self._values[where] = new
        if self._ring is ARITHMETIC:
            self._most[where] = most

    def _keys(self, numbers: tuple[Array, Array], at: tuple[Array, ...], values: Array) -> Words:
        some = values[at]
        there = some != self._ring.zero
        columns = [numbers[axis][at[axis][there]] for axis in (0, 1)]
        return np.column_stack([*columns, as_words(some[there])]).astype(np.int64, copy=False)

    def restore(self, keys: Words) -> None:
        """What had been told: keys (i, j, word)."""
        places = [np.full(size, -1) for size in self._shape]
        for place, numbers in zip(places, self._numbers, strict=True):
            place[numbers] = np.arange(len(numbers))
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
