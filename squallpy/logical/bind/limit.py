"""ORDER BY with LIMIT and OFFSET inside a query, and DISTINCT ON: the rows that have so many before them.

    SELECT x FROM r ORDER BY k DESC LIMIT 3     →   Filter rank <= 3 (r with RANK() OVER (ORDER BY k DESC, key))

`key`: what GROUP BY names. Without it, rows that are alike in the order go by the PRIMARY KEYs of FROM, which data may
break, then by their columns, and of those that are alike in all there are as many as still fit:

    →   Repeat least(rank - 1 + n, 3) - (rank - 1) times (Aggregate by x, k, rank: COUNT(*) n of (Filter rank <= 3 …))
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.order_by import Ordering, has_ties, numbers
from squallpy.logical.bind.over.frame_aggregates import BEFORE, Beneath, Frame, Key, shortened
from squallpy.logical.bind.over.window_functions import Overs, ungrouped
from squallpy.logical.expressions import FALSE, Column, Expr, Literal, conjunction
from squallpy.logical.functions import call
from squallpy.logical.nodes import Agg, Aggregate, Filter, Node, Project, Repeat
from squallpy.logical.properties import unique_columns

MOST_KEYS = 6  # of an order that tells all rows apart, each of which is some products more
Items = tuple[tuple[Column, Expr], ...]


def cut(ctx: Context, query: exp.Query, plan: Node, outputs: Items, order: list[Ordering], around: bool) -> Node:
    """The `outputs` of those rows of a plan that LIMIT and OFFSET leave; `around`: may it stand over a domain?"""
    count, offset = numbers(ctx, query)
    if has_ties(query):  # whose rows are already counted
        count = None
    if count is None and not offset:
        return Project(plan, outputs)
    if count == 0:
        return Project(Filter(plan, FALSE), outputs)
    keys: tuple[Key, ...] = tuple((key.expr, key.descending, key.nulls_first) for key in order)
    frame = Frame((), keys, BEFORE, alone=True, asker="LIMIT").over(lambda expr: expr)
    if found := Beneath(ctx, plan, around).apart(frame):
        rows, _ = ranked(ctx, query, plan, found, count, offset, around)
        return Project(rows, outputs)
    key = unique_columns(plan, declared=True) or ()
    frame = _by_all(frame, [*key, *(expr for _, expr in outputs)])
    if len(frame.order) > MOST_KEYS:
        raise ctx.refuse(query.args.get("limit") or query.args["offset"], QUERIES["LIMIT"])
    rows, rank = ranked(ctx, query, plan, frame, count, offset, around)
    place, copies = ctx.column("rank", BIGINT, False), ctx.column("copies", BIGINT, False)
    shown = tuple((ctx.column(c.name, c.type, c.nullable), expr) for c, expr in outputs)
    hidden = ctx.copies(e for e, _, _ in frame.order)
    grouped = Aggregate(rows, (*shown, *hidden, (place, rank)), ((copies, Agg("count", None)),))
    before = call("-", place, Literal(1, BIGINT))
    last: Expr = call("+", before, copies)
    if count is not None:
        last = call("least", last, Literal(offset + count, BIGINT))
    times = call("-", last, call("greatest", before, Literal(offset, BIGINT)))
    return Project(Repeat(grouped, times), tuple((c, mine) for (c, _), (mine, _) in zip(outputs, shown, strict=True)))


def with_ties(ctx: Context, query: exp.Query, plan: Node, order: list[Ordering], around: bool) -> Node:
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
    keys: tuple[Key, ...] = tuple((key.expr, key.descending, key.nulls_first) for key in order)
    frame = Frame((), keys, BEFORE, asker="FETCH").over(lambda expr: expr)
    return ranked(ctx, query, plan, frame, count, offset, around)[0]


def firsts(
    ctx: Context,
    query: exp.Query,
    plan: Node,
    on: Sequence[Expr],
    shown: Sequence[Expr],
    order: list[Ordering],
    around: bool,
) -> Node:
    """SELECT DISTINCT ON (a) x, y … ORDER BY b: of each `on` the rows that are first, alike in what shows."""
    keys: tuple[Key, ...] = tuple((key.expr, key.descending, key.nulls_first) for key in order)
    frame = Frame(tuple(on), keys, BEFORE, alone=True, asker="DISTINCT ON").over(lambda expr: expr)
    found = Beneath(ctx, plan, around).apart(frame)
    if found is None:
        found = _by_all(frame, [*(unique_columns(plan, declared=True) or ()), *shown])
    if len(found.order) > MOST_KEYS:
        raise ctx.refuse(query.args["distinct"], QUERIES["DISTINCT ON"])
    return ranked(ctx, query, plan, found, 1, 0, around)[0]


def _by_all(frame: Frame, shown: Sequence[Expr]) -> Frame:
    """A frame by its order and then by what shows, in which rows may be alike."""
    more: tuple[Key, ...] = tuple((expr, False, True) for expr in shown)
    longer = Frame(frame.partition, (*frame.order, *more), BEFORE).over(lambda expr: expr)
    return replace(longer, order=shortened(longer.order, len(frame.order), MOST_KEYS))


def ranked(
    ctx: Context, query: exp.Query, plan: Node, frame: Frame, count: int | None, offset: int, around: bool
) -> tuple[Node, Expr]:
    """The rows of which at least some may be left, and the rank of each; with `frame.alone` just those that are."""
    overs = Overs(ctx, {})
    rank = overs.rank(frame, query)
    asked = [] if count is None else [call("<=", rank, Literal(offset + count, BIGINT))]
    if offset and frame.alone:
        asked.append(call(">", rank, Literal(offset, BIGINT)))
    plan = overs.attach(plan, ungrouped, around)
    return Filter(plan, conjunction(asked)) if asked else plan, rank
