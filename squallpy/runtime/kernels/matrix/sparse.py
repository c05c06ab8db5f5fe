"""Sparse matrices: cells in any order, of which those of one place are added up.

    multiplied(rows, columns, values, X, n)   →  M ⊗ X; with rows and columns exchanged Mᵀ ⊗ X

⊕ is associative and commutes, and ⊗ distributes over it: a cell that is there twice counts twice, so what is added to a
matrix is put behind what is there. float64, over (+, ·), (min, +) and (max, +).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.base.semirings import ARITHMETIC, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.runtime.kernels.kernel_compiler import kernel

Reals = npt.NDArray[np.float64]
Places = npt.NDArray[np.int32]

_SIGNATURE = "void(int32[::1], int32[::1], float64[::1], float64[:, ::1], float64[:, ::1])"


def multiplied(rows: Places, columns: Places, values: Reals, X: Reals, n: int, ring: Semiring) -> Reals:
    """Compute M ⊗ X (n, p) of cells of M (n, m) and X (m, p)."""
    out = np.full((n, X.shape[1]), ring.zero, np.float64)
    _KERNELS[ring.name](rows, columns, values, np.array(X, np.float64, order="C"), out)
    return out


@kernel(_SIGNATURE)
def _plus_times(rows: Any, columns: Any, values: Any, X: Any, out: Any) -> None:
    for at in range(len(values)):
        i, j, value = rows[at], columns[at], values[at]
        for p in range(X.shape[1]):
            out[i, p] += value * X[j, p]


@kernel(_SIGNATURE)
def _min_plus(rows: Any, columns: Any, values: Any, X: Any, out: Any) -> None:
    for at in range(len(values)):
        i, j, value = rows[at], columns[at], values[at]
        for p in range(X.shape[1]):
            out[i, p] = min(out[i, p], value + X[j, p])


@kernel(_SIGNATURE)
def _max_plus(rows: Any, columns: Any, values: Any, X: Any, out: Any) -> None:
    for at in range(len(values)):
        i, j, value = rows[at], columns[at], values[at]
        for p in range(X.shape[1]):
            out[i, p] = max(out[i, p], value + X[j, p])


_KERNELS = {ARITHMETIC.name: _plus_times, MIN_PLUS.name: _min_plus, MAX_PLUS.name: _max_plus}
