"""Matrices over the tropical semirings: (min, +) with zero +∞, and (max, +) with zero −∞.

    pass_over(M, U, V, X, Y)  →  M ⊗ X, Mᵀ ⊗ Y of the old M;  M = min(M, U ⊗ Vᵀ) in place
    product(A, B)             →  A ⊗ B

float64, float32 or int64. The zero absorbs: ∞ + −∞ = ∞ in (min, +). In int64 the zero is the largest integer, or the
smallest in (max, +), see `zero`; finite entries must lie within ±2⁶¹, so that no sum of two can be mistaken for it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.dense import Matrix


class Changes(NamedTuple):
    """Cells that an update changed, in row-major order, with what they held before."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    before: Matrix


def zero(dtype: npt.DTypeLike, greatest: bool = False) -> Any:
    """What is lost in every choice and wins every sum."""
    kind: Any = np.dtype(dtype)
    if kind.kind == "f":
        return kind.type(-np.inf if greatest else np.inf)
    return kind.type(np.iinfo(kind).min if greatest else np.iinfo(kind).max)


def product(A: Matrix, B: Matrix, greatest: bool = False) -> Matrix:
    """A ⊗ B: (n, l) ⊗ (l, m) → (n, m), in C order; l may be 0."""
    nothing, best = zero(A.dtype, greatest), np.maximum if greatest else np.minimum
    out: Matrix = np.full((A.shape[0], B.shape[1]), nothing, A.dtype)
    with np.errstate(all="ignore"):
        for at in range(A.shape[1]):
            a, b = A[:, at, None], B[None, at, :]
            out[:] = best(out, np.where((a == nothing) | (b == nothing), nothing, a + b))
    return out


def pass_over(M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, greatest: bool = False) -> tuple[Matrix, Matrix]:
    """M ⊗ X (n, p) and Mᵀ ⊗ Y (m, q) of the old M (n, m), which becomes min(M, U ⊗ Vᵀ) in place.

    U (n, k), V (m, k), X (m, p), Y (n, q): any of k, p, q may be 0. `greatest`: max for min. M is in C order. What is
    returned has contiguous columns.
    """
    MX, MtY = product(M, X, greatest), product(M.T, Y, greatest)
    (np.maximum if greatest else np.minimum)(M, product(U, V.T, greatest), out=M)
    return np.asfortranarray(MX), np.asfortranarray(MtY)


def update(M: Matrix, U: Matrix, V: Matrix, greatest: bool = False) -> Changes:
    """M = min(M, U ⊗ Vᵀ) in place, telling which cells changed and what they held."""
    old = M.copy()
    pass_over(M, U, V, M[:0].T, M[:, :0], greatest)
    rows, columns = np.nonzero(old != M)
    return Changes(rows, columns, old[rows, columns])
