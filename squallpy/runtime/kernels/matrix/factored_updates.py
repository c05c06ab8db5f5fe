"""Factored updates: few columns U (n, k) and V (m, k), of which U·Vᵀ is the change of a matrix.

of_cells([1, 1, 3], [0, 2, 0], [5.0, 6.0, 7.0], (4, 3))  →  rows 1 and 3 change: U picks them, V is what they gain
compress(U, V)                                           →  the same update, of as few columns as its rank
"""

import numpy as np
import numpy.typing as npt

from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.runtime.kernels.matrix.sweeps import Matrix, columns_of

Places = npt.NDArray[np.int64]


def of_cells(
    rows: Places, columns: Places, values: Matrix, shape: tuple[int, int], ring: Semiring = ARITHMETIC
) -> tuple[Matrix, Matrix]:
    """Factor changes of cells, those of one place added up: U (n, k), V (m, k), k the fewer of distinct rows and
    columns.

    Rows and columns that gain nothing in the end have none. Factors have contiguous columns.
    """
    some_rows, row_of = np.unique(rows, return_inverse=True)
    some_columns, column_of = np.unique(columns, return_inverse=True)
    if len(some_rows) <= len(some_columns):
        return _picked(some_rows, row_of, columns, values, shape, ring)
    V, U = _picked(some_columns, column_of, rows, values, shape[::-1], ring)
    return U, V


def _picked(
    some: Places, which: Places, across: Places, values: Matrix, shape: tuple[int, int], ring: Semiring
) -> tuple[Matrix, Matrix]:
    """Pair unit columns for some rows with what each of these gains."""
    gained = np.full((len(some), shape[1]), ring.zero, values.dtype)
    ring.add.at(gained, (which, across), values)
    kept = (gained != ring.zero).any(axis=1)
    unit, gains = (columns_of(size, int(kept.sum()), values.dtype) for size in shape)
    unit[:] = ring.zero
    unit[some[kept], np.arange(unit.shape[1])] = ring.one
    gains[:] = gained[kept].T
    return unit, gains


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
