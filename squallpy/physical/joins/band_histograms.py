"""Histograms of a band join: the positions of its tuples, and how many pairs they form.

    tuples of R at 1, 2, 3, 7, 7, 7, 7; 3 buckets   →   3 from 1 to 3, 4 at 7

Positions are in the order of the hash of what equalities beside the band compare, then of the value that it bounds.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from squallpy.base.keys import HOLE, NULL
from squallpy.base.records import dataclass
from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets

Floats = npt.NDArray[np.float64]
Bucket = tuple[int, int, int]
"""A hash of what equalities compare, 0 without any, and the first and the last rank of values."""

GREATEST = 2**63 - 1
_ROUNDING = 4 * np.finfo(np.float64).eps  # of a sum of two doubles, by their magnitudes; more than there is


@dataclass(frozen=True, slots=True)
class Band:
    """Bounds of a value of R less one of S: tuples are only joined from `low` to `high`.

    Args:
        low: In units of the keys; of doubles the bits.
        is_real: The values are doubles.
        pair_work: The work of a pair at a joiner, by that of a tuple that it receives.
    """

    low: int
    high: int
    is_real: bool = False
    pair_work: float = 0.0

    def rank(self, keys: Numbers) -> Numbers:
        """Convert keys to integers in the order of their values."""
        return _turn(keys) if self.is_real else keys

    def is_null(self, ranks: Numbers) -> Mask:
        """Mark the ranks of NULL."""
        return np.equal(_turn(ranks) if self.is_real else ranks, NULL)

    def reach(self, side: Side, ranks: Numbers) -> tuple[Numbers, Numbers]:
        """Compute the least and the greatest rank on the other side that values of a side may be joined with."""
        if self.is_real:
            return self._reach_reals(side, ranks)
        low, high = (self.low, self.high) if side is Side.S else (-self.high, -self.low)
        first, last = _add(ranks, low), _add(ranks, high)
        # NB: keys up to the hole are those of values one below
        first, last = first - ((first <= HOLE) & (first > NULL)), last + (last <= HOLE)
        is_null = ranks == NULL
        return np.where(is_null, ranks, first), np.where(is_null, ranks, last)

    def _reach_reals(self, side: Side, ranks: Numbers) -> tuple[Numbers, Numbers]:
        low, high = np.array([self.low, self.high], np.int64).view(np.float64).tolist()
        low, high = (low, high) if side is Side.S else (-high, -low)
        keys = _turn(ranks)
        values, stays = keys.view(np.float64), (keys == NULL) | ~np.isfinite(keys.view(np.float64))
        finite = np.where(stays, 0.0, values)
        with np.errstate(over="ignore"):
            ends = [
                finite + end + sign * _ROUNDING * (np.abs(finite) + abs(end) + np.finfo(np.float64).tiny)
                for end, sign in ((low, -1), (high, 1))
            ]
        first, last = (np.where(stays, ranks, _turn((end + 0.0).view(np.int64))) for end in ends)
        return first, last


def _turn(words: Numbers) -> Numbers:
    """Convert the bits of doubles to their ranks, or ranks to bits: −∞ first, NaN last."""
    return words ^ ((words >> 63) & GREATEST)


def _add(numbers: Numbers, step: int) -> Numbers:
    """Add a step to numbers; the least and greatest stand for what is beyond them."""
    step = max(NULL + 1, min(GREATEST, step))
    if step >= 0:
        return np.minimum(numbers, GREATEST - step) + step
    return np.maximum(numbers, NULL - step) + step


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """The positions of tuples: hashes of what equalities compare, and the ranks of banded values."""

    hashes: Tickets
    ranks: Numbers

    def take(self, rows: Numbers | Mask) -> "Positions":
        return Positions(self.hashes[rows], self.ranks[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Buckets in the order of their last positions, with the tuples in each.

    Args:
        firsts: The rank of the first tuple of each bucket.
    """

    positions: Positions
    firsts: Numbers
    weights: Floats

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def span(self) -> int:
        """The distance of the least and the greatest rank, without those of NULL."""
        known = self.positions.ranks != NULL
        if not known.any():
            return 0
        return int(self.positions.ranks[known].max()) - int(np.maximum(self.firsts[known], NULL + 1).min())

    def spread(self, count: int) -> Positions:
        """Place so many points evenly in each bucket: the first of all buckets, then the second of all, and so on."""
        step, ranks = (self.positions.ranks - self.firsts) / count, self.positions.ranks
        points = [
            np.where(self.firsts == ranks, ranks, self.firsts + ((at + 0.5) * step).astype(np.int64))
            for at in range(count)
        ]
        return Positions(np.tile(self.positions.hashes, count), np.concatenate(points))

    def scaled(self, factor: float) -> "Histogram":
        return Histogram(self.positions, self.firsts, self.weights * factor)

    def __add__(self, other: "Histogram") -> "Histogram":
        hashes = np.concatenate([self.positions.hashes, other.positions.hashes])
        ranks = np.concatenate([self.positions.ranks, other.positions.ranks])
        order = np.lexsort((ranks, hashes))
        firsts = np.concatenate([self.firsts, other.firsts])[order]
        weights = np.concatenate([self.weights, other.weights])[order]
        return Histogram(Positions(hashes[order], ranks[order]), firsts, weights)


