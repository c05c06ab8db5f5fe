"""Factored updates: the few columns U (n, k) and V (m, k) of which U·Vᵀ is the change of a matrix.

of_cells([1, 1, 3], [0, 2, 0], [5.0, 6.0, 7.0], (4, 3))  →  rows 1, 3 as rank 2, columns 0, 2 as rank 2: rank 2
compress(U, V)                                           →  U', V' with U'·V'ᵀ = U·Vᵀ and as few columns as it has
"""

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.sweeps import Matrix

Places = npt.NDArray[np.int64]


def of_cells(rows: Places, columns: Places, values: Matrix, shape: tuple[int, int]) -> tuple[Matrix, Matrix]:
    """Changes of cells, equal places added up, as U (n, k), V (m, k): k is the fewer of distinct rows and columns."""
    some_rows, row_of = np.unique(rows, return_inverse=True)
    some_columns, column_of = np.unique(columns, return_inverse=True)
    by_row = len(some_rows) <= len(some_columns)
    some, index, across, at = (some_rows, row_of, columns, 0) if by_row else (some_columns, column_of, rows, 1)
    unit = np.zeros((shape[at], len(some)), values.dtype, order="F")
    unit[some, np.arange(len(some))] = 1
    spread = np.zeros((shape[1 - at], len(some)), values.dtype, order="F")
    np.add.at(spread, (across, index), values)
    return (unit, spread) if by_row else (spread, unit)


def compress(U: Matrix, V: Matrix, tolerance: float = 1e-14) -> tuple[Matrix, Matrix]:
    """The same update with as few columns as its rank: singular values below `tolerance` times the largest are left."""
    Q, R = np.linalg.qr(U)
    P, S = np.linalg.qr(V)
    left, size, right = np.linalg.svd(R @ S.T)
    kept = int((size > tolerance * size[:1].max(initial=0)).sum())
    return np.asfortranarray(Q @ (left[:, :kept] * size[:kept])), np.asfortranarray(P @ right[:kept].T)
