"""Partitioning of a band join by ranges of the banded attribute, those that are too heavy cut like a join matrix.

    |x − y| <= 1, 4 joiners       x: 0 … 9      10 … 19     20 … 29, of which 25 has most
    region                          (1, 1)       (1, 1)       (2, 1), rows by ticket
    a tuple of S with y = 10      →  the joiners of the first two regions

A tuple of the side at `home` is in the region of its value. One of the other side is in each region that has a value
that it may be joined with, so both meet in one region, and there at one joiner of its grid. A single region is the join
matrix of `mapping.py`: the best regions cost no more than that. They are found by dynamic programming over a histogram:
the least load for which ranges, each with the smallest grid that keeps to it, need no more than all joiners. Regions
that follow the input are those of Okcan and Riedewald (SIGMOD 2011, M-Bucket-I), whose heavy buckets stay whole.

Equalities beside the band come first: positions are ordered by the hash of what is equated, then by the value.
"""

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np
import numpy.typing as npt

from squallpy.base.keys import HOLE, NULL
from squallpy.base.records import dataclass
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mapping, Mask, Numbers, Side, Tickets, all_mappings

Floats = npt.NDArray[np.float64]
Position = tuple[int, int]
"""Hash of what equalities compare, 0 without any, and the rank of the banded value."""

TOLERANCE = 1.01  # of a load by the least one: the search ends
MOST_CUTS = 384  # places where a region may begin
_GREATEST = 2**63 - 1
_ROUNDING = 4 * np.finfo(np.float64).eps  # of a sum of two doubles, by their magnitudes; more than there is


@dataclass(frozen=True, slots=True)
class Band:
    """Bounds of a value of R less one of S: tuples are only joined from `low` to `high`.

    Args:
        low: In units of the keys; of doubles the bits.
        is_real: The values are doubles.
    """

    low: int
    high: int
    is_real: bool = False

    def rank(self, keys: Numbers) -> Numbers:
        """Convert keys to integers in the order of their values."""
        return _turn(keys) if self.is_real else keys

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
    return words ^ ((words >> 63) & _GREATEST)


def _add(numbers: Numbers, step: int) -> Numbers:
    """Add a step to numbers; the least and greatest stand for what is beyond them."""
    step = max(NULL + 1, min(_GREATEST, step))
    if step >= 0:
        return np.minimum(numbers, _GREATEST - step) + step
    return np.maximum(numbers, NULL - step) + step


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """The positions of tuples: hashes of what equalities compare, and the ranks of banded values."""

    hashes: Tickets
    ranks: Numbers

    def take(self, rows: Numbers | Mask) -> "Positions":
        return Positions(self.hashes[rows], self.ranks[rows])


