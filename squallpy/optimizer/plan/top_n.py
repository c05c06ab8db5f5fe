"""First rows in an order: those that have so few rows before them, or the extreme values of the keys.

    Top 3 by k DESC of r   →   σ_{rank <= 3}(r with RANK() OVER (ORDER BY k DESC, key))

`key`: what GROUP BY names. Without it, rows that are alike in the order go by the PRIMARY KEYs of FROM, which data may
break, then by the columns that are read, and of those that are alike in all there are as many as still fit:

    →   Repeat least(rank - 1 + n, 3) - (rank - 1) times (Aggregate by x, rank: COUNT(*) n of σ_{rank <= 3}(…))
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT
from squallpy.catalog.catalog import Catalog
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.over.frame_aggregates import BEFORE, MOST_KEYS, Beneath, Frame, Items, Key, shortened
from squallpy.logical.bind.over.window_functions import Overs, ungrouped
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import FALSE, Column, Expr, Literal, conjunction, disjunction, is_null
from squallpy.logical.functions import call, case, not_distinct
from squallpy.logical.nodes import Agg, Aggregate, Filter, Join, LeftJoin, Node, Project, Repeat, TopN
from squallpy.logical.properties import unique_columns

MOST_SHOWN = 6  # keys of an order that tells all rows apart, each of which is some products more
MOST_EXTREMES = 4  # keys that are looked up one after the other


def expand_top_n(node: Node, context: ColumnAllocator) -> Node | None:
    """Replace first rows by those of a rank, or the value of one first row by aggregates of all rows."""
    columns = Context(Catalog(), cast(Any, None), ids=context.ids)
    match node:
        case Aggregate(Project(TopN() as top, items), keys, ((column, Agg("min", Column() as value)),)) if (
            top.is_first_row
        ):
            selected = dict(items)
            if {selected[key] for _, key in keys if isinstance(key, Column)} == {*top.partition}:
                by = tuple((c, selected[key]) for c, key in keys if isinstance(key, Column))
                return _first_value(top, selected[value], by, column, columns)
        case Project(TopN() as top, items):
            return _first_rows(top, items, columns)
        case TopN():
            return _first_rows(node, tuple((c, c) for c in node.output), columns)
    return None


def _first_rows(top: TopN, items: Items, columns: Context) -> Node:
    """Select `items` of the first rows."""
    if top.count == 0:
        return Project(Filter(top.child, FALSE), items)
    frame = Frame(top.partition, top.keys, BEFORE, alone=not top.with_ties).over(lambda expr: expr)
    last = None if top.count is None else Literal(top.offset + top.count, BIGINT)
    apart = Beneath(columns, top.child, False).apart(frame)
    if top.with_ties or apart:
        frame = apart or frame
        if len(frame.order) > max(MOST_KEYS, len(top.keys)):
            raise _too_many_keys(top)
        rows, rank = _ranked(top.child, frame, columns)
        tests = [call("<=", rank, last)] if last else []
        tests += [call(">", rank, Literal(top.offset, BIGINT))] if top.offset else []
        return Project(Filter(rows, conjunction(tests)), items)
    frame = _by_all(frame, (*(unique_columns(top.child, declared=True) or ()), *(expr for _, expr in items)))
    if len(frame.order) > MOST_SHOWN:
        raise _too_many_keys(top)
    rows, rank = _ranked(top.child, frame, columns)
    rows = Filter(rows, call("<=", rank, last)) if last else rows
    shown = {expr: columns.column(c.name, c.type, c.nullable) for c, expr in items}
    hidden = [expr for expr in frame.partition if expr not in shown]
    grouped = (*((c, e) for e, c in shown.items()), *columns.copies(hidden))
    if top.count == 1 and not top.offset:
        return Project(Aggregate(rows, grouped, ()), tuple((c, shown[expr]) for c, expr in items))
    place, copies = columns.column("rank", BIGINT, False), columns.column("copies", BIGINT, False)
    before = call("-", place, Literal(1, BIGINT))
    end: Expr = call("+", before, copies)
    end = call("least", end, last) if last else end
    times = call("-", end, call("greatest", before, Literal(top.offset, BIGINT)))
    repeated = Repeat(Aggregate(rows, (*grouped, (place, rank)), ((copies, Agg("count", None)),)), times)
    return Project(repeated, tuple((c, shown[expr]) for c, expr in items))


def _by_all(frame: Frame, shown: Sequence[Expr]) -> Frame:
    """Extend the order of a frame by all that is shown, so that rows alike in it cannot be told apart."""
    more: tuple[Key, ...] = tuple((expr, False, True) for expr in shown)
    longer = Frame(frame.partition, (*frame.order, *more), BEFORE).over(lambda expr: expr)
    return replace(longer, order=shortened(longer.order, len(frame.order), MOST_SHOWN))


def _ranked(rows: Node, frame: Frame, columns: Context) -> tuple[Node, Expr]:
    """Join rows with their ranks in a frame; returned with the rank."""
    overs = Overs(columns, {})
    rank = overs.rank(frame, cast(Any, None))
    return overs.attach(rows, ungrouped, around=False), rank


def _too_many_keys(top: TopN) -> SquallError:
    construct = QUERIES[top.clause]
    return SquallError("SQ3001", f"{construct.name} is not supported yet", top.span, construct.hint)


def _first_value(top: TopN, value: Expr, by: Items, column: Column, columns: Context) -> Node | None:
    """Aggregate all rows to the value of a first one, None if ranks are better.

    MIN(x) of Top 1 by k DESC of r   →   MIN(x) of (r ⋈_{k <=> m} (Aggregate: MAX(k) m of r))

    Of several keys each is the best among the rows that are best by those before it; keys behind the value itself
    decide nothing. Ties: the smallest value that is not NULL is returned.

    Args:
        by: Columns for the expressions of the partition.
        column: The column of the value.
    """
    exprs = [expr for expr, _, _ in top.keys]
    place = exprs.index(value) if value in exprs else len(exprs)
    rows, deciding = top.child, top.keys[:place]
    if top.offset:
        return None if deciding or not exprs else _later_value(top, by, column, columns)
    if len(deciding) > MOST_EXTREMES:
        frame = Frame(top.partition, deciding, BEFORE).over(lambda expr: expr)
        ranked, rank = _ranked(rows, frame, columns)
        rows = Filter(ranked, call("=", rank, Literal(1, BIGINT)))
    else:
        for key in deciding:
            mine, best = columns.copies(top.partition), columns.column("best", key[0].type, True)
            on = [not_distinct(expr, c) for c, expr in ((*mine, (best, key[0])))]
            rows = Join(rows, _extreme(rows, mine, key, best, columns), conjunction(on))
    if place < len(exprs):
        return _extreme(rows, by, top.keys[place], column, columns)
    return Aggregate(rows, by, ((column, Agg("min", value)),))


def _extreme(rows: Node, by: Items, key: Key, column: Column, columns: Context) -> Node:
    """Aggregate the first value of a key: NULL, where NULLs come first and there is one."""
    value, descending, nulls_first = key
    function = "max" if descending else "min"
    if not (nulls_first and value.nullable):
        return Aggregate(rows, by, ((column, Agg(function, value)),))
    best = columns.column(column.name, value.type, True)
    every, present = (columns.column(name, BIGINT, False) for name in ("rows", "values"))
    aggs = (best, Agg(function, value)), (every, Agg("count", None)), (present, Agg("count", value))
    shown = case([(call("=", every, present), best)], Literal(None, value.type))
    return Project(Aggregate(rows, by, aggs), (*((c, c) for c, _ in by), (column, shown)))


def _later_value(top: TopN, by: Items, column: Column, columns: Context) -> Node:
    """Aggregate the best value that more than `offset` rows are no worse than.

    MIN(x) of Top 1 offset 2 by x DESC of r
    →   MAX(x) of (r ⋈_{x = y ∧ n > 2} (Aggregate by y: COUNT(*) n of (Aggregate by y := x of r) ⋈_{x >= y} r))
    """
    (value, descending, nulls_first), *_ = top.keys
    rows, offset = top.child, Literal(top.offset, BIGINT)
    mine, count = columns.copies((*top.partition, value)), columns.column("n", BIGINT, False)
    (other, _), nulls_count = mine[-1], columns.column("nulls", BIGINT, False)
    is_before: Expr = call(">=" if descending else "<=", value, other)
    if nulls_first and value.nullable:
        is_before = disjunction((is_before, is_null(value)))
    same = [not_distinct(expr, c) for c, expr in mine[:-1]]
    pairs = Join(Aggregate(rows, mine, ()), rows, conjunction((*same, is_before)))
    found = columns.copies(c for c, _ in mine)
    counts = Aggregate(pairs, found, ((count, Agg("count", None)),))
    on = [not_distinct(expr, c) for (c, _), (_, expr) in zip(found, mine, strict=True)]
    rows = Join(rows, counts, conjunction((*on, call(">", count, offset))))
    if nulls_first and value.nullable:
        keys = columns.copies(top.partition)
        nulls = Aggregate(Filter(top.child, is_null(value)), keys, ((nulls_count, Agg("count", None)),))
        on = [not_distinct(expr, c) for c, expr in keys]
        shown = replace(nulls_count, nullable=True)
        rows = Filter(LeftJoin(rows, nulls, conjunction(on)), disjunction((is_null(shown), call("<=", shown, offset))))
    return Aggregate(rows, by, ((column, Agg("max" if descending else "min", value)),))
