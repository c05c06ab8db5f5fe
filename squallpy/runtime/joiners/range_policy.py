"""Migration policy of band joins by ranges: when regions are drawn anew, from what joiners hold and what comes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from squallpy.base.records import dataclass
from squallpy.base.settings import JoinOperator
from squallpy.physical.joins.band_histograms import Band, Histogram
from squallpy.physical.joins.cyclic_blocks import find_best_blocks
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration_controller import Sizes
from squallpy.physical.joins.range_partitioning import (
    Load,
    RangePartitioning,
    find_best_ranges,
    find_steps,
    matrix,
    matrix_load,
)
from squallpy.physical.plan import Plan
from squallpy.runtime.joiners.band_positions import CAME, HELD, SAMPLED, SAMPLED_LATER, Counts, histogram_of_counts
from squallpy.runtime.joiners.batch_plan import OnRanges, RangeMove
from squallpy.runtime.joiners.joiner_statistics import JoinerStatistics, loads, skew

MAX_MATRIX_LOAD = 0.8  # of the join matrix's: a band join is partitioned by ranges if its joiners have less
MOST_MOVED = 1 << 15  # tuples of a joiner: regions that are drawn anew are those of the next batch up to so many each
MOST_STEPS = 16  # batches until all regions are
MIN_LOAD_RATIO = 1.1  # of the present load by the least: regions stay if they would hardly be better


@dataclass(frozen=True, slots=True)
class RangePolicy:
    """Policy that draws regions anew, and moves what is elsewhere then, between two batches.

    When the tuples, or those of the busiest joiner, have changed by the fraction epsilon since the last decision,
    joiners report histograms of what they hold and of what came with the batch, exactly as of its end. What came counts
    as much as what is held. Regions have to suit what comes after they are drawn, too, or they are drawn anew. If that
    does not help, as where the values of a stream grow with time, one joiner would get most of each batch. Then joiners
    get blocks of values in turn, or, if these would be no better, the matrix is.

    Args:
        joiners: The number of joiners there are.
        held: Tuples at all joiners, with copies.
        busiest: Those at the busiest joiner.
        decided: Tuples at all joiners at the last decision.
        decided_busiest: Those at the busiest joiner then, or when all had moved.
        ratio: The load of a joiner by the least possible, at the last decision.
        drawn: How often regions were drawn anew.
        expected: The best regions for what joiners reported last.
        drifted: Regions did not suit what came then, for the first time.
        is_trial: The matrix stays, unless ranges are much better.
        steps: The partitionings that follow the next one, while regions that were drawn anew come into force.
    """

    plan: OnRanges
    joiners: int
    epsilon: float
    held: int = 0
    busiest: int = 0
    decided: int = 0
    decided_busiest: int = 0
    ratio: float = 1.0
    drawn: int = 0
    expected: RangePartitioning | None = None
    drifted: bool = False
    is_trial: bool = False
    steps: tuple[RangePartitioning, ...] = ()

    def figures(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """Report the grids of the regions and the load of the batch that it was for."""
        ranges, joiners = self.plan.ranges, stats["joiners"]
        return {
            "mapping": [[grid.mapping.rows, grid.mapping.columns] for grid in ranges.grids], "epoch": self.drawn,
            "ilf": float(_observe(joiners)[1]), "ilf_ratio": self.ratio, "busiest": skew(joiners, self.joiners),
            "loads": loads(joiners, self.joiners),
        }  # fmt: skip

    def plan_batch(self, rows: Sizes) -> "RangePolicy":
        """Keep the plan, which does not depend on how many rows come."""
        return self

    def observe(self, stats: Mapping[str, Any]) -> "RangePolicy":
        """Plan the next batch."""
        plan, (held, busiest) = self.plan, _observe(stats["joiners"])
        found = replace(self, held=held, busiest=busiest)
        if plan.to is not None:
            arriving = RangeMove(tuple(plan.ranges.numbers.tolist()))
            if self.steps:
                following, *steps = self.steps
                moving = replace(plan, ranges=plan.to, to=following, reports=False, arriving=arriving)
                return replace(found, plan=moving, steps=tuple(steps))
            moved = replace(plan, ranges=plan.to, to=None, reports=self.drifted, arriving=arriving)
            return replace(found, plan=moved, drawn=self.drawn + 1, decided_busiest=0, is_trial=False)
        if plan.reports:
            return found._decide(stats.get("ranges", {}))
        settled = replace(plan, arriving=None)
        found = replace(found, plan=settled, decided_busiest=self.decided_busiest or busiest)
        change, most = abs(held - self.decided), (1 + self.epsilon) * found.decided_busiest
        if change > self.epsilon * self.decided or busiest > most:
            found = replace(found, plan=replace(settled, reports=True))
        return found

    def _decide(self, reported: Counts) -> "RangePolicy":
        """Draw regions for what joiners have reported, if those are better; the matrix, where no regions last."""
        ranges, (held, came) = self.plan.ranges, read_histograms(reported)
        r, s = (some + other.scaled(_weight(held, came)) for some, other in zip(held, came, strict=True))
        is_matrix, drifts = len(ranges.grids) == 1, self._drifts(*came)
        lasts = is_matrix or ranges.block > 0
        best, least = drawn, _ = find_best_ranges(self.joiners, ranges.band, r, s)
        if (drifts and (lasts or self.drifted)) or (is_matrix and self.expected is None):
            best, least = self._find_lasting((r, s), came if drifts else None)
        now = ranges.load(r, s)
        is_better = now.exceeds(least, MIN_LOAD_RATIO) or (len(best.grids) == 1 and not is_matrix)
        if self.is_trial:
            is_better = len(best.grids) > 1 and least.tuples < MAX_MATRIX_LOAD * now.tuples
        has_to_wait = drifts and not lasts and not self.drifted
        next, *steps = self._steps_to(best, held[Side.R] + held[Side.S]) if is_better else (None,)
        plan = replace(
            self.plan, to=next, reports=not is_better and (has_to_wait or not self.expected),
            arriving=None,
        )  # fmt: skip
        ratio = now.tuples / least.tuples if least.tuples and not is_better else 1.0
        return replace(
            self, plan=plan, ratio=max(1.0, ratio), decided=self.held, decided_busiest=self.busiest, expected=drawn,
            drifted=has_to_wait, steps=tuple(steps),
        )  # fmt: skip

    def _steps_to(self, best: RangePartitioning, held: Histogram) -> tuple[RangePartitioning, ...]:
        """Find the partitionings of the next batches, which move some tuples each."""
        count = min(MOST_STEPS, -(-self.held // (MOST_MOVED * self.joiners)))
        return find_steps(self.plan.ranges, best, held, count) if count > 1 else (best,)

    def _find_lasting(
        self, all: tuple[Histogram, Histogram], came: Sequence[Histogram] | None
    ) -> tuple[RangePartitioning, Load]:
        """Find the best partitioning that does not depend on where values are: blocks, or the matrix.

        Args:
            came: What came, if it has values that were not there before.
        """
        band, (r, s) = self.plan.ranges.band, all
        best = matrix(self.joiners, band, r.total, s.total)
        load = best.load(r, s)
        if came is not None and (blocks := find_best_blocks(self.joiners, band, all, came)):
            least, arriving, by_matrix = blocks.load(r, s), blocks.load(*came), matrix_load(self.joiners, band, *came)
            if least.tuples < MAX_MATRIX_LOAD * load.tuples and arriving.tuples < by_matrix.tuples:
                return blocks, least
        return best, load

    def _drifts(self, r: Histogram, s: Histogram) -> bool:
        """True if what came would make a joiner busier in the regions that suit what came before than in a matrix.

        So it is where values grow with time: a batch has none that were there before.
        """
        expected = self.expected or (self.plan.ranges if len(self.plan.ranges.grids) > 1 else None)
        if expected is None or not r.total + s.total:
            return False
        tuples = replace(expected.band, pair_work=0.0)  # NB: most pairs are with what was there before
        return expected.load(r, s).tuples > matrix_load(self.joiners, tuples, r, s).tuples


def read_histograms(reported: Counts) -> tuple[list[Histogram], list[Histogram]]:
    """Read what joiners report of what they hold, and of what came, by side."""
    held, came = (
        [histogram_of_counts(reported.get(name, {})) for name in (names[Side.R], names[Side.S])]
        for names in (HELD, CAME)
    )
    return held, came


def _weight(held: list[Histogram], came: list[Histogram]) -> float:
    """Find the factor with which what came weighs as much as what is held."""
    total, coming = (sum(each.total for each in some) for some in (held, came))
    return total / coming if coming else 0.0


def open_range_policy(
    plan: Plan, band: Band, grid: Grid, sample: Mapping[str, Mapping[str, int]]
) -> RangePolicy | None:
    """Make the policy of a band join with the regions that suit a sample; None if it begins on a grid.

    So it does where a joiner would have as much, or nothing is known; if ranges are set, the grid is a region.
    """
    ranges, is_chosen = RangePartitioning(band, int(Side.R), (), (grid,)), plan.operator is JoinOperator.RANGE
    if all(name in sample for name in SAMPLED):
        r, s = (histogram_of_counts(sample[name]) for name in SAMPLED)
        ranges, least = find_best_ranges(plan.partitions, band, r, s)
        is_better = least.tuples < MAX_MATRIX_LOAD * matrix_load(plan.partitions, band, r, s).tuples
        if all(name in sample for name in SAMPLED_LATER):
            r, s = (histogram_of_counts(sample[name]) for name in SAMPLED_LATER)
            is_better &= ranges.load(r, s).tuples < matrix_load(plan.partitions, band, r, s).tuples
        is_chosen |= is_better
    return RangePolicy(OnRanges(ranges, reports=True), plan.partitions, plan.epsilon) if is_chosen else None


def _observe(joiners: JoinerStatistics) -> tuple[int, int]:
    """Count the tuples at all joiners, and those of the busiest one."""
    held = [joiner["R"] + joiner["S"] for joiner in joiners.values()]
    return sum(held), max(held, default=0)
