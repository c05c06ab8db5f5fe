"""Texts of physical plans: `squall explain triggers`, `physical` and `stages`."""

from collections.abc import Collection, Mapping, Sequence

from squallpy.base.rings import Payload
from squallpy.physical.explain_partitioning import component_lines, join_lines, place_text, send_text
from squallpy.physical.network_cost import traffic
from squallpy.physical.plan import Derive, FilterStep, Let, Lookup, Plan, PoolPlan, Stage, Update
from squallpy.physical.planner import place
from squallpy.physical.statement_cost import costs
from squallpy.program.explain_text import program_text
from squallpy.program.restrict import restrict, users_of_views
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.variable_names import Names


def triggers_text(program: TriggerProgram, titles: Sequence[Sequence[str]] = (), only: int | None = None) -> str:
    """Show the trigger program, with the cost of each statement for one tuple of its delta.

    Args:
        titles: The queries that each output is printed for; nothing where there is one query.
        only: The number of the output that is shown, with what it is maintained from; None: all.
    """
    users = users_of_views(program, titles)
    if only is not None:
        result = program.printed[only][1]
        titles = [title for (_, view), title in zip(program.printed, titles, strict=False) if view is result]
        program = restrict(program, {result.name})
    return program_text(program, costs(place(program, 1, {})), titles, users)


def plan_text(plan: Plan, with_components: bool = True) -> str:
    """Show feeds, stages with their statements as lookup steps and exchanges, pools with their layouts."""
    lines: list[str] = []
    auxiliary = ((feed.relation.name, feed.auxiliary) for feed in plan.feeds if feed.auxiliary)
    origins = {name: aux.kind.origin_text(aux.source.name) for name, aux in auxiliary}
    for feed in plan.sources:
        kind = "stream" if feed.relation.stream else "table"
        lines.append(f"FEED {kind} {feed.relation.name}({', '.join(feed.fields)})")
        lines += [f"  {pool_text(plan.delta(d.name))}" for d in feed.deltas]
    upserts = [f"UPSERTS {r.name} last rows at the hash of ({', '.join(r.primary_key)})" for r in plan.upserts]
    lines += upserts
    lines += [
        "",
        f"STAGE 1 where a batch is read{', of upserts at their partitions' if upserts else ''}",
        *_stage_lines(plan, plan.reading, origins),
    ]
    for number, stage in enumerate(plan.stages, 2):
        lines += ["", f"STAGE {number} on {_many(plan.partitions, 'partition')}", *_stage_lines(plan, stage, origins)]
    if plan.driver:
        lines += ["", "DRIVER", *_stage_lines(plan, plan.driver, origins)]
    places = dict(plan.places) | dict.fromkeys(plan.driver_pools, "on the driver")
    lines += ["", "POOLS"]
    unique = {view.view for view in plan.unique}
    over = dict(plan.spreads)
    pools = [(pool, place_text(pool, places.get(pool.name), over.get(pool.name))) for pool in plan.pools]
    lines += [f"  {pool_text(pool)}{where}{_checked(pool, unique)}" for pool, where in pools]
    own = [result for result in plan.results if result.name not in plan.partitioned]
    lines += [f"RESULT {'on' if plan.keeps_results else 'through'} the driver"] if own else []
    lines += [f"  {pool_text(result)}{_checked(result, unique)}" for result in own]
    for result in (result for result in plan.results if result.name in plan.partitioned):
        where = place_text(result, places[result.name]) if plan.keeps_results else ""
        lines += ["RESULT printed by partitions", f"  {pool_text(result)}{where}{_checked(result, unique)}"]
    lines += join_lines(plan)
    if with_components:
        lines += component_lines(plan)
    return "\n".join(lines) + "\n"


def _stage_lines(plan: Plan, stage: Stage, origins: Mapping[str, str]) -> list[str]:
    lines = []
    for step in stage.steps:
        match step:
            case Derive(relation):
                where = ", each partition its part" if step.divided else ""
                lines.append(f"  Δ{relation.upper()} from {origins[relation]}{where}")
            case Update():
                lines.append(f"  {update_text(step)}")
    lines += [f"  KEEP {name}" for name in stage.keeps]
    return lines + [f"  SEND {send_text(plan, send, stage is plan.stages[-1])}" for send in stage.sends]


def _checked(pool: PoolPlan, unique: Collection[str]) -> str:
    return ", PRIMARY KEY checked" if pool.name in unique else ""


def payload_text(payload: Payload) -> str:
    return f"⟨{', '.join(ring.name for ring in payload.rings)}⟩"


