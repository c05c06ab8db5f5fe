"""Key frequencies in bounded memory (Misra and Gries 1982, merged as in Agarwal et al., Mergeable Summaries).

    size 2: a ×5, b ×3, c ×2   →   a 3, b 1, each up to 2 too low

Counters beyond `size` are removed by subtracting the largest of them from all. Each subtraction takes its value from
more than `size` counters, so an estimate is at most total / (size + 1) too low, and never too high.
"""

from dataclasses import field

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.physical.joins.mapping import Numbers

Keys = npt.NDArray[np.uint64]  # hashes of join keys


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Counters of at most `size` keys, in the order of the keys."""

    size: int
    keys: Keys = field(default_factory=lambda: np.empty(0, np.uint64))
    counts: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    total: int = 0
    lost: int = 0  # an estimate is no more than this too low, for keys that have always been named

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a sketch has a counter or more, not {self.size}")

    def add(self, keys: Keys, counts: Numbers, others: int = 0) -> "Sketch":
        """Add counts, which are not negative, of keys, which may repeat, and of `others` unnamed tuples."""
        all_keys, where = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        sums = np.zeros(len(all_keys), np.int64)
        np.add.at(sums, where, np.concatenate([self.counts, counts]))
        cut = 0
        if len(all_keys) > self.size:
            cut = int(np.partition(sums, -self.size - 1)[-self.size - 1])
        stays = sums > cut
        total = self.total + int(counts.sum()) + others
        return Sketch(self.size, all_keys[stays], sums[stays] - cut, total, self.lost + cut)

    def merge(self, other: "Sketch") -> "Sketch":
        """Merge the sketches of two streams, so that each reshuffler may have its own."""
        both = self.add(other.keys, other.counts)
        return Sketch(self.size, both.keys, both.counts, self.total + other.total, both.lost + other.lost)

    def of(self, keys: Keys) -> Numbers:
        """Estimate the counts of keys, 0 for one without a counter."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        counts: Numbers = np.where(self.keys[at] == keys, self.counts[at], 0)
        return counts


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Key frequencies of a relation with deletes: one sketch of inserts, one of deletes.

    The difference is at most `came.lost` too low and `gone.lost` too high: fractions of all inserts and of all deletes
    there ever were, not of the relation's present size.
    """

    came: Sketch
    gone: Sketch

    @property
    def keys(self) -> Keys:
        """Keys that may be frequent."""
        return self.came.keys

    @property
    def size(self) -> int:
        """Size of the relation."""
        return self.came.total - self.gone.total

    def add(self, keys: Keys, counts: Numbers, others: tuple[int, int] = (0, 0)) -> "Frequencies":
        """Count inserts (above 0) and deletes (below) of keys, and `others` inserts and deletes of unnamed ones."""
        gone, (came, went) = counts < 0, others
        after = Frequencies(self.came.add(keys[~gone], counts[~gone], came), self.gone)
        if not gone.any() and not went:
            return after
        return Frequencies(after.came, self.gone.add(keys[gone], -counts[gone], went))

    def of(self, keys: Keys) -> Numbers:
        """Estimate the counts of keys."""
        left: Numbers = np.maximum(self.came.of(keys) - self.gone.of(keys), 0)
        return left


def frequencies(size: int) -> Frequencies:
    return Frequencies(Sketch(size), Sketch(size))
