"""Lane arithmetic against Python's integers and fractions."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels import statement_steps
from squallpy.runtime.kernels.payload_columns import fill_reals, integers, pack, pack_decimal128, to_decimal128, unpack
from squallpy.runtime.kernels.payload_products import kind_of
from squallpy.runtime.kernels.pool import Pool

LONG = st.integers(-(2**127), 2**127 - 1)
WORD = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)


def wrap(n: int) -> Any:
    """n mod 2¹²⁸, signed."""
    return (n + 2**127) % 2**128 - 2**127


def fractions(words: NDArray[np.int64]) -> list[Fraction]:
    """The finite parts of REAL or SIGNED elements."""
    return [Fraction(hi) + Fraction(lo) for hi, lo in words[:, :2].copy().view(np.float64).tolist()]


def times(
    left: NDArray[np.int64], ring: Ring, right: NDArray[np.int64], own: Ring, column: int = 0
) -> NDArray[np.int64]:
    """Lanes of `ring` times lanes of `own`, which start at a column of `right`, row by row."""
    lane = [0, ring.words, ring.code, 2, 0, 0, kind_of(ring, ring, False), 1, column, kind_of(ring, own, True)]
    places = np.stack([m.ctypes.data + 8 * m.shape[1] * np.arange(len(m)) for m in (left, right)])
    return statement_steps.emitted(np.array([0, ring.words, *lane]), np.empty((0, len(left)), np.int64), places)[1]


def total(bag: list[tuple[float, int]], ring: Ring) -> NDArray[np.int64]:
    """One element: the sum of a bag of (double, multiplicity)."""
    words = np.empty((len(bag), ring.words), np.int64)
    fill_reals(words, 0, ring, np.array([x for x, _ in bag], np.float64), np.array([n for _, n in bag], np.int64))
    pool = Pool(0, Payload((ring,)))
    pool.upsert(np.empty((len(bag), 0), np.int64), words)
    return pool.words.copy() if len(pool) else np.zeros((1, ring.words), np.int64)


@given(st.lists(LONG))
def property_exact_round_trip(values: list[int]) -> None:
    words = pack(np.array([*values, None], object)[:-1], Ring.EXACT)
    assert integers(words) == values
    assert unpack(words, Ring.EXACT).tolist() == values


@given(st.lists(st.tuples(LONG, LONG | WORD), min_size=1))
def property_exact_product_wraps(pairs: list[tuple[int, int]]) -> None:
    left, right = (pack(np.array([*column, None], object)[:-1], Ring.EXACT) for column in zip(*pairs, strict=True))
    assert integers(times(left, Ring.EXACT, right, Ring.EXACT)) == [wrap(a * b) for a, b in pairs]


@given(st.lists(st.tuples(LONG, WORD), min_size=1))
def property_count_times_exact(pairs: list[tuple[int, int]]) -> None:
    left = pack(np.array([*[a for a, _ in pairs], None], object)[:-1], Ring.EXACT)
    counts = np.array([[7, b] for _, b in pairs])
    assert integers(times(left, Ring.EXACT, counts, Ring.COUNT, 1)) == [wrap(a * b) for a, b in pairs]


@given(st.lists(WORD, min_size=1))
def property_count_converts_exactly(values: list[int]) -> None:
    counts = np.array(values)
    assert fractions(pack(counts, Ring.REAL)) == values
    assert integers(times(pack(np.ones_like(counts), Ring.EXACT), Ring.EXACT, counts[:, None], Ring.COUNT)) == values


@given(st.lists(st.tuples(REAL, REAL), min_size=1))
def property_real_product_is_nearly_exact(pairs: list[tuple[float, float]]) -> None:
    left, right = (pack(np.array(column), Ring.SIGNED) for column in zip(*pairs, strict=True))
    product = times(left, Ring.SIGNED, right, Ring.SIGNED)
    for got, (a, b) in zip(fractions(product), pairs, strict=True):
        exact = Fraction(a) * Fraction(b)
        assert abs(got - exact) <= abs(exact) / 2**100


def oracle_huge_and_infinite_products() -> None:
    words = pack(np.array([1e300, 1e200, np.inf]), Ring.SIGNED)
    product = times(words, Ring.SIGNED, pack(np.array([2.0, 1e200, 2.0]), Ring.SIGNED), Ring.SIGNED)
    assert unpack(product, Ring.SIGNED).tolist() == [2e300, np.inf, np.inf]


SPECIAL = st.sampled_from([np.inf, -np.inf, np.nan, 0.0, 0.5, -1.5, 3.0])
BAG = st.lists(st.tuples(SPECIAL, st.integers(-2, 2)), max_size=6)


@settings(deadline=None)
@given(BAG, BAG, st.integers(-3, 3))
def property_sums_multiply_as_their_rows_do(left: list[Any], right: list[Any], n: int) -> None:
    """(Σa)(Σb) = Σab as elements, not only as printed: hence also where rows go before they come."""
    a, b = total(left, Ring.SIGNED), total(right, Ring.SIGNED)
    a = times(times(a, Ring.SIGNED, b, Ring.SIGNED), Ring.SIGNED, np.array([[n]]), Ring.COUNT)
    with np.errstate(invalid="ignore"):
        rows = [(np.multiply(x, y), i * j * n) for x, i in left for y, j in right]
    expected = total(rows, Ring.SIGNED)
    assert fractions(a) == fractions(expected) and a[:, 2:].tolist() == expected[:, 2:].tolist()


@settings(deadline=None)
@given(st.lists(st.tuples(SPECIAL | st.sampled_from([1e308, -1.5e308]), st.integers(1, 2)), max_size=8), st.data())
def property_infinities_leave_with_their_rows(bag: list[tuple[float, int]], data: st.DataObject) -> None:
    gone = data.draw(st.lists(st.sampled_from(range(len(bag))), unique=True)) if bag else []
    kept = [row for i, row in enumerate(bag) if i not in gone]
    got = total([*bag, *((bag[i][0], -bag[i][1]) for i in gone)], Ring.REAL)
    with np.errstate(over="ignore", invalid="ignore"):
        odd = [x for x, _ in kept if not np.isfinite(x)]
        exact = sum((Fraction(x) * n for x, n in kept if np.isfinite(x)), Fraction(0))
        infinite = np.inf if exact > 0 else -np.inf
        expected = sum(odd) if odd else float(exact) if abs(exact) < 2**1024 else infinite
    np.testing.assert_allclose(unpack(got, Ring.REAL).astype(float), [float(expected)], rtol=1e-15)


def oracle_a_product_that_overflowed_comes_back() -> None:
    parts = [total([(x, 1)], Ring.SIGNED) for x in (1e200, 1e200)]
    product = times(parts[0], Ring.SIGNED, parts[1], Ring.SIGNED)
    assert unpack(product, Ring.SIGNED).tolist() == [np.inf]
    product = times(product, Ring.SIGNED, total([(1e-200, 1)], Ring.SIGNED), Ring.SIGNED)
    np.testing.assert_allclose(unpack(product, Ring.SIGNED).astype(float), [1e200], rtol=1e-15)


@given(st.lists(st.decimals(-(10**30), 10**30, places=4)))
def property_decimals_are_the_words(values: list[Decimal]) -> None:
    array = pa.array([Decimal("0"), *values], pa.decimal128(38, 4))[1:]
    words = pack_decimal128(array)
    assert integers(words) == [int(Fraction(value) * 10**4) for value in values]
    assert to_decimal128(words, 38, 4).equals(array)


def oracle_decimals_with_nulls() -> None:
    made = to_decimal128(pack(np.array([5, -5]), Ring.EXACT), 10, 1, np.array([False, True]))
    assert made.to_pylist() == [Decimal("0.5"), None]
