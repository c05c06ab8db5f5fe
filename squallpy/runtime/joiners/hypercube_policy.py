"""Migration policy of joins on a hypercube: one dimension at a time gives half of its parts to another."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from squallpy.base.json_codec import from_json
from squallpy.base.records import dataclass
from squallpy.physical.distribute.heavy_key_placement import HEAVY_FRACTION
from squallpy.physical.joins.heavy_cells import Counted, HeavyCell, find_heavy_cells
from squallpy.physical.joins.hypercube import Hypercube, JoinInput, find_best_hypercube
from squallpy.physical.joins.migration_controller import Sizes
from squallpy.physical.plan import CubePlan, Plan
from squallpy.runtime.joiners.batch_plan import OnHypercube
from squallpy.runtime.joiners.grid_migration_policy import MIN_LOAD_RATIO
from squallpy.runtime.joiners.joiner_statistics import OTHER_KEYS, JoinerStatistics, loads, skew, total

MAX_LOAD_RATIO = 1.25  # of the load by that with the best parts: then a decision does not wait for more tuples


@dataclass(frozen=True, slots=True)
class HypercubePolicy:
    """Policy that moves a bit of joiners' numbers to another dimension, between two batches.

    A decision is due when the tuples have changed by the fraction epsilon since the one before, or when the load is
    more than MAX_LOAD_RATIO times the best; then bits move with each batch until no move of one makes the load smaller.
    It was nearly the best after the last move, so since then joiners got or lost a constant part of what they may move.

    Args:
        views: The views on the hypercube, each with its dimensions; none if records cannot move.
        held: Tuples of each view.
        decided: Tuples of all views at the last decision.
        moved: Moves so far.
    """

    plan: OnHypercube
    views: tuple[tuple[str, tuple[int, ...]], ...]
    epsilon: float
    held: tuple[float, ...] = ()
    decided: float = 0.0
    moved: int = 0

    def figures(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """Report the parts along each dimension and the load of the batch that it was for."""
        cube, now = self.plan.cube, self._observe(stats)
        if not now.held:
            return {"mapping": list(cube.parts), "heavy_keys": len(self.plan.heavy)}
        return {
            "mapping": list(cube.parts), "epoch": self.moved, "ilf": cube.load(now._inputs), "ilf_ratio": now._ratio,
            "busiest": skew(stats["joiners"], cube.joiners), "loads": loads(stats["joiners"], cube.joiners),
            "heavy_keys": len(self.plan.heavy),
        }  # fmt: skip

    def plan_batch(self, rows: Sizes) -> "HypercubePolicy":
        """Keep the plan, which does not depend on how many rows come."""
        return self

    def observe(self, stats: Mapping[str, Any]) -> "HypercubePolicy":
        """Plan the next batch."""
        found, move = self._observe(stats), self.plan.move
        plan = OnHypercube(self.plan.to or self.plan.cube, self.plan.heavy, arriving=move)
        found = replace(found, plan=plan, moved=self.moved + (move is not None))
        size = sum(found.held)
        is_due = move is not None or abs(size - found.decided) >= found.epsilon * found.decided
        if not size or not (is_due or found._ratio > MAX_LOAD_RATIO):
            return found
        fixed = {cell.dimension for cell in plan.heavy}
        return replace(found, plan=replace(plan, to=_better(plan.cube, found._inputs, fixed)), decided=size)

    @property
    def _inputs(self) -> list[JoinInput]:
        return [(size, on) for size, (_, on) in zip(self.held, self.views, strict=True)]

    @property
    def _ratio(self) -> float:
        """The load by that with the best parts."""
        cube, inputs = self.plan.cube, self._inputs
        least = find_best_hypercube(cube.joiners, len(cube.bits), inputs).load(inputs)
        return cube.load(inputs) / least if least else 1.0

    def _observe(self, stats: Mapping[str, Any]) -> "HypercubePolicy":
        """Count the tuples of each view, each once."""
        if not self.views:
            return self
        joiners: JoinerStatistics = stats["joiners"]
        held = tuple(total(joiners, view) / self.plan.cube.copies(on) for view, on in self.views)
        return replace(self, held=held)


def _better(cube: Hypercube, inputs: list[JoinInput], fixed: Collection[int]) -> Hypercube | None:
    """Find the move of a bit that saves most; None if the parts are nearly the best already.

    Args:
        fixed: Dimensions whose bits do not move, as heavy keys have cells there.
    """
    load, least = cube.load(inputs), find_best_hypercube(cube.joiners, len(cube.bits), inputs).load(inputs)
    if load < MIN_LOAD_RATIO * least:
        return None
    free = [dimension for dimension in range(len(cube.bits)) if dimension not in fixed]
    moves = [cube.move_bit(*pair) for pair in permutations(free, 2) if cube.bits[pair[0]]]
    best = min(moves, key=lambda moved: moved.load(inputs), default=cube)
    return best if best.load(inputs) < load else None


def open_hypercube_policy(
    plan: Plan,
    cube_plan: CubePlan,
    facts: Mapping[str, Any] | None,
    first: Mapping[str, int],
    sample: Mapping[str, Mapping[str, int]],
) -> HypercubePolicy:
    """Make the policy of a hypercube where the last one stopped, or with the best parts for the first batch.

    Args:
        first: Rows of each relation in the first batch, by which to begin where the plan had no sizes.
        sample: Frequent keys of each relation in a sample of the first batch, by which keys are heavy (`cell_keys_of`).
    """
    if facts:
        return replace(from_json(HypercubePolicy, facts), epsilon=plan.epsilon)
    cube, names = cube_plan.cube, {name: window.stream for name, window in plan.windows.items()}
    inputs = [(float(first.get(names.get(name, name), 0)), on) for name, on in cube_plan.relations]
    if not cube_plan.is_sized and any(size for size, _ in inputs):
        cube = find_best_hypercube(cube.joiners, len(cube.bits), inputs)
    views = cube_plan.views if plan.on_grid else ()
    return HypercubePolicy(OnHypercube(cube, _heavy_cells(plan, cube_plan, cube, sample)), views, plan.epsilon)


def _heavy_cells(
    plan: Plan, cube_plan: CubePlan, cube: Hypercube, sample: Mapping[str, Mapping[str, int]]
) -> tuple[HeavyCell, ...]:
    """Find the keys of equalities that are heavy in a sample; none where a tuple's ticket is not known everywhere."""
    deltas, sends = {name for name, _, _ in cube_plan.tickets}, (*plan.reading.sends,)
    sends = (*sends, *(send for stage in plan.stages for send in stage.sends))
    if not sample or any(send.cells and send.source not in deltas for send in sends):
        return ()
    on = dict(cube_plan.relations)
    limit = HEAVY_FRACTION * cube.load([(of.get(OTHER_KEYS, 0), on[name]) for name, of in sample.items()])
    found = list[HeavyCell]()
    for dimension, (_, is_equality) in enumerate(cube_plan.dimensions):
        names = [name for name, dimensions in on.items() if dimension in dimensions]  # NB: also those without rows yet
        if is_equality:
            counted = [Counted(name, _keys_on(dimension, sample.get(name, {}))) for name in names]
            cuts = {name: float(cube.cuts(each for each in on[name] if each != dimension)) for name in names}
            found += find_heavy_cells(cube, dimension, counted, cuts, limit)
    return tuple(found)


def _keys_on(dimension: int, counts: Mapping[str, int]) -> dict[int, int]:
    """Select the keys of a dimension in what a sample reports of a relation."""
    prefix = f"{dimension} "
    return {int(key.removeprefix(prefix)): count for key, count in counts.items() if key.startswith(prefix)}
