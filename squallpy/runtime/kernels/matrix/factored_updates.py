"""Factored updates: few columns U (n, k) and V (m, k), of which U·Vᵀ is the change of a matrix.

of_cells([1, 1, 3], [0, 2, 0], [5.0, 6.0, 7.0], (4, 3))  →  rows 1 and 3 change: U picks them, V is what they gain
compress(U, V)                                           →  the same update, of as few columns as its rank
"""

import numpy as np

from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.runtime.kernels.matrix.cell_cover import Chosen, Places, cover_cells
from squallpy.runtime.kernels.matrix.sweeps import Matrix, columns_of


def of_cells(
    rows: Places, columns: Places, values: Matrix, shape: tuple[int, int], ring: Semiring = ARITHMETIC
) -> tuple[Matrix, Matrix]:
    """Factor changes of cells, those of one place added up: U (n, k), V (m, k), of as few rows and columns as
    `cover_cells` finds.

    Rows and columns that gain nothing in the end have none. Factors have contiguous columns.
    """
    cover = cover_cells(rows, columns)
    by_row = cover.covering_rows[cover.row_of]
    U, V = _picked(cover.rows, cover.row_of, columns, values, by_row, shape, ring)
    if by_row.all():
        return U, V
    Q, P = _picked(cover.columns, cover.column_of, rows, values, ~by_row, shape[::-1], ring)
    return (P, Q) if not by_row.any() else (_beside(U, P), _beside(V, Q))


def _picked(
    some: Places, which: Places, across: Places, values: Matrix, there: Chosen, shape: tuple[int, int], ring: Semiring
) -> tuple[Matrix, Matrix]:
    """Pair unit columns for some rows with what each of these gains by the cells that are `there`."""
    chosen, place = np.unique(which[there], return_inverse=True)
    gained = np.full((len(chosen), shape[1]), ring.zero, values.dtype)
    ring.add.at(gained, (place, across[there]), values[there])
    kept = (gained != ring.zero).any(axis=1)
    unit, gains = (columns_of(size, int(kept.sum()), values.dtype) for size in shape)
    unit[:] = ring.zero
    unit[some[chosen[kept]], np.arange(unit.shape[1])] = ring.one
    gains[:] = gained[kept].T
    return unit, gains


def _beside(left: Matrix, right: Matrix) -> Matrix:
    out = columns_of(len(left), left.shape[1] + right.shape[1], left.dtype)
    out[:, : left.shape[1]], out[:, left.shape[1] :] = left, right
    return out


def compress(U: Matrix, V: Matrix, tolerance: float = 1e-14) -> tuple[Matrix, Matrix]:
    """Reduce U·Vᵀ to as few columns as its rank; singular values below `tolerance` times the largest are left out.

    Columns of U that are equal are merged first, exactly. float64 or float32; what is not finite is left as it is.
    """
    U, V = _merged(U, V)
    if U.shape[1] < 2 or not (np.isfinite(U).all() and np.isfinite(V).all()):
        return U, V
    (Q, R), (P, S) = np.linalg.qr(U), np.linalg.qr(V)
    with np.errstate(over="ignore", invalid="ignore"):
        inner = R @ S.T
    if not np.isfinite(inner).all():  # NB: beyond the largest number, or a difference of such
        return U, V
    left, sizes, right = np.linalg.svd(inner)
    kept = int(np.count_nonzero(sizes > max(tolerance, np.finfo(U.dtype).eps) * sizes[0]))
    if kept == U.shape[1]:
        return U, V
    return np.asfortranarray(Q @ (left[:, :kept] * sizes[:kept])), np.asfortranarray(P @ right[:kept].T)


def _merged(U: Matrix, V: Matrix) -> tuple[Matrix, Matrix]:
    """Merge equal columns of U, adding up theirs of V."""
    known = dict[bytes, int]()
    which = np.array([known.setdefault(column.tobytes(), len(known)) for column in U.T])
    if len(known) == U.shape[1]:
        return U, V
    _, first = np.unique(which, return_index=True)
    sums = np.zeros((len(known), len(V)), V.dtype)
    np.add.at(sums, which, V.T)
    return np.asfortranarray(U[:, first]), sums.T
