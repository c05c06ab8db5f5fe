"""Which batches the benchmark measures, and what its order books are made of."""

import pyarrow as pa
import pytest

from bench.data.orderbook import book
from bench.engines.squall_local import LEAP_ROWS, Leaps
from bench.measure.batches import Watch, tenth
from squallpy.runtime.sources.replay import Replay


def test_samples_are_spread_over_the_stream() -> None:
    assert Watch(samples=4).plan(1000) == [249, 499, 749, 999]
    assert Watch(samples=4, limit=600).plan(1000) == [249, 499]
    assert Watch().plan(3) == [0, 1, 2]


def test_tenths() -> None:
    assert Watch(tenths=(1, 9)).plan(30) == [3, 4, 5, 27, 28, 29]
    assert Watch(tenths=(9,), samples=2).plan(1000) == [949, 999]
    assert Watch(tenths=(9,)).plan(3) == [2]
    assert Watch(tenths=(1, 9), first=10).plan(30) == [12, 13, 28, 29]
    assert [b for i in range(10) for b in tenth(i, 37)] == list(range(37))


@pytest.mark.parametrize("rows", [999, 1_000, 40_000, 250_000])
def test_leaps_are_the_same_stream(rows: int) -> None:
    """The chosen batches as they are; between them, no step of more than LEAP_ROWS if a batch has not."""
    replay = Replay({"r": 1_000_001, "s": 10}, rows)
    leaps = Leaps(replay, Watch(tenths=(1, 9)).plan(replay.batches))
    ends = {"r": 0, "s": 0}
    for step in range(leaps.batches):
        for name, (start, stop) in leaps.ranges(step).items():
            assert start == ends[name] and stop - start <= max(LEAP_ROWS, rows)
            ends[name] = stop
    assert ends == {"r": 1_000_001, "s": 10}
    assert {(batch, batch + 1) for batch in leaps.chosen} <= set(leaps.steps)


def test_deletes_follow_their_inserts() -> None:
    sides = book(500, 700, seed=3)
    assert sum(map(len, sides.values())) == 1200
    for orders in sides.values():
        there: dict[int, dict[str, object]] = {}
        for row in orders.to_pylist():
            if row.pop("__op") == "+":
                assert row["id"] not in there
                there[row["id"]] = row
            else:
                assert there.pop(row["id"]) == row
        assert 200 < len(there) < 300


def test_books_are_made_again() -> None:
    assert all(a.equals(b) for a, b in zip(book(50, 50, 1).values(), book(50, 50, 1).values(), strict=True))
    assert isinstance(book(50, 50, 2)["bids"], pa.Table) and not book(50, 50, 2)["bids"].equals(book(50, 50, 1)["bids"])
