"""RANGE, TUMBLE, SESSION, LANDMARK and ROWS behind a query block → Window nodes over the streams in it.

A window holds for its block and for all that is inside: subqueries, WITH queries, views. What has a window of its own
is under that one; under LANDMARK it sees all rows again.
"""

from dataclasses import field, replace

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import TIMESTAMP, VARCHAR, Kind
from squallpy.catalog.relation import Relation
from squallpy.catalog.window_spec import ARRIVAL, Clock, SessionExtent, WindowExtent, WindowSpec
from squallpy.frontend.unsupported import QUERIES
from squallpy.frontend.window_clause import CLAUSE, Clause, read_window
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime.intervals import DAY_MICROS
from squallpy.logical.coercion import coerce, convert
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Column, Expr, Literal
from squallpy.logical.nodes import Filter, Node, Scan, Window


@dataclass(frozen=True, slots=True)
class WindowScope:
    """The clause that holds where something is bound, its number among all, and the streams under it so far."""

    clause: Clause
    number: int
    streams: set[str] = field(default_factory=set)


def with_window(ctx: Context, node: exp.Query) -> Context:
    """Enter a block: the context is under the block's window, if it has one."""
    found = node.args.get(CLAUSE)
    if found is None:
        return ctx
    if isinstance(node.parent, exp.SetOperation) and node.arg_key == "expression":
        raise ctx.refuse(found, QUERIES["window after set"])
    start = ctx.query.start
    clause = read_window(ctx.query.script, start + found.meta["start"], start + found.meta["end"] + 1)
    return replace(ctx, window=WindowScope(clause, next(ctx.ids)))


def check_used(ctx: Context, node: exp.Query) -> None:
    """Refuse a window over no stream at all (SQ2010), once its block is bound."""
    if node.args.get(CLAUSE) is not None and ctx.window is not None and not ctx.window.streams:
        raise SquallError("SQ2010", "a window of no stream", ctx.window.clause.span, "static tables have none")
    around = ctx.window if node.args.get(CLAUSE) is not None else None
    if around and isinstance(around.clause.frame, SessionExtent) and len(around.streams) > 1:
        what = QUERIES["session of streams"]
        raise SquallError("SQ3001", f"{what.name} is not supported yet", around.clause.span, what.hint)


def apply_window(ctx: Context, scan: Scan) -> Node:
    """Put a stream under the window of its block; static tables have none."""
    around, relation = ctx.window, scan.relation
    if around is None or not relation.stream:
        return scan
    around.streams.add(relation.name)
    clause, frame = around.clause, around.clause.frame
    if frame is None and clause.since is None:
        return scan
    if frame is not None and frame.rows:
        if relation.has_deletes:
            what = QUERIES["rows of changes"]
            raise SquallError("SQ3001", f"{what.name}, is not supported yet", clause.span, what.hint)
        return Window(scan, _spec(relation, frame, ARRIVAL, 1, around), None)
    time = event_time(scan, clause)
    if frame is None:
        return Filter(scan, landmark_condition(time, clause))
    unit = DAY_MICROS if time.type.kind is Kind.DATE else 1
    return Window(scan, _spec(relation, frame, time.name, unit, around), time)


def _spec(
    relation: Relation, frame: WindowExtent | SessionExtent, field: str, unit: int, around: WindowScope
) -> WindowSpec:
    """Make the window with the clock of its own stream."""
    delay, is_timed = (0, False) if frame.rows else (relation.delay_micros, relation.is_timed)
    gap = max(1, frame.gap // unit) if isinstance(frame, SessionExtent) else 0
    clock = Clock(relation.name, field, unit, delay, is_timed, gap)
    return WindowSpec(relation.name, frame, field, unit, (clock,), around.number)


def event_time(scan: Scan, clause: Clause) -> Column:
    """Return the column that TIMESTAMP BY names; SQ2010 if there is none."""
    relation = scan.relation
    if relation.timestamp is None:
        message = f'"{relation.name}" has no event time for this window'
        raise SquallError("SQ2010", message, clause.span, "declare it with TIMESTAMP BY, or use ROWS")
    name = relation.timestamp.lower()
    return next(c for f, c in zip(relation.fields, scan.columns, strict=True) if f.name.lower() == name)


def landmark_condition(time: Column, clause: Clause) -> Expr:
    """Build the condition of a landmark: LANDMARK SINCE '2026-01-01'   →   time >= TIMESTAMP '2026-01-01'"""
    assert clause.since is not None
    try:
        moment = Literal(convert(clause.since, VARCHAR, TIMESTAMP), TIMESTAMP)
    except SquallError as error:
        raise error.at(clause.span) from None
    return call(">=", coerce(time, TIMESTAMP), moment)