def histogram_of(counts: Sequence[tuple[Bucket, float]]) -> Histogram:
    """Make a histogram of counted buckets, in any order."""
    hashes = np.array([hash for (hash, _, _), _ in counts], np.uint64)
    firsts, ranks = (np.array([bucket[end] for bucket, _ in counts], np.int64) for end in (1, 2))
    weights = np.array([weight for _, weight in counts], float)
    order = np.lexsort((ranks, hashes))
    return Histogram(Positions(hashes[order], ranks[order]), firsts[order], weights[order])


def summarise(positions: Positions, buckets: int) -> Iterator[tuple[Bucket, int]]:
    """Yield buckets of as many tuples each; a position with a bucket's share or more is one by itself."""
    order = np.lexsort((positions.ranks, positions.hashes))
    sorted = positions.take(order)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (sorted.hashes[1:] != sorted.hashes[:-1]) | (sorted.ranks[1:] != sorted.ranks[:-1])
    starts = np.flatnonzero(is_new)
    counts = np.diff(np.append(starts, len(order)))
    ends = bucket_ends(counts.astype(float), buckets)
    sums = np.diff(np.append(0, np.cumsum(counts)[ends]))
    hashes, ranks = sorted.hashes[starts], sorted.ranks[starts]
    begins = np.append(0, ends[:-1] + 1)[: len(ends)]
    firsts = np.where(hashes[begins] == hashes[ends], ranks[begins], ranks[ends])  # NB: keys with few tuples share one
    columns = (hashes[ends].tolist(), firsts.tolist(), ranks[ends].tolist(), sums.tolist())
    for hash, first, last, count in zip(*columns, strict=True):
        yield (hash, first, last), count


def bucket_ends(weights: Floats, buckets: int) -> Numbers:
    """List the last of each of so many buckets of equal weight; one that is heavy has a bucket of its own."""
    if len(weights) <= buckets:
        return np.arange(len(weights))
    share = weights.sum() / buckets
    number = np.floor((np.cumsum(weights) - weights / 2) / share)
    heavy = weights >= share
    is_end = np.ones(len(weights), np.bool_)
    is_end[:-1] = (number[1:] != number[:-1]) | heavy[1:] | heavy[:-1]
    return np.flatnonzero(is_end)


def count_pairs(band: Band, side: Side, own: Histogram, other: Histogram) -> Floats:
    """Estimate the pairs that the tuples in each bucket of a side form with the other side's.

    Tuples of a bucket are taken for even between its ends.
    """
    if not len(own.weights) or not len(other.weights):
        return np.zeros(len(own.weights))
    middle = own.firsts + (own.positions.ranks - own.firsts) // 2
    first, last = band.reach(side, middle)
    below = _Cumulative(other, own.positions.hashes, np.concatenate([first, last]))
    found = below(own.positions.hashes, last) - below(own.positions.hashes, np.maximum(first, NULL + 1) - 1)
    return np.where(band.is_null(own.positions.ranks), 0.0, own.weights * np.maximum(0.0, found))


class _Cumulative:
    """The tuples up to positions: buckets at one position are jumps, others grow in proportion.

    Hashes and ranks are on one axis, a unit for each hash.
    """

    def __init__(self, counted: Histogram, hashes: Tickets, ranks: Numbers) -> None:
        self._hashes = np.unique(np.concatenate([counted.positions.hashes, hashes]))
        ends = np.concatenate([counted.firsts, counted.positions.ranks])
        self._low, high = int(ends.min()), int(ends.max())
        self._span = float(max(1, high - self._low)) * 1.001
        begin, end = (self._axis(counted.positions.hashes, at) for at in (counted.firsts, counted.positions.ranks))
        is_wide = begin < end
        self._jumps = counted.positions.take(~is_wide)
        self._jumped = np.concatenate([[0.0], np.cumsum(counted.weights[~is_wide])])
        begin, end, weights = begin[is_wide], end[is_wide], counted.weights[is_wide]
        places, slopes = np.concatenate([begin, end]), np.concatenate([weights, -weights]) / np.tile(end - begin, 2)
        order = np.argsort(places)
        self._places = places[order] if len(places) else np.zeros(1)
        grown = np.cumsum(slopes[order])[:-1] * np.diff(self._places) if len(places) else np.zeros(0)
        self._grown = np.concatenate([[0.0], np.cumsum(grown)])

    def __call__(self, hashes: Tickets, ranks: Numbers) -> Floats:
        """Count the tuples up to positions."""
        jumped = self._jumped[count_before(self._jumps, hashes, ranks)]
        grown: Floats = np.interp(self._axis(hashes, ranks), self._places, self._grown)
        return jumped + grown

    def _axis(self, hashes: Tickets, ranks: Numbers) -> Floats:
        within = np.clip((ranks.astype(float) - self._low) / self._span, 0.0, 0.9999)
        return np.searchsorted(self._hashes, hashes) + within


def count_before(positions: Positions, hashes: Tickets, ranks: Numbers, side: str = "right") -> Numbers:
    """Count the positions, which are in order, up to others (right), or before them (left)."""
    by_hash = np.unique(np.concatenate([positions.hashes, hashes]), return_inverse=True)[1]
    by_rank = np.unique(np.concatenate([positions.ranks, ranks]), return_inverse=True)[1]
    joint = by_hash.reshape(-1) * np.int64(1 << 31) + by_rank.reshape(-1)  # NB: fewer than 2³¹ of each
    points, at = joint[: len(positions.ranks)], joint[len(positions.ranks) :]
    return np.searchsorted(points, at, "left" if side == "left" else "right")
