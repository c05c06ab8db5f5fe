"""Mappings of a join matrix: loads, and where tuples go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.physical.joins.mapping import Mapping, Side, find_best_mapping, find_square_mapping
from squallpy.testing.joins.streams import of_sides

MAPPINGS = st.builds(lambda a, b: Mapping(1 << a, 1 << b), st.integers(0, 5), st.integers(0, 5))
SIZES = st.integers(0, 10**7)


def golden_figure_2() -> None:
    # 1 GB and 64 GB for 64 joiners: 8 1/8 GB each and 520 in all, or 2 GB and 128
    assert Mapping(8, 8).load(1, 64) == 8.125 and 64 * Mapping(8, 8).load(1, 64) == 520
    assert find_best_mapping(64, 1, 64) == Mapping(1, 64)
    assert Mapping(1, 64).load(1, 64) == 2 and 64 * Mapping(1, 64).load(1, 64) == 128


@pytest.mark.parametrize(("rows", "columns"), [(0, 4), (3, 4), (4, -1), (6, 1)])
def test_only_powers_of_two(rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match="powers of two"):
        Mapping(rows, columns)


@pytest.mark.parametrize("joiners", [0, -4, 12])
def test_only_grids_of_powers(joiners: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        find_square_mapping(joiners)


def test_optimal_of_nothing_and_of_equals() -> None:
    assert find_best_mapping(64, 0, 0) == Mapping(8, 8)
    assert find_best_mapping(64, 5, 0) == Mapping(64, 1) and find_best_mapping(64, 0, 1) == Mapping(1, 64)
    # (8, 8) and (4, 16) are equals for 1 : 2; what is there stays
    assert find_best_mapping(64, 100, 200) == Mapping(8, 8)
    assert find_best_mapping(64, 100, 200, Mapping(4, 16)) == Mapping(4, 16)


@given(SIZES, SIZES, st.integers(0, 10))
def property_optimal_is_within_seven_percent_of_any_rectangle(r: int, s: int, bits: int) -> None:
    # thesis Theorem 4.2.3: no cut of the matrix into J equal rectangles has less than 2 √(|R||S| / J)
    joiners = 1 << bits
    load = find_best_mapping(joiners, r, s).load(r, s)
    if r <= joiners * s and s <= joiners * r:
        assert load <= (9 / 8) ** 0.5 * 2 * (r * s / joiners) ** 0.5 + 1e-6
    else:
        assert load == max(r, s) / joiners + min(r, s)


@given(MAPPINGS, st.integers(0, 2**32))
def property_each_pair_meets_at_one_joiner(mapping: Mapping, seed: int) -> None:
    tickets = of_sides(np.zeros(20, np.int8), seed).tickets
    of_r, of_s = (mapping.targets(side, tickets) for side in Side)
    assert of_r.shape == (20, mapping.columns) and of_s.shape == (20, mapping.rows)
    assert ((of_r[:, None, :, None] == of_s[None, :, None, :]).sum(axis=(2, 3)) == 1).all()
    words = np.arange(mapping.joiners)
    for side, targets in ((Side.R, of_r), (Side.S, of_s)):
        owned = mapping.coordinates_of(side, words)[None, :] == mapping.coordinates(side, tickets)[:, None]
        assert (owned == (targets[:, :, None] == words).any(axis=1)).all()


@given(MAPPINGS.filter(lambda m: m.rows > 1), st.integers(0, 2**32))
def property_a_step_moves_one_bit(mapping: Mapping, seed: int) -> None:
    """Rows lose their last bit and columns get one more, of tickets and of joiners alike."""
    after = Mapping(mapping.rows // 2, 2 * mapping.columns)
    tickets, words = of_sides(np.zeros(20, np.int8), seed).tickets, np.arange(mapping.joiners)
    assert (after.coordinates(Side.R, tickets) == mapping.coordinates(Side.R, tickets) >> 1).all()
    assert (after.coordinates(Side.S, tickets) >> 1 == mapping.coordinates(Side.S, tickets)).all()
    assert (after.coordinates_of(Side.R, words) == mapping.coordinates_of(Side.R, words) >> 1).all()
    assert (after.coordinates_of(Side.S, words) >> 1 == mapping.coordinates_of(Side.S, words)).all()
