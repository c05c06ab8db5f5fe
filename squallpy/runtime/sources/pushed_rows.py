"""Rows that a program pushes: CREATE STREAM r (…) USING pushed, then `session.push("r", rows)`.

They cannot be read twice, so that they are spooled when a batch begins to read them (`checkpoint/spool.py`).
"""

import threading
from collections import deque
from collections.abc import Sequence
from time import time

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.sources.protocol import Backlog, BatchLimit, Offset, Source


@dataclass(frozen=True, slots=True)
class PushedSlice:
    """Rows that were pushed."""

    table: pa.Table

    @property
    def rows(self) -> int:
        return len(self.table)

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        return self.table


class PushedRows(Source):
    """A queue of pushed rows of one schema; `push` may be called by any thread."""

    is_replayable = False

    def __init__(self) -> None:
        self._waiting, self._lock = deque[tuple[pa.Table, float]](), threading.Lock()
        self._taken: pa.Table | None = None
        self._committed: float | None = None

    def push(self, rows: pa.Table) -> None:
        """Add rows behind those that wait."""
        with self._lock:
            if len(rows):
                self._waiting.append((rows, time()))

    @property
    def waiting(self) -> int:
        """The number of rows that no batch has taken."""
        with self._lock:
            return sum(len(rows) for rows, _ in self._waiting)

    def initial(self) -> Offset:
        return {"row": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        taken, count = list[pa.Table](), 0
        with self._lock:
            self._committed = self._waiting[0][1] if self._waiting else None
            while self._waiting and (limit.rows is None or count < limit.rows):
                rows, since = self._waiting.popleft()
                left = len(rows) if limit.rows is None else limit.rows - count
                if left < len(rows):
                    self._waiting.appendleft((rows.slice(left), since))
                taken.append(rows.slice(0, left))
                count += len(taken[-1])
        self._taken = concat_tables(taken) if taken else None
        return {"row": start["row"] + count}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[PushedSlice]:
        return [] if self._taken is None else [PushedSlice(self._taken)]

    def committed(self, start: Offset, end: Offset) -> float | None:
        return self._committed

    def backlog(self, end: Offset) -> Backlog:
        with self._lock:
            since = self._waiting[0][1] if self._waiting else None
            return Backlog(sum(len(rows) for rows, _ in self._waiting), since)
