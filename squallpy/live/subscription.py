"""Subscriptions: the changes of a view, batch by batch, as a reader takes them.

for change in session.view("rev").changes():
    change.number, change.deletes, change.inserts
"""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.logical.nodes import Query

LIMIT = 1_000
"""Batches that wait for a slow reader; one that is further behind is told so, and its subscription ends."""


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The change of a view by a batch.

    Args:
        number: The number of the batch.
        deletes: Rows that went, as often as they did.
        inserts: Rows that came, as often as they did.
    """

    number: int
    deletes: pa.Table
    inserts: pa.Table


class ChangeReader(ABC):
    """A reader of the changes of a view; iterating ends when no more will come by itself."""

    view: str

    @abstractmethod
    def next(self, timeout: float | None = None) -> ViewChange | None:
        """Take the next change; None at the end, or when none came in time."""

    @abstractmethod
    def close(self) -> None:
        """End it: nobody reads on."""

    @property
    @abstractmethod
    def is_closed(self) -> bool: ...

    def __iter__(self) -> Iterator[ViewChange]:
        while (change := self.next()) is not None:
            yield change

    async def __aiter__(self) -> AsyncIterator[ViewChange]:
        import asyncio

        while (change := await asyncio.to_thread(self.next)) is not None:
            yield change


class Subscription(ChangeReader):
    """Changes of a view that wait for their reader.

    Args:
        waits: Asks whether more may come while nobody steps by hand: batches run in a thread.
        limit: The number of changes that may wait.
    """

    def __init__(self, view: str, waits: Callable[[], bool], limit: int = LIMIT) -> None:
        self.view, self._waits, self._limit = view, waits, limit
        self._queue, self._arrived = deque[ViewChange](), threading.Condition()
        self._error: Exception | None = None
        self._closed = False

    def put(self, change: ViewChange) -> None:
        """Add a change; a reader that is too far behind gets an error instead of what is lost."""
        with self._arrived:
            if len(self._queue) >= self._limit and self._error is None:
                message = f"the reader of changes of {self.view} is {self._limit:,} batches behind, the limit"
                hint = "read it anew with its snapshot, or give it a greater limit"
                self._error = SquallError("SQ7010", message, hint=hint)
            if self._error is None and not self._closed:
                self._queue.append(change)
            self._arrived.notify_all()

    def begin(self) -> None:
        """Forget the changes that wait: those are wanted that come from now on."""
        with self._arrived:
            self._queue.clear()

    def put_first(self, change: ViewChange) -> None:
        """Add the change that those which wait are behind."""
        with self._arrived:
            self._queue.appendleft(change)
            self._arrived.notify_all()

    def fail(self, error: Exception) -> None:
        """End it with an error, behind the changes that wait."""
        with self._arrived:
            self._error = self._error or error
            self._arrived.notify_all()

    def close(self) -> None:
        """End it: the view is dropped, the session is closed, or nobody reads on."""
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._closed

    def next(self, timeout: float | None = None) -> ViewChange | None:
        with self._arrived:
            if not self._queue and timeout != 0:
                self._arrived.wait_for(lambda: self._queue or self.is_over, timeout)
            if self._queue:
                return self._queue.popleft()
            if self._error:
                raise self._error
            return None

    @property
    def is_over(self) -> bool:
        """True if nothing comes behind what waits, unless somebody steps by hand."""
        return self._closed or self._error is not None or not self._waits()

    def wake(self) -> None:
        """Let readers see that no more will come by itself."""
        with self._arrived:
            self._arrived.notify_all()


@contextmanager
def closed_by_errors(reader: Subscription) -> Iterator[None]:
    """End a subscription that nobody gets, as it cannot begin."""
    try:
        yield
    except BaseException:
        reader.close()
        raise


class NewestChange(Subscription):
    """A reader of changes who only wants to know that there are some, and so is never behind."""

    def put(self, change: ViewChange) -> None:
        with self._arrived:
            self._queue.clear()
            super().put(change)


class ViewSink:
    """The sink of a materialized view: its changes, to all who subscribe."""

    def __init__(self, name: str) -> None:
        self.name, self._readers = name, list[Subscription]()
        self._callbacks = list[Callable[[ViewChange], None]]()

    @property
    def is_read(self) -> bool:
        """True if anybody wants the changes."""
        self._readers = [each for each in self._readers if not each.is_closed]
        return bool(self._readers or self._callbacks)

    def subscribe(self, reader: Subscription) -> None:
        """Let a reader have the changes from now on; it may have had others before."""
        reader.begin()
        if reader not in self._readers:
            self._readers.append(reader)

    def call(self, callback: Callable[[ViewChange], None]) -> None:
        self._callbacks.append(callback)

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None: ...

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        if deletes is None or inserts is None or not (len(deletes) or len(inserts)):
            return
        change = ViewChange(number, deletes, inserts)
        for reader in self._readers:
            reader.put(change)
        for callback in self._callbacks:
            callback(change)

    def final(self, table: pa.Table) -> None: ...

    def finish(self, stopped: bool) -> None: ...

    def fail(self, error: Exception) -> None:
        for reader in self._readers:
            reader.fail(error)

    def wake(self) -> None:
        for reader in self._readers:
            reader.wake()

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
