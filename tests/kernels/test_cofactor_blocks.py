"""Laws of the cofactor ring, as kernels compute it: on bags of rows, each the sum of its lifted rows."""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement
from itertools import product as pairs_of
from math import inf, isfinite, nan, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.rings import Cofactor, Payload
from squallpy.base.rings.cofactor import COUNT, HASH, ODD
from squallpy.runtime.kernels import statement_steps
from squallpy.runtime.kernels.cofactor_blocks import BLOCK, LARGEST, LIFTED, SCALAR, kind_of_factor, unpack_blocks
from squallpy.runtime.kernels.cofactor_lifting import lift_rows
from squallpy.runtime.kernels.monomial_sums import unpack_monomials
from squallpy.runtime.kernels.payload_products import negated
from squallpy.runtime.kernels.pool import Pool

Words = NDArray[np.int64]
Bag = list[tuple[tuple[float, ...], int]]
Factor = tuple[Words, int]

# NB: sums and products of these are exact, so that elements can be compared word by word
EXACT = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 40.0])
SPECIAL = st.sampled_from([0.0, 1.0, -2.0, 0.5, np.inf, -np.inf, np.nan, 1e200])
BOTH = pytest.mark.parametrize("compensated", [True, False])
KINDS = pytest.mark.parametrize("kind", [(True, 1), (False, 1), (True, 2), (False, 2), (True, 3), (True, 4)])
Kind = tuple[bool, int]  # compensated, degree


def bags(size: int, values: st.SearchStrategy[float] = SPECIAL, most: int = 4) -> st.SearchStrategy[Bag]:
    """Bags of rows, each with a multiplicity, which is negative where rows go before they come."""
    return st.lists(st.tuples(st.tuples(*[values] * size), st.integers(-2, 2)), max_size=most)


def lift(ring: Cofactor, bag: Bag) -> Words:
    """Lift rows one by one."""
    words = np.empty((len(bag), ring.words), np.int64)
    values = np.array([row for row, _ in bag], np.float64).reshape(len(bag), ring.size).T
    lift_rows(words, 0, ring, values, np.array([n for _, n in bag], np.int64))
    return words


def add(ring: Cofactor, *elements: Words) -> Words:
    """Add up elements: one row, of zeros if nothing is left."""
    words = np.concatenate(elements) if elements else np.empty((0, ring.words), np.int64)
    pool = Pool(0, Payload((ring,)))
    pool.upsert(np.empty((len(words), 0), np.int64), words)
    return pool.words.copy() if len(pool) else np.zeros((1, ring.words), np.int64)


def total(ring: Cofactor, bag: Bag) -> Words:
    return add(ring, lift(ring, bag))


def multiply(ring: Cofactor, *factors: Factor) -> Words:
    """Multiply factors, a row each, in the given order."""
    places = np.array([[words.ctypes.data] for words, _ in factors], np.int64)
    lane = [0, ring.words, ring.code, len(factors)]
    for source, (_, kind) in enumerate(factors):
        lane += [source, 0, kind]
    _, out = statement_steps.emitted(np.array([0, ring.words, *lane]), np.empty((0, 1), np.int64), places)
    return out


def sum_of_products(ring: Cofactor, *factors: Factor) -> Words:
    """Multiply factors of many rows each, row by row, and add up the products, for a target without keys."""
    places = np.array([words.ctypes.data + words.strides[0] * np.arange(len(words)) for words, _ in factors], np.int64)
    lane = [0, ring.words, ring.code, len(factors)]
    for source, (_, kind) in enumerate(factors):
        lane += [source, 0, kind]
    keys = np.empty((0, places.shape[1]), np.int64)
    _, out = statement_steps.emitted(np.array([0, ring.words, *lane]), keys, places)
    return out


def block(ring: Cofactor, own: Cofactor, words: Words) -> Factor:
    return words, kind_of_factor(BLOCK, own.first, own.size, ring.first)


def scalar(n: int) -> Factor:
    return np.array([[n]]), kind_of_factor(SCALAR)


def lifted(ring: Cofactor, x: float, number: int) -> Factor:
    return np.array([[x]]).view(np.int64), kind_of_factor(LIFTED, number, 1, ring.first)


def is_same(ring: Cofactor, a: Words, b: Words) -> bool:
    """True if elements are equal word by word, but for the sign of 0."""
    ends = ODD + ring.size
    left, right = (x[:, ends:].copy().view(np.float64) for x in (a, b))
    return np.array_equal(a[:, :ends], b[:, :ends]) and np.array_equal(left, right)


