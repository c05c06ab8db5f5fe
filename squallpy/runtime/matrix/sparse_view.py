"""Inputs of which few cells are not zero, kept as these.

    SparseView.of(values, ring)      the cells in order of rows, and behind them those that have been added since
    pass_over(u, v, [x], [y])        M·x and M'·y by visiting cells; the cells of u·v are put behind the others

Where a change is not one of few cells, and where there are too many in the end, it is stored densely from then on. What
a program computes fills up soon, so that only inputs are sparse; a view of a symmetric matrix has all of its cells.
"""

from collections.abc import Sequence

import numpy as np

from squallpy.base.semirings import ARITHMETIC, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.maintain.matrix.trigger_cost import SPARSE
from squallpy.runtime.kernels.matrix.sparse import multiplied
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.stored_views import Array, MatrixView, store_view

_LEAST = 1 << 16  # cells of a matrix that is worth it
_BEHIND = 4  # in so many cells one may lie behind those in order
_CELL = 16  # bytes


def has_few_cells(cells: int, shape: tuple[int, int], ring: Semiring) -> bool:
    """True if a matrix with so many entries that are not zero is to be stored as cells."""
    size = shape[0] * shape[1]
    return ring in (ARITHMETIC, MIN_PLUS, MAX_PLUS) and size >= _LEAST and cells <= SPARSE * size


def is_sparse(values: Array, ring: Semiring) -> bool:
    """True if these values are to be stored as the cells that are not zero."""
    return has_few_cells(int(np.count_nonzero(values != ring.zero)), (values.shape[0], values.shape[1]), ring)


