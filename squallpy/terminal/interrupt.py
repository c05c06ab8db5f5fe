"""Ctrl-C and SIGTERM: the first ends the run after the current batch, the second Ctrl-C at once."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from squallpy.terminal.failures import Interrupted, Terminated, deferred

_LOOK = 0.02  # seconds between two looks of one who waits


class SignalEvent(threading.Event):
    """An event that a signal handler may set: it has no lock, which the interrupted thread might hold."""

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        until = float("inf") if timeout is None else time.monotonic() + timeout
        while not self._is_set and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))
        return self._is_set


class Interruption:
    """Ctrl-C or SIGTERM as a run sees it: `stop` is set when it is to end after the batch in work."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.stop, self._say = SignalEvent(), say
        self.kind: type[Interrupted] = Interrupted
        self._working = self._raised = False

    def working(self, on: bool) -> None:
        """Record whether a batch is in work, for which the first Ctrl-C waits."""
        self._working = on

    def press(self, number: int, frame: FrameType | None) -> None:
        """Take a signal: end after the batch, then by an exception, then without a word."""
        if number == signal.SIGTERM:
            self.kind = Terminated
        if self._raised:
            os._exit(self.kind.status)
        if (self.stop.is_set() or not self._working) and deferred(frame):
            return
        if not self._working or (self.stop.is_set() and number != signal.SIGTERM):
            self._raised = True
            self.stop.set()
            raise self.kind
        self.stop.set()
        with suppress(RuntimeError):  # NB: it may have come in the middle of a print
            self._say("finishing the batch in work; Ctrl-C again to stop at once")


@contextmanager
def interruptible(say: Callable[[str], None]) -> Iterator[Interruption]:
    """Take Ctrl-C and SIGTERM while the block runs, also where Arrow reads a file, which it would cancel."""
    interruption = Interruption(say)
    if threading.current_thread() is not threading.main_thread():  # no signals there
        yield interruption
        return
    import pyarrow

    pyarrow.enable_signal_handlers(False)
    before = {number: signal.signal(number, interruption.press) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
