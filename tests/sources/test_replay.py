"""Replay: every row in exactly one batch, in the same batch each time."""

from hypothesis import given
from hypothesis import strategies as st

from squallpy.runtime.sources.replay import Replay

sizes = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 10_000), max_size=5)


@given(sizes, st.integers(1, 3000))
def property_batches_cover_each_row_once_in_order(sizes: dict[str, int], batch_rows: int) -> None:
    replay = Replay(sizes, batch_rows)
    ends = dict.fromkeys(sizes, 0)
    for batch in range(replay.batches):
        ranges = replay.ranges(batch)
        assert ranges == Replay(dict(sizes), batch_rows).ranges(batch)
        for name, (start, stop) in ranges.items():
            assert ends[name] == start <= stop
            ends[name] = stop
        total, last = sum(stop - start for start, stop in ranges.values()), batch == replay.batches - 1
        assert abs(total - batch_rows) < max(1, len(sizes)) or (last and total < batch_rows)
    assert ends == sizes
    assert all(start == stop for start, stop in replay.ranges(replay.batches).values())


def test_streams_are_interleaved_in_proportion() -> None:
    assert Replay({"orders": 1000, "lineitem": 4000}, 500).ranges(0) == {"orders": (0, 100), "lineitem": (0, 400)}


def test_an_empty_stream_still_has_a_batch() -> None:
    assert Replay({"r": 0}, 10).batches == 1
    assert Replay({}, 10).ranges(0) == {}
