"""Dense matrices: everything that a trigger does to one view, in one pass through its memory.

    pass_over(M, U, V, X, Y)  →  M·X, Mᵀ·Y of the old M;  M += U·Vᵀ in place
    product(A, B)             →  A·B

A trigger knows its factors before it starts (Lago §5.3.5: all deltas come from the old views), so what it reads of a
view and what it adds to it take one visit to each cell: 16 bytes a cell where BLAS, call by call, moves 32. With many
columns it is not memory that is slow, but arithmetic: these are BLAS's, some rows at a time, which stay in the cache.
"""

import numpy as np

from squallpy.runtime.kernels.matrix import integer_products
from squallpy.runtime.kernels.matrix.sweeps import Matrix, apart, columns_of, multiplied, swept
from squallpy.runtime.kernels.matrix.tiles import SEMIRINGS

_THIN = 8  # columns of a matrix that is no larger than its factors: a pass takes less than to prepare one
WIDE = 128  # columns of all factors from which on BLAS is quicker
TALL = 512  # rows at a time for it


def pass_over(M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, threads: int = 0) -> tuple[Matrix, Matrix]:
    """Compute M·X (n, p) and Mᵀ·Y (m, q) of the old M (n, m), which becomes M + U·Vᵀ in place.

    U (n, k), V (m, k), X (m, p), Y (n, q): any of k, p, q may be 0; best if their columns are contiguous (Fortran
    order), as those of the results are. M's rows are contiguous. float64, float32, or int64, where OverflowError is
    raised, before anything is changed, if a result does not fit. threads: 0 for as many as there are processors.
    """
    if M.shape[1] <= _THIN and M.dtype.kind == "f":
        return _thin(M, U, V, X, Y)
    if M.dtype.kind == "f" and U.shape[1] + X.shape[1] + Y.shape[1] >= WIDE:
        return _wide(M, U, V, X, Y)
    semiring = SEMIRINGS[M.dtype.name]
    if M.dtype.kind == "i":
        most = integer_products.largest(M)
        for C, A, B, cell, add in (
            (None, M, X, most, 0.0),
            (None, M.T, Y, most, 0.0),
            (M, U, V.T, integer_products.largest(U), most),
        ):
            integer_products.check(C, A, B, cell, add)
    return swept(semiring, M, U, V, X, Y, threads, sparse=_sparse(U, V))


def _thin(M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """Do `pass_over` product by product."""
    MX, MtY = M @ X, M.T @ Y
    if U.shape[1]:
        M += U @ V.T
    return MX, MtY


def _wide(M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """Do `pass_over` some rows at a time; BLAS writes columns of results one after the other."""
    (n, m), p, q = M.shape, X.shape[1], Y.shape[1]
    U, V, X, Y = (apart(factor, M) for factor in (U, V, X, Y))
    XM, YM = columns_of(n, p, M.dtype).T, columns_of(m, q, M.dtype).T
    YM[:] = 0
    for first in range(0, n, TALL):
        rows = slice(first, first + TALL)
        some = M[rows]
        if p:
            np.matmul(X.T, some.T, out=XM[:, rows])
        if q:
            YM += Y[rows].T @ some
        if U.shape[1]:
            some += U[rows] @ V.T
    return XM.T, YM.T


def product(A: Matrix, B: Matrix, threads: int = 0) -> Matrix:
    """Compute A·B: (n, l)·(l, m) → (n, m) in C order; for floats by BLAS, which chooses its threads itself."""
    if A.dtype.kind == "f":
        return A @ B
    integer_products.check(None, A, B, integer_products.largest(A))
    return multiplied(SEMIRINGS[A.dtype.name], A, B, threads)


def _sparse(U: Matrix, V: Matrix) -> bool:
    """True if it pays, and is right, to pass by the rows of U that are zero: 0·∞ is not."""
    few = U.shape[1] > 0 and 2 * np.count_nonzero(U.any(axis=1)) < len(U)
    return bool(few and np.isfinite(V).all())
