"""Which rows of which stream make up a micro-batch: a pure function of the sizes, so that a run can be repeated.

Replay({"orders": 1000, "lineitem": 4000}, 500).ranges(0)   →   {"orders": (0, 100), "lineitem": (0, 400)}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Replay:
    """Streams interleaved in proportion to their sizes, `batch_rows` rows per batch over all of them.

    Batch b ends at row ⌊Nᵢ · min((b+1) · batch_rows, N) / N⌋ of stream i, with N = ΣNᵢ: each row in exactly one batch,
    a batch off by less than one row per stream. Without any rows there is still one batch, so that there is an answer.
    """

    sizes: Mapping[str, int]
    batch_rows: int
    total: int = field(init=False)

    def __post_init__(self) -> None:
        assert self.batch_rows >= 1 and all(n >= 0 for n in self.sizes.values())
        object.__setattr__(self, "total", sum(self.sizes.values()))

    @property
    def batches(self) -> int:
        return max(1, -(-self.total // self.batch_rows))

    def ranges(self, batch: int) -> dict[str, tuple[int, int]]:
        """First and end row of each stream in a batch; empty ranges after the last batch."""
        return {name: (self._end(size, batch), self._end(size, batch + 1)) for name, size in self.sizes.items()}

    def _end(self, size: int, batches: int) -> int:
        """How many rows of a stream of `size` rows the first batches hold."""
        return size * min(batches * self.batch_rows, self.total) // self.total if self.total else 0
