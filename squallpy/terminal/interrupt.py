"""Ctrl-C: the first ends the run after the current batch, the second at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from squallpy.terminal.failures import INTERRUPTED, Interrupted, deferred


class Interruption:
    """Ctrl-C as a run sees it: `stop` is set when it is to end after the batch in work."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.stop, self._say = threading.Event(), say
        self._working = self._raised = False

    def working(self, on: bool) -> None:
        """Record whether a batch is in work, for which the first Ctrl-C waits."""
        self._working = on

    def press(self, _number: int, frame: FrameType | None) -> None:
        """Take a Ctrl-C: end after the batch, then by Interrupted, then without a word."""
        if self._raised:
            os._exit(INTERRUPTED)
        if (self.stop.is_set() or not self._working) and deferred(frame):
            return
        if self.stop.is_set() or not self._working:
            self._raised = True
            self.stop.set()
            raise Interrupted
        self.stop.set()
        with suppress(RuntimeError):  # NB: it may have come in the middle of a print
            self._say("finishing the batch in work; Ctrl-C again to stop at once")


@contextmanager
def interruptible(say: Callable[[str], None]) -> Iterator[Interruption]:
    """Take Ctrl-C while the block runs."""
    interruption = Interruption(say)
    if threading.current_thread() is not threading.main_thread():  # no signals there
        yield interruption
        return
    before = signal.signal(signal.SIGINT, interruption.press)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