def side_by_side(kind: Kind, *sizes: int, first: int = 2) -> list[Cofactor]:
    """Make the ring of a product, and those of its factors, whose variables follow each other."""
    rings = [Cofactor(first, sum(sizes), *kind)]
    for size in sizes:
        rings.append(Cofactor(first, size, *kind))
        first += size
    return rings


def cross(*bags: Bag) -> Bag:
    """Pair each row with each of the other bags: the join of bags that have no variable in common."""
    out: Bag = [((), 1)]
    for bag in bags:
        out = [((*row, *other), n * m) for (row, n), (other, m) in pairs_of(out, bag)]
    return out


@KINDS
@settings(deadline=None)
@given(bags(3), bags(3), bags(3))
def property_sum_is_a_commutative_group(kind: Kind, x: Bag, y: Bag, z: Bag) -> None:
    ring = Cofactor(0, 3, *kind)
    a, b, c = (total(ring, bag) for bag in (x, y, z))
    assert is_same(ring, add(ring, a, b), add(ring, b, a))
    assert is_same(ring, add(ring, add(ring, a, b), c), add(ring, a, add(ring, b, c)))
    assert is_same(ring, add(ring, a, b, c), total(ring, [*x, *y, *z]))
    assert is_same(ring, add(ring, a, np.zeros((1, ring.words), np.int64)), a)
    assert not add(ring, a, negated(a, Payload((ring,)))).any()


@KINDS
@settings(deadline=None)
@given(bags(1), bags(2), bags(1), st.permutations(range(3)))
def property_product_is_commutative_and_associative(kind: Kind, x: Bag, y: Bag, z: Bag, order: list[int]) -> None:
    whole, *rings = side_by_side(kind, 1, 2, 1)
    elements = [total(ring, bag) for ring, bag in zip(rings, (x, y, z), strict=True)]
    factors = [block(whole, ring, words) for ring, words in zip(rings, elements, strict=True)]
    expected = multiply(whole, *factors)
    assert is_same(whole, multiply(whole, *(factors[i] for i in order)), expected)
    left, right = Cofactor(2, 3, *kind), Cofactor(3, 3, *kind)
    ab = multiply(left, block(left, rings[0], elements[0]), block(left, rings[1], elements[1]))
    bc = multiply(right, block(right, rings[2], elements[2]), block(right, rings[1], elements[1]))
    assert is_same(whole, multiply(whole, block(whole, left, ab), factors[2]), expected)
    assert is_same(whole, multiply(whole, block(whole, right, bc), factors[0]), expected)


@KINDS
@settings(deadline=None)
@given(bags(2), bags(2), bags(2))
def property_product_distributes_over_sum(kind: Kind, x: Bag, y: Bag, z: Bag) -> None:
    whole, left, right = side_by_side(kind, 2, 2)
    a, b, c = total(left, x), total(right, y), total(right, z)
    products = (multiply(whole, block(whole, left, a), block(whole, right, e)) for e in (b, c, add(right, b, c)))
    ab, ac, both = products
    assert is_same(whole, add(whole, both), add(whole, ab, ac))


@KINDS
@settings(deadline=None)
@given(bags(2), st.integers(-3, 3), st.integers(-3, 3))
def property_counts_scale(kind: Kind, x: Bag, n: int, m: int) -> None:
    """1·a = a, 0·a = 0, and n·m·a is a bag whose rows are there n·m times as often."""
    ring = Cofactor(5, 2, *kind)
    a = block(ring, ring, total(ring, x))
    assert is_same(ring, multiply(ring, a, scalar(1)), a[0])
    assert not np.ascontiguousarray(add(ring, multiply(ring, scalar(0), a))).any()
    scaled = add(ring, multiply(ring, scalar(n), a, scalar(m)))
    assert is_same(ring, scaled, total(ring, [(row, times * n * m) for row, times in x]))


@KINDS
@settings(deadline=None)
@given(bags(2), bags(1), SPECIAL, st.integers(-2, 2))
def property_elements_multiply_as_their_rows_are_joined(kind: Kind, x: Bag, y: Bag, value: float, n: int) -> None:
    """(Σ g(x))·(Σ g(y))·g(v)·n is the sum over all pairs of rows, in each word: hence also where rows go first."""
    whole, left, middle, right = side_by_side(kind, 2, 1, 1)
    factors = [
        scalar(n), lifted(whole, value, middle.first), block(whole, right, total(right, y)),
        block(whole, left, total(left, x)),
    ]  # fmt: skip
    rows = cross(x, [((value,), n)], y)
    assert is_same(whole, add(whole, multiply(whole, *factors)), total(whole, rows))


