"""Signals in the middle of what a run does."""

import io
import signal
import sys
from types import FrameType
from typing import Any

import pyarrow.csv

from squallpy.terminal.interrupt import SignalEvent, interruptible


class Signalling(io.BytesIO):
    """A file that sends a signal to whoever reads it."""

    def read(self, size: int | None = -1) -> bytes:
        signal.raise_signal(signal.SIGTERM)
        return super().read(size)


def fault_terminated_while_arrow_reads() -> None:
    said = list[str]()
    with interruptible(said.append) as interruption:
        interruption.working(True)
        table = pyarrow.csv.read_csv(Signalling(b"a\n1\n"))
    assert table.num_rows == 1 and interruption.stop.is_set() and "finishing" in said[0]


def test_signal_at_any_line_of_a_wait() -> None:
    """None of these hangs, which a lock of the event's would, were it held at that line."""
    lines = 0
    for at in range(8):
        event, lines = SignalEvent(), 0

        def trace(frame: FrameType, kind: str, _: Any) -> Any:
            nonlocal lines
            if kind == "line" and frame.f_code is SignalEvent.wait.__code__:
                if lines == at:  # noqa: B023 - called within the turn
                    event.set()  # noqa: B023
                lines += 1
            return trace

        sys.settrace(trace)
        try:
            event.wait(0.1)
        finally:
            sys.settrace(None)
        assert event.is_set() == (at < lines) and event.wait(0) == event.is_set()
    assert lines > 2
