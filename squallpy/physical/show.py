"""Physical plans as people read them: `squall explain triggers`, `physical` and `stages`."""

from squallpy.base.rings import Payload
from squallpy.maintain.relational.show import Names, program_text
from squallpy.physical.cost import costs
from squallpy.physical.plan import Feed, Let, Lookup, Plan, PoolPlan, Route, Update, Where


def triggers_text(plan: Plan) -> str:
    """The trigger program, with what one tuple of its delta costs each statement."""
    return program_text(plan.program, costs(plan))


def plan_text(plan: Plan) -> str:
    """Components: feeds with their routes, pools with their layouts, statements as lookup steps."""
    lines = [f"PARTITIONS {plan.partitions}", ""]
    for feed, updates, each in zip(plan.feeds, plan.updates, costs(plan), strict=True):
        kind = "stream" if feed.relation.stream else "table"
        whence = f"← {feed.nested.source.name}    [{each[0]}]" if feed.nested else f"→ {route_text(feed.route)}"
        lines.append(f"FEED {kind} {feed.relation.name}({', '.join(feed.fields)}) {whence}")
        for delta in feed.deltas:
            lines.append(
                f"  {delta.name}({Names(delta.keys).list(delta.keys)}) {payload_text(plan.delta(delta.name).payload)}"
            )
        priced = zip(updates, each[len(each) - len(updates) :], strict=True)
        lines += [f"    {update_text(update)}    [{cost}]" for update, cost in priced]
        lines.append("")
    lines.append("POOLS")
    lines += [f"  {pool_text(pool)}" for pool in plan.pools]
    lines.append("RESULT on the driver")
    lines.append(f"  {pool_text(plan.result)}")
    return "\n".join(lines) + "\n"


def route_text(route: Route) -> str:
    match route.fields:
        case None:
            return "every partition"
        case ():
            return "partition by row"
    return f"partition by {', '.join(route.fields)}"


def payload_text(payload: Payload) -> str:
    return f"⟨{', '.join(ring.name for ring in payload.rings)}⟩"


def pool_text(pool: PoolPlan) -> str:
    names = Names(pool.keys)
    slices = "".join(f" slice({', '.join(names(pool.keys[i]) for i in s)})" for s in pool.slices)
    orders = "".join(f" sorted({', '.join(names(pool.keys[i]) for i in o.columns)})" for o in pool.orders)
    return f"{pool.name}({names.list(pool.keys)}) {payload_text(pool.payload)}{slices}{orders}"


def update_text(update: Update) -> str:
    """Δ → probe V → slice W → add to target."""
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
                of = f"{step.row.nest.upper()}[{source}]" if step.row else source
                steps.append(f"{how} {of}({', '.join(given)})")
            case Where(predicate):
                steps.append(f"where {names.expr(predicate)}")
            case Let(variable, value):
                steps.append(f"let {names(variable)} := {names.expr(value)}")
    steps.append(f"add to {update.target}({names.list(update.keys)})")
    return f"{update.delta} → " + " → ".join(steps)


def stages_text(plan: Plan) -> str:
    """The jobs and stages of one micro-batch on Spark."""
    exchanged = [_sent(feed) for feed in plan.sources]
    statements = sum(len(updates) for updates in plan.updates)
    return "\n".join(
        [
            "JOB 1 of 1 per batch, 2 stages",
            f"  STAGE 1  feed: read, filter, pre-aggregate {', '.join(f.relation.name for f in plan.sources)}",
            *(f"    EXCHANGE  {line}" for line in exchanged),
            f"  STAGE 2  apply: {statements} statements in one block on {plan.partitions} partitions",
            f"    GATHER    ΔQ({', '.join(c.name for c in plan.result.keys)}) → driver",
            "  DRIVER   add ΔQ to Q, print what changed",
            "",
        ]
    )


def _sent(feed: Feed) -> str:
    deltas = ", ".join(f"{d.name}({', '.join(c.name for c in d.keys)})" for d in feed.deltas)
    return f"{deltas} → {route_text(feed.route)}"
