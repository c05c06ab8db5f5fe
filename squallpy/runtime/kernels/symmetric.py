"""Symmetric matrices of which only the lower triangle is kept up to date: half the bytes of `dense`.

    pass_over(M, U, V, X)  →  M·X of the old M;  M += U·Vᵀ, which must be symmetric, in the lower triangle
    complete(M)            →  the upper triangle too, for readers

A symmetric update is a product U·Vᵀ that happens to be symmetric: P·Qᵀ + Q·Pᵀ as U = [P Q], V = [Q P]; P·diag(d)·Pᵀ as
U = P·diag(d), V = P.
"""

import numpy as np

from squallpy.runtime.kernels.dense import Matrix


def pass_over(M: Matrix, U: Matrix, V: Matrix, X: Matrix) -> Matrix:
    """M·X (n, p) of the old M (n, n), which becomes M + U·Vᵀ in place; only the lower triangle is read and written.

    U, V (n, k), X (n, p): k and p may be 0. M is in C order. float64 or float32. The result has contiguous columns.
    """
    whole = np.tril(M) + np.tril(M, -1).T
    MX = np.asfortranarray(whole @ X)
    M += np.tril(U @ V.T)
    return MX


def complete(M: Matrix) -> Matrix:
    """Copy the lower triangle over the upper one, in place."""
    lower = np.tril_indices(len(M), -1)
    M.T[lower] = M[lower]
    return M
