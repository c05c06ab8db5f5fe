"""Explanation of join operators: for each view that is looked up, its operator and the reason.

JOIN M_R, M_S on the grid: no equality compares them
JOIN M_ORDERS by o_orderkey, an equality: pre-aggregated deltas have few records per key
"""

from collections.abc import Iterator

from squallpy.base.settings import JoinOperator
from squallpy.physical.distribute.heavy_key_placement import SHARE
from squallpy.physical.distribute.location_tags import COLUMNS, EVERYWHERE, RANDOM, ROWS
from squallpy.physical.joins.joiner_groups import square_grids
from squallpy.physical.plan import Lookup, Plan, PoolPlan, Update

_ON_GRID = (ROWS.value, COLUMNS.value)


def join_lines(plan: Plan) -> list[str]:
    """Write a line for views that share operator and reason, in the order of the pools; then those of the grids."""
    found: dict[str, list[str]] = {}
    for pool in plan.pools:
        if plan.places and (bound := _bound(plan, pool)):
            found.setdefault(_how(plan, pool, bound), []).append(pool.name)
    return [*(f"JOIN {', '.join(names)} {how}" for how, names in found.items()), *_grids(plan)]


def _bound(plan: Plan, pool: PoolPlan) -> list[frozenset[int]]:
    """List, for each lookup of a view, the positions of keys bound by an equality."""
    updates = [step for stage in plan.stages for step in stage.steps if isinstance(step, Update)]
    lookups = [step for u in updates for step in u.steps if isinstance(step, Lookup) and step.source == pool.name]
    return [frozenset(position for position, _ in lookup.bound) for lookup in lookups]


def _how(plan: Plan, pool: PoolPlan, bound: list[frozenset[int]]) -> str:
    place, set_ = dict(plan.places)[pool.name], _set(plan, pool)
    if place in _ON_GRID:
        return f"on the grid: {set_ or 'no equality compares them'}"
    if place == EVERYWHERE.value:
        return f"everywhere: {set_ or 'copies cost less than sending their join partners'}"
    if place == ():
        return f"in one partition: {set_ or 'which keeps its groups whole'}"
    alike = place != RANDOM.value and [set(place) <= positions for positions in bound]
    if alike and any(alike):
        by = ", ".join(pool.keys[i].name for i in place if isinstance(i, int))
        others = "" if all(alike) else ", and by broadcast deltas"
        return f"by {by}, an equality{others}: {_light(plan, pool)}"
    return f"where it arises: {set_ or 'broadcasting its join partners costs less'}"


def _set(plan: Plan, pool: PoolPlan) -> str:
    """Describe what has been set for a view, not chosen."""
    if pool.name in plan.fixed:
        return f"partition.{pool.name} is set"
    return f"join.operator={plan.operator.value}" if plan.operator is not JoinOperator.AUTO else ""


def _light(plan: Plan, pool: PoolPlan) -> str:
    """Explain why keys have no grids, or when they get some."""
    if any(view.view == pool.name and view.key for view in plan.on_grid):
        return f"a key with more than 1/{1 / SHARE:.0f} of the mean joiner's work gets a grid"
    return _set(plan, pool) or dict(plan.light)[pool.name]


def _grids(plan: Plan) -> Iterator[str]:
    """Describe the initial mapping of joiners, and whether it adapts."""
    if plan.grid is not None:
        views = [view.view for view in plan.on_grid]
        grows = ", and to four times as many joiners when they are half full" if plan.capacity else ""
        goes = f"{', '.join(views)} {'migrate' if len(views) > 1 else 'migrates'} to another when it is better{grows}"
        grids = square_grids(plan.partitions) if plan.groups else (plan.grid,)
        first = " and ".join(str(grid.mapping) for grid in grids)
        yield f"GRID {first} at first, rows by columns; {goes if views else 'it stays'}"
