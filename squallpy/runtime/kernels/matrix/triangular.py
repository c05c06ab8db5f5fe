"""Triangular factors: L of a symmetric, positive definite A = L·L', as A changes by ± x·x'.

    split(U, V)              →  X, signs     U·V, which is symmetric, as X'·diag(signs)·X
    update(L, X, signs)      →  L of L·L' + X'·diag(signs)·X in place, by rotations of its columns
    change(L, X, signs)      →  what that would add to L

Each x takes n² operations, where to factor again takes n³/3. What is added is orthogonal rotations, which are always
stable. What is taken away is by their mixed form (Bojanczyk, Brent, Van Dooren, de Hoog, *A note on downdating the
Cholesky factorization*, 1987): its error grows as 1/ρ², where ρ² = det(A - x·x') / det(A), what is left of the
determinant.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.kernel_compiler import kernel

Reals = npt.NDArray[np.float64]

LEAST = 1e-6  # ρ² below which a downdate is refused: the error of others stays below 1e-10
_SYMMETRIC = 1e-9  # relative to the largest entry
_TILE = 16  # rows that are rotated together

_IN_TILE, _OUT, _SIGNS = "float64[:, ::1]", "float64[:, :]", "float64[::1]"


def is_symmetric(A: Reals) -> bool:
    """True if a square matrix is symmetric, but for rounding."""
    most = float(np.abs(A).max(initial=0.0)) * _SYMMETRIC
    rows = range(0, len(A), 512)
    return all(
        bool((np.abs(A[at : at + 512, : at + 512] - A[: at + 512, at : at + 512].T) <= most).all()) for at in rows
    )


def split(U: Reals, V: Reals) -> tuple[Reals, Reals] | None:
    """Write U (n, k) · V (k, n) as X' · diag(signs) · X, signs + 1 before - 1; None if it is not symmetric."""
    Q, T = np.linalg.qr(U)
    with np.errstate(over="ignore", invalid="ignore"):
        right = T @ V
        inner = right @ Q
        differences = inner - inner.T, right - inner @ Q.T
    most = _SYMMETRIC * np.abs(right).max(initial=0.0)
    if not all(np.abs(difference).max(initial=0.0) <= most for difference in differences):
        return None
    sizes, vectors = np.linalg.eigh((inner + inner.T) / 2)
    there = np.abs(sizes) > np.finfo(np.float64).eps * np.abs(sizes).max(initial=0.0)
    sizes, vectors = sizes[there][::-1], vectors[:, there][:, ::-1]
    return np.ascontiguousarray((vectors * np.sqrt(np.abs(sizes))).T @ Q.T), np.sign(sizes)


def update(L: Reals, X: Reals, signs: Reals) -> bool:
    """Update L (n, n), of which the upper triangle is not looked at, by rows of X (k, n); returns whether it is right.

    If not, as what is taken away leaves too little, L is neither the old factor nor the new one.
    """
    return bool(_rotate(L, X.copy(), signs, _TILE, True, L) >= LEAST)


def change(L: Reals, X: Reals, signs: Reals) -> Reals | None:
    """Compute what `update` would add to L; None where it is not right."""
    out = np.zeros(L.shape)
    return out if _rotate(L, X.copy(), signs, _TILE, False, out) >= LEAST else None


@kernel(f"float64({_OUT}, {_IN_TILE}, {_SIGNS}, int64, boolean, {_OUT})")
def _rotate(L: Any, X: Any, signs: Any, height: int, replaces: bool, out: Any) -> float:
    """Rotate the columns of L with the rows of X, `height` rows of L at a time; returns the least ρ² of a downdate."""
    n, k = L.shape[0], X.shape[0]
    cosines, sines, kept = np.empty((n, k)), np.empty((n, k)), np.ones(k)
    tile, beside = np.zeros((n, height)), np.zeros((k, height))
    for first in range(0, n, height):
        rows = min(height, n - first)
        for r in range(rows):
            for j in range(first + r + 1):
                tile[j, r] = L[first + r, j]
            for q in range(k):
                beside[q, r] = X[q, first + r]
        for j in range(first):
            for q in range(k):
                cosine, sine, sign = cosines[j, q], sines[j, q], signs[q]
                if sine != 0.0:
                    inverse, signed = 1.0 / cosine, sign * sine
                    for r in range(height):
                        moved = (tile[j, r] + signed * beside[q, r]) * inverse
                        tile[j, r] = moved
                        beside[q, r] = cosine * beside[q, r] - sine * moved
        for j in range(first, first + rows):
            at = j - first
            for q in range(k):
                corner, x, sign = tile[j, at], beside[q, at], signs[q]
                if x == 0.0:
                    cosines[j, q], sines[j, q] = 1.0, 0.0
                    continue
                square = corner * corner + sign * x * x
                if not (corner > 0.0 and square > 0.0):
                    return 0.0
                root = np.sqrt(square)
                cosine, sine = root / corner, x / corner
                cosines[j, q], sines[j, q] = cosine, sine
                if sign < 0.0:
                    kept[q] *= square / (corner * corner)
                tile[j, at] = root
                for r in range(at + 1, rows):
                    moved = (tile[j, r] + sign * sine * beside[q, r]) / cosine
                    tile[j, r] = moved
                    beside[q, r] = cosine * beside[q, r] - sine * moved
        for r in range(rows):
            for j in range(first + r + 1):
                out[first + r, j] = tile[j, r] if replaces else tile[j, r] - L[first + r, j]
    least = 1.0
    for q in range(k):
        least = min(least, kept[q])
    return least
