"""Matrices over semirings that a user defines: two ufuncs and their identities.

gcd_lcm = Semiring(np.gcd, np.lcm, 0, 1)
product(gcd_lcm, A, B)                →  A ⊗ B
pass_over(gcd_lcm, M, U, V, X, Y)     →  M ⊗ X, Mᵀ ⊗ Y of the old M;  M = M ⊕ U ⊗ Vᵀ in place
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from squallpy.runtime.kernels.sweeps import Matrix

_CELLS = 1 << 16  # of a block, so that it stays in the cache between the two ufuncs


@dataclass(frozen=True, slots=True)
class Semiring:
    """⊕ and ⊗ as ufuncs of two arguments, with their identities; zero must also absorb: zero ⊗ a = zero."""

    plus: np.ufunc
    times: np.ufunc
    zero: Any
    one: Any


def product(ring: Semiring, A: Matrix, B: Matrix) -> Matrix:
    """A ⊗ B: (n, l) ⊗ (l, m) → (n, m), in C order; l may be 0."""
    out: Matrix = np.full((A.shape[0], B.shape[1]), ring.zero, np.result_type(A, B))
    return accumulate(ring, out, A, B)


def accumulate(ring: Semiring, C: Matrix, A: Matrix, B: Matrix) -> Matrix:
    """C = C ⊕ A ⊗ B in place, by blocks of rows: no temporary is larger than one."""
    n, m = C.shape
    step = max(1, _CELLS // max(m, 1))
    for first in range(0, n, step):
        block, some = C[first : first + step], A[first : first + step]
        for at in range(A.shape[1]):
            ring.plus(block, ring.times(some[:, at, None], B[None, at, :]), out=block)
    return C


def pass_over(ring: Semiring, M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """M ⊗ X (n, p) and Mᵀ ⊗ Y (m, q) of the old M (n, m), which becomes M ⊕ U ⊗ Vᵀ in place; shapes as in `dense`."""
    MX, MtY = product(ring, M, X), product(ring, M.T, Y)
    accumulate(ring, M, U, V.T)
    return MX, MtY
