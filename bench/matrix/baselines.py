"""Re-evaluation of the programs: as the papers ran them (PAPER), and as an expert would write them (STRONG).

Each is a function of inputs to outputs, named by its program. PAPER: general products, an explicit inverse, BLAS with
as many threads as there are; for semirings loops, compiled, on one thread. STRONG: products with themselves by SYRK,
Cholesky's factors instead of an inverse, X'X once, iterations in the form that takes fewer operations, blocked
(min, +) products by vector instructions, graphs whose rows of bits are or-ed, both on all cores.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.linalg import lapack

from squallpy.runtime.kernels.intrinsics import lowest
from squallpy.runtime.kernels.matrix import boolean, tropical
from squallpy.runtime.kernels.matrix.boolean import Bits
from squallpy.runtime.kernels.threads import shared

Reals = npt.NDArray[np.float64]


def powers(A: Reals, k: int) -> Reals:
    """Aᵏ by squaring; k is a power of two."""
    for _ in range(k.bit_length() - 1):
        A = A @ A
    return A


def sums_of_powers(A: Reals, k: int) -> Reals:
    """I + A + … + Aᵏ⁻¹, doubled: S₂ᵢ = Aⁱ·Sᵢ + Sᵢ; k is a power of two."""
    power, total = A, np.eye(len(A))
    for step in range(k.bit_length() - 1):
        total = power @ total + total if step else power + total
        if 2 << step < k:
            power = power @ power
    return total


def ols(X: Reals, Y: Reals) -> Reals:
    """(X'X)⁻¹·X'Y, every product a general one."""
    turned = np.ascontiguousarray(X.T)  # NB: numpy takes SYRK for X.T @ X
    return np.linalg.inv(turned @ X) @ (turned @ Y)


def ols_strong(X: Reals, Y: Reals) -> Reals:
    _, theta, failed = lapack.dposv(X.T @ X, X.T @ Y, overwrite_a=True, overwrite_b=True)
    assert not failed, "X'X is singular"
    return theta  # type: ignore[no-any-return]


def gradient_descent(X: Reals, Y: Reals, steps: int) -> Reals:
    """Θ := Θ - X'(XΘ - Y), from 0."""
    turned, theta = np.ascontiguousarray(X.T), np.zeros((X.shape[1], Y.shape[1]))
    for _ in range(steps):
        theta = theta - turned @ (X @ theta - Y)
    return theta


def gradient_descent_strong(X: Reals, Y: Reals, steps: int) -> Reals:
    """Θ := (I - X'X)·Θ + X'Y, from X'Y."""
    keep, add = np.eye(X.shape[1]) - X.T @ X, X.T @ Y
    theta = add
    for _ in range(steps - 1):
        theta = keep @ theta + add
    return theta


def affine_iteration(A: Reals, B: Reals, T: Reals, k: int) -> Reals:
    """T := A·T + B, k times, one after the other."""
    for _ in range(k):
        T = A @ T + B
    return T


def affine_iteration_strong(A: Reals, B: Reals, T: Reals, k: int) -> Reals:
    """The same as Aᵏ·T + (I + … + Aᵏ⁻¹)·B where that takes fewer operations; k is a power of two."""
    n, p, doublings = len(A), T.shape[1], k.bit_length() - 1
    if (2 * doublings - 1) * n + 2 * p >= k * p:
        return affine_iteration(A, B, T, k)
    power, total = A, np.eye(n)
    for step in range(doublings):
        total = power @ total + total if step else power + total
        power = power @ power
    return power @ T + total @ B


@njit(cache=True)
def _meet(A: Any, B: Any) -> Any:
    """Rows of A against rows of B, both bits: whether they have a cell in common."""
    out = np.zeros((A.shape[0], B.shape[0] // 64 + 1), np.uint64)
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            for w in range(A.shape[1]):
                if A[i, w] & B[j, w]:
                    out[i, j // 64] |= np.uint64(1) << np.uint64(j % 64)
                    break
    return out


def reachability(G: Bits, hops: int) -> Bits:
    """I + G·(I + G·…), symmetric bits: AND and any, row by column, as far as the first word that meets."""
    n, one = len(G), boolean.pack(np.eye(len(G), dtype=bool))
    reached = one
    for _ in range(hops):
        reached = _meet(G, reached)[:, : boolean.words(n)] | one  # G·reached is symmetric, as both are and commute
    return reached


@njit(cache=True, nogil=True)
def _or_rows(A: Any, B: Any, out: Any, first: int, last: int) -> None:
    """Rows first … last - 1 of A·B: B's rows or-ed where A has a bit, found lowest first."""
    for i in range(first, last):
        for word in range(A.shape[1]):
            rows = A[i, word]
            while rows != 0:
                at = 64 * word + lowest(rows)
                for w in range(B.shape[1]):
                    out[i, w] |= B[at, w]
                rows &= rows - 1


def reachability_strong(G: Bits, hops: int) -> Bits:
    n, one = len(G), boolean.pack(np.eye(len(G), dtype=bool)).view(np.int64)
    graph = G.view(np.int64)
    reached = graph | one
    for _ in range(hops - 1):
        out = one.copy()
        shared(lambda piece, B=reached, C=out: _or_rows(graph, B, C, n * piece // 8, n * (piece + 1) // 8), 8)  # type: ignore[misc]
        reached = out
    return reached.view(np.uint64)


@njit(cache=True)
def _min_plus(A: Any, B: Any) -> Any:
    out = np.full((A.shape[0], B.shape[1]), np.inf, A.dtype)
    for i in range(A.shape[0]):
        for x in range(A.shape[1]):
            a = A[i, x]
            for j in range(B.shape[1]):
                out[i, j] = min(out[i, j], a + B[x, j])
    return out


def shortest_paths(G: Reals, hops: int) -> Reals:
    """min(I, G ⊗ min(I, G ⊗ …)), three loops."""
    one = np.full_like(G, np.inf)
    np.fill_diagonal(one, 0)
    reached = one
    for _ in range(hops):
        reached = np.minimum(_min_plus(G, reached), one)
    return reached


def shortest_paths_strong(G: Reals, hops: int) -> Reals:
    one = np.full_like(G, np.inf)
    np.fill_diagonal(one, 0)
    reached = np.minimum(G, one)
    for _ in range(hops - 1):
        reached = np.minimum(tropical.product(G, reached), one)
    return reached


PAPER: Mapping[str, Callable[..., Any]] = {
    "powers": powers,
    "sums of powers": sums_of_powers,
    "ols": ols,
    "gradient descent": gradient_descent,
    "affine iteration": affine_iteration,
    "reachability": reachability,
    "shortest paths": shortest_paths,
}
STRONG: Mapping[str, Callable[..., Any]] = {
    **PAPER,
    "ols": ols_strong,
    "gradient descent": gradient_descent_strong,
    "affine iteration": affine_iteration_strong,
    "reachability": reachability_strong,
    "shortest paths": shortest_paths_strong,
}
