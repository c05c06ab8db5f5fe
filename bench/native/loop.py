"""The loop over Arrow in memory: a stream's last batches, measured piece by piece."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from statistics import mean, median
from time import process_time_ns

from bench.data.tables import Stream
from bench.engines.squall_local import Decoded, plan_of
from squallpy.base.settings import parse_settings
from squallpy.runtime.compiled.functions import compile_plan
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.replay import RowBatches, Sizes, proportional

PIECES = 15  # in which batches of one size are measured
BEFORE = 1_000  # rows of the batches that build the state, if none that is measured is larger


@dataclass(frozen=True)
class Schedule(RowBatches):
    """A stream whose last batches are measured, size by size.

    What is before them comes in batches of 1,000, or as large as the largest of them: in much larger ones, merges of
    state that those leave undone would be paid for, or waited for, by the measured ones.

    Schedule({"orders": 400_000}, {10: 300}).batch_rows   →   [1_000, 1_000, …, 10, 10, …]
    """

    sizes: Sizes
    measured: dict[int, int]  # batches of a size, by their rows
    _found: dict[int, dict[str, int]] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def of(cls, sizes: Sizes, rows: Sequence[int], most: int, share: float) -> "Schedule":
        """Measure of each size as many batches as a share of the stream has, but no more than `most`."""
        total = sum(sizes.values())
        return cls(sizes, {each: max(1, min(most, int(total * share) // each)) for each in rows})

    @cached_property
    def batch_rows(self) -> list[int]:
        """The rows of each batch."""
        last = [rows for rows, batches in self.measured.items() for _ in range(batches)]
        before = max(BEFORE, *self.measured)
        batches, rest = divmod(sum(self.sizes.values()) - sum(last), before)
        return [rest] * bool(rest) + [before] * batches + last

    @cached_property
    def pieces(self) -> list[tuple[int, range]]:
        """The rows of a batch, and batches that are measured together."""
        pieces, first = list[tuple[int, range]](), self.batches - sum(self.measured.values())
        for rows, batches in self.measured.items():
            ends = [first + batches * i // min(PIECES, batches) for i in range(min(PIECES, batches) + 1)]
            pieces += [(rows, range(*bounds)) for bounds in pairwise(ends)]
            first += batches
        return pieces

    @property
    def batches(self) -> int:
        return len(self.batch_rows)

    def bounds(self, batch: int) -> tuple[Sizes, Sizes]:
        found = self._found  # NB: a batch begins where the one before ends, as in `Replay`
        start = found.get(batch) or proportional(self.sizes, self._ends[batch])
        found.clear()
        found[batch + 1] = end = proportional(self.sizes, self._ends[batch + 1])
        return start, end

    @cached_property
    def _ends(self) -> list[int]:
        return [*accumulate(self.batch_rows, initial=0), sum(self.sizes.values())]


@dataclass
class Times:
    """Seconds of a batch by its rows, piece by piece."""

    seconds: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def median(self, rows: int) -> float:
        """The median in microseconds."""
        return median(self.seconds[rows]) * 1e6

    def mean(self, rows: int) -> float:
        return mean(self.seconds[rows]) * 1e6


class Loop(Times):
    """A query's executor with settings, and the seconds of its measured batches, which are processor time."""

    def __init__(self, stream: Stream, schedule: Schedule, settings: list[str]) -> None:
        super().__init__()
        self.schedule, plan = schedule, plan_of(stream, 1, settings)
        input = Input({name: Decoded(table) for name, table in stream.tables.items()}, schedule)
        self.executor = LocalExecutor(plan, input, compiled=compile_plan(plan, parse_settings(settings).compile))

    @property
    def state(self) -> int:
        """Bytes of its views."""
        return sum(used["bytes"] for used in self.executor.store.usage().values())

    def run(self) -> Iterator[bool]:
        """Run piece by piece; each says whether it was one of those that are measured."""
        for _ in range(self.schedule.pieces[0][1].start):
            self.executor.step()
            yield False
        for rows, batches in self.schedule.pieces:
            begin = process_time_ns()
            for _ in batches:
                self.executor.step()
            self.seconds[rows].append((process_time_ns() - begin) / 1e9 / len(batches))
            yield True
