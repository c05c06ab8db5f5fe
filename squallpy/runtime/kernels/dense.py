"""Dense matrices: everything that a trigger does to one view, in one pass through its memory.

    pass_over(M, U, V, X, Y)  →  M·X, Mᵀ·Y of the old M;  M += U·Vᵀ in place

A trigger knows its factors before it starts (Lago §5.3.5: all deltas come from the old views), so what it reads of a
view and what it adds to it need one visit to each cell: 16 bytes a cell, where BLAS call by call moves 40.

Factors have few columns. Columns that are contiguous (Fortran order) are used where they lie; others are copied.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[Any]


def pass_over(M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """M·X (n, p) and Mᵀ·Y (m, q) of the old M (n, m), which becomes M + U·Vᵀ in place.

    U (n, k), V (m, k), X (m, p), Y (n, q): any of k, p, q may be 0. M is in C order. float64, float32, or int64, where
    an overflow raises OverflowError before M is touched. What is returned has contiguous columns.
    """
    MX, MtY = np.asfortranarray(M @ X), np.asfortranarray(M.T @ Y)
    for first in range(0, len(M), 64):
        M[first : first + 64] += U[first : first + 64] @ V.T
    return MX, MtY
