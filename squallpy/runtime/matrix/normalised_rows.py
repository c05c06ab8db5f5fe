"""Shares of rows, kept fresh: what rows of a stream add up to in each cell, divided by the sum of the cell's row.

shares.add(rows)     →   Cells(rows, cols, shares) of all rows of the matrix that these touch, cells that went included

A row that comes or goes changes every share of its row of the matrix, and nothing else. What is remembered are the rows
of the stream that are there, each value as it was written and how often; sums are made of those anew, so that nothing
is left of what has gone.
"""

import numpy as np
import numpy.typing as npt

from squallpy.base.semirings import ARITHMETIC
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.matrix.cells import Cells, as_words, of_words
from squallpy.runtime.matrix.rows_to_cells import CellRows

Counts = npt.NDArray[np.int64]


class NormalisedRows:
    """The rows under one matrix: (row, column, value) and how often, in no order."""

    def __init__(self) -> None:
        self._keys: Words = np.empty((0, 3), np.int64)
        self._counts: Counts = np.empty(0, np.int64)

    def add(self, rows: CellRows) -> tuple[Cells, Words, Counts]:
        """Apply rows; returns the shares in every row of the matrix that changes, and the changes as words for
        `restore`."""
        own = np.column_stack([rows.i, rows.j, as_words(rows.entries(ARITHMETIC))])
        touched = np.isin(self._keys[:, 0], rows.i)
        keys, which = np.unique(np.vstack([self._keys[touched], own]), axis=0, return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, which.ravel(), np.concatenate([self._counts[touched], rows.mult]))
        there = counts != 0
        self._keys = np.vstack([self._keys[~touched], keys[there]])
        self._counts = np.concatenate([self._counts[~touched], counts[there]])
        return _normalise(keys, counts), own, rows.mult

    def restore(self, keys: Words, counts: Counts) -> Cells:
        """Go on with what `add` has told of, added up; all shares."""
        order = np.lexsort(keys.T[::-1])
        self._keys, self._counts = keys[order], counts[order]
        return _normalise(self._keys, self._counts)


def _normalise(keys: Words, counts: Counts) -> Cells:
    """Divide each cell by the sum of its row; keys are sorted, and have all of a row."""
    if not len(keys):
        return Cells.none(ARITHMETIC)
    weights = np.where(counts, of_words(keys[:, 2], ARITHMETIC.dtype) * counts, 0.0)
    begins_row = np.r_[True, keys[1:, 0] != keys[:-1, 0]]
    begins_cell = begins_row | np.r_[True, keys[1:, 1] != keys[:-1, 1]]
    rows, cells = np.flatnonzero(begins_row), np.flatnonzero(begins_cell)
    sums = np.add.reduceat(weights, rows)[(np.cumsum(begins_row) - 1)[cells]]
    values = np.divide(np.add.reduceat(weights, cells), sums, out=np.zeros(len(cells)), where=sums > 0)
    return Cells(keys[cells, 0], keys[cells, 1], values)
