"""Mutual information and Chow-Liu trees, beside the formula over all values and a search of all trees."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from math import fsum, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.runtime.models.chow_liu import chow_liu
from squallpy.runtime.models.mutual_information import mutual_information

Table = Sequence[tuple[int, ...]]
CODES = st.integers(-(2**63), -(2**63) + 1) | st.integers(-2, 2)


def of_rows(rows: Table, columns: int, seed: int = 0) -> NDArray[np.float64]:
    """I of all pairs of columns, their counts in any order."""
    counted = [
        (pair, x, y, count)
        for pair, (a, b) in enumerate(combinations(range(columns), 2))
        for (x, y), count in Counter((row[a], row[b]) for row in rows).items()
    ]
    return of_counts(
        np.random.default_rng(seed).permutation(np.array(counted, np.int64).reshape(-1, 4)),
        columns * (columns - 1) // 2,
    )


def of_counts(counted: list[tuple[int, int, int, int]] | NDArray[np.int64], pairs: int) -> NDArray[np.float64]:
    """I of pairs of columns of rows (pair, x, y, count)."""
    pair, x, y, count = np.array(counted, np.int64).reshape(-1, 4).T
    return mutual_information(pair, x, y, count, pairs)


def by_formula(rows: Table, a: int, b: int) -> float:
    n, together = len(rows), Counter((row[a], row[b]) for row in rows)
    x, y = Counter(row[a] for row in rows), Counter(row[b] for row in rows)
    return fsum(c / n * log(c * n / (x[i] * y[j])) for (i, j), c in together.items())


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, int]:
    columns = draw(st.integers(1, 5))
    return draw(st.lists(st.tuples(*[CODES] * columns), max_size=40)), columns


@given(tables(), st.integers(0, 9))
def oracle_mutual_information_is_that_of_the_formula(table: tuple[Table, int], seed: int) -> None:
    rows, columns = table
    found = of_rows(rows, columns)
    wanted = [by_formula(rows, a, b) for a, b in combinations(range(columns), 2)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
    assert (found >= 0).all()
    assert np.array_equal(of_rows(rows, columns, seed), found)


@given(st.lists(st.integers(1, 10**5), min_size=1, max_size=8), st.lists(st.integers(1, 10**4), min_size=1, max_size=8))
def property_independent_columns_have_exactly_none(left: list[int], right: list[int]) -> None:
    cells = [(0, x, y, c * d) for (x, c), (y, d) in product(enumerate(left), enumerate(right))]
    assert of_counts(cells, 1).tolist() == [0.0]


@given(st.lists(CODES, min_size=1, max_size=50))
def property_copies_and_constants_are_exact(values: list[int]) -> None:
    names = {value: place for place, value in enumerate(dict.fromkeys(values))}
    rows = [(value, -names[value], 7, value) for value in values]
    copied, constant, same, _, renamed, _ = of_rows(rows, 4).tolist()
    assert constant == 0
    assert copied == same == renamed
    assert same == pytest.approx(fsum(c / len(rows) * log(len(rows) / c) for c in Counter(values).values()), rel=1e-14)


def test_rows_that_are_not_there_do_not_count() -> None:
    cells = [(0, 0, 0, 2), (0, 1, 1, 2), (0, 1, 0, 0), (0, 0, 1, -3), (2, 5, 5, 1)]
    assert of_counts(cells, 3).tolist() == [log(2), 0.0, 0.0]


def test_rounding_leaves_nothing_negative() -> None:
    counts = 100_000_000, 99_999_999, 99_999_999, 100_000_000
    cells = [(0, place // 2, place % 2, count) for place, count in enumerate(counts)]
    assert 0 <= of_counts(cells, 1)[0] < 1e-16


Edge = tuple[int, int, float]


def best_tree(values: list[float], columns: int) -> list[Edge]:
    """The spanning tree of the largest sum; of several, that with the first edges, beginning with the largest."""
    pairs = combinations(range(columns), 2)
    edges = sorted(((a, b, value) for (a, b), value in zip(pairs, values, strict=True)), key=lambda e: (-e[2], *e[:2]))
    trees = [tree for tree in combinations(edges, columns - 1) if is_connected(tree, columns)]
    return sorted(max(trees, key=lambda tree: sum(value for *_, value in tree)))  # the first of those that tie


def is_connected(edges: tuple[Edge, ...], columns: int) -> bool:
    reached = {0}
    for _ in range(columns):
        reached |= {node for a, b, _ in edges if {a, b} & reached for node in (a, b)}
    return len(reached) == columns


@given(st.data(), st.integers(1, 6))
def oracle_the_tree_is_the_best_of_all(data: st.DataObject, columns: int) -> None:
    pairs = columns * (columns - 1) // 2
    # multiples of 1/8, so that sums are exact; few, so that they tie
    values = data.draw(st.lists(st.integers(0, 5), min_size=pairs, max_size=pairs))
    halves = [value / 8 for value in values]
    a, b, value = chow_liu(np.array(halves), columns)
    assert list(zip(a.tolist(), b.tolist(), value.tolist(), strict=True)) == best_tree(halves, columns)


@given(st.data(), st.integers(1, 6), st.integers(0, 99))
def property_what_differs_by_rounding_ties(data: st.DataObject, columns: int, seed: int) -> None:
    pairs = columns * (columns - 1) // 2
    values = np.array(data.draw(st.lists(st.integers(0, 5), min_size=pairs, max_size=pairs))) / 8
    rounded = values * (1 + 1e-15 * np.random.default_rng(seed).integers(-9, 10, pairs))
    one, other = chow_liu(values, columns), chow_liu(rounded, columns)
    assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=60))
def property_a_column_is_joined_to_the_first_that_determines_it(rows: list[tuple[int, int]]) -> None:
    """A country is determined by a town, and so by a street in it: I is its entropy with both."""
    table = [(town % 3, town, 10 * town + street) for town, street in rows]
    a, b, _ = chow_liu(of_rows(table, 3), 3)
    towns_tie_with_countries = len({row[0] for row in table}) == len({row[1] for row in table})
    wanted = [(0, 1), (0, 2)] if towns_tie_with_countries else [(0, 1), (1, 2)]
    assert list(zip(a.tolist(), b.tolist(), strict=True)) == wanted