@KINDS
@given(SPECIAL, SPECIAL)
def property_lifted_rows_are_products_of_lifted_values(kind: Kind, x: float, y: float) -> None:
    whole = Cofactor(1, 2, *kind)
    expected = lift(whole, [((x, y), 1)])
    assert is_same(whole, multiply(whole, lifted(whole, x, 1), lifted(whole, y, 2)), expected)
    assert is_same(whole, multiply(whole, lifted(whole, y, 2), lifted(whole, x, 1)), expected)


@BOTH
@pytest.mark.parametrize("size", range(1, 20))
def oracle_lifted_values_stay_in_their_element(size: int, compensated: bool) -> None:
    """Of elements of all sizes, words before and behind are left as they are."""
    ring, random = Cofactor(0, size, compensated), np.random.default_rng(size)
    values, times = random.random((size, 3)), np.array([1, 1, -2])
    out = np.full((3, ring.words + 2), 7, np.int64)
    lift_rows(out, 1, ring, values, times)
    assert (out[:, 0] == 7).all() and (out[:, -1] == 7).all()
    for row, (x, n) in enumerate(zip(values.T, times, strict=True)):
        found = out[row, 1 + ODD + size : -1].view(np.float64).reshape(-1, ring.values)
        exact = [*map(Fraction, x), *(Fraction(x[i]) * Fraction(x[j]) for i in range(size) for j in range(i + 1))]
        for value, sums in zip(exact, found.T, strict=True):
            error = sum(map(Fraction, sums)) - int(n) * value
            assert abs(error) <= abs(value) * Fraction(1, 2 ** (100 if compensated else 52))


@KINDS
@settings(deadline=None)
@given(bags(2, most=6))
def property_only_nothing_is_zero(kind: Kind, x: Bag) -> None:
    """An element is 0, to the last word, if its rows cancel out, and otherwise not: whatever its sums and products."""
    ring, net = Cofactor(0, 2, *kind), Counter[tuple[Any, ...]]()
    for row, n in x:
        net[tuple("nan" if v != v else v + 0.0 for v in row)] += n
    assert total(ring, x).any() == any(net.values())


@KINDS
def property_mirrored_rows_are_not_zero(kind: Kind) -> None:
    """+(1, 2) −(2, 1): count and sums of products cancel out; +(1, 2) −(1, 3) −(4, 2) +(4, 3): also the sums."""
    whole, left, right = side_by_side(kind, 1, 1)
    assert total(whole, [((1.0, 2.0), 1), ((2.0, 1.0), -1)]).any()
    a, b = total(left, [((1.0,), 1), ((4.0,), -1)]), total(right, [((2.0,), 1), ((3.0,), -1)])
    product = add(whole, multiply(whole, block(whole, left, a), block(whole, right, b)))
    assert is_same(whole, product, total(whole, cross([((1.0,), 1), ((4.0,), -1)], [((2.0,), 1), ((3.0,), -1)])))
    assert product[0, HASH] != 0 == product[0, COUNT]


def unpack(ring: Cofactor, words: Words, order: Sequence[int]) -> tuple[int, NDArray[Any], NDArray[Any]]:
    """Unpack one element: its count, and its sums and sums of products, (parts, m) and (parts, m(m+1)/2)."""
    counts, sums, products = unpack_blocks(words, ring, order)
    return int(counts[0]), sums[:, 0], products[:, 0]


def exact_sums(rows: Sequence[tuple[Sequence[Fraction], int]], size: int) -> list[Fraction]:
    """Compute the sums, and the lower triangle of the sums of products row by row."""
    sums = [sum((n * row[i] for row, n in rows), Fraction(0)) for i in range(size)]
    places = [(i, j) for i in range(size) for j in range(i + 1)]
    return [*sums, *(sum((n * row[i] * row[j] for row, n in rows), Fraction(0)) for i, j in places)]


REAL = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9)


@BOTH
@settings(deadline=None)
@given(bags(2, REAL), bags(1, REAL), st.permutations([0, 1, 2]))
def oracle_products_of_blocks(compensated: bool, x: Bag, y: Bag, order: list[int]) -> None:
    """Against fractions: compensated sums and products have more than the bits of a double, plain ones are rounded."""
    whole, left, right = side_by_side((compensated, 1), 2, 1, first=0)
    out = multiply(whole, block(whole, left, total(left, x)), block(whole, right, total(right, y)))
    count, sums, products = unpack(whole, out, order)
    rows = [([Fraction(row[i]) for i in order], n) for row, n in cross(x, y)]
    largest = [([abs(value) for value in row], abs(n)) for row, n in rows]
    assert count == sum(n for _, n in rows)
    found = np.hstack([sums, products]).T.tolist()
    for parts, exact, scale in zip(found, exact_sums(rows, 3), exact_sums(largest, 3), strict=True):
        assert abs(sum(map(Fraction, parts)) - exact) <= scale * Fraction(2 ** (-90 if compensated else -45))


