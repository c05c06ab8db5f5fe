"""WINDOW(at, size, slide, start) and SESSION_WINDOW(at, gap), the time windows of Spark's DataFrames, as grouping keys.

    GROUP BY WINDOW(at, '10 minutes'), k              →   GROUP BY start, end, k    of the one that it is in
    GROUP BY WINDOW(at, '10 minutes', '5 minutes')    →   of each of two, as LATERAL VIEW makes them (`explode.py`)
    GROUP BY SESSION_WINDOW(at, '5 minutes'), k       →   GROUP BY start, k         of the session (`sessions.py`)

Such a window has the columns `start` and `end`, which WINDOW.start and WINDOW(…).start name; where the whole of it is
selected, as w, it is w.start and w.end, around the query, too. It groups rows and forgets none: for that, a block ends
with a window of ours.
"""

from collections.abc import Iterator

from sqlglot import exp

from squallpy.catalog.relation import Hops
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime.intervals import interval

NAME, SESSION = "window", "session_window"
SESSION_START = "SESSION START"  # a function that nobody can write
BOUNDS = ("start", "end")
GROUP_WINDOWS = {"TUMBLE": NAME, "HOP": NAME, "SESSION": SESSION}  # of Flink: the keys, TUMBLE_START, TUMBLE_END, …
DAY = 86_400_000_000  # µs


def is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == NAME


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in (NAME, SESSION)


def hops(ctx: Context, node: exp.Expr) -> Hops:
    """Read the lengths of a WINDOW call; SQ2010 for lengths that make no windows."""
    if not 2 <= len(node.expressions) <= 4:
        raise ctx.error("SQ2005", f"WINDOW takes 2 to 4 arguments, not {len(node.expressions)}", node)
    size, *others = (length_of(ctx, length) for length in node.expressions[1:])
    slide, offset = (*others, *(size, 0)[len(others) :])
    if not 0 < slide <= size:
        raise ctx.error("SQ2010", "a window is longer than nothing, and no shorter than its slide", node)
    return Hops(size, slide, offset % slide)


def length_of(ctx: Context, node: exp.Expr) -> int:
    """Read a constant length of time in microseconds, an INTERVAL or '10 minutes'; SQ2005 for anything else."""
    written = node
    if isinstance(node, exp.Literal) and node.is_string:
        written = exp.Interval(this=node.copy())
        written.parent = node.parent
    if not isinstance(written, exp.Interval):
        raise ctx.error("SQ2005", "a length of time is written '10 minutes'", node)
    months, days, micros = interval(ctx, written).value
    if months:
        raise ctx.error("SQ2005", "months are not all as long", node)
    return int(days * DAY + micros)


def rewrite_window_function(ctx: Context, select: exp.Select) -> exp.Select:
    """Replace the WINDOW function of a block by the bounds of windows."""
    select = _spell_group_windows(select)
    calls = [node for node in _walk_block(select) if _is_call(node)]
    if not calls:
        return select
    if len({call.sql() for call in calls}) > 1:
        raise ctx.refuse(calls[-1], QUERIES["two windows"])
    out = select.copy()
    out.parent = select.parent
    title = calls[0].name.lower()
    aliases = (item.alias.lower() for item in out.expressions if _is_call(item.unalias()) and item.alias)
    names = {title, *aliases}
    shape = hops(ctx, calls[0]) if title == NAME else None
    if shape is None:
        bounds = _session_bounds(ctx, calls[0])
    elif shape.slide < shape.size:
        bounds = _fresh_alias()
        columns = [exp.to_identifier(name) for name in BOUNDS]
        view = exp.Lateral(this=calls[0].copy(), view=True, alias=exp.TableAlias(this=NAME, columns=columns))
        out.set("laterals", [*(out.args.get("laterals") or []), view])
    else:
        bounds = _window_bounds(calls[0].expressions[0], shape)
    if shape is None or shape.slide == shape.size:  # a time that is NULL is in no window
        out.where(exp.Not(this=exp.Is(this=calls[0].expressions[0].copy(), expression=exp.Null())), copy=False)
    _renumber(out, names)
    items = [item for whole in out.expressions for item in _items(whole, names, title, bounds)]
    out.set("expressions", items)
    group = out.args.get("group")
    keys = group.expressions if group else []
    if title == SESSION and group and any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets")):
        raise ctx.refuse(calls[0], QUERIES["session of sets"])
    if title == SESSION and not any(_is_whole(key, names) for key in keys):
        raise ctx.refuse(calls[0], QUERIES["session not grouped"])
    if group:
        key_bounds = BOUNDS if title == NAME else BOUNDS[:1]  # the end of a session follows from its rows
        made = ([bounds[name] for name in key_bounds] if _is_whole(key, names) else [key] for key in keys)
        group.set("expressions", [key.copy() for some in made for key in some])
    for node in list(_walk_block(out)):
        name = _bound_of(node, names)
        if name:
            node.replace(bounds[name].copy())
    if left := next(
        (node for node in _walk_block(out) if _is_call(node) and not isinstance(node.parent, exp.Lateral)), None
    ):
        raise ctx.refuse(left, QUERIES["window as a value"])
    return out


