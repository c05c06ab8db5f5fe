"""Replay: every row in exactly one batch, in the same batch each time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.settings import Settings, parse_settings
from squallpy.runtime.sources.replay import ORDERS, Replay

sizes = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 10_000), max_size=5)


@given(sizes, st.integers(1, 3000), st.sampled_from(list(ORDERS)))
def property_batches_cover_each_row_once_in_order(sizes: dict[str, int], batch_rows: int, order: str) -> None:
    replay = Replay(sizes, batch_rows, order)
    ends = dict.fromkeys(sizes, 0)
    for batch in range(replay.batches):
        ranges = replay.ranges(batch)
        assert ranges == Replay(dict(sizes), batch_rows, order).ranges(batch)
        for name, (start, stop) in ranges.items():
            assert ends[name] == start <= stop
            ends[name] = stop
        total, last = sum(stop - start for start, stop in ranges.values()), batch == replay.batches - 1
        off = 1 if order == "round-robin" else len(sizes)
        assert abs(total - batch_rows) < max(1, off) or (last and total < batch_rows)
    assert ends == sizes
    assert all(start == stop for start, stop in replay.ranges(replay.batches).values())


@given(sizes, st.integers(1, 3000))
def property_turns_are_fair(sizes: dict[str, int], batch_rows: int) -> None:
    """No stream is ahead of one that goes on by more than a row, nor a later one ahead of an earlier."""
    replay = Replay(sizes, batch_rows, "round-robin")
    for batch in range(replay.batches):
        ends = {name: stop for name, (_, stop) in replay.ranges(batch).items()}
        going = [ends[name] for name in sizes if ends[name] < sizes[name]]
        assert not going or max(ends.values()) - min(going) <= 1
        assert going == sorted(going, reverse=True)


@pytest.mark.parametrize("rows", range(1, 12))
def oracle_round_robin(rows: int) -> None:
    """The rows as they would be dealt out one by one."""
    sizes = {"a": 5, "b": 50, "c": 0, "d": 23}
    dealt = [name for turn in range(max(sizes.values())) for name, size in sizes.items() if turn < size]
    replay = Replay(sizes, rows, "round-robin")
    for batch in range(replay.batches):
        some = dealt[batch * rows : (batch + 1) * rows]
        assert {n: stop - start for n, (start, stop) in replay.ranges(batch).items()} == {
            n: some.count(n) for n in sizes
        }


def test_streams_are_interleaved_in_proportion() -> None:
    assert Replay({"orders": 1000, "lineitem": 4000}, 500).ranges(0) == {"orders": (0, 100), "lineitem": (0, 400)}


def test_the_largest_stream_comes_after_the_others() -> None:
    replay = Replay({"store": 10, "sales": 50, "date": 20}, 20, "largest-last")
    assert replay.ranges(0) == {"store": (0, 6), "sales": (0, 0), "date": (0, 13)}
    assert replay.ranges(1) == {"store": (6, 10), "sales": (0, 10), "date": (13, 20)}
    assert replay.ranges(2) == {"store": (10, 10), "sales": (10, 30), "date": (20, 20)}


@pytest.mark.parametrize("order", ORDERS)
def test_an_empty_stream_still_has_a_batch(order: str) -> None:
    assert Replay({"r": 0}, 10, order).batches == 1
    assert Replay({"r": 0}, 10, order).ranges(0) == {"r": (0, 0)}
    assert Replay({}, 10, order).ranges(0) == {}


def test_the_setting_knows_all_orders() -> None:
    assert [parse_settings([f"interleave={order}"]).interleave for order in ORDERS] == list(ORDERS)
    assert Settings().interleave == Replay({}, 1).order
