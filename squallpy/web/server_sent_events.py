"""Server-sent events: reports for all who look, at most two a second, and the changes of views.

Each is made once for all clients. A client that reads slowly misses reports, and is told when it misses changes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from time import time
from typing import Any

from anyio import CapacityLimiter, to_thread

from squallpy.base.errors import SquallError
from squallpy.base.events import first_line
from squallpy.live.subscription import ChangeReader, ViewChange
from squallpy.web.protocol import Monitored
from squallpy.web.row_pages import objects

TICK = 0.5
"""Seconds between two reports."""
_LOOK = 0.05  # seconds between two looks for changes
_WAITING = 64  # messages for one client
_PING = 15.0  # seconds after which a silent connection is tried
_NO_REPORT: Mapping[str, Any] = {
    "batch": -1, "edition": -1, "state": "failed", "values": {}, "seconds": [], "events": [], "rows": [], "join": {},
    "mappings": [], "received": {},
}  # fmt: skip
GONE = b""
"""The end of a client's messages."""
NO_BATCH = 1 << 62
"""The batch of messages that no snapshot has."""


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """Write an event of JSON, which has no line breaks."""
    return f"event: {name}\ndata: {json.dumps(data, default=str)}\n\n".encode()


Message = tuple[int, bytes]
"""The batch that a message is of, and its text."""


class MessageFeed:
    """Messages to the clients of one feed; its task lives as long as it has any."""

    def __init__(self) -> None:
        self._queues = set[asyncio.Queue[Message]]()
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()

    async def produce(self) -> None:
        """Send messages until it is cancelled; sets `_begun` when none will be missed."""
        raise NotImplementedError

    def on_full(self, queue: "asyncio.Queue[Message]", message: Message) -> None:
        """Handle a message for a client that has not read those before."""
        queue.get_nowait()
        queue.put_nowait(message)

    def send(self, text: bytes, batch: int = NO_BATCH) -> None:
        """Send a message to all."""
        for queue in self._queues:
            if queue.full():
                self.on_full(queue, (batch, text))
            else:
                queue.put_nowait((batch, text))

    @property
    def clients(self) -> int:
        """The number of those who listen."""
        return len(self._queues)

    async def listen(self, snapshot: Callable[[], Awaitable[Message]] | None = None) -> AsyncIterator[bytes]:
        """Yield messages until the feed ends; of those of batches, the ones behind a snapshot, which comes first."""
        queue, after = asyncio.Queue[Message](_WAITING), -1
        self._queues.add(queue)
        if self._task is None:
            self._begun.clear()
            self._task = asyncio.create_task(self._run())
        try:
            if snapshot:
                await self._begun.wait()
                after, text = await snapshot()
                yield text
            while True:
                try:
                    batch, text = await asyncio.wait_for(queue.get(), _PING)
                except TimeoutError:
                    batch, text = NO_BATCH, b": nothing new\n\n"
                if text == GONE:
                    return
                if batch > after:
                    yield text
        finally:
            self._queues.discard(queue)
            if not self._queues:
                self.close()

    async def _run(self) -> None:
        try:
            await self.produce()
        finally:
            if self._task is asyncio.current_task():
                self._end()

    def _end(self) -> None:
        self._task = None
        self._begun.set()
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait((NO_BATCH, GONE))

    def close(self) -> None:
        """Let all clients go."""
        if self._task:
            self._task.cancel()
            self._end()


class ReportFeed(MessageFeed):
    """The reports of what is monitored."""

    def __init__(self, monitored: Callable[[], Monitored]) -> None:
        super().__init__()
        self._monitored = monitored

    async def produce(self) -> None:
        last = await self._report(0)
        self._begun.set()
        while True:
            await asyncio.sleep(TICK)
            report = await self._report(int(last["now"]) - 1)  # NB: batches of the second before may have come late
            if {**report, "now": 0} != {**last, "now": 0}:
                self.send(event("report", report))
            last = report

    def tell_end(self) -> None:
        """Send the last report, and that there is no other."""
        if self.clients:
            with suppress(SquallError):
                self.send(event("report", self._monitored().report(int(time()) - 1)))
            self.send(event("end", {}))

    async def history(self) -> Message:
        """Write the report of all that is known, with which a client begins."""
        return -1, event("report", await self._report(0))

    async def _report(self, since: int) -> Mapping[str, Any]:
        try:
            return await to_thread.run_sync(self._monitored().report, since)
        except SquallError as error:  # NB: a session of another process that has ended
            return {**_NO_REPORT, "now": time(), "trouble": first_line(error)}


class ChangeFeed(MessageFeed):
    """The changes of a view.

    Args:
        open_changes: Subscribes to them.
        limiter: Bounds the number of threads that write rows.
    """

    def __init__(self, open_changes: Callable[[], ChangeReader], limiter: CapacityLimiter) -> None:
        super().__init__()
        self._open, self._limiter = open_changes, limiter

    async def produce(self) -> None:
        changes: ChangeReader | None = None
        try:
            changes = await to_thread.run_sync(self._open)
            self._begun.set()
            while not changes.is_closed:
                # NB: beside the loop of all clients, for the reader may be one of another process
                if (change := await to_thread.run_sync(changes.next, 0)) is None:
                    await asyncio.sleep(_LOOK)
                    continue
                text = await to_thread.run_sync(change_event, change, limiter=self._limiter)
                self.send(text, change.number)
            self.send(event("end", {"reason": "the view is there no more"}))
        except SquallError as error:
            self.send(event("error", {"code": error.code, "reason": error.message}))
        finally:
            if changes:
                changes.close()

    def on_full(self, queue: "asyncio.Queue[Message]", message: Message) -> None:
        """Tell a client that has missed something, and let it go: what is left would be wrong."""
        while not queue.empty():
            queue.get_nowait()
        reason = f"more than {_WAITING} batches of changes waited; read the view anew"
        queue.put_nowait((NO_BATCH, event("error", {"code": "SQ7010", "reason": reason})))
        queue.put_nowait((NO_BATCH, GONE))


def change_event(change: ViewChange) -> bytes:
    """Write a change as an event."""
    deletes, inserts = (b"".join(objects(rows)).replace(b"\n", b" ") for rows in (change.deletes, change.inserts))
    return b'event: change\ndata: {"batch": %d, "deletes": [%b], "inserts": [%b]}\n\n' % (
        change.number, deletes, inserts,
    )  # fmt: skip