def sum_of(values: Sequence[tuple[float, int]]) -> float:
    """Add up values, each n times, as SUM does: ∞ and −∞ are NaN together."""
    return sum((x * n for x, n in values if n > 0), 0.0)


@pytest.mark.parametrize("degree", [2, 3, 4])
@BOTH
@settings(deadline=None)
@given(bags(2, REAL), bags(1, REAL), st.permutations([0, 1, 2]), SPECIAL)
def oracle_sums_of_products_of_many_variables(
    degree: int, compensated: bool, x: Bag, y: Bag, order: list[int], special: float
) -> None:
    """Against fractions, for all products of up to 2·degree variables; NaN in those with one that is not finite."""
    whole, left, right, last = side_by_side((compensated, degree), 2, 1, 1, first=3)
    factors = [block(whole, right, total(right, y)), lifted(whole, special, last.first)]
    out = multiply(whole, *factors, block(whole, left, total(left, x)))
    order = [*order, 3]
    wanted = [m for t in range(2 * degree + 1) for m in combinations_with_replacement(order, t)]
    monomials = np.array([[3 + i for i in m] + [-1] * (2 * degree - len(m)) for m in wanted])
    found, most = unpack_monomials(out, whole, monomials), 2.0 ** (1022 // (2 * degree))
    value = Fraction(special if abs(special) <= most else 0)
    rows = [([*map(Fraction, row), value], n) for row, n in cross(x, y)]
    for parts, m in zip(found[:, 0].T.tolist(), wanted, strict=True):
        if abs(special) <= most or 3 not in m:
            terms = [n * prod((row[i] for i in m), start=Fraction(1)) for row, n in rows]
            exact, bound = sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))
            assert abs(sum(map(Fraction, parts)) - exact) <= bound * Fraction(2 ** (-85 if compensated else -42))
        elif sum(n for _, n in rows):
            expected = nan if {*m} != {3} else special * inf if len(m) % 2 else abs(special) * inf
            np.testing.assert_equal(sum(parts), expected)


@BOTH
@settings(deadline=None)
@given(bags(2, most=5))
def oracle_infinities_and_nans(compensated: bool, x: Bag) -> None:
    """Sums and squares are those of doubles, values beyond LARGEST infinities; any other product with these is NaN."""
    ring, rows = Cofactor(0, 2, compensated), [(row, abs(n)) for row, n in x if n]
    _, sums, products = unpack(ring, total(ring, rows), [0, 1])
    rows = [(tuple(v if abs(v) <= LARGEST else v * inf for v in row), n) for row, n in rows]
    for i, square in enumerate((0, 2)):
        np.testing.assert_equal(sums[:, i].sum(), sum_of([(row[i], n) for row, n in rows]))
        np.testing.assert_equal(products[:, square].sum(), sum_of([(row[i] ** 2, n) for row, n in rows]))
    is_odd = any(not isfinite(value) for row, _ in rows for value in row)
    mixed = nan if is_odd else sum_of([(a * b, n) for (a, b), n in rows])
    np.testing.assert_equal(products[:, 1].sum(), mixed)


Rows = list[tuple[int, Bag, Bag, float]]
"""Factors of products by row: a count, elements of two variables and of one, and a value that is lifted."""


def rows_of(random: np.random.Generator, count: int, values: Callable[[], float]) -> Rows:
    """Make rows at random, with counts and multiplicities below 1 among them."""

    def bag(size: int) -> Bag:
        count = random.integers(1, 4)
        return [(tuple(float(values()) for _ in range(size)), int(random.integers(-2, 5))) for _ in range(count)]

    return [(int(random.integers(-1, 3)), bag(2), bag(1), float(values())) for _ in range(count)]


def summed(whole: Cofactor, rows: Rows) -> Words:
    """Add up the products of rows, whose factors are not in the order of their variables."""
    _, left, middle, right = side_by_side((whole.compensated, 1), 2, 1, 1, first=whole.first)
    parts = [
        scalar(0)[1],
        *(block(whole, ring, np.empty((0, 0), np.int64))[1] for ring in (middle, left)),
        lifted(whole, 0, right.first)[1],
    ]
    ns, xs, ys, values = zip(*rows, strict=True)
    counts, numbers = np.array(ns)[:, None], np.array(values)[:, None].view(np.int64)
    blocks = [np.concatenate([total(ring, bag) for bag in bags]) for ring, bags in ((middle, ys), (left, xs))]
    return sum_of_products(whole, *zip((counts, *blocks, numbers), parts, strict=True))


