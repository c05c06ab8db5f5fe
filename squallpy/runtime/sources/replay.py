"""Replay of streams: the rows of each in a micro-batch, as a pure function of sizes, so that a run can be repeated.

sizes = {"orders": 1000, "lineitem": 4000}
Replay(sizes, 500).ranges(0)                   →   {"orders": (0, 100), "lineitem": (0, 400)}
Replay(sizes, 500, "round-robin").ranges(0)    →   {"orders": (0, 250), "lineitem": (0, 250)}
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field

from squallpy.base.records import dataclass
from squallpy.runtime.sources.input import OffsetSpan
from squallpy.runtime.sources.stream_times import Times

Sizes = Mapping[str, int]
BatchSizes = tuple[tuple[int, int], ...]
"""Counts of batches, each with the rows of one."""


def proportional(sizes: Sizes, rows: int) -> dict[str, int]:
    """Take the same share of each stream: ⌊size · rows / all⌋; they all end together.

    proportional({"store": 10, "sales": 1000}, 101)   →   {"store": 1, "sales": 100}
    """
    total = sum(sizes.values()) or 1
    return {name: size * rows // total for name, size in sizes.items()}


def round_robin(sizes: Sizes, rows: int) -> dict[str, int]:
    """Take a row of each stream in turn, as long as it has any: the longest comes last, alone.

    round_robin({"store": 10, "sales": 1000}, 101)   →   {"store": 10, "sales": 91}
    """
    turns, left = 0, rows
    waiting = {name: size for name, size in sizes.items() if size}
    while waiting and left >= len(waiting):
        more = min(min(waiting.values()) - turns, left // len(waiting))
        turns, left = turns + more, left - more * len(waiting)
        waiting = {name: size for name, size in waiting.items() if size > turns}
    ahead = set(list(waiting)[:left])
    return {name: min(size, turns + (name in ahead)) for name, size in sizes.items()}


def largest_last(sizes: Sizes, rows: int) -> dict[str, int]:
    """Take the other streams in proportion, then the largest alone, so that facts find all of their dimensions.

    largest_last({"store": 10, "date": 20, "sales": 1000}, 31)   →   {"store": 10, "date": 20, "sales": 1}
    """
    if not sizes:
        return {}
    largest = max(sizes, key=lambda name: sizes[name])
    others = {name: size for name, size in sizes.items() if name != largest}
    before = min(rows, sum(others.values()))
    ends = proportional(others, before) | {largest: rows - before}
    return {name: ends[name] for name in sizes}


ORDERS: Mapping[str, Callable[[Sizes, int], dict[str, int]]] = {
    "proportional": proportional,
    "round-robin": round_robin,
    "largest-last": largest_last,
}
"""Orders of the setting `interleave`: functions from a number of rows to each stream's part of them."""


class RowBatches(ABC):
    """An order of batches over streams whose rows are numbered."""

    example = 0

    @property
    def times(self) -> Times:
        """No processing time: it moves no window over input that ends."""
        return {}

    def note(self, open_rows: int) -> None:
        """Ignore what windows have: processing time moves none over input that ends."""
        return

    @property
    @abstractmethod
    def batches(self) -> int: ...

    @abstractmethod
    def bounds(self, batch: int) -> tuple[Sizes, Sizes]:
        """Count the rows of each stream before a batch, and those with it; the same after the last batch."""

    def ranges(self, batch: int) -> dict[str, tuple[int, int]]:
        """Find the first and end row of each stream in a batch; empty ranges after the last batch."""
        starts, ends = self.bounds(batch)
        return {name: (start, ends[name]) for name, start in starts.items()}

    def spans(self, batch: int) -> dict[str, OffsetSpan]:
        """Find where a batch begins and ends in each stream."""
        return {name: ({"row": start}, {"row": stop}) for name, (start, stop) in self.ranges(batch).items()}


