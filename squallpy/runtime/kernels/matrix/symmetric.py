"""Symmetric matrices of which the upper triangle is left alone: half the bytes of `dense`.

    pass_over(M, U, V, X)  →  M·X of the old M;  M += U·Vᵀ, which is symmetric, under the diagonal
    complete(M)            →  above it, too, for readers

A symmetric update is a product that happens to be symmetric: P·Qᵀ + Q·Pᵀ as U = [P Q], V = [Q P]; P·diag(d)·Pᵀ as
U = P·diag(d), V = P.
"""

import numpy as np

from squallpy.runtime.kernels.matrix.dense import TALL, WIDE
from squallpy.runtime.kernels.matrix.sweeps import Matrix, apart, columns_of, swept
from squallpy.runtime.kernels.matrix.tiles import SEMIRINGS


def pass_over(M: Matrix, U: Matrix, V: Matrix, X: Matrix, threads: int = 0) -> Matrix:
    """Compute M·X (n, p) of the old M (n, n), which becomes M + U·Vᵀ in place, as `dense` does but from the lower
    triangle.

    U, V (n, k), X (n, p): k and p may be 0. float64 or float32. M starts as a whole matrix: what lies above the
    diagonal, but for square blocks of some ten rows on it, is not read, nor kept up to date.
    """
    if U.shape[1] + 2 * X.shape[1] >= WIDE:
        return _wide(M, U, V, X)
    MX, MtX = swept(SEMIRINGS[M.dtype.name], M, U, V, X, X, threads, lower=True)
    return np.add(MX, MtX, out=MX)


def _wide(M: Matrix, U: Matrix, V: Matrix, X: Matrix) -> Matrix:
    """Do `pass_over` by BLAS, some rows at a time, as far as their square on the diagonal."""
    U, V, X = (apart(factor, M) for factor in (U, V, X))
    XM = columns_of(len(M), X.shape[1], M.dtype).T
    for first in range(0, len(M), TALL):
        rows, upto = slice(first, first + TALL), slice(first + TALL)
        if X.shape[1]:
            left = M[rows, :first]
            XM[:, rows] = X[:first].T @ left.T + X[rows].T @ _whole(M[rows, rows])
            XM[:, :first] += X[rows].T @ left
        if U.shape[1]:
            M[rows, upto] += U[rows] @ V[upto].T
    return XM.T


def complete(M: Matrix) -> Matrix:
    """Copy the lower triangle over the upper one, in place."""
    for first in range(0, len(M), TALL):
        rows = slice(first, first + TALL)
        M[:first, rows] = M[rows, :first].T
        M[rows, rows] = _whole(M[rows, rows])
    return M


def _whole(square: Matrix) -> Matrix:
    """Complete a symmetric matrix of which the lower triangle is given."""
    whole: Matrix = np.tril(square) + np.tril(square, -1).T
    return whole
