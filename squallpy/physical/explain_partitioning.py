"""Partitioning in EXPLAIN: where views are, how deltas are sent there, and each view's join operator with the reason.

M_ORDERS(o_orderkey, o_custkey) by o_orderkey
SEND ΔORDERS(o_orderkey, o_custkey) by o_orderkey as ΔORDERS.1
JOIN M_R, M_S on the grid: no equality compares them
JOIN M_ORDERS by o_orderkey, an equality: pre-aggregated deltas have few records per key
FIXPOINT N1 by x, which all rules copy: START likewise, EDGE at every partition
"""

from collections.abc import Iterator

from squallpy.base.settings import JoinOperator
from squallpy.physical.distribute.heavy_key_placement import HEAVY_FRACTION
from squallpy.physical.distribute.location_tags import COLUMNS, EVERYWHERE, RANDOM, ROWS
from squallpy.physical.joins.joiner_groups import square_grids
from squallpy.physical.plan import HYPERCUBE, BandPlan, CubePlan, Lookup, Plan, PoolPlan, Send, Update
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.program.variable_names import Names

_ON_GRID = (ROWS.value, COLUMNS.value)


def place_text(pool: PoolPlan, place: tuple[int, ...] | str | None, partitions: int | None = None) -> str:
    """Show where the records of a pool are: " by o_orderkey"; empty if that is not chosen.

    Args:
        partitions: The partitions that it is hashed over, if they are not all.
    """
    match place:
        case None:
            return ""
        case str():
            return f" {place}"
        case ():
            return " in one partition"
    over = "" if partitions is None else f" over {partitions}"
    return f" by {', '.join(pool.keys[i].name for i in place)}{over}"


def send_text(plan: Plan, send: Send, is_last: bool = False) -> str:
    """Show an exchange: ΔORDERS(o_orderkey, o_custkey) by o_custkey as ΔORDERS.1"""
    pool = plan.delta(send.source)
    names = Names(pool.keys)
    match send.keys:
        case None:
            to = "to every partition"
        case ():
            to = "to the driver" if is_last else "to one partition"
        case by:
            over = "" if send.partitions is None else f" over {send.partitions}"
            to = f"by {', '.join(names(pool.keys[i]) for i in by)}{over}"
    if send.key:
        compared = ", ".join(names(pool.keys[i]) for i in send.key)
        to = f"by {compared}, or if that is heavy to all joiners of its {'column' if send.side else 'row'}, {to}"
    elif send.cells:
        axes = (f"{names.list(tuple(pool.keys[i] for i in by))}" for _, by in send.cells)
        to = f"to all joiners of its cells, by {' and '.join(axes)}"
    elif send.side is not None:
        to = f"to all joiners of its {'column' if send.side else 'row'}, {to}"
    return f"{send.source}({names.list(pool.keys)}) {to}{'' if send.name == send.source else f' as {send.name}'}"


def join_lines(plan: Plan) -> list[str]:
    """Write a line for views that share operator and reason, in the order of the pools; then those of the grids."""
    found: dict[str, list[str]] = {}
    for pool in plan.pools:
        if plan.places and (bound := _list_bound_keys(plan, pool)):
            found.setdefault(_reason_of(plan, pool, bound), []).append(pool.name)
    joins = (f"JOIN {', '.join(names)} {how}" for how, names in found.items())
    return [*joins, *(fixpoint_lines(plan) if plan.places else ()), *_grids(plan)]


def fixpoint_lines(plan: Plan) -> list[str]:
    """Write a line for each fixpoint: how partitions divide its rows, or why they do not."""
    places, lines = dict(plan.places), list[str]()
    for feed in plan.feeds:
        if feed.auxiliary is None or not isinstance(kind := feed.auxiliary.kind, Fixpoint):
            continue
        name, view = feed.relation.name.upper(), feed.auxiliary.source.name
        if divided := plan.divisions.get(feed.relation.name):
            columns = [kind.columns_of(at) for at in range(len(kind.tables))]
            by = dict.fromkeys(c[at].name for c, of in zip(columns, divided.columns, strict=True) for at in of)
            leaves = [(leaf.name, divided.keys_of(at)) for at, leaf in enumerate(kind.leaves)]
            hashed = ", ".join(dict.fromkeys(name for name, keys in leaves if keys is not None))
            copied = ", ".join(dict.fromkeys(name for name, keys in leaves if keys is None))
            parts = [f"{hashed} likewise"] if hashed else []
            parts += [f"{copied} at every partition"] if copied else []
            how = f"by {', '.join(by)}, which all rules copy: {', '.join(parts)}"
        else:
            where = "at every partition" if places.get(view) == EVERYWHERE.value else "in one partition"
            how = f"{where}: {kind.why_whole or f'copies of {view} cost more'}"
        lines.append(f"FIXPOINT {name} {how}")
    return lines


