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

from squallpy.runtime.kernels.sweeps import Marks, Matrix, multiplied, swept
from squallpy.runtime.kernels.tiles import FIELDS, Field

_BLOCK = 1 << 17  # cells whose changes are looked for at a time


class Changes(NamedTuple):
    """Cells that an update changed, in row-major order, with what they held before."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    before: Matrix


def zero(dtype: npt.DTypeLike, greatest: bool = False) -> Any:
    """What is lost in every choice and wins every sum."""
    kind: Any = np.dtype(dtype)
    return kind.type(_field(kind, greatest).zero)


def pass_over(
    M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, greatest: bool = False, threads: int = 0
) -> tuple[Matrix, Matrix]:
    """M ⊗ X (n, p) and Mᵀ ⊗ Y (m, q) of the old M (n, m), which becomes min(M, U ⊗ Vᵀ) in place; as in `dense`.

    greatest: max for min. Only what changes is written, and rows of U without an entry cost nothing.
    """
    return _passed(M, U, V, X, Y, greatest, threads)[:2]


def pruned(
    M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, greatest: bool = False, threads: int = 0
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """`pass_over`, and an update U', V' of the same shape that would have changed M as much.

    What follows from a change follows from U', V', too: they are zero at rows and columns of M, at the grain of tiles,
    where nothing changed. So an update ends where it no longer makes a difference.
    """
    MX, MtY, marks = _passed(M, U, V, X, Y, greatest, threads)
    zero = _field(M.dtype, greatest).zero
    u, v = (np.where(some[:, None], of, zero) for some, of in ((marks.rows, U), (marks.columns, V)))
    return MX, MtY, u, v


def _passed(
    M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, greatest: bool, threads: int
) -> tuple[Matrix, Matrix, Marks]:
    field = _field(M.dtype, greatest)
    MX, MtY, marks = _few(field, M, X, 8, threads), _few(field, M.T, Y, 2, threads), Marks(field, *M.shape)
    x, y = X if MX is None else X[:, :0], Y if MtY is None else Y[:, :0]
    by_x, by_y = swept(field, M, U, V, x, y, threads, sparse=True, marks=marks)
    return by_x if MX is None else MX, by_y if MtY is None else MtY, marks


def _few(field: Field, M: Matrix, X: Matrix, share: int, threads: int) -> Matrix | None:
    """M ⊗ X from a few of M's columns, if no more than 1 of `share` has a row of X that is not zero."""
    if not X.size:
        return None
    named = np.nonzero(np.any(np.not_equal(X, field.zero), axis=1))[0]
    return multiplied(field, M[:, named], X[named], threads) if share * len(named) <= len(X) else None


def update(M: Matrix, U: Matrix, V: Matrix, greatest: bool = False, threads: int = 0) -> Changes:
    """M = min(M, U ⊗ Vᵀ) in place, telling which cells changed and what they held."""
    field, step = _field(M.dtype, greatest), max(1, _BLOCK // max(1, M.shape[1]))
    used = np.any(np.not_equal(U, field.zero), axis=1)
    found = []
    for first in range(0, len(M), step):
        rows = slice(first, first + step)
        if used[rows].any():
            old = M[rows].copy()
            swept(field, M[rows], U[rows], V, M[:0].T, M[rows, :0], threads, sparse=True)
            i, j = np.nonzero(old != M[rows])
            found.append((i + first, j, old[i, j]))
    none = np.empty(0, np.int64)
    found.append((none, none, M[:0, :0].ravel()))
    return Changes(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def product(A: Matrix, B: Matrix, greatest: bool = False, threads: int = 0) -> Matrix:
    """A ⊗ B: (n, l) ⊗ (l, m) → (n, m), in C order; l may be 0."""
    return multiplied(_field(A.dtype, greatest), A, B, threads)


def _field(dtype: npt.DTypeLike, greatest: bool) -> Field:
    return FIELDS[f"{'max' if greatest else 'min'}_{np.dtype(dtype).name}"]
