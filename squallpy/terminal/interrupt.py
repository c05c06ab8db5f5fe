"""Ctrl-C: the first ends the run after the batch in work, the second at once."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from squallpy.terminal.failures import INTERRUPTED, Interrupted


@contextmanager
def interruptible(say: Callable[[str], None]) -> Iterator[threading.Event]:
    """While the block runs: the first Ctrl-C sets the event, the second raises Interrupted, the third ends all."""
    stop, presses = threading.Event(), 0

    def press(_number: int, _frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            stop.set()
            with suppress(RuntimeError):  # NB: it may have come in the middle of a print
                say("finishing the batch in work; Ctrl-C again to stop at once")
        elif presses == 2:
            raise Interrupted
        else:
            os._exit(INTERRUPTED)

    if threading.current_thread() is not threading.main_thread():  # no signals there
        yield stop
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