def _spell_group_windows(select: exp.Select) -> exp.Select:
    """Write the group windows of Flink and Calcite as those of Spark.

    GROUP BY HOP(at, slide, size)    →    GROUP BY WINDOW(at, size, slide)
    TUMBLE_END(at, size)             →    WINDOW(at, size).end
    """
    if not any(_group_window(node) for node in _walk_block(select)):
        return select
    out = select.copy()
    out.parent = select.parent
    for node in list(_walk_block(out)):
        if found := _group_window(node):
            name, _, bound = found.partition("_")
            at, *lengths = node.expressions
            spelled = exp.Anonymous(this=GROUP_WINDOWS[name], expressions=[at, *lengths[::-1]])
            spelled.update_positions(node)
            node.replace(exp.Dot(this=spelled, expression=exp.to_identifier(bound.lower())) if bound else spelled)
    return out


def _group_window(node: exp.Expr) -> str:
    """Return the name of a call of a group window or of one of its bounds, '' for anything else."""
    name = node.name.upper() if isinstance(node, exp.Anonymous) and len(node.expressions) > 1 else ""
    window, _, bound = name.partition("_")
    return name if window in GROUP_WINDOWS and bound.lower() in ("", *BOUNDS) else ""


def _walk_block(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the nodes of a block, without those of queries and tables inside."""
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query | exp.Table)):
        if node is not select:
            yield node


def _fresh_alias() -> dict[str, exp.Expr]:
    return {name: exp.column(name, NAME) for name in BOUNDS}


def _window_bounds(time: exp.Expr, shape: Hops) -> dict[str, exp.Expr]:
    """Compute the bounds of the window of a time: start := time − (time − offset) mod size"""
    at = exp.cast(time.copy(), "timestamp")
    since = exp.Anonymous(this="UNIX_MICROS", expressions=[at])
    shifted = exp.Sub(this=since, expression=exp.Literal.number(shape.offset)) if shape.offset else since
    beyond = exp.Anonymous(this="PMOD", expressions=[shifted, exp.Literal.number(shape.size)])
    start = exp.Sub(this=since.copy(), expression=beyond)
    end = exp.Add(this=exp.paren(start.copy()), expression=exp.Literal.number(shape.size))
    made = {"start": start, "end": end}
    return {name: exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[made[name]]) for name in BOUNDS}


def _session_bounds(ctx: Context, node: exp.Expr) -> dict[str, exp.Expr]:
    """Compute the bounds of a session from its rows: end := MAX(time) + gap"""
    if len(node.expressions) != 2:
        raise ctx.error("SQ2005", f"SESSION_WINDOW takes 2 arguments, not {len(node.expressions)}", node)
    time, length = node.expressions
    gap = exp.Literal.number(length_of(ctx, length))
    if not int(gap.name) > 0:
        raise ctx.error("SQ2010", "the gap of a session is longer than nothing", length)
    last = exp.Anonymous(this="MAX", expressions=[exp.cast(time.copy(), "timestamp")])
    more = exp.Interval(this=exp.Literal.string(gap.name), unit=exp.Var(this="MICROSECOND"))
    start = exp.Anonymous(this=SESSION_START, expressions=[time.copy(), gap])
    return {"start": start, "end": exp.paren(exp.Add(this=last, expression=more))}


def _bound_of(node: exp.Expr, names: set[str]) -> str:
    """Return which bound of the window, by its names, a node is, '' if none: WINDOW.start, WINDOW(…).start"""
    if isinstance(node, exp.Column) and node.table.lower() in names:
        name = node.name.lower()
    elif isinstance(node, exp.Dot) and _is_call(node.this):
        name = node.expression.name.lower()
    else:
        return ""
    return name if name in BOUNDS else ""


def _is_whole(node: exp.Expr, names: set[str]) -> bool:
    return _is_call(node) or (isinstance(node, exp.Column) and not node.table and node.name.lower() in names)


def _renumber(select: exp.Select, names: set[str]) -> None:
    """Let positions in GROUP BY and ORDER BY be those of columns, of which a window has two.

    SELECT WINDOW(at, '1 day') AS w, k, … GROUP BY 1, 2 ORDER BY 2     →     GROUP BY w, 3 ORDER BY 3
    """
    items = select.expressions
    group, order = select.args.get("group"), select.args.get("order")
    if any(item.is_star for item in items):
        return
    widths = [len(BOUNDS) if _is_whole(item.unalias(), names) else 1 for item in items]
    columns = [[exp.Literal.number(sum(widths[:at]) + i + 1) for i in range(width)] for at, width in enumerate(widths)]
    for key in list(group.expressions) if group else []:
        if (at := _position(key, items)) is not None:
            key.replace(items[at].unalias().copy() if widths[at] > 1 else columns[at][0])
    if order:
        ordered = list[exp.Expr]()
        for key in order.expressions:
            at = _position(key.this, items)
            ordered += [key] if at is None else [_with_key(key, column) for column in columns[at]]
        order.set("expressions", ordered)


def _position(key: exp.Expr, items: list[exp.Expr]) -> int | None:
    """Return which item a key names by its position, or None."""
    at = int(key.name) - 1 if isinstance(key, exp.Literal) and key.is_int else -1
    return at if 0 <= at < len(items) else None


def _with_key(ordered: exp.Expr, key: exp.Expr) -> exp.Expr:
    copied = ordered.copy()
    copied.set("this", key.copy())
    return copied


def _items(item: exp.Expr, names: set[str], title: str, bounds: dict[str, exp.Expr]) -> list[exp.Expr]:
    """List what stands for an item of SELECT: the bounds of a window, or the item itself."""
    if _is_whole(item.unalias(), names):
        return [exp.alias_(bounds[name].copy(), f"{item.alias or title}.{name}", quoted=True) for name in BOUNDS]
    name = _bound_of(item, names)
    return [exp.alias_(item, name)] if name else [item]
