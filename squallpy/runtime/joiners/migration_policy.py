"""Migration policies: what decides on the plan of each batch, from the statistics of those before."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from squallpy.base.json_codec import from_json
from squallpy.physical.distribute.heavy_key_placement import HEAVY_FRACTION
from squallpy.physical.joins.heavy_keys import initial_heavy_keys
from squallpy.physical.joins.joiner_groups import square_grids
from squallpy.physical.joins.mapping import Side, find_best_mapping
from squallpy.physical.joins.migration_controller import Controller, Policy, Sizes
from squallpy.physical.plan import Plan
from squallpy.runtime.joiners.band_policy import BandPolicy
from squallpy.runtime.joiners.band_positions import band_of
from squallpy.runtime.joiners.batch_plan import BatchPlan, KeyMoves, Steady
from squallpy.runtime.joiners.grid_migration_policy import MIN_LOAD_RATIO, GridPolicy
from squallpy.runtime.joiners.heavy_key_policy import MAX_MOVING_KEYS, KeyPolicy, observe_keys
from squallpy.runtime.joiners.hypercube_policy import open_hypercube_policy
from squallpy.runtime.joiners.range_policy import RangePolicy, open_range_policy


class MigrationPolicy(Protocol):
    """A dataclass with all that decides on the plan of a batch: it is stored with the checkpoint, as JSON."""

    @property
    def plan(self) -> BatchPlan:
        """Plan of the batch."""

    def figures(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """Report what `--metrics` prints of the batch that it was for."""

    def plan_batch(self, rows: Sizes) -> "MigrationPolicy":
        """Plan a batch that reads so many rows of each relation."""

    def observe(self, stats: Mapping[str, Any]) -> "MigrationPolicy":
        """Take in the statistics of the batch."""


def open_policy(
    plan: Plan,
    facts: Mapping[str, Any] | None = None,
    first: Mapping[str, int] | None = None,
    sample: Mapping[str, Mapping[str, int]] | None = None,
) -> MigrationPolicy | None:
    """Make the policy of a plan's join, where the last one stopped or before the first batch; None if nothing moves.

    Args:
        facts: The last policy, as JSON.
        first: Rows of each relation in the first batch. Its mapping is the one that is best for them: a bound on the
            load holds from the first tuple on only if tuples are counted before they are sent (docs/joins.md).
        sample: Statistics of keys in a sample of the first batch: those that are heavy there begin with a grid. Also of
            what a band compares; None: it stays on a grid.
    """
    if plan.hypercube:
        return open_hypercube_policy(plan, plan.hypercube, facts, first or {}, sample or {})
    if not plan.on_grid:
        return None
    if plan.grid is None:
        return _key_policy(plan, facts, sample or {})
    band = band_of(plan.band) if plan.band else None
    if facts and "ranges" in facts:
        return from_json(BandPolicy, facts)
    if facts and "ranges" in facts["plan"]:
        return replace(from_json(RangePolicy, facts), epsilon=plan.epsilon)
    if not facts and band and (by_ranges := open_range_policy(plan, band, plan.grid, sample or {})):
        return by_ranges
    limits = Policy(
        plan.epsilon, capacity=plan.capacity, most=1 << plan.partitions.bit_length() - 1, worth=MIN_LOAD_RATIO
    )
    if facts:
        policy = from_json(GridPolicy, facts)
        return replace(policy, controllers=tuple(replace(c, policy=limits) for c in policy.controllers))
    sizes, groups = rows_by_side(plan, first or {}), square_grids(plan.partitions) if plan.groups else (plan.grid,)
    grids = tuple(g.remap(find_best_mapping(g.joiners, sizes.r, sizes.s, g.mapping)) for g in groups)
    found = GridPolicy(Steady(grids), tuple(Controller(grid, limits) for grid in grids))
    return BandPolicy(found, band, plan.partitions) if band and sample is not None else found


def _key_policy(plan: Plan, facts: Mapping[str, Any] | None, sample: Mapping[str, Mapping[str, int]]) -> KeyPolicy:
    limits = Policy(min(1.0, 4 * plan.epsilon))  # for nothing comes while a key moves
    if facts:
        policy = from_json(KeyPolicy, facts)
        return replace(policy, keys=replace(policy.keys, policy=limits))
    keys = initial_heavy_keys(plan.partitions, HEAVY_FRACTION, limits, MAX_MOVING_KEYS)
    keys = keys.with_sampled_grids(observe_keys(keys, sample).decide()[0])
    return KeyPolicy(KeyMoves(tuple((key.key, key.place) for key in keys.keys)), keys)


def rows_by_side(plan: Plan, rows: Mapping[str, int]) -> Sizes:
    """Return for each side of the grid the rows of the largest relation that brings it tuples."""
    windows = {name: window.stream for name, window in plan.windows.items()}
    streams = {
        view.name: [windows.get(a.relation.name, a.relation.name) for a in view.atoms] for view in plan.program.views
    }
    brought = dict.fromkeys(Side, 0)
    for view in plan.on_grid:
        most = max((rows.get(name, 0) for name in streams[view.view]), default=0)
        brought[view.side] = max(brought[view.side], most)
    return Sizes(brought[Side.R], brought[Side.S])
