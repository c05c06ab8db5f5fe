"""ORDER BY with LIMIT and OFFSET inside a query, and DISTINCT ON: the rows that have so many before them.

    SELECT x FROM r ORDER BY k DESC LIMIT 3     →   Filter rank <= 3 (r with RANK() OVER (ORDER BY k DESC, key))

`key`: what GROUP BY names. Without it, rows that are alike in the order go by the PRIMARY KEYs of FROM, which data may
break, then by their columns, and of those that are alike in all there are as many as still fit:

    →   Repeat least(rank - 1 + n, 3) - (rank - 1) times (Aggregate by x, k, rank: COUNT(*) n of (Filter rank <= 3 …))
"""

from collections.abc import Sequence

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.order_by import Ordering, has_ties, numbers
from squallpy.logical.expressions import FALSE, Column, Expr, Literal, columns, conjunction
from squallpy.logical.functions import call
from squallpy.logical.nodes import (
    Agg,
    Aggregate,
    Filter,
    Node,
    OverClause,
    Project,
    Repeat,
    SortKey,
    WindowFunction,
    WindowFunctions,
)
from squallpy.logical.properties import unique_columns
from squallpy.logical.total_order import drop_redundant_keys, shorten, total_order

MOST_KEYS = 6  # of an order that tells all rows apart, each of which is some products more
Items = tuple[tuple[Column, Expr], ...]


def cut(ctx: Context, query: exp.Query, plan: Node, outputs: Items, order: list[Ordering]) -> Node:
    """The `outputs` of those rows of a plan that LIMIT and OFFSET leave"""
    count, offset = numbers(ctx, query)
    if has_ties(query):  # whose rows are already counted
        count = None
    if count is None and not offset:
        return Project(plan, outputs)
    if count == 0:
        return Project(Filter(plan, FALSE), outputs)
    keys = _keys(order)
    found = total_order(plan, (), keys, is_extended=True)
    if found is not None:
        rows, _ = ranked(ctx, plan, OverClause((), found), count, offset, is_total=True)
        return Project(rows, outputs)
    key = unique_columns(plan, declared=True) or ()
    every = _by_all((), keys, [*key, *(expr for _, expr in outputs)])
    if len(every) > MOST_KEYS:
        raise ctx.refuse(query.args.get("limit") or query.args["offset"], QUERIES["LIMIT"])
    rows, rank = ranked(ctx, plan, OverClause((), every), count, offset)
    place, copies = ctx.column("rank", BIGINT, False), ctx.column("copies", BIGINT, False)
    shown = tuple((ctx.column(c.name, c.type, c.nullable), expr) for c, expr in outputs)
    hidden = ctx.copies(e for e, _, _ in every)
    grouped = Aggregate(rows, (*shown, *hidden, (place, rank)), ((copies, Agg("count", None)),))
    before = call("-", place, Literal(1, BIGINT))
    last: Expr = call("+", before, copies)
    if count is not None:
        last = call("least", last, Literal(offset + count, BIGINT))
    times = call("-", last, call("greatest", before, Literal(offset, BIGINT)))
    return Project(Repeat(grouped, times), tuple((c, mine) for (c, _), (mine, _) in zip(outputs, shown, strict=True)))


def with_ties(ctx: Context, query: exp.Query, plan: Node, order: list[Ordering]) -> Node:
    """The rows of a plan up to the last that FETCH … WITH TIES takes, and those alike in the order with that.

    ORDER BY k FETCH FIRST 3 ROWS WITH TIES   →   Filter rank <= 3 (… RANK() OVER (ORDER BY k))
    """
    if not has_ties(query):
        return plan
    count, offset = numbers(ctx, query)
    if not order:
        raise SquallError("SQ2009", "WITH TIES needs ORDER BY", ctx.query.keyword(query.args["limit"], "TIES"))
    if count == 0:
        return Filter(plan, FALSE)
    return ranked(ctx, plan, OverClause((), _keys(order)), count, offset)[0]


def firsts(
    ctx: Context,
    query: exp.Query,
    plan: Node,
    on: Sequence[Expr],
    shown: Sequence[Expr],
    order: list[Ordering],
) -> Node:
    """SELECT DISTINCT ON (a) x, y … ORDER BY b: of each `on` the rows that are first, alike in what shows."""
    partition = tuple(dict.fromkeys(expr for expr in on if columns(expr)))
    keys = _keys(order, partition)
    found = total_order(plan, partition, keys, is_extended=True)
    if found is None:
        found = _by_all(partition, keys, [*(unique_columns(plan, declared=True) or ()), *shown])
    if len(found) > MOST_KEYS:
        raise ctx.refuse(query.args["distinct"], QUERIES["DISTINCT ON"])
    return ranked(ctx, plan, OverClause(partition, found), 1, 0, is_total=True)[0]


def _keys(order: Sequence[Ordering], partition: tuple[Expr, ...] = ()) -> tuple[SortKey, ...]:
    """Take the keys of ORDER BY that decide anything."""
    return drop_redundant_keys(partition, tuple((key.expr, key.descending, key.nulls_first) for key in order))


def _by_all(partition: tuple[Expr, ...], order: tuple[SortKey, ...], shown: Sequence[Expr]) -> tuple[SortKey, ...]:
    """Order by what shows behind the keys of an order; rows may still be alike."""
    more: tuple[SortKey, ...] = tuple((expr, False, True) for expr in shown)
    return shorten(drop_redundant_keys(partition, (*order, *more)), len(order), MOST_KEYS)


def ranked(
    ctx: Context, plan: Node, over: OverClause, count: int | None, offset: int, is_total: bool = False
) -> tuple[Node, Expr]:
    """Rank the rows of which at least some may be left; just those that are if no two of them tie."""
    rank = ctx.column("rank", BIGINT, True)
    plan = WindowFunctions(plan, ((rank, WindowFunction("RANK", over)),))
    asked = [] if count is None else [call("<=", rank, Literal(offset + count, BIGINT))]
    if offset and is_total:
        asked.append(call(">", rank, Literal(offset, BIGINT)))
    return Filter(plan, conjunction(asked)) if asked else plan, rank
