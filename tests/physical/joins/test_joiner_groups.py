"""Any number of joiners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.physical.joins.grid import side_by_side
from squallpy.physical.joins.joiner_groups import GroupHomes, meet, powers_of_two, square_grids, stored_load
from squallpy.physical.joins.mapping import Mapping, Side, find_best_mapping
from squallpy.testing.joins.streams import of_sides


def golden_figure_4a() -> None:
    """20 joiners are 16 and 4; a joiner of the smaller group sees what four of the bigger do."""
    assert powers_of_two(20) == (16, 4)
    big, small = side_by_side([Mapping(4, 4), Mapping(2, 2)])
    assert (big, small) == square_grids(20)
    assert small.numbers.tolist() == [16, 17, 18, 19]
    tickets = of_sides(np.zeros(200, np.int8)).tickets
    blocks = []
    for joiner in small.numbers.tolist():
        owned = {side: small.owns(joiner, side, tickets) for side in Side}
        blocks.append(
            [j for j in big.numbers if all((big.owns(j, side, tickets) & owned[side]).any() for side in Side)]
        )
        for side in Side:
            assert (np.any([big.owns(j, side, tickets) for j in blocks[-1]], axis=0) == owned[side]).all()
    assert [len(b) for b in blocks] == [4] * 4 and sorted(j for b in blocks for j in b) == list(range(16))


@pytest.mark.parametrize("joiners", [0, -3])
def test_no_joiners(joiners: int) -> None:
    with pytest.raises(ValueError, match="a joiner or more"):
        powers_of_two(joiners)


@given(st.integers(1, 10**6))
def property_powers_add_up(joiners: int) -> None:
    assert sum(powers_of_two(joiners)) == joiners and len(set(powers_of_two(joiners))) == len(powers_of_two(joiners))


def test_groups_store_their_share() -> None:
    tickets = of_sides(np.zeros(200_000, np.int8)).tickets
    homes = GroupHomes(powers_of_two(21)).of(tickets)
    assert np.abs(np.bincount(homes) / len(tickets) - np.array([16, 4, 1]) / 21).max() < 0.005
    # and whichever stores it, rows are even: 16 rows, a 16th each
    rows = Mapping(16, 1).coordinates(Side.R, tickets[homes == 1])
    assert np.abs(np.bincount(rows) / len(rows) - 1 / 16).max() < 0.005


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=2, max_size=12))
def property_two_groups_join_a_pair_once(groups: int, tuples: list[tuple[int, bool]]) -> None:
    hash_joiner, order = np.array([h % groups for h, _ in tuples]), np.arange(len(tuples))
    joined = sum(
        meet((np.equal(hash_joiner, g)[:, None], np.equal(hash_joiner, g)), (order[:, None], order)).astype(int)
        for g in range(groups)
    )
    assert (joined + np.eye(len(tuples), dtype=int) * (1 - np.diag(joined)) == 1).all()


@given(st.integers(1, 5000), st.integers(1, 10**6), st.integers(1, 10**6))
def property_stored_load_is_within_the_bound(joiners: int, r: int, s: int) -> None:
    """3.75 (§4.2.2); the groups being at their best, below 1.07: what a joiner stores is not where groups cost."""
    parts = [find_best_mapping(power, r, s) for power in powers_of_two(joiners)]
    least = min(r / n + s * n / joiners for n in (1, joiners, min(max((r * joiners / s) ** 0.5, 1), joiners)))
    assert stored_load(parts, r, s) <= 1.07 * least
