"""Factored updates are the changes that they stand for, in as few columns as these take."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MIN_PLUS, Semiring
from squallpy.runtime.kernels.matrix.cell_cover import cover_cells
from squallpy.runtime.kernels.matrix.factored_updates import compress, of_cells
from squallpy.testing.matrix_checks import multiplied

PLACES = st.tuples(st.integers(0, 7), st.integers(0, 8), st.integers(-3, 3))


@given(st.lists(PLACES, max_size=26))
def property_cells_are_rows_or_columns_or_half_as_many_of_both(changes: list[tuple[int, int, int]]) -> None:
    rows, columns, values = np.array(changes, np.int64).reshape(-1, 3).T
    expected = np.zeros((8, 9), np.int64)
    np.add.at(expected, (rows, columns), values)
    U, V = of_cells(rows, columns, values, (8, 9))
    assert (expected == U @ V.T).all()
    alone = min(len(set(rows.tolist())), len(set(columns.tolist())))
    least = _fewest({(i, j) for i, j, _ in changes})
    assert U.shape[1] <= cover_cells(rows, columns).size == (least if 2 * least <= alone else alone)


def _fewest(cells: set[tuple[int, int]]) -> int:
    """Try all choices of rows; the other cells take their columns."""
    rows = sorted({i for i, _ in cells})
    choices = (set(chosen) for count in range(len(rows) + 1) for chosen in combinations(rows, count))
    return min(len(chosen) + len({j for i, j in cells if i not in chosen}) for chosen in choices)


@pytest.mark.parametrize("ring", [ARITHMETIC, COUNTING, BOOLEAN, MIN_PLUS])
def oracle_a_vertex_and_its_edges_are_a_row_and_a_column(ring: Semiring) -> None:
    others = np.delete(np.arange(50), 7)
    rows, columns = np.r_[others, np.full(49, 7)], np.r_[np.full(49, 7), others]
    values = np.arange(1, 99).astype(ring.dtype)
    U, V = of_cells(rows, columns, values, (50, 50), ring)
    expected = np.full((50, 50), ring.zero, ring.dtype)
    expected[rows, columns] = values
    assert U.shape == V.shape == (50, 2)
    np.testing.assert_array_equal(multiplied(U, V.T, ring), expected)


def oracle_few_rows_and_columns_cover_stars_and_what_is_beside_them() -> None:
    random = np.random.default_rng(5)
    for _ in range(40):
        n = 400
        stars = random.integers(0, n, 12)
        rows = np.r_[np.repeat(stars[:6], 60), random.integers(0, n, 360), random.integers(0, n, 40)]
        columns = np.r_[random.integers(0, n, 360), np.repeat(stars[6:], 60), random.integers(0, n, 40)]
        cover = cover_cells(rows, columns)
        assert (cover.covering_rows[cover.row_of] | cover.covering_columns[cover.column_of]).all()
        assert cover.size <= 52


def oracle_a_row_update_picks_the_row() -> None:
    U, V = of_cells(np.array([2, 2, 2]), np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), (4, 2))
    assert U.T.tolist() == [[0, 0, 1, 0]] and V.T.tolist() == [[4, 2]]
    assert U.flags.f_contiguous and V.flags.f_contiguous


def oracle_what_cancels_has_no_rank() -> None:
    U, V = of_cells(np.array([2, 2]), np.array([1, 1]), np.array([5, -5]), (4, 2))
    assert U.shape == (4, 0) and V.shape == (2, 0)


@given(st.integers(0, 4), st.integers(0, 6), st.integers(0, 3), st.integers(0, 99))
def property_compressed_updates_have_their_rank(rank: int, more: int, doubled: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    U, V = random.normal(size=(9, rank)), random.normal(size=(7, rank))
    mixed = U @ random.normal(size=(rank, more)) if rank else np.zeros((9, more))
    U, V = np.hstack([U, mixed, U[:, :doubled]]), np.hstack([V, random.normal(size=(7, more)), V[:, :doubled]])
    left, right = compress(U, V)
    assert left.shape == (9, left.shape[1]) and right.shape == (7, left.shape[1])
    np.testing.assert_allclose(left @ right.T, U @ V.T, atol=1e-12)
    assert left.shape[1] <= max(rank, 1)


def oracle_what_is_not_finite_is_left() -> None:
    U, V = np.array([[np.inf, 1.0], [0.0, 2.0]]), np.eye(2)
    left, right = compress(U, V)
    assert left is U and right is V