@dataclass(frozen=True, slots=True)
class RangePartitioning:
    """Regions of a band join, each with the joiners of a grid.

    Args:
        home: The side whose tuples are in one region each.
        bounds: The position at which each region but the first begins.
        grids: The joiners of each region.
    """

    band: Band
    home: int
    bounds: tuple[Position, ...]
    grids: tuple[Grid, ...]

    def __str__(self) -> str:
        return " | ".join(str(grid.mapping) for grid in self.grids)

    @property
    def numbers(self) -> Numbers:
        """The numbers of its joiners."""
        return np.concatenate([grid.numbers for grid in self.grids])

    def route(self, side: Side, positions: Positions, tickets: Tickets) -> tuple[Numbers, Numbers, Mask]:
        """Find the joiners of tuples: positions of tuples with their joiners, and marks of one joiner for each tuple.

        The marked joiner counts a tuple, and sends it where it is lacking.
        """
        first, last = self._regions(side, positions)
        rows, joiners, owned = list[Numbers](), list[Numbers](), list[Mask]()
        for region, grid in enumerate(self.grids):
            here = np.flatnonzero((first <= region) & (region <= last))
            if not len(here):
                continue
            targets = grid.targets(side, tickets[here])
            copies = targets.shape[1]
            own = (tickets[here] & np.uint64(copies - 1)).astype(np.int64)  # NB: grids cut by the bits at the top
            rows.append(np.repeat(here, copies))
            joiners.append(targets.ravel())
            owned.append(((own[:, None] == np.arange(copies)) & (first[here] == region)[:, None]).ravel())
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return np.concatenate(rows), np.concatenate(joiners), np.concatenate(owned)

    def loads(self, r: "Histogram", s: "Histogram") -> Floats:
        """Compute the tuples at a joiner of each region."""
        cuts = _Cuts.of(self.bounds)
        home, copied = _weights_below(self.band, Side(self.home), cuts, r, s)
        here = np.diff(home.first)
        there = copied.first[1:] - copied.last[:-1]
        own, others = (
            np.array([grid.mapping.cuts(side) for grid in self.grids])
            for side in (Side(self.home), Side(self.home).other)
        )
        loads: Floats = here / own + there / others
        return loads

    def _regions(self, side: Side, positions: Positions) -> tuple[Numbers, Numbers]:
        """Find the first and the last region of tuples."""
        if side == self.home:
            found = self._region(positions.hashes, positions.ranks)
            return found, found
        first, last = (self._region(positions.hashes, end) for end in self.band.reach(side, positions.ranks))
        return first, last

    def _region(self, hashes: Tickets, ranks: Numbers) -> Numbers:
        """Count the bounds up to each position."""
        if not self.bounds:
            return np.zeros(len(ranks), np.int64)
        cuts = _Cuts.of(self.bounds)
        if cuts.hashes[0] == cuts.hashes[-1] and not hashes.any():
            return np.searchsorted(cuts.ranks, ranks, "right")
        found = np.searchsorted(cuts.hashes, hashes, "left")
        for hash in np.unique(cuts.hashes):
            same = hashes == hash
            found[same] += np.searchsorted(cuts.ranks[cuts.hashes == hash], ranks[same], "right")
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Weighted positions in their order, each for the tuples there and for those before it that have none."""

    positions: Positions
    weights: Floats

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def scaled(self, factor: float) -> "Histogram":
        return Histogram(self.positions, self.weights * factor)

    def __add__(self, other: "Histogram") -> "Histogram":
        hashes = np.concatenate([self.positions.hashes, other.positions.hashes])
        ranks = np.concatenate([self.positions.ranks, other.positions.ranks])
        order = np.lexsort((ranks, hashes))
        weights = np.concatenate([self.weights, other.weights])[order]
        return Histogram(Positions(hashes[order], ranks[order]), weights)


def histogram_of(counts: Sequence[tuple[Position, float]]) -> Histogram:
    """Make a histogram of counted positions, in any order."""
    hashes = np.array([hash for (hash, _), _ in counts], np.uint64)
    ranks, weights = np.array([rank for (_, rank), _ in counts], np.int64), np.array([w for _, w in counts], float)
    order = np.lexsort((ranks, hashes))
    return Histogram(Positions(hashes[order], ranks[order]), weights[order])


def summarise(positions: Positions, buckets: int) -> Iterator[tuple[Position, int]]:
    """Yield positions, each with the tuples there and just before it: one of a bucket's share or more is for itself."""
    order = np.lexsort((positions.ranks, positions.hashes))
    sorted = positions.take(order)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (sorted.hashes[1:] != sorted.hashes[:-1]) | (sorted.ranks[1:] != sorted.ranks[:-1])
    starts = np.flatnonzero(is_new)
    counts = np.diff(np.append(starts, len(order)))
    ends = _bucket_ends(counts.astype(float), buckets)
    sums = np.diff(np.append(0, np.cumsum(counts)[ends]))
    for at, count in zip(starts[ends].tolist(), sums.tolist(), strict=True):
        yield (int(sorted.hashes[at]), int(sorted.ranks[at])), int(count)