def component_lines(plan: Plan) -> list[str]:
    """Write a line for each component of a plan put together by hand: its inputs, what is pinned, its views."""
    lines = []
    for component, views in plan.components:
        inputs = f" of {', '.join(component.inputs)}" if component.inputs else ""
        state = f"; {', '.join(views) or 'no state'}" if component.inputs else ""
        lines.append(f"COMPONENT {component}{inputs}: {component.choices}{state}")
    return lines


def _list_bound_keys(plan: Plan, pool: PoolPlan) -> list[frozenset[int]]:
    """List, for each lookup of a view, the positions of keys bound by an equality."""
    updates = [step for stage in plan.stages for step in stage.steps if isinstance(step, Update)]
    lookups = [step for u in updates for step in u.steps if isinstance(step, Lookup) and step.source == pool.name]
    return [frozenset(position for position, _ in lookup.bound_keys) for lookup in lookups]


def _reason_of(plan: Plan, pool: PoolPlan, bound: list[frozenset[int]]) -> str:
    place, set_ = dict(plan.places)[pool.name], _describe_settings(plan, pool)
    if place in _ON_GRID:
        return f"on the grid: {set_ or 'no equality compares them'}"
    if place == HYPERCUBE:
        return f"on the hypercube: {set_ or 'its relations cost less to copy than to join two at a time'}"
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


def _describe_settings(plan: Plan, pool: PoolPlan) -> str:
    """Describe what has been set for a view, not chosen."""
    if pool.name in plan.pinned_pools:
        return dict(plan.pins)[pool.name]
    return f"join.operator={plan.operator.value}" if plan.operator is not JoinOperator.AUTO else ""


def _light(plan: Plan, pool: PoolPlan) -> str:
    """Explain why keys have no grids, or when they get some."""
    if any(view.view == pool.name and view.key for view in plan.on_grid):
        return f"a key with more than 1/{1 / HEAVY_FRACTION:.0f} of the mean joiner's work gets a grid"
    if plan.hypercube is not None:
        return "beside a hypercube no keys have grids"
    return _describe_settings(plan, pool) or dict(plan.light)[pool.name]


def _grids(plan: Plan) -> Iterator[str]:
    """Describe the initial mapping of joiners, and whether it adapts."""
    if plan.hypercube is not None:
        moves = "one dimension at a time gives parts to another when that is better" if plan.on_grid else "it stays"
        yield f"{_hypercube_text(plan.hypercube)}; {moves}"
    if plan.band is not None:
        yield _band_text(plan, plan.band)
    if plan.grid is not None:
        views = [view.view for view in plan.on_grid]
        grows = ", and to four times as many joiners when they are half full" if plan.capacity else ""
        goes = f"{', '.join(views)} {'migrate' if len(views) > 1 else 'migrates'} to another when it is better{grows}"
        grids = square_grids(plan.partitions) if plan.groups else (plan.grid,)
        first = " and ".join(str(grid.mapping) for grid in grids)
        yield f"GRID {first} at first, rows by columns; {goes if views else 'it stays'}"


def _band_text(plan: Plan, band: BandPlan) -> str:
    """Show what a band compares, and when ranges of it partition the join."""
    name, keys = next((name, keys) for name, keys in band.keys if any(pool.name == name for pool in plan.pools))
    pool = next(pool for pool in plan.pools if pool.name == name)
    first = f" of each {', '.join(pool.keys[i].name for i in keys.equal)}" if keys.equal else ""
    when = "join.operator=Range" if plan.operator is JoinOperator.RANGE else "where a joiner has less than on the grid"
    return f"RANGES of {band.columns[0]} and {band.columns[1]}{first}: {when}; those that are heavy have grids"


def _hypercube_text(plan: CubePlan) -> str:
    """Show parts and load: HYPERCUBE r 2 by ticket × s 4 by ticket at first; a joiner has r/2 + s/4"""
    parts = zip(plan.dimensions, plan.cube.parts, strict=True)
    axes = (f"{name} {count} by {'hash' if equal else 'ticket'}" for (name, equal), count in parts)
    cuts = ((name, plan.cube.cuts(on)) for name, on in plan.relations)
    load = " + ".join(name if count == 1 else f"{name}/{count}" for name, count in cuts)
    return f"HYPERCUBE {' × '.join(axes)} at first; a joiner has {load}"
