"""Windowing table functions: the rows of a table, each once for every window of time that it is in.

    TABLE(TUMBLE(TABLE r, DESCRIPTOR(at), size))           →  Project(…, start, end (Scan r)): windows side by side
    TABLE(HOP(TABLE r, DESCRIPTOR(at), slide, size))       →  Scan r·at: rows for windows that overlap (`explode.py`)
    TABLE(CUMULATE(TABLE r, DESCRIPTOR(at), step, size))   →  Scan r·at: for windows that begin together and grow
    TABLE(SESSION(TABLE r PARTITION BY k, DESCRIPTOR(at), gap))  →  SessionWindow start, last by k (Scan r)

They have the columns of the table, then `window_start`, `window_end` and `window_time`, the last millisecond of the
window. Names and order of arguments are Flink's; TABLE and DESCRIPTOR may be left out, as in RisingWave. A row without
a time is in no window.
"""

from typing import TypeGuard

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, TIMESTAMP
from squallpy.catalog.relation import Cumulations, Hops
from squallpy.frontend.dialect import WINDOWING, is_call
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime.calendar import last_multiple
from squallpy.logical.bind.explode import in_windows
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.time_buckets import length_of
from squallpy.logical.coercion import coerce
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, Literal, not_null
from squallpy.logical.nodes import Filter, Node, Project
from squallpy.logical.session_windows import SessionWindow

COLUMNS = ("window_start", "window_end", "window_time")
PARAMETERS = {
    "TUMBLE": ("data", "timecol", "size"),
    "HOP": ("data", "timecol", "slide", "size"),
    "CUMULATE": ("data", "timecol", "step", "size"),
    "SESSION": ("data", "timecol", "gap"),
}
OFFSET = "offset"  # of all but sessions
MILLISECOND = 1_000


@dataclass(frozen=True)
class WindowingCall:
    """A call of a windowing table function, its arguments by their names."""

    node: exp.Anonymous
    arguments: dict[str, exp.Expr]

    @property
    def name(self) -> str:
        return self.node.name.upper()

    @property
    def source(self) -> exp.Expr:
        """The table or query whose rows it reads."""
        source: exp.Expr = self.arguments["data"].expressions[0]
        return source

    @property
    def keys(self) -> list[exp.Expr]:
        """The expressions by which its table is partitioned."""
        return self.arguments["data"].expressions[1:]


def is_windowing(node: exp.Expr) -> TypeGuard[exp.Table]:
    """True if a source of FROM is a windowing table function."""
    return isinstance(node, exp.Table) and is_call(node.this, *WINDOWING)


def read_call(ctx: Context, node: exp.Table) -> WindowingCall:
    """Find the arguments of a windowing table function; SQ2005 if they are not its."""
    called = node.this
    name = called.name.upper()
    names = (*PARAMETERS[name], OFFSET) if name != "SESSION" else PARAMETERS[name]
    given = dict[str, exp.Expr]()
    for place, argument in enumerate(called.expressions):
        is_named = isinstance(argument, exp.Kwarg)
        key = argument.this.name.lower() if is_named else names[place] if place < len(names) else ""
        if key not in names or key in given:
            raise _misuse(ctx, name, f"{name} takes no such argument", argument)
        given[key] = argument.expression if is_named else argument
    if missing := [key for key in PARAMETERS[name] if key not in given]:
        raise _misuse(ctx, name, f"{name} lacks its {missing[0]}", called)
    if not is_call(given["data"], "TABLE"):
        raise _misuse(ctx, name, f"{name} reads a table", given["data"])
    time = given["timecol"]
    if is_call(time, "DESCRIPTOR"):
        if len(time.expressions) != 1:
            raise _misuse(ctx, name, "DESCRIPTOR names one column", time)
        given["timecol"] = time.expressions[0]
    if not isinstance(given["timecol"], exp.Column):
        raise _misuse(ctx, name, f"{name} is by a column", time)
    made = WindowingCall(called, given)
    if made.keys and name != "SESSION":
        raise _misuse(ctx, name, f"{name} has the same windows for all rows: PARTITION BY is of SESSION", made.keys[0])
    return made


def add_windows(s: Scalars, plan: Node, written: WindowingCall) -> Node:
    """Extend rows by their windows; the scope names their columns."""
    ctx, arguments = s.ctx, written.arguments
    at = s.bind(arguments["timecol"])
    if not at.type.is_temporal:
        message = f"{written.name} of a {at.type}, which is no time"
        raise SquallError("SQ2005", message, ctx.span(arguments["timecol"]), "take a TIMESTAMP or DATE")
    rows = Filter(plan, not_null(at)) if at.nullable else plan
    rows, start, end = _windows_of(s, rows, coerce(at, TIMESTAMP), written)
    moments = (start, end, call("add_micros", end, Literal(-MILLISECOND, BIGINT)))
    made = [(ctx.column(name, TIMESTAMP, False), moment) for name, moment in zip(COLUMNS, moments, strict=True)]
    return Project(rows, (*ctx.copies(plan.output), *made))


def _windows_of(s: Scalars, plan: Node, time: Expr, written: WindowingCall) -> tuple[Node, Expr, Expr]:
    """Extend a plan by what the starts and ends of windows of a time are computed from; returned with both."""
    ctx, lengths = s.ctx, written.arguments

    def length(name: str, least: int = 1) -> int:
        found = length_of(ctx, lengths[name]) if name in lengths else 0
        if found < least and name != OFFSET:
            raise ctx.error("SQ2010", f"a {name} is longer than nothing", lengths[name])
        return found

    if written.name == "SESSION":
        keys = tuple(s.bind(key) for key in written.keys)
        start, last = (ctx.column(name, TIMESTAMP, False) for name in ("start", "last"))
        gap = length("gap")
        return SessionWindow(plan, keys, time, gap, start, last), start, call("add_micros", last, Literal(gap, BIGINT))
    size, offset = length("size"), length(OFFSET)
    if written.name == "TUMBLE":
        begins = last_multiple(time, size, offset)
        return plan, begins, call("add_micros", begins, Literal(size, BIGINT))
    if written.name == "HOP":
        slide = length("slide")
        if slide > size:
            raise ctx.error("SQ2010", "a window is no shorter than its slide", lengths["slide"])
        return in_windows(ctx, plan, time, Hops(size, slide, offset % slide))
    step = length("step")
    if size % step:
        raise ctx.error("SQ2010", "the size of a window is a whole number of steps", lengths["step"])
    return in_windows(ctx, plan, time, Cumulations(size, step, offset % size))


def _misuse(ctx: Context, name: str, message: str, node: exp.Expr) -> SquallError:
    lengths = (*PARAMETERS[name][2:], *((f"[{OFFSET}]",) if name != "SESSION" else ()))
    keys = " [PARTITION BY k]" if name == "SESSION" else ""
    hint = f"write TABLE({name}(TABLE r{keys}, DESCRIPTOR(at), {', '.join(lengths)})), as in INTERVAL '10' MINUTE"
    return ctx.error("SQ2005", message, node, hint)