def _bucket_ends(weights: Floats, buckets: int) -> Numbers:
    """List the last of each of so many buckets of equal weight; one that is heavy has a bucket of its own."""
    if len(weights) <= buckets:
        return np.arange(len(weights))
    share = weights.sum() / buckets
    number = np.floor((np.cumsum(weights) - weights / 2) / share)
    heavy = weights >= share
    is_end = np.ones(len(weights), np.bool_)
    is_end[:-1] = (number[1:] != number[:-1]) | heavy[1:] | heavy[:-1]
    return np.flatnonzero(is_end)


@dataclass(frozen=True, slots=True, eq=False)
class _Cuts:
    """Positions where regions may begin."""

    hashes: Tickets
    ranks: Numbers

    @staticmethod
    def of(bounds: Sequence[Position]) -> "_Cuts":
        return _Cuts(
            np.array([hash for hash, _ in bounds], np.uint64), np.array([rank for _, rank in bounds], np.int64)
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """Weight below each cut, from nothing to all: of tuples that begin there, and of those that end there."""

    first: Floats
    last: Floats


def _weights_below(band: Band, home: Side, cuts: _Cuts, r: Histogram, s: Histogram) -> tuple[_Below, _Below]:
    """Sum up the tuples at home, and those that are copied, below each cut."""
    own, other = (s, r) if home else (r, s)
    here = _weigh(own, own.positions.ranks, cuts)
    first, last = band.reach(home.other, other.positions.ranks)
    return _Below(here, here), _Below(_weigh(other, first, cuts), _weigh(other, last, cuts))


def _weigh(counted: Histogram, ranks: Numbers, cuts: _Cuts) -> Floats:
    """Sum up the weights whose hash and rank are below each cut."""
    hashes = np.unique(np.concatenate([counted.positions.hashes, cuts.hashes]), return_inverse=True)[1]
    values = np.unique(np.concatenate([ranks, cuts.ranks]), return_inverse=True)[1]
    joint = hashes.reshape(-1) * np.int64(1 << 31) + values.reshape(-1)  # NB: fewer than 2³¹ of each
    points, at = joint[: len(ranks)], joint[len(ranks) :]
    sums = np.concatenate([[0.0], np.cumsum(counted.weights)])
    return np.concatenate([[0.0], sums[np.searchsorted(points, at, "left")], sums[-1:]])


def find_best_ranges(
    joiners: int, band: Band, r: Histogram, s: Histogram, home: Side | None = None, with_grids: bool = True
) -> tuple[RangePartitioning, float]:
    """Find the regions with the least load of a joiner, and that load.

    Args:
        home: The side whose tuples are in one region each; None: the better one.
        with_grids: A region may have several joiners.
    """
    shapes = _shapes(joiners if with_grids else 1)
    found = [_Search(joiners, band, side, r, s, shapes).best() for side in ((home,) if home is not None else Side)]
    return min(found, key=lambda each: each[1])


def matrix(joiners: int, band: Band, r: float, s: float) -> RangePartitioning:
    """Make a single region of the best join matrix."""
    shapes = all_mappings(1 << joiners.bit_length() - 1)
    return RangePartitioning(band, int(Side.R), (), (Grid(min(shapes, key=lambda shape: shape.load(r, s))),))


def matrix_load(joiners: int, r: float, s: float) -> float:
    """Compute the load of the best join matrix, over the largest power of two of joiners."""
    return min(mapping.load(r, s) for mapping in all_mappings(1 << joiners.bit_length() - 1))


class _Search:
    """The search for regions with one side at home."""

    def __init__(
        self, joiners: int, band: Band, home: Side, r: Histogram, s: Histogram, shapes: list[tuple[int, int]]
    ) -> None:
        self._joiners, self._band, self._home, self._r, self._s = joiners, band, home, r, s
        self._cuts, self._shapes = _candidate_cuts(band, home, r, s, MOST_CUTS), shapes
        here, there = _weights_below(band, home, self._cuts, r, s)
        self._here = here.first[None, :] - here.first[:, None]  # by first cut and last
        self._there = there.first[None, :] - there.last[:, None]
        self._here[np.tri(len(self._here), dtype=np.bool_)] = inf

    def best(self) -> tuple[RangePartitioning, float]:
        """Bisect for the least load that joiners suffice for."""
        r, s = self._r.total, self._s.total
        low, high = (r + s) / self._joiners, min(r / own + s / other for own, other in self._shapes)
        best = self._regions(high)
        assert best is not None, "a single region is the matrix"
        while high > low * TOLERANCE:
            tried = float(np.sqrt(low * high)) if low else high / 2
            found = self._regions(tried)
            if found is None:
                low = tried
            else:
                best, high = found, tried
        partitioning = self._partitioning(best)
        return partitioning, float(partitioning.loads(self._r, self._s).max())

    def _regions(self, load: float) -> list[tuple[int, tuple[int, int]]] | None:
        """List the ends of regions with their grids, none above a load; None if joiners do not suffice."""
        need, shape = np.full(self._here.shape, inf), np.zeros(self._here.shape, np.int64)
        for number in range(len(self._shapes) - 1, -1, -1):
            own, other = self._shapes[number]
            fits = self._here / own + self._there / other <= load * (1 + 1e-12)
            need[fits], shape[fits] = own * other, number
        least, before = np.full(len(need), inf), np.zeros(len(need), np.int64)
        least[0] = 0
        for end in range(1, len(need)):
            costs = least[:end] + need[:end, end]
            before[end] = len(costs) - 1 - int(np.argmin(costs[::-1]))
            least[end] = costs[before[end]]
        if least[-1] > self._joiners:
            return None
        found, end = list[tuple[int, tuple[int, int]]](), len(need) - 1
        while end:
            found.append((end, self._shapes[shape[before[end], end]]))
            end = int(before[end])
        return found[::-1]

    def _partitioning(self, regions: Sequence[tuple[int, tuple[int, int]]]) -> RangePartitioning:
        bounds = [
            (int(self._cuts.hashes[end - 1]), int(self._cuts.ranks[end - 1])) for end, _ in regions[:-1]
        ]  # NB: the first weight is that below all cuts
        grids, first = list[Grid](), 0
        for _, (own, other) in regions:
            grids.append(Grid(Mapping(other, own) if self._home else Mapping(own, other), first))
            first += own * other
        return RangePartitioning(self._band, int(self._home), tuple(bounds), tuple(grids))


def _shapes(joiners: int) -> list[tuple[int, int]]:
    """List grids of up to so many joiners, the smallest first: parts of the side at home, and of the other."""
    powers = [1 << bit for bit in range(joiners.bit_length())]
    found = [(own, other) for own in powers for other in powers if own * other <= joiners]
    return sorted(found, key=lambda shape: (shape[0] * shape[1], abs(shape[0] - shape[1])))


def _candidate_cuts(band: Band, home: Side, r: Histogram, s: Histogram, count: int) -> _Cuts:
    """List places where regions may begin: around buckets of equal weight, those of both sides together."""
    own, other = (s, r) if home else (r, s)
    first, last = band.reach(home.other, other.positions.ranks)
    hashes, ranks, weights = [own.positions.hashes], [own.positions.ranks], [own.weights]
    for end in (first, last):  # NB: there a tuple that is copied gets into a region, or out of it
        hashes.append(other.positions.hashes)
        ranks.append(end)
        weights.append(other.weights / 2)
    by_hash, by_rank = np.concatenate(hashes), np.concatenate(ranks)
    order = np.lexsort((by_rank, by_hash))
    by_hash, by_rank = by_hash[order], by_rank[order]
    ends = _bucket_ends(np.concatenate(weights)[order], max(1, count // 2))
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    found = {(int(by_hash[at]), int(by_rank[at])) for at in starts.tolist()}
    found |= {(int(by_hash[at]), min(_GREATEST, int(by_rank[at]) + 1)) for at in ends.tolist()}
    return _Cuts.of(sorted(found))
