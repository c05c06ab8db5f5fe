"""Temporal filters, conditions of WHERE that compare a time with NOW(): rows come and go as the time of batches does.

    at > NOW() - INTERVAL '1' HOUR AND at <= NOW()     →     Window at > NOW() − 1 HOUR AND at <= NOW() (Scan r)
    at + INTERVAL n MINUTE > NOW()                     →     the same of a column that is computed
    d >= DATE_TRUNC('MONTH', CURRENT_DATE)             →     Window d >= DATE_TRUNC('MONTH', DATE_TRUNC('DAY', NOW()))
    d = CURRENT_DATE                                   →     Window d >= … AND d <= DATE_TRUNC('DAY', NOW())
    NOT at < NOW()                                     →     Window at >= NOW()
    d IS NULL OR d > NOW()                             →     Window COALESCE(d, TIMESTAMP '9999-12-31') > NOW()

NOW() is the time of the batch. It is a call of `now`, which stands in no plan: the conditions that read it become
windows around the input that has the time.
"""

from dataclasses import replace

from sqlglot import exp

from squallpy.base.types import DATE, TIMESTAMP
from squallpy.catalog.durations import DAY
from squallpy.catalog.now_moments import NowBound, Shift, Truncation
from squallpy.catalog.window_spec import NOW, NowExtent, WindowSpec
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.apply import Apply
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime import intervals
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.coercion import cast, coerce
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import (
    MIRRORED,
    OPPOSITE,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    children,
    columns,
    conjuncts,
    disjuncts,
)
from squallpy.logical.nodes import ConditionalJoin, Filter, Join, Node, Project, Scan, Window
from squallpy.logical.retractions import is_static

NAMES = ("NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURDATE")
_DATES = ("CURRENT_DATE", "CURDATE")
_NOW = Call("now", (), TIMESTAMP, False)
_EARLIEST, _LATEST = Literal(-719162 * DAY, TIMESTAMP), Literal(2932896 * DAY, TIMESTAMP)  # 0001-01-01, 9999-12-31


def bind_now(s: Scalars, node: exp.Expr) -> Expr:
    """Bind NOW(), or CURRENT_DATE, its day, which stands in WHERE alone."""
    is_date = isinstance(node, exp.CurrentDate) or node.name.upper() in _DATES
    if not s.has_time:
        refusal = QUERIES["NOW"]
        if not isinstance(node, exp.Anonymous):
            name = "CURRENT_DATE" if is_date else "CURRENT_TIMESTAMP"
            refusal = replace(refusal, name=refusal.name.replace("NOW()", name), keyword=name)
        raise s.ctx.refuse(node, refusal)
    return cast(_NOW, DATE) if is_date else _NOW


def reads_now(expr: Expr) -> bool:
    return expr == _NOW or any(map(reads_now, children(expr)))


def split_negation(condition: Expr) -> list[Expr]:
    """Split a condition into those that all have to be TRUE: NOT (a OR b)  →  NOT a, NOT b"""
    match condition:
        case Call("not", (Call("not", (same,)),)):
            return [part for each in conjuncts(same) for part in split_negation(each)]
        case Call("not", (Call("or") as some,)):
            return [part for each in disjuncts(some) for part in split_negation(call("not", each))]
    return [condition]


def apply_temporal_filters(ctx: Context, plan: Node, conditions: list[Expr], clause: exp.Expr) -> Node:
    """Put the windows of conditions that read NOW() around the inputs that have the times."""
    bounds: dict[Expr, list[tuple[bool, NowBound]]] = {}
    for condition in conditions:
        found = _bounds(condition)
        if not found:
            raise ctx.refuse(_find_now(clause), QUERIES["NOW in a condition"])
        for time, is_low, bound in found:
            bounds.setdefault(time, []).append((is_low, bound))
    for time, some in bounds.items():
        lows, highs = ([bound for low, bound in some if low is side] for side in (True, False))
        for i in range(max(len(lows), len(highs))):
            extent = NowExtent(*(each[i] if i < len(each) else None for each in (lows, highs)))
            placed = _place(ctx, plan, time, extent)
            if placed is None:
                is_outer = not {c.id for c in columns(time)} <= plan.ids or plan.borrows
                raise ctx.refuse(_find_now(clause), QUERIES["NOW around" if is_outer else "NOW of tables"])
            plan = placed
    return plan


def refuse_now(ctx: Context, clause: exp.Expr) -> None:
    """Refuse NOW() in a condition that reads a subquery."""
    raise ctx.refuse(_find_now(clause), QUERIES["NOW in a condition"])


