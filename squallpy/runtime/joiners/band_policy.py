"""Migration policy of a band join that begins on a grid: from time to time it looks whether ranges would be better.

on a grid ──▶ as many tuples again: two batches report ──▶ ranges, if a joiner has less by them than on the grid
    ▲                                    └── else ──┘
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from squallpy.base.records import dataclass
from squallpy.physical.joins.band_histograms import Band
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration_controller import Sizes
from squallpy.physical.joins.range_partitioning import RangePartitioning
from squallpy.runtime.joiners.batch_plan import BatchPlan, OnRanges, Steady
from squallpy.runtime.joiners.grid_migration_policy import GridPolicy
from squallpy.runtime.joiners.range_policy import RangePolicy

MIN_TUPLES = 1 << 12  # that joiners hold when they report for the first time


@dataclass(frozen=True, slots=True)
class BandPolicy:
    """Policy of the grid, until joiners report that ranges are better; from then on that of ranges.

    While they report, the grid is a single region, where each tuple is where it was.

    Args:
        ranges: The policy of ranges, also while joiners report.
        is_decided: The join is by ranges.
        due: Tuples that joiners hold when they are to report.
    """

    grid: GridPolicy
    band: Band
    joiners: int
    ranges: RangePolicy | None = None
    is_decided: bool = False
    due: int = MIN_TUPLES

    @property
    def plan(self) -> BatchPlan:
        """Plan of the batch."""
        return self.ranges.plan if self.ranges else self.grid.plan

    def figures(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """Report what the policy in force does."""
        return self.ranges.figures(stats) if self.ranges and self.is_decided else self.grid.figures(stats)

    def with_cores(self, cores: int) -> "BandPolicy":
        """Set the number of cores at which tasks run."""
        return replace(self, grid=replace(self.grid, cores=cores))

    def plan_batch(self, rows: Sizes) -> "BandPolicy":
        """Plan a batch; where the grid stays and enough tuples are there, joiners report after it."""
        if self.is_decided:
            return self
        if self.ranges:  # NB: the grid stays as it is while joiners report
            return replace(self, grid=replace(self.grid, read=self.grid.read + rows, rows=rows))
        planned = replace(self, grid=self.grid.plan_batch(rows))
        plan, held = planned.grid.plan, self.grid.held
        if not isinstance(plan, Steady) or plan.drops_copies or held.r + held.s < self.due:
            return planned
        (grid,) = plan.grids
        asked = OnRanges(RangePartitioning(self.band, int(Side.R), (), (grid,)), reports=True, epoch=plan.epoch)
        epsilon = self.grid.controllers[0].policy.epsilon
        return replace(planned, ranges=RangePolicy(asked, self.joiners, epsilon, is_trial=True))

    def observe(self, stats: Mapping[str, Any]) -> "BandPolicy":
        """Plan the next batch."""
        if self.ranges is None:
            return replace(self, grid=self.grid.observe(stats))
        ranges = self.ranges.observe(stats)
        if self.is_decided:
            return replace(self, ranges=ranges)
        found = replace(self, grid=self.grid.observe(stats), ranges=ranges)
        if ranges.plan.to is not None:
            return replace(found, is_decided=True)
        held = found.grid.held
        return found if ranges.plan.reports else replace(found, ranges=None, due=2 * (held.r + held.s))
