"""Changes of results that compiled code notes, in memory that it uses again and again."""

from collections.abc import Callable

from squallpy.base.records import dataclass
from squallpy.runtime.kernels.memory_regions import Words


@dataclass(slots=True)
class NotedRows:
    """A result's change: keys of groups, then their payloads before, then after.

    They stand in memory that the next batch uses.

    Args:
        settle: Applies the change and notes it, where that waits until somebody reads it.
    """

    name: str
    count: int
    words: Words
    settle: Callable[[], None] | None = None

    def settled(self) -> "NotedRows":
        """Return these rows, applied and noted."""
        if self.settle:
            self.settle()
        return self

    def take(self, width: int, broad: int, parts: int) -> tuple[Words, Words]:
        """Copy the keys, and the payloads of so many parts."""
        count = self.settled().count
        words = self.words[: count * (width + parts * broad)].copy()
        keys = words[: count * width].reshape(count, width)
        return keys, words[count * width :].reshape(parts * count, broad)