def pool_text(pool: PoolPlan) -> str:
    names = Names(pool.keys)
    group = f" index({', '.join(names(pool.keys[i]) for i in pool.group)})" if pool.group else ""
    slices = "".join(f" slice({', '.join(names(pool.keys[i]) for i in s)})" for s in pool.slices)
    orders = "".join(f" sorted({', '.join(names(pool.keys[i]) for i in o.columns)})" for o in pool.orders)
    alone = " only" if pool.is_ordered else ""
    return f"{pool.name}({names.list(pool.keys)}) {payload_text(pool.payload)}{group}{slices}{alone}{orders}"


def update_text(update: Update) -> str:
    """Show a statement's steps: Δ → probe V → slice W → add to target."""
    lookups = [step for step in update.steps if isinstance(step, Lookup)]
    along = [step.range.variable for step in lookups if step.range]
    rows = [v for step in lookups if step.row for _, v in step.row.fields]
    names = Names([*update.variables, *(v for step in lookups for _, v in step.binds), *along, *rows])
    steps = []
    for step in update.steps:
        match step:
            case Lookup(source, how, _, bound, range=ranged) as step:
                given = [names(v) for _, v in bound]
                given += [names.expr(side) for side in (ranged.rising, ranged.falling) if side] if ranged else []
                of = f"{step.row.relation.upper()}[{source}]" if step.row else source
                steps.append(f"{how} {of}({', '.join(given)})")
            case FilterStep(predicate):
                steps.append(f"where {names.expr(predicate)}")
            case Let(variable, value):
                steps.append(f"let {names(variable)} := {names.expr(value)}")
    kept = (
        ""
        if update.keep is None
        else f" here if the hash of ({', '.join(names(update.keys[i]) for i in update.keep)}) says so"
    )
    steps.append(f"add to {update.target}({names.list(update.keys)}){kept}")
    return f"{update.delta} → " + " → ".join(steps)


def stages_text(plan: Plan, yardstick: str = "") -> str:
    """Show the jobs and stages of one micro-batch on Spark, their exchanges, and the figures to compare with."""
    relations = ", ".join(feed.relation.name for feed in plan.sources)
    lines = [
        f"JOB 1 of 1 per batch, {_many(1 + plan.stages_of_partitions, 'stage')}",
        f"  STAGE 1  feed: read, filter, pre-aggregate {relations}; {_updates(plan.reading)}",
        *(f"    EXCHANGE  {send_text(plan, send)}" for send in plan.reading.sends),
    ]
    if plan.upserts:
        keys = ", ".join(f"{r.name}({', '.join(r.primary_key)})" for r in plan.upserts)
        lines.append(f"  STAGE 2  upserts: replace the last row of each key of {keys}, and feed what changes")
    for number, stage in enumerate(plan.stages, 2 + bool(plan.upserts)):
        where = _many(plan.partitions, "partition")
        lines.append(f"  STAGE {number}  apply: {_updates(stage)} in one block on {where}")
        is_last = stage is plan.stages[-1]
        how = "GATHER  " if is_last else "EXCHANGE"
        lines += [f"    {how}  {send_text(plan, send, is_last)}" for send in stage.sends]
    first = f"{_updates(plan.driver)}, " if plan.driver else ""
    sent = ", ".join(f"{name} {size:,.0f}" for name, size in traffic(plan).items())
    for result in plan.results if not plan.driver else ():
        if result.name in plan.partitioned:
            continue
        lines.append(f"    GATHER    Δ{result.name}({', '.join(c.name for c in result.keys)}) → driver")
    own = [result.name for result in plan.results if result.name not in plan.partitioned]
    added = ", ".join(f"Δ{name} to {name}" for name in own)
    prints = [f"add {added}, print what changed"] if own else []
    prints += [f"commit what partitions print of {', '.join(plan.partitioned)}"] if plan.partitioned else []
    lines += [f"  DRIVER   {first}{'; '.join(prints)}", f"EXCHANGED, estimated bytes per tuple: {sent}"]
    lines += join_lines(plan)
    over = dict(plan.spreads)
    fixed = [(pool, dict(plan.places)[pool.name]) for pool in plan.pools if pool.name in plan.pinned_pools]
    for pool, at in fixed:
        lines.append(f"PLACED as set: {pool_text(pool)}{place_text(pool, at, over.get(pool.name))}")
    return "\n".join([*lines, *([f"YARDSTICK {yardstick}"] if yardstick else []), ""])


def _updates(stage: Stage) -> str:
    return _many(sum(isinstance(step, Update) for step in stage.steps), "statement")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
