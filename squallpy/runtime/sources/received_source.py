"""Rows that come once: a thread of the driver takes them as they come, and they are spooled.

source.latest({"row": 0}, Limit())   →   {"row": 60}      sixty rows have come so far
"""

import queue
import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from squallpy.runtime.sources.protocol import BatchLimit, Offset, Source
from squallpy.runtime.sources.table_slice import TableSlice

WAITING = 100_000  # rows that are taken ahead
LOOK = 0.1  # seconds between looks whether the run has ended


class ReceivedSource(Source):
    """Rows that a thread receives, in their order; the source ends when there are no more."""

    is_replayable = False

    def __init__(self) -> None:
        self._waiting: queue.Queue[Any] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self.closing, self._ended = threading.Event(), threading.Event()
        self._error: Exception | None = None
        self._taken = list[Any]()

    @abstractmethod
    def receive(self, start: int) -> Iterable[Any]:
        """Yield rows, behind the first `start` that are safe from earlier runs."""

    @abstractmethod
    def table(self, rows: Sequence[Any]) -> pa.Table:
        """Make rows an Arrow table."""

    @property
    def is_bounded(self) -> bool:
        """True if nothing more will come."""
        return self._ended.is_set() and self._waiting.empty() and self._error is None

    def initial(self) -> Offset:
        return {"row": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        if self._thread is None:
            self._thread = threading.Thread(target=self._receive, args=(start["row"],), daemon=True)
            self._thread.start()
        has_ended = self._ended.is_set()  # NB: asked before rows are taken, which come before the error
        most = self._waiting.qsize() if limit.rows is None else min(limit.rows, self._waiting.qsize())
        self._taken = [self._waiting.get_nowait() for _ in range(most)]
        if has_ended and self._error and not self._taken:
            raise self._error
        return {"row": start["row"] + len(self._taken)}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[TableSlice]:
        return [TableSlice(self.table(self._taken))]

    def close(self) -> None:
        self.closing.set()

    def _receive(self, start: int) -> None:
        """Take rows until there are no more or the run ends."""
        try:
            for row in self.receive(start):
                while not self.closing.is_set() and not self._put(row):
                    pass
                if self.closing.is_set():
                    return
        except Exception as error:
            self._error = error
        self._ended.set()

    def _put(self, row: Any) -> bool:
        try:
            self._waiting.put(row, timeout=LOOK)
        except queue.Full:
            return False
        return True
