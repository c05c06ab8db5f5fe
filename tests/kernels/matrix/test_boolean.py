"""Packed Boolean matrices against NumPy's truth values."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.runtime.kernels.matrix import boolean

SIZES = st.integers(0, 3) | st.sampled_from([63, 64, 65, 127, 200]) | st.just(700)
FEW = st.integers(0, 4)
RATES = st.sampled_from([0.0, 0.01, 0.3, 1.0])


def cells(draw: Callable[..., Any], *shape: int) -> NDArray[np.bool_]:
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return random.random(shape) < draw(RATES)


@given(st.data(), SIZES, SIZES)
def property_what_is_packed_comes_back(data: st.DataObject, n: int, m: int) -> None:
    A = cells(data.draw, n, m)
    packed = boolean.pack(A)
    assert packed.shape == (n, boolean.words(m)) and (boolean.unpack(packed, m) == A).all()
    assert boolean.count(packed) == A.sum() and boolean.density(packed, m) == (A.mean() if A.size else 0)
    turned = boolean.transposed(packed, m)
    assert turned.shape == (m, boolean.words(n)) and (turned == boolean.pack(A.T)).all()


@given(st.data(), SIZES, SIZES, SIZES)
def oracle_a_product_ors_rows(data: st.DataObject, n: int, length: int, m: int) -> None:
    A, B = cells(data.draw, n, length), cells(data.draw, length, m)
    expected = A.astype(np.float32) @ B.astype(np.float32) > 0
    assert (boolean.product(boolean.pack(A), boolean.pack(B)) == boolean.pack(expected)).all()


@given(st.data(), SIZES, SIZES, FEW, FEW, FEW, st.integers(0, 3))
def oracle_a_pass_is_two_products_and_an_update(
    data: st.DataObject, n: int, m: int, k: int, p: int, q: int, threads: Any
) -> None:
    M, U, V, X, Y = (cells(data.draw, *shape) for shape in ((n, m), (n, k), (m, k), (m, p), (n, q)))
    factors = [boolean.pack(factor.T) for factor in (U, V, X, Y)]
    packed = boolean.pack(M)
    with patch.object(
        boolean, "_SMALL", data.draw(st.sampled_from([1, boolean._SMALL]))
    ):  # of large matrices in pieces
        MX, MtY = boolean.pass_over(packed, factors[0], factors[1], factors[2], factors[3], threads)
    assert (boolean.unpack(MX, n).T == M @ X).all() and (boolean.unpack(MtY, m).T == M.T @ Y).all()
    new = U @ V.T & ~M
    assert (packed == boolean.pack(M | new)).all()
    third = boolean.pack(M)
    *read, u, v = boolean.pruned(third, factors[0], factors[1], factors[2], factors[3], threads)
    assert (third == packed).all() and (read[0] == MX).all() and (read[1] == MtY).all()
    makes = boolean.unpack(u, n).T @ boolean.unpack(v, m)
    assert not (new & ~makes).any() and not (makes & ~(U @ V.T)).any() and u.shape == factors[0].shape
    assert new.any() or (not u.any() and not v.any())
    square = M @ M.T
    MX = boolean.pruned(boolean.pack(square), factors[0], factors[0], factors[0], factors[0], threads, True)[0]
    assert (square @ U == boolean.unpack(MX, n).T).all()
