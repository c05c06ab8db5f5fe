"""Events of many clients: each is made once, who reads slowly is told, who leaves costs nothing."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pyarrow as pa
from anyio import CapacityLimiter

from squallpy.base.errors import SquallError
from squallpy.live.subscription import ChangeReader, ViewChange
from squallpy.web.server_sent_events import ChangeFeed, Message, ReportFeed


class Changes(ChangeReader):
    """Changes of a view, as a test makes them."""

    view, is_closed = "v", False

    def __init__(self) -> None:
        self.queue, self.opened = deque[ViewChange](), 0

    def open(self) -> "Changes":
        self.opened, self.is_closed = self.opened + 1, False
        return self

    def add(self, *numbers: int) -> None:
        for number in numbers:
            rows = pa.table({"a": [number]})
            self.queue.append(ViewChange(number, rows.slice(0, 0), rows))

    def next(self, timeout: float | None = None) -> ViewChange | None:
        return self.queue.popleft() if self.queue else None

    def close(self) -> None:
        self.is_closed = True


def parsed(message: bytes) -> tuple[str, Any]:
    name, data = message.decode().strip().split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def take(messages: AsyncIterator[bytes], many: int) -> list[tuple[str, Any]]:
    return [parsed(await asyncio.wait_for(anext(messages), 10)) for _ in range(many)]


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    asyncio.run(main())


def test_clients_share_one_subscription_that_ends_with_the_last() -> None:
    async def work() -> None:
        changes = Changes()
        feed = ChangeFeed(changes.open, CapacityLimiter(1))
        one, other = feed.listen(), feed.listen()
        changes.add(1)
        assert await take(one, 1) == [("change", {"batch": 1, "deletes": [], "inserts": [{"a": 1}]})]
        waiting = asyncio.create_task(take(other, 1))
        await asyncio.sleep(0.01)
        changes.add(2)
        assert (await take(one, 1))[0][1]["batch"] == (await waiting)[0][1]["batch"] == 2
        assert changes.opened == 1 and feed.clients == 2
        await one.aclose()  # type: ignore[attr-defined]
        await other.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
        assert changes.is_closed and feed.clients == 0
        changes.add(3)
        assert (await take(feed.listen(), 1))[0][1]["batch"] == 3
        assert changes.opened == 2

    run(work)


def test_a_snapshot_is_followed_by_the_changes_behind_it() -> None:
    async def work() -> None:
        changes = Changes()
        feed = ChangeFeed(changes.open, CapacityLimiter(1))

        async def snapshot() -> Message:
            assert changes.opened, "or changes between both would be missed"
            changes.add(4, 5, 6)
            await asyncio.sleep(0.2)
            return 5, b'event: change\ndata: {"batch": 5}\n\n'

        assert [data["batch"] for _, data in await take(feed.listen(snapshot), 2)] == [5, 6]

    run(work)


def fault_a_client_that_reads_slowly_is_told_and_let_go() -> None:
    async def work() -> None:
        changes = Changes()
        feed = ChangeFeed(changes.open, CapacityLimiter(1))
        slow, quick = feed.listen(), feed.listen()
        changes.add(0)
        await take(slow, 1)
        waiting = asyncio.create_task(take(quick, 100))
        await asyncio.sleep(0.01)
        changes.add(*range(1, 101))
        assert [data["batch"] for _, data in await waiting] == [*range(1, 101)]
        ((name, data),) = await take(slow, 1)
        assert (name, data["code"]) == ("error", "SQ7010")
        assert [each async for each in slow] == []

    run(work)


def fault_a_host_that_has_ended_is_told_to_all() -> None:
    class Ended:
        def report(self, since: int) -> Any:
            raise SquallError("SQ7014", "the session at state/ has ended", hint="connect anew")

    async def work() -> None:
        ended: Any = Ended()
        feed = ReportFeed(lambda: ended)
        ((name, report),) = await take(feed.listen(feed.history), 1)
        assert (name, report["state"]) == ("report", "failed")
        assert report["trouble"] == "SQ7014 the session at state/ has ended, connect anew"

    run(work)
