"""Migrations over several micro-batches: each batch is complete, and a restart changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.physical.joins.controller import Policy
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.protocol import IN_BATCHES, Meeting, Part, Stay
from squallpy.testing.joins import Batches, Violation, bursts, random_stream
from squallpy.testing.joins.simulator import without

SWINGS = [(Side.R, 30), (Side.S, 30), (Side.R, 90), (Side.S, 400), (Side.R, 100)]

MORE = [Meeting(a, b) for a in (Part.VISIT, Part.NEW) for b in (Part.STATE, Part.NEW, Part.MIGRATED)]


@settings(max_examples=20)
@given(
    st.integers(1, 21),
    st.integers(1, 40),
    st.integers(0, 2**32),
    st.floats(0.05, 0.95),
    st.floats(0, 0.5),
    st.booleans(),
)
def property_every_batch_is_complete(
    joiners: int, batch: int, seed: int, share: float, deletes: float, restart: bool
) -> None:
    Batches(random_stream(90, share, seed, deletes), joiners, batch, restart=restart).run()


@pytest.mark.parametrize("joiners", [4, 16, 21])
def test_migrations_take_several_batches(joiners: int) -> None:
    done = Batches(bursts(SWINGS), joiners, 10, floor=2).run()
    assert any(end - start > 2 for start, end, _ in done.moves) and np.all(done.output.pairs == 1)


def test_idle_streams_finish_their_migrations() -> None:
    done = Batches(bursts([(Side.R, 40), (Side.S, 300)]), 4, 300, floor=3).run()
    assert len(done.sent) > 3 and not done.running


def test_growth_in_batches() -> None:
    done = Batches(bursts(SWINGS), 4, 20, Policy(capacity=100, most=64), restart=True).run()
    assert len(done.joiners) == 64 and np.all(done.output.pairs == 1)


def test_a_restart_changes_nothing() -> None:
    runs = [Batches(bursts(SWINGS), 21, 7, restart=restart).run() for restart in (False, True)]
    assert runs[0].moves == runs[1].moves and runs[0].sent == runs[1].sent and len(runs[0].moves) > 2


@pytest.mark.parametrize("row", [*IN_BATCHES.meetings, *IN_BATCHES.sent, *IN_BATCHES.stays], ids=str)
def test_a_protocol_without_a_row_is_found_out(row: Meeting | Part | Stay) -> None:
    with pytest.raises(Violation):
        Batches(bursts(SWINGS), 4, 10, rules=without(IN_BATCHES, row)).run()


@pytest.mark.parametrize("more", MORE, ids=str)
def test_joining_more_is_found_out(more: Meeting) -> None:
    rules = replace(IN_BATCHES, meetings=(*IN_BATCHES.meetings, more))
    with pytest.raises(Violation):
        Batches(bursts(SWINGS), 4, 10, rules=rules).run()
