"""Cells of a matrix as a query has last been told them, and their changes.

subscription.change(read, touched)   →   the cells that went and came, as words: (i, j, value), -1 and +1
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.catalog.relation import MULT
from squallpy.physical.matrix.block_supersteps import ALONE, CyclicPartition
from squallpy.physical.matrix.matrix_plan import ALL, MatrixPlan, OutputReader, Some
from squallpy.runtime.batch.micro_batch import Computed
from squallpy.runtime.evaluate.vectors import arrow_type
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.matrix.cells import as_words, of_words
from squallpy.runtime.matrix.stored_views import Array
from squallpy.runtime.messages.deltas import unpack_deltas
from squallpy.runtime.state.matrix_blocks import BlockLayout, MatrixBlock

SHOWN = "shown"  # the delta of a message from the driver: (reading, i, j, value) → how often it came
Touch = tuple[Array, Array]  # which rows, which columns
Read = Callable[["slice | Array", "slice | Array"], Array]
CANCELLED = 1e-12  # of the largest value that a cell has had: what is left below it is rounding
ALIKE = 1e-13  # relative: what differs by less is not told, for an evaluation rounds otherwise than an update


def indices_read(some: Some, size: int) -> "slice | Array":
    """Return the indices of a dimension that are read."""
    if some == ALL:
        return slice(None)
    parts = [np.arange(max(low or 0, 0), min(size - 1 if high is None else high, size - 1) + 1) for low, high in some]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def subscription_layouts(name: str, ring: Semiring) -> tuple[BlockLayout, ...]:
    """Lay out the blocks of a reading: its values, and, where numbers are rounded, the largest that each has been."""
    values = BlockLayout(f"{name} told", np.dtype(ring.dtype).name)
    return (values, BlockLayout(f"{name} most", "float64")) if ring is ARITHMETIC else (values,)


def allocate_blocks(storage: Storage, ring: Semiring) -> list[MatrixBlock]:
    """Allocate the blocks of a reading."""
    return [MatrixBlock(layout, storage) for layout in subscription_layouts("", ring)]


class ReportedCells:
    """The cells of a reading as they have been told, or those in a partition's rows: as many as there are, in a block.
    What that holds is still there when another one of these is made for it."""

    def __init__(
        self,
        reading: OutputReader,
        ring: Semiring,
        part: CyclicPartition = ALONE,
        blocks: Sequence[MatrixBlock] | None = None,
    ) -> None:
        self.reading, self._ring, self._part = reading, ring, part
        self._values, *most = blocks or allocate_blocks(HEAP, ring)
        self._largest = most[0] if most else None
        self._shape = (0, 0)
        self._numbers: tuple[Array, Array] = (np.zeros(0, np.int64), np.zeros(0, np.int64))  # of rows and columns

    def nbytes(self, shape: tuple[int, int]) -> int:
        """Compute the bytes of the reading for a matrix of a shape."""
        cells = 1
        for some, size in zip((self.reading.rows, self.reading.cols), shape, strict=True):
            ends = ((max(low or 0, 0), size - 1 if high is None else min(high, size - 1)) for low, high in some)
            cells *= sum(max(last - first + 1, 0) for first, last in ends)
        return cells * np.dtype(self._ring.dtype).itemsize * (2 if self._ring is ARITHMETIC else 1)

    def resize(self, shape: tuple[int, int]) -> None:
        """Grow with the matrix; new cells are zero."""
        if shape == self._shape:
            return
        self._shape = shape
        some = (
            indices_read(which, size) for which, size in zip((self.reading.rows, self.reading.cols), shape, strict=True)
        )
        rows, cols = (np.arange(size)[which] for size, which in zip(shape, some, strict=True))
        self._numbers = self._part.select_own(rows), cols
        for block, fill in ((self._values, self._ring.zero), (self._largest, 0.0)):
            if block:
                block.resize((len(self._numbers[0]), len(cols)), fill)

    def change(self, read: Read | None, touched: Touch | None = None) -> tuple[Words, Words]:
        """Return keys (i, j, word of the value) and multiplicities of the cells that have changed.

        Args:
            read: Gives the matrix at rows and columns; None: it is zero.
            touched: Rows and columns where it may differ; None: anywhere.
        """
        numbers, where = self._places_to_compare(touched)
        old = self._values.values if where is None else self._values.values[where]
        if read is None:
            new = np.full_like(old, self._ring.zero)
        else:
            new = np.array(read(*(self._indices() if where is None else numbers)))
            if self._largest:
                self._round(self._largest.values, where, old, new)
        at = np.nonzero(_bits(new) != _bits(old))
        gone, come = self._keys(numbers, at, old), self._keys(numbers, at, new)
        self._values.values[... if where is None else where] = new
        return np.vstack([gone, come]), np.repeat(np.array([-1, 1]), [len(gone), len(come)])

    def _places_to_compare(self, touched: Touch | None) -> tuple[tuple[Array, Array], tuple[Array, ...] | None]:
        """Return the numbers of the rows and columns to compare, and their positions; None: everywhere."""
        if touched is None:
            return self._numbers, None
        at = [np.flatnonzero(t[numbers]) for t, numbers in zip(touched, self._numbers, strict=True)]
        if 2 * len(at[0]) * len(at[1]) > self._values.values.size:
            return self._numbers, None
        return (self._numbers[0][at[0]], self._numbers[1][at[1]]), np.ix_(*at)

    def _indices(self) -> tuple[slice | Array, slice | Array]:
        some = (self.reading.rows, self.reading.cols)
        return tuple(slice(None) if s == ALL else n for s, n in zip(some, self._numbers, strict=True))  # type: ignore[return-value]

    def _round(self, most: Array, where: tuple[Array, ...] | None, old: Array, new: Array) -> None:
        """Reset cells that differ by rounding alone, and note how large cells have been."""
        place: Any = ... if where is None else where
        before, size = most[place], np.abs(new)
        new[size <= CANCELLED * before] = 0.0
        with np.errstate(invalid="ignore"):  # ∞ - ∞
            alike = np.abs(new - old) <= ALIKE * np.abs(old)
        new[alike] = old[alike]
        most[place] = np.maximum(before, np.where(np.isfinite(size), size, 0.0))

    def _keys(self, numbers: tuple[Array, Array], at: tuple[Array, ...], values: Array) -> Words:
        some = values[at]
        there = some != self._ring.zero
        columns = [numbers[axis][at[axis][there]] for axis in (0, 1)]
        return np.column_stack([*columns, as_words(some[there])]).astype(np.int64, copy=False)

    def restore(self, keys: Words) -> None:
        """Restore the cells as last reported, from keys (i, j, word)."""
        places = [np.full(size, -1) for size in self._shape]
        for place, numbers in zip(places, self._numbers, strict=True):
            place[numbers] = np.arange(len(numbers))
        values = self._values.values
        values[places[0][keys[:, 0]], places[1][keys[:, 1]]] = of_words(keys[:, 2], self._ring.dtype)
        if self._largest:
            np.abs(values, out=self._largest.values)


def decode_rows(reading: OutputReader, keys: Words, mult: Words) -> pa.Table:
    """Decode cells, keys (i, j, word), to rows of a reading's relation."""
    names, type = [field.name for field in reading.relation.fields], arrow_type(reading.relation.fields[2].type)
    values = pa.array(of_words(keys[:, 2], np.dtype(type.to_pandas_dtype()).name), type)
    return pa.table([pa.array(keys[:, 0]), pa.array(keys[:, 1]), values, pa.array(mult)], [*names, MULT])


def decode_cells(plan: MatrixPlan, message: bytes) -> Computed:
    """Decode the changed cells in a message from the driver as rows of the relations that a query reads."""
    stats, deltas = unpack_deltas(message, Dictionary())
    (shown,) = (delta for delta in deltas if delta.name == SHOWN)
    tables = {}
    for number, reading in enumerate(plan.readings):
        own = shown.keys[:, 0] == number
        tables[reading.relation.name] = decode_rows(reading, shown.keys[own, 1:], shown.words[own, 0])
    return Computed(tables, stats)


def _bits(values: Array) -> Array:
    """Reinterpret floats as words for comparison, so that NaN equals itself."""
    return as_words(values) if values.dtype.kind == "f" else values
