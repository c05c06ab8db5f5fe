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

Where values grow with time no bounds last. Then values are cut into blocks of one length, which regions get in turn, as
in a block-cyclic distribution of matrices (`cyclic_blocks.py`):

    length 10, 3 joiners          x: 0 … 9 in region 0      10 … 19 in 1      20 … 29 in 2      30 … 39 in 0
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, prod

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.band_histograms import (
    GREATEST,
    Band,
    Floats,
    Histogram,
    Positions,
    bucket_ends,
    count_before,
    count_pairs,
)
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mapping, Mask, Numbers, Side, Tickets, all_mappings

Position = tuple[int, int]
"""Hash of what equalities compare, 0 without any, and the rank of the banded value."""

TOLERANCE = 1.01  # of a load by the least one: the search ends
SMALLEST = 1.0  # load that is searched for: where there is almost nothing
MOST_WORK = 1.25  # of a joiner by the least possible, if it has fewer tuples so
MOST_CUTS = 1024  # places where a region may begin
_POINTS = 16  # of a bucket, by which its tuples are spread over blocks


_Regions = list[tuple[int, tuple[int, int]]]
"""The number of the cut at which each region ends, and its grid: parts of the side at home, and of the other."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load of the busiest joiner: its tuples, and its work, of which pairs are a part."""

    tuples: float
    work: float

    def exceeds(self, other: "Load", ratio: float) -> bool:
        """True if it has more tuples or work than so many times another."""
        return self.tuples > ratio * other.tuples or self.work > ratio * other.work


