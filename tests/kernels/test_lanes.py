"""Lane arithmetic against Python's integers and fractions."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.rings import Ring
from squallpy.runtime.kernels.lanes import (
    integers,
    load,
    multiply,
    negate,
    pack,
    pack_decimal128,
    to_decimal128,
    unpack,
)

LONG = st.integers(-(2**127), 2**127 - 1)
WORD = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)


def wrap(n):
    """n mod 2¹²⁸, signed."""
    return (n + 2**127) % 2**128 - 2**127


def fractions(words):
    return [Fraction(hi) + Fraction(lo) for hi, lo in words.view(np.float64).tolist()]


@given(st.lists(LONG))
def property_exact_round_trip(values):
    words = pack(np.array([*values, None], object)[:-1], Ring.EXACT)
    assert integers(words) == values
    assert unpack(words, Ring.EXACT).tolist() == values


@given(st.lists(st.tuples(LONG, LONG | WORD), min_size=1))
def property_exact_product_wraps(pairs):
    left, right = (pack(np.array([*column, None], object)[:-1], Ring.EXACT) for column in zip(*pairs, strict=True))
    multiply(left, 0, Ring.EXACT, right, None, 0, Ring.EXACT)
    assert integers(left) == [wrap(a * b) for a, b in pairs]
    negate(left, 0, Ring.EXACT)
    assert integers(left) == [wrap(-a * b) for a, b in pairs]


@given(st.lists(st.tuples(LONG, WORD), min_size=1))
def property_count_times_exact(pairs):
    left = pack(np.array([*[a for a, _ in pairs], None], object)[:-1], Ring.EXACT)
    multiply(left, 0, Ring.EXACT, np.array([[7, b] for _, b in pairs]), None, 1, Ring.COUNT)
    assert integers(left) == [wrap(a * b) for a, b in pairs]


@given(st.lists(WORD, min_size=1))
def property_count_converts_exactly(values):
    counts = np.array(values).reshape(-1, 1)
    assert fractions(pack(counts[:, 0], Ring.REAL)) == values
    words = np.zeros((len(values), 5), np.int64)
    load(words, 3, Ring.EXACT, counts, None, 0, Ring.COUNT)
    assert integers(words[:, 3:]) == values and not words[:, :3].any()


@given(st.lists(st.tuples(REAL, REAL), min_size=1))
def property_real_product_is_nearly_exact(pairs):
    left, right = (pack(np.array(column), Ring.REAL) for column in zip(*pairs, strict=True))
    multiply(left, 0, Ring.REAL, right, None, 0, Ring.REAL)
    for got, (a, b) in zip(fractions(left), pairs, strict=True):
        exact = Fraction(a) * Fraction(b)
        assert abs(got - exact) <= abs(exact) / 2**100


def oracle_rows_pick_from_source():
    out = np.array([[2, 0], [3, 0], [5, 0]])
    multiply(out, 0, Ring.COUNT, np.array([[10], [100]]), np.array([1, 0, 1]), 0, Ring.COUNT)
    assert out.tolist() == [[200, 0], [30, 0], [500, 0]]
    with pytest.raises(IndexError):
        multiply(out, 0, Ring.COUNT, np.array([[10], [100]]), np.array([0, -1, 0]), 0, Ring.COUNT)


def oracle_huge_and_infinite_products():
    words = pack(np.array([1e300, 1e200, np.inf]), Ring.REAL)
    multiply(words, 0, Ring.REAL, pack(np.array([2.0, 1e200, 2.0]), Ring.REAL), None, 0, Ring.REAL)
    assert unpack(words, Ring.REAL).tolist() == [2e300, np.inf, np.inf]


@given(st.lists(st.decimals(-(10**30), 10**30, places=4)))
def property_decimals_are_the_words(values):
    array = pa.array([Decimal("0"), *values], pa.decimal128(38, 4))[1:]
    words = pack_decimal128(array)
    assert integers(words) == [int(Fraction(value) * 10**4) for value in values]
    assert to_decimal128(words, 38, 4).equals(array)


def oracle_decimals_with_nulls():
    made = to_decimal128(pack(np.array([5, -5]), Ring.EXACT), 10, 1, np.array([False, True]))
    assert made.to_pylist() == [Decimal("0.5"), None]
