"""Matrices over the tropical semirings: (min, +) with zero +∞, and (max, +) with zero −∞.

    pass_over(M, U, V, X, Y)  →  M ⊗ X, Mᵀ ⊗ Y of the old M;  M = min(M, U ⊗ Vᵀ) in place
    pruned(M, U, V, X, Y)     →  the same, and what of U, V changed anything
    update(M, U, V)           →  M = min(M, U ⊗ Vᵀ) in place, and which cells changed
    product(A, B)             →  A ⊗ B

float64, float32 or int64. The zero absorbs: ∞ ⊗ −∞ = ∞ in (min, +). In int64 the zero is the largest integer, or the
smallest in (max, +), see `zero`; other entries lie within ±2⁶¹, so that no sum of two can be taken for it. NaN is no
entry: it is never better than another.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.matrix.sweeps import Marks, Matrix, multiplied, rows_of, swept
from squallpy.runtime.kernels.matrix.tiles import SEMIRINGS, Semiring

_BLOCK = 1 << 17  # cells whose changes are looked for at a time
_FEW = 4  # one row in so many: these are taken out, updated and put back


class ChangedCells(NamedTuple):
    """Cells that an update changed, in row-major order, with what they held before."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    before: Matrix


def zero(dtype: npt.DTypeLike, greatest: bool = False) -> Any:
    """Return the ring's zero, which loses every choice and absorbs every sum."""
    kind: Any = np.dtype(dtype)
    return kind.type(_semiring(kind, greatest).zero)


def pass_over(
    M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, greatest: bool = False, threads: int = 0
) -> tuple[Matrix, Matrix]:
    """Compute M ⊗ X (n, p) and Mᵀ ⊗ Y (m, q) of the old M (n, m), which becomes min(M, U ⊗ Vᵀ) in place.

    greatest: max for min. Only what changes is written, and rows of U without an entry cost nothing.
    """
    return _passed(M, U, V, X, Y, greatest, threads)[:2]


def pruned(
    M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, greatest: bool = False, threads: int = 0
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Do `pass_over`, and return an update U', V' of the same shape that would have changed M as much.

    U', V' have the same consequences: they are zero at rows and columns of M where nothing changed; if many may have,
    at the grain of tiles. So a series of updates ends where it no longer makes a difference.
    """
    MX, MtY, changed = _passed(M, U, V, X, Y, greatest, threads)
    zero = _semiring(M.dtype, greatest).zero
    u, v = (np.where(some[:, None], of, zero) for some, of in zip(changed, (U, V), strict=True))
    return MX, MtY, u, v


Changed = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]  # rows, columns; at least those


def _passed(
    M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, greatest: bool, threads: int
) -> tuple[Matrix, Matrix, Changed]:
    semiring = _semiring(M.dtype, greatest)
    MX, MtY = _few(semiring, M, X, 8, threads), _few(semiring, M.T, Y, 2, threads)
    x, y = X if MX is None else X[:, :0], Y if MtY is None else Y[:, :0]
    named = np.flatnonzero(np.any(np.not_equal(U, semiring.zero), axis=1))
    if not x.shape[1] and not y.shape[1] and _FEW * len(named) <= len(M):
        by_x, by_y, changed = M[:, :0], M[:0].T, _some(semiring, M, U, V, named, threads)
    else:
        marks = Marks(semiring, *M.shape)
        by_x, by_y = swept(semiring, M, U, V, x, y, threads, sparse=True, marks=marks)
        changed = marks.rows, marks.columns
    return by_x if MX is None else MX, by_y if MtY is None else MtY, changed


def _some(semiring: Semiring, M: Matrix, U: Matrix, V: Matrix, named: npt.NDArray[np.intp], threads: int) -> Changed:
    """Set M ⊕= U ⊗ Vᵀ in the rows that U names, apart from the others; return which rows and columns changed."""
    rows, columns = np.zeros(M.shape[0], np.bool_), np.zeros(M.shape[1], np.bool_)
    if len(named):
        some = rows_of(len(named), M.shape[1], M.dtype)
        some[:] = M[named]
        swept(semiring, some, U[named], V, some[:0].T, some[:, :0], threads)
        new = some != M[named]
        rows[named], columns[:] = new.any(axis=1), new.any(axis=0)
        M[named] = some
    return rows, columns


def _few(semiring: Semiring, M: Matrix, X: Matrix, share: int, threads: int) -> Matrix | None:
    """Compute M ⊗ X from a few of M's columns, if no more than 1 of `share` has a row of X that is not zero."""
    if not X.size:
        return None
    named = np.nonzero(np.any(np.not_equal(X, semiring.zero), axis=1))[0]
    return multiplied(semiring, M[:, named], X[named], threads) if share * len(named) <= len(X) else None


def update(M: Matrix, U: Matrix, V: Matrix, greatest: bool = False, threads: int = 0) -> ChangedCells:
    """Set M = min(M, U ⊗ Vᵀ) in place; return which cells changed and what they held."""
    semiring, step = _semiring(M.dtype, greatest), max(1, _BLOCK // max(1, M.shape[1]))
    used = np.any(np.not_equal(U, semiring.zero), axis=1)
    found = []
    for first in range(0, len(M), step):
        rows = slice(first, first + step)
        if used[rows].any():
            old = M[rows].copy()
            swept(semiring, M[rows], U[rows], V, M[:0].T, M[rows, :0], threads, sparse=True)
            i, j = np.nonzero(old != M[rows])
            found.append((i + first, j, old[i, j]))
    none = np.empty(0, np.int64)
    found.append((none, none, M[:0, :0].ravel()))
    return ChangedCells(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def product(A: Matrix, B: Matrix, greatest: bool = False, threads: int = 0) -> Matrix:
    """Compute A ⊗ B: (n, l) ⊗ (l, m) → (n, m), in C order; l may be 0."""
    return multiplied(_semiring(A.dtype, greatest), A, B, threads)


def reach(U: Matrix, V: Matrix, greatest: bool = False) -> Matrix:
    """Bound the best entry of each row of U ⊗ Vᵀ, (n,), without the product; floats only."""
    best = np.max if greatest else np.min
    zero = _semiring(U.dtype, greatest).zero
    bound: Matrix = best(U + best(V, axis=0, initial=zero), axis=1, initial=zero)
    return bound


def worst(M: Matrix, greatest: bool = False) -> Matrix:
    """Return the worst entry of each row, (n,): a candidate that is no better changes nothing there."""
    bound: Matrix = M.min(axis=1) if greatest else M.max(axis=1)
    return bound


def _semiring(dtype: npt.DTypeLike, greatest: bool) -> Semiring:
    return SEMIRINGS[f"{'max' if greatest else 'min'}_{np.dtype(dtype).name}"]
