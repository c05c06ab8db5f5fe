"""Migration policy of joins on a hypercube: one dimension at a time gives half of its parts to another."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from squallpy.base.json_codec import from_json
from squallpy.base.records import dataclass
from squallpy.physical.joins.hypercube import Hypercube, Input, find_best_hypercube
from squallpy.physical.joins.migration_controller import Sizes
from squallpy.physical.plan import CubePlan, Plan
from squallpy.runtime.joiners.batch_plan import OnHypercube
from squallpy.runtime.joiners.grid_migration_policy import MIN_LOAD_RATIO
from squallpy.runtime.joiners.joiner_statistics import JoinerStatistics, skew, total


@dataclass(frozen=True, slots=True)
class HypercubePolicy:
    """Policy that moves a bit of joiners' numbers to another dimension, between two batches.

    A decision is due when the tuples have changed by the fraction epsilon since the one before; then bits move with
    each batch until no move of one makes the load smaller.

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
            return {"mapping": list(cube.parts)}
        load, least = (
            cube.load(now._inputs),
            find_best_hypercube(cube.joiners, len(cube.bits), now._inputs).load(now._inputs),
        )
        return {
            "mapping": list(cube.parts), "epoch": self.moved, "ilf": load, "ilf_ratio": load / least if least else 1.0,
            "busiest": skew(stats["joiners"], cube.joiners),
        }  # fmt: skip

    def plan_batch(self, rows: Sizes) -> "HypercubePolicy":
        """Keep the plan, which does not depend on how many rows come."""
        return self

    def observe(self, stats: Mapping[str, Any]) -> "HypercubePolicy":
        """Plan the next batch."""
        found, move = self._observe(stats), self.plan.move
        plan = OnHypercube(self.plan.to or self.plan.cube, arriving=move)
        found = replace(found, plan=plan, moved=self.moved + (move is not None))
        size = sum(found.held)
        if not size or (move is None and abs(size - found.decided) < found.epsilon * found.decided):
            return found
        return replace(found, plan=replace(plan, to=_better(plan.cube, found._inputs)), decided=size)

    @property
    def _inputs(self) -> list[Input]:
        return [(size, on) for size, (_, on) in zip(self.held, self.views, strict=True)]

    def _observe(self, stats: Mapping[str, Any]) -> "HypercubePolicy":
        """Count the tuples of each view, each once."""
        if not self.views:
            return self
        joiners: JoinerStatistics = stats["joiners"]
        held = tuple(total(joiners, view) / self.plan.cube.copies(on) for view, on in self.views)
        return replace(self, held=held)


def _better(cube: Hypercube, inputs: list[Input]) -> Hypercube | None:
    """Find the move of a bit that saves most; None if the parts are nearly the best already."""
    load, least = cube.load(inputs), find_best_hypercube(cube.joiners, len(cube.bits), inputs).load(inputs)
    if load < MIN_LOAD_RATIO * least:
        return None
    moves = [cube.move_bit(*pair) for pair in permutations(range(len(cube.bits)), 2) if cube.bits[pair[0]]]
    best = min(moves, key=lambda moved: moved.load(inputs), default=cube)
    return best if best.load(inputs) < load else None


def open_hypercube_policy(
    plan: Plan, cube_plan: CubePlan, facts: Mapping[str, Any] | None, first: Mapping[str, int]
) -> HypercubePolicy:
    """Make the policy of a hypercube where the last one stopped, or with the best parts for the first batch.

    Args:
        first: Rows of each relation in the first batch, by which to begin where the plan had no sizes.
    """
    if facts:
        return replace(from_json(HypercubePolicy, facts), epsilon=plan.epsilon)
    cube, names = cube_plan.cube, {name: window.stream for name, window in plan.windows.items()}
    inputs = [(float(first.get(names.get(name, name), 0)), on) for name, on in cube_plan.relations]
    if not cube_plan.is_sized and any(size for size, _ in inputs):
        cube = find_best_hypercube(cube.joiners, len(cube.bits), inputs)
    views = cube_plan.views if plan.on_grid else ()
    return HypercubePolicy(OnHypercube(cube), views, plan.epsilon)
