"""The epoch protocol under any order of messages: each pair once, and a protocol that lacks a row is found out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration_controller import Policy
from squallpy.testing.joins import Simulation, Violation, bursts, random_stream
from squallpy.testing.joins.migration_protocol import ALGORITHM_4, FinalSet, Meeting, Rules, TupleSet
from squallpy.testing.joins.simulator import remove_rule

SWINGS = [(Side.R, 8), (Side.S, 8), (Side.R, 40), (Side.S, 120), (Side.R, 60)]
ROWS = [*ALGORITHM_4.meetings, *ALGORITHM_4.sent, *ALGORITHM_4.stays]


@settings(max_examples=25, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(Side), st.integers(1, 25)), min_size=1, max_size=6),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 3),
    st.data(),
)
def property_each_pair_once_in_any_order(
    runs: list[tuple[Side, int]], joiners: int, reshufflers: int, data: st.DataObject
) -> None:
    orders = st.integers(0, 2**16)
    drawn = data.draw(st.lists(orders, min_size=1, max_size=300))
    turn = iter(range(10**9))
    Simulation(bursts(runs), joiners, reshufflers=reshufflers, pick=lambda n: drawn[next(turn) % len(drawn)] % n).run()


@settings(max_examples=12)
@given(st.integers(1, 24), st.integers(0, 2**32), st.floats(0.05, 0.95), st.sampled_from([0.25, 1.0]))
def property_any_number_of_joiners(joiners: int, seed: int, share: float, epsilon: float) -> None:
    Simulation(random_stream(90, share, seed, deletes=0.3), joiners, Policy(epsilon), seed=seed).run()


@pytest.mark.parametrize("joiners", [2, 16, 21])
@pytest.mark.parametrize("sampled", [False, True])
def test_migrations_happen(joiners: int, sampled: bool) -> None:
    done = Simulation(bursts(SWINGS), joiners, sampled=sampled, seed=1).run()
    assert len(done.migrations) >= 2 and done.output.pairs.all()


def test_growth() -> None:
    done = Simulation(bursts(SWINGS), 4, Policy(capacity=40, most=64), seed=2).run()
    assert [m.new.joiners for m in done.migrations if m.new.joiners != m.old.joiners] == [16, 64]
    assert len(done.joiners) == 64


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_protocol_without_a_row_is_found_out(row: Meeting | TupleSet | FinalSet) -> None:
    assert found_out(remove_rule(ALGORITHM_4, row))


@pytest.mark.parametrize("row", [m for m in ALGORITHM_4.meetings if m.keep], ids=str)
def test_joining_what_is_sent_away_is_found_out(row: Meeting) -> None:
    loose = tuple(replace(m, keep=False) if m == row else m for m in ALGORITHM_4.meetings)
    assert found_out(replace(ALGORITHM_4, meetings=loose))


@pytest.mark.parametrize(
    ("arriving", "stored"), [(TupleSet.OLD, TupleSet.MIGRATED), (TupleSet.MIGRATED, TupleSet.STATE)]
)
def test_joining_too_much_is_found_out(arriving: TupleSet, stored: TupleSet) -> None:
    assert found_out(replace(ALGORITHM_4, meetings=(*ALGORITHM_4.meetings, Meeting(arriving, stored))))


def found_out(rules: Rules) -> bool:
    """Does a checker of a few runs see that a protocol is wrong?"""
    for seed in range(12):
        try:
            Simulation(bursts(SWINGS, seed), 8, seed=seed, rules=rules).run()
        except Violation:
            return True
    return False


def test_thousand_joiners() -> None:
    done = Simulation(
        bursts([(Side.R, 8), (Side.S, 8), (Side.R, 60)]), 1024, Policy(warm_up=16), chunk=20, seed=3, reshufflers=2
    ).run()
    assert len(done.migrations) >= 1 and np.all(done.output.pairs == 1)