@dataclass(frozen=True, slots=True)
class RangePartitioning:
    """Regions of a band join, each with the joiners of a grid.

    Args:
        home: The side whose tuples are in one region each.
        bounds: The position at which each region but the first begins.
        grids: The joiners of each region.
        block: The length of blocks that regions get in turn, instead of what is between bounds; 0: there are none.
    """

    band: Band
    home: int
    bounds: tuple[Position, ...]
    grids: tuple[Grid, ...]
    block: int = 0

    def __str__(self) -> str:
        blocks = f"blocks of {self.block:,}: " if self.block else ""
        return blocks + " | ".join(str(grid.mapping) for grid in self.grids)

    @property
    def numbers(self) -> Numbers:
        """The numbers of its joiners."""
        return np.unique(np.concatenate([grid.numbers for grid in self.grids]))

    @property
    def shares_joiners(self) -> bool:
        """True if a joiner is in several regions, as while records move."""
        return len(self.numbers) < sum(grid.joiners for grid in self.grids)

    def route(self, side: Side, positions: Positions, tickets: Tickets) -> tuple[Numbers, Numbers, Mask]:
        """Find the joiners of tuples: positions of tuples with their joiners, and marks of one joiner for each tuple.

        The marked joiner counts a tuple, and sends it where it is lacking.
        """
        first, count = self._regions(side, positions)
        rows, joiners, owned = list[Numbers](), list[Numbers](), list[Mask]()
        for region, grid in enumerate(self.grids):
            here = np.flatnonzero((region - first) % len(self.grids) < count)
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
        found, at, mine = np.concatenate(rows), np.concatenate(joiners), np.concatenate(owned)
        if self.shares_joiners:  # NB: a copied tuple may be in several regions of one joiner
            order = np.lexsort((~mine, at, found))
            is_new = np.ones(len(order), np.bool_)
            is_new[1:] = (np.diff(found[order]) != 0) | (np.diff(at[order]) != 0)
            chosen = order[is_new]
            return found[chosen], at[chosen], mine[chosen]
        return found, at, mine

    def can_be_followed(self, other: "RangePartitioning", start: Position) -> bool:
        """True if pairs meet once where other regions follow these at a position.

        A tuple that is copied may then be in regions of both. If these share a joiner, and one has several, it might
        meet a tuple at two of them.
        """
        hash, ranks = start[0], np.array([start[1]])
        home = Side(self.home)
        first, last = self.band.reach(home.other, np.concatenate(self.band.reach(home, ranks)))
        hashes = np.array([hash, hash], np.uint64)
        low, below = self._region(hashes, np.concatenate([first[:1], ranks])).tolist()
        above, high = other._region(hashes, np.concatenate([ranks, last[1:]])).tolist()
        return not any(
            one.joiners * two.joiners > 1 and np.intersect1d(one.numbers, two.numbers).size
            for one in self.grids[low : below + 1]
            for two in other.grids[above : high + 1]
        )

    def followed_by(self, other: "RangePartitioning", start: Position) -> "RangePartitioning":
        """Make regions that are these up to a position, and others from there on, of joiners that may be in both.

        Both have the same side at home, and bounds.
        """
        mine = sum(bound < start for bound in self.bounds)
        theirs = sum(bound <= start for bound in other.bounds)
        bounds = (*self.bounds[:mine], start, *other.bounds[theirs:])
        return replace(self, bounds=bounds, grids=(*self.grids[: mine + 1], *other.grids[theirs:]))

    def load(self, r: Histogram, s: Histogram) -> Load:
        """Compute the most tuples of a joiner, and the most work: its tuples, and its pairs by what one costs."""
        home = Side(self.home)
        if self.block:
            return self._load_of_blocks(home, r, s)
        sums = _weights_below(self.band, home, _Cuts.of(self.bounds), r, s)
        own, others = (np.array([grid.mapping.cuts(side) for grid in self.grids]) for side in (home, home.other))
        held = np.diff(sums.home) / own + (sums.first[1:] - sums.last[:-1]) / others
        pairs = self.band.pair_work * np.diff(sums.pairs) / (own * others)
        return Load(float(held.max()), float((held + pairs).max()))

    def _load_of_blocks(self, home: Side, r: Histogram, s: Histogram) -> Load:
        """Compute the load where tuples of a bucket are even between its ends."""
        own, other = (s, r) if home else (r, s)
        pairs = count_pairs(self.band, home, own, other) if self.band.pair_work else np.zeros(len(own.weights))
        held, formed = np.zeros(len(self.grids)), np.zeros(len(self.grids))
        for side, some in ((home, own), (home.other, other)):
            first, count = self._regions(side, some.spread(_POINTS))
            weights = np.tile(some.weights / _POINTS, _POINTS)
            for step in range(int(count.max(initial=0))):
                reached = count > step
                held += np.bincount((first + step)[reached] % len(held), weights[reached], len(held))
            if side == home:
                formed += np.bincount(first, np.tile(pairs / _POINTS, _POINTS), len(held))
        return Load(float(held.max()), float((held + self.band.pair_work * formed).max()))

    def _regions(self, side: Side, positions: Positions) -> tuple[Numbers, Numbers]:
        """Find the first region of each tuple, and in how many it is: those that follow, after the last the first."""
        ends = (positions.ranks, positions.ranks) if side == self.home else self.band.reach(side, positions.ranks)
        if self.block:
            regions = len(self.grids)
            first, last = (end // self.block for end in ends)
            start = (first % regions + (positions.hashes % np.uint64(regions)).astype(np.int64)) % regions
            count = last - first  # NB: below 0 where that is more than fits 64 bits
            return start, np.where((count < 0) | (count >= regions), regions, count + 1)
        first, last = (self._region(positions.hashes, end) for end in ends)
        return first, last - first + 1

    def _region(self, hashes: Tickets, ranks: Numbers) -> Numbers:
        """Count the bounds up to each position."""
        if not self.bounds:
            return np.zeros(len(ranks), np.int64)
        cuts = _Cuts.of(self.bounds)
        if not cuts.hashes[-1] and not hashes.any():  # NB: bounds are in order
            return np.searchsorted(cuts.ranks, ranks, "right")
        found = np.searchsorted(cuts.hashes, hashes, "left")
        for hash in np.unique(cuts.hashes):
            same = hashes == hash
            found[same] += np.searchsorted(cuts.ranks[cuts.hashes == hash], ranks[same], "right")
        return found


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
    """Sums below each cut, from nothing to all.

    Args:
        home: Of tuples at home.
        first: Of tuples that are copied, by the first position that they may be joined with.
        last: Of the same, by the last one.
        pairs: Of the pairs of tuples at home.
    """

    home: Floats
    first: Floats
    last: Floats
    pairs: Floats


def _weights_below(band: Band, home: Side, cuts: _Cuts, r: Histogram, s: Histogram) -> _Below:
    """Sum up tuples and pairs below each cut."""
    own, other = (s, r) if home else (r, s)
    first, last = band.reach(home.other, other.positions.ranks)
    pairs = count_pairs(band, home, own, other) if band.pair_work else np.zeros(len(own.weights))
    here, formed = (_weigh(own, own.positions.ranks, weights, cuts) for weights in (own.weights, pairs))
    begun, ended = (_weigh(other, end, other.weights, cuts) for end in (first, last))
    return _Below(here, begun, ended, formed)


def _weigh(counted: Histogram, ranks: Numbers, weights: Floats, cuts: _Cuts) -> Floats:
    """Sum up the weights whose hash and rank are below each cut."""
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    before = count_before(Positions(counted.positions.hashes, ranks), cuts.hashes, cuts.ranks, "left")
    return np.concatenate([[0.0], sums[before], sums[-1:]])


def find_best_ranges(
    joiners: int, band: Band, r: Histogram, s: Histogram, home: Side | None = None, with_grids: bool = True
) -> tuple[RangePartitioning, Load]:
    """Find the regions of the fewest tuples at a joiner, among those whose work is near the least.

    Where pairs are most of the work, a value with many is spread over more joiners than its tuples alone would need.

    Args:
        home: The side whose tuples are in one region each; None: the better one.
        with_grids: A region may have several joiners.
    """
    shapes = _shapes(joiners if with_grids else 1)
    sides = [_Search(joiners, band, side, r, s, shapes) for side in ((home,) if home is not None else Side)]
    most = inf
    if band.pair_work:
        most = MOST_WORK * min(side.least_work() for side in sides)
    found = [partitioning for side in sides if (partitioning := side.least_tuples(most))]
    return min(((each, each.load(r, s)) for each in found), key=lambda pair: pair[1].tuples)


def find_steps(
    before: RangePartitioning, after: RangePartitioning, held: Histogram, count: int
) -> tuple[RangePartitioning, ...]:
    """Find partitionings that lead from one to another, of which each moves an even part of all positions at most.

    One step, the whole, if they have other sides at home or one has blocks.
    """
    # NB: where there is one region, no side is at home
    before = replace(before, home=after.home) if len(before.grids) == 1 else before
    after = replace(after, home=before.home) if len(after.grids) == 1 else after
    if before.home != after.home or before.block or after.block or not len(held.weights):
        return (after,)
    below = np.cumsum(held.weights)
    ends = np.unique(np.searchsorted(below, below[-1] * np.arange(1, count) / count))
    cuts = [(int(held.positions.hashes[end]), int(held.positions.ranks[end])) for end in ends.tolist()]
    return (*(after.followed_by(before, cut) for cut in cuts if after.can_be_followed(before, cut)), after)


def matrix(joiners: int, band: Band, r: float, s: float) -> RangePartitioning:
    """Make a single region of the best join matrix, over the largest power of two of joiners."""
    shapes = all_mappings(1 << joiners.bit_length() - 1)
    return RangePartitioning(band, int(Side.R), (), (Grid(min(shapes, key=lambda shape: shape.load(r, s))),))


def matrix_load(joiners: int, band: Band, r: Histogram, s: Histogram) -> Load:
    """Compute the load of the best join matrix."""
    return matrix(joiners, band, r.total, s.total).load(r, s)


class _Search:
    """The search for regions with one side at home."""

    def __init__(
        self, joiners: int, band: Band, home: Side, r: Histogram, s: Histogram, shapes: list[tuple[int, int]]
    ) -> None:
        self._joiners, self._band, self._home, self._r, self._s = joiners, band, home, r, s
        self._cuts, self._shapes = _candidate_cuts(band, home, r, s, MOST_CUTS), shapes
        self._sums = _weights_below(band, home, self._cuts, r, s)
        self._pairs = band.pair_work * self._sums.pairs
        sizes = sorted({own * other for own, other in shapes})
        self._by_size = [(size, *_columns([shape for shape in shapes if prod(shape) == size])) for size in sizes]

    def least_work(self) -> float:
        """Bisect for the least work of the busiest joiner."""
        r, s, pairs = self._r.total, self._s.total, float(self._pairs[-1])
        high = min(r / own + s / other + pairs / (own * other) for own, other in self._shapes)
        return self._bisect((r + s + pairs) / self._joiners, high, lambda most: self._regions(inf, most))[1]

    def least_tuples(self, work: float) -> RangePartitioning | None:
        """Bisect for the fewest tuples of the busiest joiner, with at most so much work; None if that is too little."""
        r, s = self._r.total, self._s.total
        if self._regions(inf, work) is None:
            return None
        found, _ = self._bisect((r + s) / self._joiners, r + s, lambda most: self._regions(most, work))
        return self._partitioning(found)

    def _bisect(self, low: float, high: float, find: Callable[[float], _Regions | None]) -> tuple[_Regions, float]:
        """Find the regions of the least load between two, by which there are some up to the higher one."""
        best = find(high)
        assert best is not None, "a single region has no higher load"
        while high > low * TOLERANCE:
            tried = float(np.sqrt(low * high)) if low else high / 2
            if (found := find(tried)) is None:
                low = tried
            else:
                best, high = found, tried
            if high < TOLERANCE * SMALLEST:
                break
        return best, high

    def _regions(self, tuples: float, work: float) -> _Regions | None:
        """List the ends of regions with their grids, none above these loads; None if joiners do not suffice.

        More joiners reach farther, and who begins farther ends farther, as loads only grow with a region.
        """
        reached, steps, last = [0], list[tuple[int, tuple[int, int]] | None]([None]), len(self._pairs) - 1
        while reached[-1] < last and len(reached) <= self._joiners:
            best, step = reached[-1], None
            for size, own, other in self._by_size:
                if size > len(reached):
                    break
                ends = self._farthest(reached[-size], own, other, tuples, work)
                shape = int(np.argmax(ends))
                if ends[shape] > best:
                    best, step = int(ends[shape]), (size, (int(own[shape, 0]), int(other[shape, 0])))
            reached.append(best)
            steps.append(step)
        if reached[-1] < last:
            return None
        found, number = _Regions(), len(reached) - 1
        while number:
            if (taken := steps[number]) is None:
                number -= 1
                continue
            size, grid = taken
            found.append((reached[number], grid))
            number -= size
        return found[::-1]

    def _farthest(self, begin: int, own: Numbers, other: Numbers, tuples: float, work: float) -> Numbers:
        """Find the farthest end of a region for each of some grids."""
        sums = self._sums
        held = (sums.home[begin + 1 :] - sums.home[begin]) / own + (sums.first[begin + 1 :] - sums.last[begin]) / other
        fits = held <= tuples * (1 + 1e-12)
        if work < inf:
            fits &= held + (self._pairs[begin + 1 :] - self._pairs[begin]) / (own * other) <= work * (1 + 1e-12)
        ends: Numbers = begin + fits.sum(axis=1)
        return ends

    def _partitioning(self, regions: _Regions) -> RangePartitioning:
        bounds = [
            (int(self._cuts.hashes[end - 1]), int(self._cuts.ranks[end - 1])) for end, _ in regions[:-1]
        ]  # NB: the first weight is that below all cuts
        grids, first = list[Grid](), 0
        for _, (own, other) in regions:
            grids.append(Grid(Mapping(other, own) if self._home else Mapping(own, other), first))
            first += own * other
        return RangePartitioning(self._band, int(self._home), tuple(bounds), tuple(grids))


def _columns(shapes: Sequence[tuple[int, int]]) -> tuple[Numbers, Numbers]:
    """Convert grids to two columns, of the parts of the side at home and of the other."""
    own, other = np.array(shapes, np.int64).T
    return own[:, None], other[:, None]


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
    if band.pair_work and (pairs := count_pairs(band, home, own, other)).any():
        weights = [own.weights + pairs * (own.total + other.total) / pairs.sum()]
    for end in (first, last):  # NB: there a tuple that is copied gets into a region, or out of it
        hashes.append(other.positions.hashes)
        ranks.append(end)
        weights.append(other.weights / 2)
    by_hash, by_rank = np.concatenate(hashes), np.concatenate(ranks)
    order = np.lexsort((by_rank, by_hash))
    by_hash, by_rank = by_hash[order], by_rank[order]
    ends = bucket_ends(np.concatenate(weights)[order], max(1, count // 2))
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    found = {(int(by_hash[at]), int(by_rank[at])) for at in starts.tolist()}
    found |= {(int(by_hash[at]), min(GREATEST, int(by_rank[at]) + 1)) for at in ends.tolist()}
    return _Cuts.of(sorted(found))
