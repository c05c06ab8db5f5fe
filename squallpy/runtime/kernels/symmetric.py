"""Symmetric matrices of which the upper triangle is left alone: half the bytes of `dense`.

    pass_over(M, U, V, X)  →  M·X of the old M;  M += U·Vᵀ, which is symmetric, under the diagonal
    complete(M)            →  above it, too, for readers

A symmetric update is a product that happens to be symmetric: P·Qᵀ + Q·Pᵀ as U = [P Q], V = [Q P]; P·diag(d)·Pᵀ as
U = P·diag(d), V = P.
"""

import numpy as np

from squallpy.runtime.kernels.sweeps import Matrix, swept
from squallpy.runtime.kernels.tiles import FIELDS

_BLOCK = 256  # rows and columns copied at a time


def pass_over(M: Matrix, U: Matrix, V: Matrix, X: Matrix, threads: int = 0) -> Matrix:
    """M·X (n, p) of the old M (n, n), which becomes M + U·Vᵀ in place, as `dense` does but from the lower triangle.

    U, V (n, k), X (n, p): k and p may be 0. float64 or float32. M starts as a whole matrix: what lies above the
    diagonal, but for square blocks of some ten rows on it, is not read, nor kept up to date.
    """
    MX, MtX = swept(FIELDS[M.dtype.name], M, U, V, X, X, threads, lower=True)
    return np.add(MX, MtX, out=MX)


def complete(M: Matrix) -> Matrix:
    """Copy the lower triangle over the upper one, in place."""
    for first in range(0, len(M), _BLOCK):
        rows = slice(first, first + _BLOCK)
        M[:first, rows] = M[rows, :first].T
        square = M[rows, rows]
        square[:] = np.tril(square) + np.tril(square, -1).T
    return M
