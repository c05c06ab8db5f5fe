"""Which batches of a run are measured, what they cost, and when to stop."""

from dataclasses import dataclass, field


@dataclass
class Watch:
    """Seconds by batch.

    `samples`: engines that can skip measure that many batches, spread evenly over the stream. `limit`: stop after so
    many batches. `budget`: stop after so many measured seconds.
    """

    samples: int | None = None
    limit: int | None = None
    budget: float = float("inf")
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
        samples = min(self.samples or batches, batches)
        chosen = sorted({-(-(i + 1) * batches // samples) - 1 for i in range(samples)})
        return [batch for batch in chosen if self.limit is None or batch < self.limit]


def sum_of(watch: Watch) -> float:
    return sum(watch.seconds.values())
