"""Products of int64 matrices that must fit 64 bits: a bound first, exact sums of 128 bits where that does not tell.

largest([[-3, 2]])             →  3.0
check(C, A, B, largest(A))     →  OverflowError unless every cell of C + A·B fits
check_added(A, B, by)          →  the same of A + by·B, cell by cell
sums([1, 2, 3], [0, 2])        →  [3, 3], sums of runs
times([1, 2], [3, 4])          →  [3, 8]; both OverflowError unless all of them fit
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.kernel_compiler import Vector, kernel
from squallpy.runtime.kernels.matrix.sweeps import Matrix
from squallpy.runtime.kernels.ring_arithmetic import exact_add, exact_multiply, sign

_SURE = 2.0**63 * (1 - 1e-9)  # below it, as floats have it, a number fits
_ANY = "Array(int64, 2, 'A', readonly=True)"


def largest(A: Matrix) -> float:
    """Return the largest magnitude of a cell."""
    return max(float(A.max()), -float(A.min())) if A.size else 0.0


def check(C: Matrix | None, A: Matrix, B: Matrix, cell: float, add: float = 0.0) -> None:
    """Raise unless C + A·B fits: (n, m), (n, l), (l, m); None for zeros. cell, add: bounds of A's cells and of C's."""
    most = np.abs(B.astype(np.float64)).sum(axis=0).max(initial=0.0) * cell + add
    if (
        A.size
        and B.size
        and most * (1 + 1e-9) >= 2.0**63
        and not _fits(np.empty((0, 0), np.int64) if C is None else C, A, B)
    ):
        raise OverflowError("a count does not fit 64 bits")


def check_added(A: Matrix | None, B: Matrix, by: int = 1) -> None:
    """Raise unless A + by·B fits, for arrays of one shape; None for zeros."""
    column, cells = B.reshape(-1, 1), None if A is None else A.reshape(-1, 1)
    check(cells, column, np.array([[by]], np.int64), largest(column), 0.0 if cells is None else largest(cells))


def sums(values: Matrix, starts: npt.NDArray[np.intp]) -> Matrix:
    """Sum the runs of values that begin at `starts`; OverflowError where a sum does not fit."""
    most = np.add.reduceat(np.abs(values.astype(np.float64)), starts)
    for run in np.flatnonzero(most >= _SURE):
        _fit([sum(values[starts[run] : starts[run + 1] if run + 1 < len(starts) else None].tolist())])
    out: Matrix = np.add.reduceat(values, starts)
    return out


def times(values: Matrix, by: Matrix) -> Matrix:
    """Multiply numbers; OverflowError where a product does not fit."""
    most = np.abs(values.astype(np.float64)) * np.abs(by.astype(np.float64))
    _fit(a * b for a, b in zip(values[most >= _SURE].tolist(), by[most >= _SURE].tolist(), strict=True))
    return values * by


def _fit(exact: Iterable[int]) -> None:
    if not all(-(2**63) <= value < 2**63 for value in exact):
        raise OverflowError("a count does not fit 64 bits")


@kernel(f"boolean({_ANY}, {_ANY}, {_ANY})")
def _fits(C: Vector, A: Vector, B: Vector) -> bool:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            low = C[i, j] if C.shape[0] > 0 else 0
            high = sign(low)
            for x in range(A.shape[1]):
                a, b = A[i, x], B[x, j]
                p, q = exact_multiply(a, sign(a), b, sign(b))
                low, high = exact_add(low, high, p, q)
            if high != sign(low):
                return False
    return True