@BOTH
@pytest.mark.parametrize("count", [2, 4, 35, 70])
def property_sum_of_products_is_that_of_joined_rows(compensated: bool, count: int) -> None:
    """Products of many rows add up to the sum over all pairs of rows, in each word: all are exact, or not finite."""
    random, whole = np.random.default_rng(count), Cofactor(3, 4, compensated)
    for values in ([0.0, -0.0, 1.0, 0.5, -3.0, 40.0], [1.0, -2.0, 1e200, np.inf, np.nan]):
        rows = rows_of(random, count, partial(random.choice, values))
        joined = [pair for n, x, y, value in rows for pair in cross(x, y, [((value,), n)])]
        assert is_same(whole, add(whole, summed(whole, rows)), total(whole, joined))


@BOTH
@pytest.mark.parametrize("span", [1, 300, 1000])
def oracle_sum_of_products(compensated: bool, span: int) -> None:
    """Against fractions, of values up to 2^(span / 2): compensated sums have more than the bits of a double."""
    random, whole = np.random.default_rng(span), Cofactor(0, 4, compensated)
    rows = rows_of(random, 67, lambda: float(random.normal() * 2.0 ** random.integers(-span // 2, span // 2 + 1)))
    _, sums, products = unpack(whole, summed(whole, rows), range(4))
    joined = [pair for n, x, y, value in rows for pair in cross(x, y, [((value,), n)])]
    exact = exact_sums([([*map(Fraction, row)], n) for row, n in joined], 4)
    bound = exact_sums([([abs(Fraction(v)) for v in row], abs(n)) for row, n in joined], 4)
    for parts, wanted, most in zip(np.hstack([sums, products]).T.tolist(), exact, bound, strict=True):
        assert abs(sum(map(Fraction, parts)) - wanted) <= most * Fraction(2) ** (-90 if compensated else -40)


@BOTH
@pytest.mark.parametrize("count", [1, 9, 20])
def oracle_products_as_often_as_no_double_says(compensated: bool, count: int) -> None:
    """Against fractions: a row of a tile has a count of more than 53 bits, of which compensated sums have all."""
    random, whole = np.random.default_rng(count), Cofactor(0, 4, compensated)
    rows = rows_of(random, count, lambda: float(random.integers(1, 100)))
    rows[-1] = (3, [((5.0, 7.0), (1 << 53) + 1)], [((11.0,), 1)], 13.0)
    total_count, sums, products = unpack(whole, summed(whole, rows), range(4))
    joined = [pair for n, x, y, value in rows for pair in cross(x, y, [((value,), n)])]
    assert total_count == sum(n for _, n in joined)
    exact = exact_sums([([*map(Fraction, row)], n) for row, n in joined], 4)
    for parts, wanted in zip(np.hstack([sums, products]).T.tolist(), exact, strict=True):
        assert abs(sum(map(Fraction, parts)) - wanted) <= (0 if compensated else wanted * Fraction(2) ** -40)


@BOTH
def oracle_blocks_of_many_variables(compensated: bool) -> None:
    """Against NumPy: a product of five factors of 40 variables, two of which are lifted in the product."""
    random, sizes = np.random.default_rng(40), (9, 1, 17, 1, 12)
    whole, *rings = side_by_side((compensated, 1), *sizes, first=0)
    data = [random.normal(size=(1 if ring.size == 1 else 6, ring.size)) for ring in rings]
    factors = [scalar(3)]
    for ring, rows in zip(rings, data, strict=True):
        if ring.size == 1:
            factors.append(lifted(whole, rows[0, 0], ring.first))
        else:
            factors.append(block(whole, ring, total(ring, [(tuple(row), 1) for row in rows])))
    order = random.permutation(whole.size).tolist()
    picks = np.stack(np.meshgrid(*(range(len(rows)) for rows in data), indexing="ij"), -1).reshape(-1, len(data))
    joined = np.hstack([rows[picks[:, i]] for i, rows in enumerate(data)])[:, order]
    count, sums, products = unpack(whole, multiply(whole, *factors), order)
    assert count == 3 * 6**3
    np.testing.assert_allclose(sums.sum(axis=0), 3 * joined.sum(axis=0), rtol=1e-9, atol=1e-9)
    expected = 3 * (joined.T @ joined)[np.tril_indices(whole.size)]
    np.testing.assert_allclose(products.sum(axis=0), expected, rtol=1e-9, atol=1e-9)
