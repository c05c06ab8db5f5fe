"""Cells of matrices by their places: what the rows of a stream add up to, and how they are kept as words.

Cells([1, 1, 3], [0, 2, 0], [5.0, 6.0, 7.0]).merged(ring)     places in order, equal ones added up
"""

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.base.semirings import COUNTING, Semiring
from squallpy.runtime.kernels.matrix.cell_cover import cover_cells
from squallpy.runtime.kernels.matrix.factored_updates import of_cells
from squallpy.runtime.kernels.matrix.integer_products import sums
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.matrix.stored_views import Array

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cells:
    """Values at places of a matrix."""

    rows: Places
    cols: Places
    values: Array

    def __len__(self) -> int:
        return len(self.rows)

    def merged(self, ring: Semiring) -> "Cells":
        """Sort cells by rows and columns, add up those of one place, and drop zeros; OverflowError for counts."""
        order = np.lexsort((self.cols, self.rows))
        rows, cols, values = self.rows[order], self.cols[order], self.values[order]
        if len(rows):
            starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])])
            values = sums(values, starts) if ring is COUNTING else ring.add.reduceat(values, starts)
            rows, cols = rows[starts], cols[starts]
        there = values != ring.zero
        return Cells(rows[there], cols[there], values[there])

    @staticmethod
    def none(ring: Semiring) -> "Cells":
        return Cells(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, ring.dtype))

    def __add__(self, other: "Cells") -> "Cells":
        """Concatenate cells; those of one place are not added up."""
        pairs = ((self.rows, other.rows), (self.cols, other.cols), (self.values, other.values))
        return Cells(*(np.concatenate(pair) for pair in pairs))

    @property
    def rank(self) -> int:
        """The number of rows and columns that `cover_cells` needs."""
        return cover_cells(self.rows, self.cols).size

    def factors(self, shape: tuple[int, int], ring: Semiring) -> tuple[Array, Array]:
        """Factor the cells into U (n, k) · V (k, m), zero elsewhere; OverflowError as for `merged`."""
        cells = self.merged(ring) if ring is COUNTING else self
        u, v = of_cells(cells.rows, cells.cols, cells.values, shape, ring)
        return u, v.T


def as_words(values: Array) -> Words:
    """Encode entries as integers of 64 bits; equal values give equal words."""
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values + 0.0).view(np.int64)  # NB: of -0.0 it makes 0.0
    return values.astype(np.int64)


def of_words(words: Words, dtype: str) -> Array:
    """Decode what `as_words` has encoded."""
    return np.ascontiguousarray(words).view(np.float64) if dtype == "float64" else words.astype(dtype)
