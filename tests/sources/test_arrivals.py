"""Batches of streams without end: what has come, within a limit, and when the trigger says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.errors import SquallError
from squallpy.runtime.sources.arrivals import Arrivals
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Source


@dataclass
class Piece:
    """Rows of a counter."""

    first: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.first

    def read(self, columns: tuple[str, ...]) -> Any:
        raise NotImplementedError


class Counter(Source):
    """A source of as many rows as have come; written as a stranger would, with an offset of its own shape."""

    def __init__(self) -> None:
        self.come = 0

    def initial(self) -> Offset:
        return {"seen": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        return {"seen": self.come if limit.rows is None else min(self.come, start["seen"] + limit.rows)}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Piece]:
        return [Piece(start["seen"], end["seen"])]


def ends(spans: Any) -> Any:
    return spans and tuple(end["seen"] for _, end in spans.values())


def test_a_batch_is_what_has_come() -> None:
    r, s = Counter(), Counter()
    arrivals = Arrivals({"r": r, "s": s}, 10)
    assert ends(arrivals.spans(0)) == (0, 0)  # so that there is an answer
    assert arrivals.spans(1) is None
    r.come = 3
    assert ends(arrivals.spans(1)) == (3, 0)
    r.come = 7
    assert ends(arrivals.spans(1)) == (3, 0), "a decision stays"
    assert ends(arrivals.spans(2)) == (7, 0)


def test_a_limit_is_shared_by_the_streams() -> None:
    r, s = Counter(), Counter()
    arrivals = Arrivals({"r": r, "s": s}, 10)
    r.come, s.come = 100, 100
    assert ends(arrivals.spans(0)) == (5, 5)
    s.come = 7
    assert ends(arrivals.spans(1)) == (13, 7)
    s.come = 100
    assert [ends(arrivals.spans(batch)) for batch in (2, 3)] == [(18, 12), (23, 17)]


def test_no_stream_starves() -> None:
    """A batch of fewer rows than there are streams begins with another stream each time."""
    streams = {name: Counter() for name in "abc"}
    for counter in streams.values():
        counter.come = 10
    arrivals = Arrivals(streams, 2)
    assert [ends(arrivals.spans(batch)) for batch in range(3)] == [(1, 1, 0), (1, 2, 1), (2, 2, 2)]


def test_what_was_logged_is_what_a_run_goes_on_with() -> None:
    log = list[Any]()
    r = Counter()
    r.come = 5
    first = Arrivals({"r": r}, 3, log=log.append)
    assert ends(first.spans(0)) == (3,) and ends(first.spans(1)) == (5,)
    assert [(batch, ends(spans)) for batch, spans, _ in log] == [(0, (3,)), (1, (5,))]
    r.come = 50
    again = Arrivals({"r": r}, 100, decided=log[-1])
    assert ends(again.spans(1)) == (5,) and ends(again.spans(2)) == (50,)


def test_triggers_end_and_pace() -> None:
    now, r = 0.0, Counter()
    r.come = 7
    available = Arrivals({"r": r}, 5, trigger=BatchTrigger.parse("available-now"))
    read = Input({"r": r}, available)
    assert [read.is_ready(batch) for batch in range(3)] == [True, True, False]
    assert [read.has(batch) for batch in range(3)] == [True, True, False]
    once = Arrivals({"r": r}, 5, trigger=BatchTrigger.parse("once"))
    assert ends(once.spans(0)) == (7,) and once.batches == 1
    paced = Arrivals({"r": r}, 5, trigger=BatchTrigger.parse("2 minutes"), clock=lambda: now)
    assert ends(paced.spans(0)) == (5,)
    now = 119.0
    assert paced.spans(1) is None and paced.batches is None
    now = 120.0
    assert ends(paced.spans(1)) == (7,)


@pytest.mark.parametrize(("text", "seconds"), [("1 second", 1), (" 500 MS ", 0.5), ("1.5h", 5400), ("10 minutes", 600)])
def test_intervals(text: str, seconds: float) -> None:
    assert BatchTrigger.parse(text) == BatchTrigger(seconds)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("available_now", 'did you mean "available-now"'),
        ("0 seconds", "such as '10 seconds'"),
        ("5 parsecs", "such as '10 seconds'"),
        ("-1 s", "known: as-it-comes"),
        ("", "known: as-it-comes"),
    ],
)
def fault_no_trigger(text: str, hint: str) -> None:
    with pytest.raises(SquallError, match=r"SQ7003 --trigger cannot be") as caught:
        BatchTrigger.parse(text)
    assert hint in str(caught.value)
