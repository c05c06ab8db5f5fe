"""A fair lock: who works in pieces beside batches gets in between any two of them, however quickly these follow."""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

Hold = Callable[[], AbstractContextManager[Any]]
"""Keeps batches from being applied, as long as a block takes."""


class FairLock:
    """A lock that others get in the order in which they asked, and that the thread which has it may take again.

    Python's own may be taken again and again by one thread while another, which it wakes, never comes in time.
    """

    def __init__(self) -> None:
        self._state, self._owner, self._depth = threading.Lock(), 0, 0
        self._waiting = deque[tuple[int, threading.Lock]]()

    def acquire(self, blocking: bool = True) -> bool:
        """Take it, when those who asked before have had it; false if it is not free and the call may not wait."""
        mine = threading.get_ident()
        if self._owner == mine:
            self._depth += 1
            return True
        with self._state:
            if not self._owner:
                self._owner, self._depth = mine, 1
                return True
            if not blocking:
                return False
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append((mine, turn))
        try:
            turn.acquire()  # NB: it is ours when this comes back
        except BaseException:
            self._give_up(mine, turn)
            raise
        return True

    def _give_up(self, mine: int, turn: threading.Lock) -> None:
        """Ask no more, after an interrupt; it may have become ours already."""
        with self._state:
            if (mine, turn) in self._waiting:
                self._waiting.remove((mine, turn))
                return
        self.release()

    def release(self) -> None:
        """Give it to who has waited longest."""
        assert self._owner == threading.get_ident(), "released by another thread than has it"
        self._depth -= 1
        if self._depth:
            return
        with self._state:
            self._owner = 0
            if self._waiting:
                self._owner, turn = self._waiting.popleft()
                self._depth = 1
                turn.release()

    def __enter__(self) -> "FairLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
