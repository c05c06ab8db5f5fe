"""Any two ufuncs against loops over cells."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.semirings import Semiring
from squallpy.runtime.kernels.matrix import semirings

RINGS = (
    Semiring("log", np.logaddexp, np.add, -math.inf, 0.0),
    Semiring("widest", np.maximum, np.minimum, -math.inf, math.inf),
    Semiring("divisors", np.gcd, np.multiply, 0, 1, "int64"),
    Semiring("left", np.maximum, np.frompyfunc(lambda a, b: 10 * a + b if a and b else 0, 2, 1), 0, 0, "object"),
)
SIZES = st.integers(0, 9)


def inner(A: Any, B: Any, ring: Any) -> Any:
    out = np.full((A.shape[0], B.shape[1]), ring.zero, ring.dtype)
    for i, j in np.ndindex(out.shape):
        for x in range(A.shape[1]):
            out[i, j] = ring.add(out[i, j], ring.multiply(A[i, x], B[x, j]))
    return out


@pytest.mark.parametrize("ring", RINGS, ids=str)
@given(data=st.data(), n=SIZES, m=SIZES, k=SIZES, p=SIZES, q=SIZES)
def oracle_a_pass_is_two_products_and_an_update(
    ring: Semiring, data: st.DataObject, n: int, m: int, k: int, p: int, q: Any
) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    M, U, V, X, Y = (random.integers(0, 9, s).astype(ring.dtype) for s in ((n, m), (n, k), (m, k), (m, p), (n, q)))
    old = M.copy()
    MX, MtY = semirings.pass_over(M, U, V, X, Y, ring)
    for found, expected in (
        (MX, inner(old, X, ring)),
        (MtY, inner(old.T, Y, ring)),
        (M, ring.add(old, inner(U, V.T, ring))),
    ):
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-12)


def oracle_blocks_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    A, B = random.normal(size=(50, 7)), random.normal(size=(7, 60))
    whole = semirings.product(A, B, RINGS[0])
    for cells in (1, 7, 100, 1000):
        monkeypatch.setattr(semirings, "_CELLS", cells)
        assert (semirings.product(A, B, RINGS[0]) == whole).all()
