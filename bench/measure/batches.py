"""Which batches of a run are measured, what they cost, and when to stop."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter


@dataclass
class Watch:
    """Seconds by batch.

    `tenths`: only these of the stream are measured, of its batches from `first` on. `samples`: so many batches are,
    spread evenly over the stream or each of its tenths. `limit`: stop after so many batches. `budget`: stop after so
    many measured seconds. `clock`: the seconds of engines in this process.
    """

    tenths: tuple[int, ...] | None = None
    first: int = 0
    samples: int | None = None
    limit: int | None = None
    budget: float = float("inf")
    clock: Callable[[], float] = perf_counter
    seconds: dict[int, float] = field(default_factory=dict)

    def record(self, batch: int, seconds: float) -> bool:
        """Whether to go on after this batch."""
        self.seconds[batch] = seconds
        full = self.limit is not None and batch + 1 >= self.limit
        return not full and sum_of(self) < self.budget

    def plan(self, batches: int) -> list[int]:
        """The batches that an engine which can skip measures, the last always among them.

        Watch(samples=4).plan(1000)   →   [249, 499, 749, 999]
        """
        spans = [range(batches)] if self.tenths is None else [self.tenth(i, batches) for i in self.tenths]
        chosen = {batch for span in spans for batch in _spread(span, self.samples)}
        return [batch for batch in sorted(chosen) if self.limit is None or batch < self.limit]

    def tenth(self, i: int, batches: int) -> range:
        """The batches of a tenth of what begins with the first."""
        span = tenth(i, batches - self.first)
        return range(self.first + span.start, self.first + span.stop)


def tenth(i: int, batches: int) -> range:
    """The batches of a tenth of the stream, 0 … 9; of a short one at least the last is there."""
    return range(i * batches // 10, (i + 1) * batches // 10)


def _spread(span: range, samples: int | None) -> Iterator[int]:
    samples = min(samples or len(span), len(span))
    for i in range(samples):
        yield span[-(-(i + 1) * len(span) // samples) - 1]


def sum_of(watch: Watch) -> float:
    return sum(watch.seconds.values())