def _find_now(clause: exp.Expr) -> exp.Expr:
    """Find where NOW() stands in a clause."""
    found = (
        n for n in clause.walk() if isinstance(n, exp.CurrentTimestamp | exp.CurrentDate) or n.name.upper() in NAMES
    )
    return next(found, clause)


def _bounds(condition: Expr) -> list[tuple[Expr, bool, NowBound]]:
    """Match a comparison of a time with NOW() as bounds: of which time, whether from below, and by what."""
    match condition:
        case Call("<" | "<=" | ">" | ">=" | "=" as name, (a, b)):
            (time, moment), op = ((a, b), str(name)) if reads_now(b) else ((b, a), MIRRORED.get(name, "="))
            steps = _steps(moment)
            if steps is not None and columns(time) and not reads_now(time) and time.type.is_temporal:
                bound, sides = NowBound(steps, op in ("<=", ">=", "=")), {">": [True], "<": [False], "=": [True, False]}
                return [(coerce(time, TIMESTAMP), is_low, bound) for is_low in sides[op[0]]]
        case Call("not", (Call("<" | "<=" | ">" | ">=" as name, (a, b)),)):
            return _bounds(call(OPPOSITE[name], a, b))
        case Call("or", (Call("is_null", (time,)), other)) | Call("or", (other, Call("is_null", (time,)))):
            found = _bounds(other)
            if len(found) == 1 and found[0][0] == (at := coerce(time, TIMESTAMP)):
                ((_, is_low, bound),) = found
                return [(coalesce(at, _LATEST if is_low else _EARLIEST), is_low, bound)]
    return []


def _steps(expr: Expr) -> tuple[Shift | Truncation, ...] | None:
    """Match what is computed of NOW() as steps from it; None for anything else."""
    match expr:
        case Call("now"):
            return ()
        case Cast(below) if expr.type == TIMESTAMP:
            return _steps(below)
        case Cast(below) if expr.type == DATE:
            return _then(below, Truncation("DAY", DAY))
        case Call("trunc", (below, Literal(str() as unit))):
            return _then(below, Truncation(unit.upper()))
        case Call("trunc_time", (below, Literal(int() as micros))):
            unit = next(name for name, (_, _, size) in intervals.UNITS.items() if size == micros)
            return _then(below, Truncation(unit, micros))
        case Call("add_days", (below, Literal(int() as days))):
            return _then(below, Shift(micros=days * DAY))
        case Call("add_micros", (below, Literal(int() as micros))):
            return _then(below, Shift(micros=micros))
        case Call("add_months", (below, Literal(int() as months))):
            return _then(below, Shift(months=months))
    return None


def _then(below: Expr, step: Shift | Truncation) -> tuple[Shift | Truncation, ...] | None:
    """Add a step to those of what is below; shifts by lengths are one."""
    steps = _steps(below)
    if steps and isinstance(step, Shift) and isinstance(last := steps[-1], Shift):
        if not step.months:
            return (*steps[:-1], replace(last, micros=last.micros + step.micros))
        if not last.micros:
            return (*steps[:-1], Shift(last.months + step.months))
    return None if steps is None else (*steps, step)


def _place(ctx: Context, plan: Node, time: Expr, extent: NowExtent) -> Node | None:
    """Put a window around the input that has the time; None if it is of static tables, or of the outer query."""
    read = {c.id for c in columns(time)}
    match plan:
        case Filter(child):
            below = _place(ctx, child, time, extent)
            return below and replace(plan, child=below)
        case Join(left, right) if read <= right.ids and not read <= left.ids and not is_static(right):
            below = _place(ctx, right, time, extent)
            return below and replace(plan, right=below)
        case Join(left) | ConditionalJoin(left) | Apply(left) if read <= left.ids and not is_static(left):
            below = _place(ctx, left, time, extent)
            return below and replace(plan, left=below)
    if is_static(plan) or not read <= plan.ids or (plan.borrows and not isinstance(plan, Scan)):
        return None
    if isinstance(time, Column):
        return Window(plan, _spec(ctx, plan, extent, time), time)
    at = ctx.column("at", TIMESTAMP, time.nullable)
    kept = tuple((c, c) for c in plan.output)
    return Project(Window(Project(plan, (*kept, (at, time))), _spec(ctx, plan, extent, at), at), kept)


def _spec(ctx: Context, plan: Node, extent: NowExtent, time: Column) -> WindowSpec:
    stream = plan.relation.name if isinstance(plan, Scan) else ""
    return WindowSpec(stream, extent, time.name, 1, (NOW,), next(ctx.ids))
