"""Passes over dense, symmetric and tropical matrices against NumPy, on any shape, layout and number of threads."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.semirings import ARITHMETIC
from squallpy.runtime.kernels.matrix import boolean, dense, semirings, symmetric, tropical
from squallpy.runtime.kernels.matrix.sweeps import by_columns, columns_of, rows_of

NUMBERS = ("float64", "float32", "int64")
SIZES = st.integers(0, 3) | st.sampled_from([7, 8, 9, 16, 17, 31, 33, 70]) | st.just(520)
FEW = st.integers(0, 5) | st.sampled_from([9, 20])
MANY = st.integers(0, 5) | st.sampled_from([9, 20, 140])  # for BLAS, which is for floats


def close(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    single = actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=1e-3 if single else 1e-10, atol=1e-3 if single else 1e-10)


def laid_out(array: NDArray[Any], how: str) -> NDArray[Any]:
    """The same values: rows contiguous, columns contiguous, columns aligned, or neither."""
    if how == "aligned":
        room = columns_of(len(array), array.shape[1], array.dtype)
    elif how == "apart":
        room = np.empty((2 * len(array), 3 * array.shape[1]), array.dtype)[::2, ::3]
    else:
        return np.array(array, order="F" if how == "F" else "C")
    room[:] = array
    return room


LAYOUTS = st.sampled_from(["C", "F", "aligned", "apart"])


@st.composite
def several(
    draw: Callable[..., Any], shapes: tuple[tuple[int, int], ...], dtype: str, zero: int = 0
) -> list[NDArray[Any]]:
    """Cells of these shapes with some zeros, and rows of the second without anything else."""
    random, rate = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.sampled_from([0.0, 0.3, 0.9]))
    out = []
    for shape in shapes:
        cells = random.integers(-9, 9, shape) if dtype == "int64" else random.normal(size=shape)
        cells = cells.astype(dtype)
        cells[random.random(shape) < rate] = zero
        out.append(cells)
    out[1][random.random(len(out[1])) < rate] = zero
    return out


@st.composite
def passes(draw: st.DrawFn, dtype: str, zero: Any = 0, few: st.SearchStrategy[int] = FEW) -> tuple[NDArray[Any], ...]:
    """M, U, V, X, Y."""
    n, m, k, p, q = (draw(some) for some in (SIZES, SIZES, few, few, few))
    M = rows_of(n, m, dtype)
    M[:], *factors = draw(several(((n, m), (n, k), (m, k), (m, p), (n, q)), dtype, zero))
    layout = draw(LAYOUTS)
    return M, *(laid_out(factor, layout) for factor in factors)


def inner(A: NDArray[np.float64], B: NDArray[np.float64], dtype: str, greatest: bool) -> NDArray[np.float64]:
    """A ⊗ B over (min, +) or (max, +), the zero absorbing: as an infinity does, there being no other."""
    zero, best = tropical.zero(dtype, greatest), np.maximum if greatest else np.minimum
    infinity = -np.inf if greatest else np.inf
    if dtype == "int64":
        A, B = (np.where(zero == C, infinity, C) for C in (A, B))
    out = np.full((A.shape[0], B.shape[1]), infinity, A.dtype)
    for a, b in zip(A.T[:, :, None], B[:, None], strict=True):
        best(out, a + b, out=out)
    found, some = np.full(out.shape, zero, dtype), out != infinity
    found[some] = out[some]
    return found


@pytest.mark.parametrize("dtype", NUMBERS)
@settings(max_examples=50)
@given(data=st.data(), threads=st.integers(0, 3))
def oracle_a_pass_is_two_products_and_an_update(dtype: str, data: st.DataObject, threads: int) -> None:
    M, U, V, X, Y = data.draw(passes(dtype, few=FEW if dtype == "int64" else MANY))
    old = M.copy()
    MX, MtY = dense.pass_over(M, U, V, X, Y, threads)
    close(MX, old @ X)
    close(MtY, old.T @ Y)
    close(M, old + U @ V.T)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@settings(max_examples=50)
@given(data=st.data())
def oracle_a_symmetric_pass_reads_and_writes_one_triangle(dtype: str, data: st.DataObject) -> None:
    n, k, p = (data.draw(some) for some in (SIZES, MANY, MANY))
    factors = data.draw(several(((n, k), (n, k), (n, p)), dtype))
    U, P, X = (laid_out(factor, data.draw(LAYOUTS)) for factor in factors)
    M = rows_of(n, n, dtype)
    M[:] = np.add.outer(np.arange(n), np.arange(n)) % 7
    old = M.copy()
    M[:][np.triu_indices(n, 64)] = np.nan  # far from the diagonal
    MX = symmetric.pass_over(M, np.hstack([U, P]), np.hstack([P, U]), X)
    close(MX, old @ X)
    close(symmetric.complete(M), old + U @ P.T + P @ U.T)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("greatest", [False, True])
@settings(max_examples=max(10, settings().max_examples // 3))
@given(data=st.data())
def oracle_a_tropical_pass_chooses_sums(dtype: str, greatest: bool, data: st.DataObject) -> None:
    M, U, V, X, Y = data.draw(passes(dtype, tropical.zero(dtype, greatest)))
    old, again = M.copy(), M.copy()
    MX, MtY = tropical.pass_over(M, U, V, X, Y, greatest)
    assert (inner(old, X, dtype, greatest) == MX).all() and (MtY == inner(old.T, Y, dtype, greatest)).all()
    expected = (np.maximum if greatest else np.minimum)(old, inner(U, V.T, dtype, greatest))
    assert (expected == M).all()
    third = old.copy()
    *read, u, v = tropical.pruned(third, U, V, X, Y, greatest)
    assert (third == M).all() and (read[0] == MX).all() and (read[1] == MtY).all()
    best = np.maximum if greatest else np.minimum
    assert (best(old, inner(u, v.T, dtype, greatest)) == M).all() and u.shape == U.shape and v.shape == V.shape
    assert (old != M).any() or (tropical.zero(dtype, greatest) == u).all()
    if dtype != "int64" and old.size:
        beyond = tropical.reach(U, V, greatest)
        hopeless = beyond <= tropical.worst(old, greatest) if greatest else beyond >= tropical.worst(old, greatest)
        assert (old[hopeless] == M[hopeless]).all()
    rows, columns, before = tropical.update(again, U, V, greatest)
    assert (again == M).all() and (before == old[rows, columns]).all()
    assert [*zip(rows, columns, strict=True)] == [*zip(*np.nonzero(old != M), strict=True)]


@pytest.mark.parametrize("dtype", NUMBERS)
@settings(max_examples=50)
@given(data=st.data())
def oracle_products(dtype: str, data: st.DataObject) -> None:
    n, m, length = data.draw(SIZES), data.draw(SIZES), data.draw(FEW | st.just(300))
    random = np.random.default_rng(0)
    A, B = (random.integers(-9, 9, shape).astype(dtype) for shape in ((n, length), (length, m)))
    close(dense.product(A, B), A @ B)
    if n * m * length < 10**6:
        assert (tropical.product(A, B) == inner(A, B, dtype, False)).all()


def oracle_tropical_infinities_absorb() -> None:
    inf = np.inf
    M = np.array([[inf, -inf], [0.0, inf]])
    MX, MtY = tropical.pass_over(M, M[:, :0], M[:, :0], np.array([[-inf], [inf]]), np.array([[inf], [1.0]]))
    assert MX[:, 0].tolist() == [inf, -inf] and MtY[:, 0].tolist() == [1.0, inf]
    tropical.pass_over(M, np.array([[inf], [-inf]]), np.array([[-inf], [1.0]]), M[:0].T, M[:, :0])
    assert M.tolist() == [[inf, -inf], [-inf, -inf]]


def oracle_what_is_not_finite_passes_through_arithmetic() -> None:
    M = np.ones((40, 40))
    M[3, 4], M[5, 6] = np.nan, np.inf
    U, V = np.zeros((40, 1)), np.ones((40, 1))
    U[9], V[8] = 1.0, np.inf
    with np.errstate(invalid="ignore"):
        expected = M + U @ V.T
    MX, MtY = dense.pass_over(M, U, V, np.eye(40)[:, 4:7], np.eye(40)[:, 3:6])
    np.testing.assert_array_equal(M, expected)
    assert np.isnan(MX[3]).all() and np.isnan(MtY[4]).all() and np.isnan(MX[5, 0]) and MX[5, 2] == np.inf


def property_the_same_bits_whatever_the_threads() -> None:
    random = np.random.default_rng(0)
    M, U, V, X, Y = (random.normal(size=shape) for shape in ((600, 700), (600, 3), (700, 3), (700, 3), (600, 3)))
    found = []
    for threads in (1, 2, 5):
        copy = M.copy()
        found.append((*dense.pass_over(copy, U, V, X, Y, threads), copy))
    for other in found[1:]:
        assert all((one == same).all() for one, same in zip(found[0], other, strict=True))


def oracle_counts_that_do_not_fit_are_refused_before_anything_changes() -> None:
    M = np.array([[2**62, 1], [-5, 2**31]])
    old, none = M.copy(), np.empty((2, 0), np.int64)
    for U, V, X, Y in (
        (none, none, np.array([[2], [0]]), none),
        (none, none, none, np.array([[2], [-7]])),
        (np.array([[1], [0]]), np.array([[2**62], [0]]), none, none),
    ):
        with pytest.raises(OverflowError):
            dense.pass_over(M, U, V, X, Y)
        assert (old == M).all()
    with pytest.raises(OverflowError):
        dense.product(M, M)
    # sums that leave the range and come back are right, and so is what bounds do not tell
    M[1], X = 0, np.array([[2, 1], [1 - 2**63, -(2**62)]])
    MX, _ = dense.pass_over(M, none, none, X, none)
    assert MX.tolist() == [[1, 0], [0, 0]]


def oracle_factors_are_copied_only_where_they_must() -> None:
    good = columns_of(4096, 20, np.float64)
    assert by_columns(good, np.float64) is good
    assert by_columns(np.ones((9, 3), order="F"), np.float64).flags.f_contiguous
    bad = by_columns(np.ones((4096, 20), order="F"), np.float64)  # one set of the cache for all columns
    assert bad.strides[0] == 8 and bad.strides[1] % 4096


def fault_a_forked_process_passes_over_matrices_too() -> None:
    random = np.random.default_rng(0)
    M, U, V, X, Y = (random.normal(size=shape) for shape in ((600, 700), (600, 3), (700, 3), (700, 3), (600, 3)))
    expected = M + 2 * (U @ V.T)
    dense.pass_over(M, U, V, X, Y, threads=3)
    child = os.fork()
    if child == 0:  # threads of the parent, had it kept any, would be missing here
        dense.pass_over(M, U, V, X, Y, threads=3)
        os._exit(0 if np.allclose(M, expected) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def oracle_factors_may_be_parts_of_the_matrix() -> None:
    random = np.random.default_rng(0)
    M = random.normal(size=(40, 40))
    for name in ("dense", "tropical", "semirings"):
        found, old = M.copy(), M.copy()
        U, V = old[:, 3:5].copy(), old[7:9].T.copy()
        if name == "dense":
            dense.pass_over(found, found[:, 3:5], found[7:9].T, found[7:9].T, found[:, 3:5])
            expected = old + U @ V.T
        elif name == "tropical":
            tropical.pass_over(found, found[:, 3:5], found[7:9].T, found[7:9].T, found[:, 3:5])
            expected = np.minimum(old, inner(U, V.T, "float64", False))
        else:
            semirings.pass_over(found, found[:, 3:5], found[7:9].T, found[7:9].T, found[:, 3:5], ARITHMETIC)
            expected = old + U @ V.T
        close(found, expected)
    truths = M > 1
    packed = boolean.pack(truths)
    boolean.pass_over(packed, packed[3:5], packed[7:9], packed[:0], packed[:0])
    assert (boolean.unpack(packed, 40) == truths | truths[3:5].T @ truths[7:9]).all()
