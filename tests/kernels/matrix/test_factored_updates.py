"""Factored updates are the changes that they stand for, in as few columns as these take."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from squallpy.runtime.kernels.matrix.factored_updates import compress, of_cells

PLACES = st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(-3, 3))


@given(st.lists(PLACES, max_size=20))
def property_cells_are_rows_or_columns_whichever_are_fewer(changes: list[tuple[int, int, int]]) -> None:
    rows, columns, values = np.array(changes, np.int64).reshape(-1, 3).T
    expected = np.zeros((7, 5), np.int64)
    np.add.at(expected, (rows, columns), values)
    U, V = of_cells(rows, columns, values, (7, 5))
    assert (expected == U @ V.T).all()
    assert U.shape[1] <= min(len(set(rows.tolist())), len(set(columns.tolist())))


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