class SparseView:
    """Cells at places; or, once there are too many, a dense view."""

    def __init__(self, cells: Cells, shape: tuple[int, int], ring: Semiring) -> None:
        self.shape, self._ring = shape, ring
        self._dense: MatrixView | None = None
        self._rows: Array
        self._cols: Array
        self._values: Array
        self._count = self._ordered = 0
        self._keep(cells)

    @staticmethod
    def of(values: Array, ring: Semiring) -> "SparseView":
        rows, cols = np.nonzero(values != ring.zero)
        return SparseView(Cells(rows, cols, values[rows, cols]), (values.shape[0], values.shape[1]), ring)

    @property
    def sparse(self) -> bool:
        return self._dense is None

    @property
    def density(self) -> float | None:
        """The share of cells that are kept; None if all are."""
        return self._count / max(1, self.shape[0] * self.shape[1]) if self.sparse else None

    @property
    def count(self) -> int:
        """The number of stored cells."""
        return self._count

    @property
    def nbytes(self) -> int:
        return self._dense.nbytes if self._dense else len(self._values) * _CELL

    def grow(self, shape: tuple[int, int]) -> "MatrixView":
        """Append rows and columns of zeros."""
        assert self.sparse
        return SparseView(self.cells(), shape, self._ring)

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        if self._dense:
            return self._dense.pass_over(u, v, xs, ys)
        rows, cols, values = self._stored()
        n, m = self.shape
        straight = [multiplied(rows, cols, values, x, n, self._ring) for x in xs]
        across = [multiplied(cols, rows, values, y, m, self._ring) for y in ys]
        if u is not None and v is not None:
            self._add(u, v)
        return straight, across

    def pruned(
        self, u: Array, v: Array, xs: Sequence[Array] = (), ys: Sequence[Array] = ()
    ) -> tuple[list[Array], list[Array], Array, Array]:
        return self._dense.pruned(u, v, xs, ys) if self._dense else (*self.pass_over(u, v, xs, ys), u, v)

    def at(self, rows: Array, cols: Array) -> Array:
        """Return single entries, by binary search in the sorted cells and in those behind them."""
        if self._dense:
            entries: Array = self._dense.read(slice(None), slice(None))[rows, cols]
            return entries
        wanted, inverse = np.unique(rows.astype(np.int64) * self.shape[1] + cols, return_inverse=True)
        out = np.full(len(wanted), self._ring.zero)
        there_rows, there_cols, values = self._stored()
        keys = there_rows.astype(np.int64) * self.shape[1] + there_cols
        first, behind = keys[: self._ordered], keys[self._ordered :]
        for some, of in ((first, values), (behind[(order := np.argsort(behind))], values[self._ordered :][order])):
            low, high = np.searchsorted(some, wanted), np.searchsorted(some, wanted, side="right")
            found = np.repeat(np.arange(len(wanted)), high - low)
            places = np.arange(len(found)) + np.repeat(low - (np.cumsum(high - low) - (high - low)), high - low)
            self._ring.add.at(out, found, of[places])
        return out[inverse.ravel()]

    def read(self, rows: "slice | Array", cols: "slice | Array") -> Array:
        if self._dense:
            return self._dense.read(rows, cols)
        (n, m), zero, add = self.shape, self._ring.zero, self._ring.add
        some, at, values = self._stored()
        wanted = np.arange(n)[rows]
        place = np.full(n, -1)
        place[wanted] = np.arange(len(wanted))
        named = place[some] >= 0
        out = np.full((len(wanted), m), zero)
        add.at(out, (place[some[named]], at[named]), values[named])
        found: Array = out[place[wanted]][:, cols]
        return found

    def whole(self) -> Array:
        return self.read(slice(None), slice(None))

    def add_at(self, rows: Array, cols: Array, values: Array) -> None:
        if self._dense:
            self._dense.add_at(rows, cols, values)
        else:
            self._append(rows, cols, values)

    def _add(self, u: Array, v: Array) -> None:
        """Append the cells of u·v if they are few, else store densely."""
        zero = self._ring.zero
        columns = u.T
        (k, i), (row, j) = np.nonzero(columns != zero), np.nonzero(v != zero)
        in_row = np.bincount(row, minlength=len(v))
        times = in_row[k]
        if self._count + times.sum() > 2 * SPARSE * self.shape[0] * self.shape[1]:
            self._fill()
            assert self._dense
            self._dense.pass_over(u, v, [], [])
            return
        # each cell of a column of u meets those of its row of v, which lie together
        first = np.repeat((np.cumsum(in_row) - in_row)[k] - (np.cumsum(times) - times), times)
        met = first + np.arange(len(first))
        values = self._ring.multiply(np.repeat(u[i, k], times), v[row[met], j[met]])
        self._append(np.repeat(i, times), j[met], values)

    def _append(self, rows: Array, cols: Array, values: Array) -> None:
        count = self._count + len(values)
        if count > len(self._values):
            room = max(count, 2 * len(self._values))
            self._rows, self._cols, self._values = (np.resize(a, room) for a in self._all())
        for where, more in zip(self._all(), (rows, cols, values), strict=True):
            where[self._count : count] = more
        self._count = count
        if _BEHIND * (count - self._ordered) > count + _LEAST:
            self._keep(self.cells())
        if self._count > 2 * SPARSE * self.shape[0] * self.shape[1]:
            self._fill()

    def _keep(self, cells: Cells) -> None:
        """Store these cells, sorted."""
        merged = cells.merged(self._ring)
        self._rows, self._cols = merged.rows.astype(np.int32), merged.cols.astype(np.int32)
        self._values = merged.values.astype(np.float64)
        self._count = self._ordered = len(merged)

    def _fill(self) -> None:
        self._dense = store_view(self.whole(), self._ring)
        self._keep(Cells.none(self._ring))

    def _all(self) -> tuple[Array, Array, Array]:
        return self._rows, self._cols, self._values

    def _stored(self) -> tuple[Array, Array, Array]:
        return self._rows[: self._count], self._cols[: self._count], self._values[: self._count]

    def cells(self) -> Cells:
        """Return all cells; those of one place may be in parts."""
        rows, cols, values = self._stored()
        return Cells(rows.astype(np.int64), cols.astype(np.int64), values)
