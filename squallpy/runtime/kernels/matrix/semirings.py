"""Matrices over any semiring of two ufuncs, by blocks: no temporary is larger than one.

    product(A, B, ring)                →  A ⊗ B
    pass_over(M, U, V, X, Y, ring)     →  M ⊗ X, Mᵀ ⊗ Y of the old M;  M = M ⊕ U ⊗ Vᵀ in place

Sums are added up term by term from the left, as ⊕ may be rounded.
"""

import numpy as np

from squallpy.base.semirings import Semiring
from squallpy.runtime.kernels.matrix.sweeps import Matrix, apart

_CELLS = 1 << 15  # of a block, so that it stays in the cache between the two ufuncs


def product(A: Matrix, B: Matrix, ring: Semiring) -> Matrix:
    """Compute A ⊗ B: (n, l) ⊗ (l, m) → (n, m), in C order; l may be 0."""
    out: Matrix = np.full((A.shape[0], B.shape[1]), ring.zero, ring.dtype)
    _accumulate(out, A, B, ring)
    return out


def pass_over(M: Matrix, U: Matrix, V: Matrix, X: Matrix, Y: Matrix, ring: Semiring) -> tuple[Matrix, Matrix]:
    """Compute M ⊗ X (n, p) and Mᵀ ⊗ Y (m, q) of the old M (n, m), which becomes M ⊕ U ⊗ Vᵀ in place.

    Shapes are as in `dense`.
    """
    MX, MtY = product(M, X, ring), product(M.T, Y, ring)
    _accumulate(M, apart(U, M), apart(V, M).T, ring)
    return MX, MtY


def _accumulate(C: Matrix, A: Matrix, B: Matrix, ring: Semiring) -> None:
    """Set C = C ⊕ A ⊗ B in place."""
    wide = max(1, min(C.shape[1], _CELLS))
    step = max(1, _CELLS // wide)
    for first in range(0, C.shape[0], step):
        for left in range(0, C.shape[1], wide):
            block, terms = C[first : first + step, left : left + wide], A[first : first + step]
            for at in range(A.shape[1]):
                ring.add(block, ring.multiply(terms[:, at, None], B[at, None, left : left + wide]), out=block)