@dataclass(frozen=True, slots=True)
class Replay(RowBatches):
    """Streams interleaved in one of ORDERS, `batch_rows` rows per batch over all of them.

    Batch b ends where the first min((b+1) · batch_rows, N) of all N rows do: each row is in exactly one batch, and in
    proportion a batch is off by less than one row per stream. Without any rows there is still one batch, so that there
    is an answer.

    Args:
        earlier: Counts of batches with which it began, each with the rows of one: those of runs with other limits.
    """

    sizes: Sizes
    batch_rows: int
    order: str = "proportional"
    earlier: BatchSizes = ()
    total: int = field(init=False)
    _found: dict[int, dict[str, int]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        assert self.batch_rows >= 1 and all(n >= 0 for n in self.sizes.values()) and self.order in ORDERS
        object.__setattr__(self, "total", sum(self.sizes.values()))

    @property
    def batches(self) -> int:
        count, rows = sum(count for count, _ in self.earlier), sum(count * size for count, size in self.earlier)
        return max(1, count + -(-max(0, self.total - rows) // self.batch_rows))

    def bounds(self, batch: int) -> tuple[Sizes, Sizes]:
        """Count the rows of each stream before a batch, and those with it; the same after the last batch."""
        return self._ends(batch), self._ends(batch + 1)

    def _ends(self, batches: int) -> dict[str, int]:
        """Count the rows of each stream in the first batches."""
        found = self._found.get(batches)
        if found is None:
            ahead = _AHEAD if batches - 1 in self._found else 1  # NB: a batch ends where the next one begins
            self._found.clear()
            for each in range(batches, batches + ahead):
                rows = self._rows(each) if self.earlier else each * self.batch_rows
                self._found[each] = ORDERS[self.order](self.sizes, min(rows, self.total))
                if rows >= self.total:
                    break
            found = self._found[batches]
        return found

    def _rows(self, batches: int) -> int:
        """Count the rows of the first batches, if there are as many."""
        rows = 0
        for count, size in self.earlier:
            rows += min(count, batches) * size
            batches -= min(count, batches)
        return rows + batches * self.batch_rows


_AHEAD = 32
"""Batches whose ends are computed at once: one by one, each would wait for a cache that batches have emptied."""
LEAP_ROWS = 1_000_000  # rows of a large batch, in which a new generation repeats earlier ones


def leading(done: int, batch_rows: int, earlier: BatchSizes = ()) -> int:
    """Count the batches into which the first `done` ones go when they are replayed."""
    return -(-done // _leap(batch_rows, earlier))


def _leap(batch_rows: int, earlier: BatchSizes) -> int:
    return max(1, LEAP_ROWS // max(batch_rows, *(size for _, size in earlier), 1))


@dataclass(frozen=True, slots=True)
class BackfillReplay(RowBatches):
    """A replay that repeats its first `done` batches in a few large ones, which print nothing.

    again = BackfillReplay(Replay({"r": 1000}, 10), 30)
    again.ranges(0)  →  {"r": (0, 300)}     again.number(0)  →  None
    again.ranges(1)  →  {"r": (300, 310)}   again.number(1)  →  30
    """

    replay: Replay
    done: int = 0
    leading: int = -1  # how many large ones; −1: as many as it takes now

    def __post_init__(self) -> None:
        if self.leading < 0:
            again = leading(self.done, self.replay.batch_rows, self.replay.earlier)
            object.__setattr__(self, "leading", again)

    @property
    def batches(self) -> int:
        return self.leading + self.replay.batches - self.done

    def number(self, batch: int) -> int | None:
        """Return the number of a batch in the replay; None for several that were reported before."""
        return self.done + batch - self.leading if batch >= self.leading else None

    def bounds(self, batch: int) -> tuple[Sizes, Sizes]:
        """Count the rows of each stream before a batch, and those with it."""
        if (number := self.number(batch)) is not None:
            return self.replay.bounds(number)
        leap = _leap(self.replay.batch_rows, self.replay.earlier)
        (starts, _), (_, ends) = (
            self.replay.bounds(each) for each in (batch * leap, min(self.done, (batch + 1) * leap) - 1)
        )
        return starts, ends
