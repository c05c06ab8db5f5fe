"""Tasks that send each other messages: what one sends to another arrives in order, and nothing else is ordered.

send(a, b, 1), send(a, b, 2), send(c, b, 3)   →   b gets 1 before 2, and 3 whenever
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

Task = Hashable
Pick = Callable[[int], int]  # which of so many channels is next


class Network:
    """Channels that are not empty, with the messages in them."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick
        self._channels: dict[tuple[Task, Task], deque[Any]] = {}
        self._ready: list[tuple[Task, Task]] = []
        self.delivered = 0

    def send(self, sender: Task, receiver: Task, message: Any) -> None:
        channel = self._channels.setdefault((sender, receiver), deque())
        if not channel:
            self._ready.append((sender, receiver))
        channel.append(message)

    def receive(self) -> tuple[Task, Task, Any] | None:
        """Take the next message of some channel, with its sender and receiver; return None when all channels are
        empty."""
        if not self._ready:
            return None
        i = self._pick(len(self._ready))
        key = self._ready[i]
        channel = self._channels[key]
        message = channel.popleft()
        self.delivered += 1
        if not channel:
            self._ready[i] = self._ready[-1]
            self._ready.pop()
        return *key, message
