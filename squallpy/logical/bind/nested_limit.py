"""ORDER BY with LIMIT and OFFSET inside a query, and DISTINCT ON."""

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.order_by import Ordering, has_ties, numbers, sort_keys
from squallpy.logical.expressions import Column, Expr
from squallpy.logical.nodes import Node, Project, TopN


def without_parentheses(ctx: Context, query: exp.Expr) -> exp.Expr:
    """Take a query out of its parentheses: (SELECT …) LIMIT 1  →  SELECT * FROM (SELECT …) LIMIT 1"""
    while isinstance(query, exp.Subquery | exp.Paren):
        ending = {part: found for part in ("order", "limit", "offset") if (found := query.args.get(part)) is not None}
        ctx.refuse_other_args(query, "this", *ending)
        if ending:
            around = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query.this)), **ending)
            around.parent = query.parent
            return around
        query = query.this
    return query


def bind_inner_limit(
    ctx: Context, query: exp.Query, plan: Node, outputs: tuple[tuple[Column, Expr], ...], order: list[Ordering]
) -> Node:
    """Select the `outputs` of those rows of a plan that the LIMIT and OFFSET of a query inside another leave."""
    count, offset = numbers(ctx, query)
    if has_ties(query):  # whose rows are already counted
        count = None
    if count is not None or offset:
        span = ctx.query.keyword(query.args.get("limit") or query.args["offset"], "LIMIT")
        plan = TopN(plan, sort_keys(order), count, offset, span=span)
    return Project(plan, outputs)


def bind_ties(ctx: Context, query: exp.Query, plan: Node, order: list[Ordering]) -> Node:
    """Take the rows of a plan up to the last that FETCH … WITH TIES takes, and those alike in the order with that.

    Rows that OFFSET leaves out are still among them.
    """
    if not has_ties(query):
        return plan
    count, offset = numbers(ctx, query)
    if not order:
        raise SquallError("SQ2009", "WITH TIES needs ORDER BY", ctx.query.keyword(query.args["limit"], "TIES"))
    return TopN(plan, sort_keys(order), count and count + offset, with_ties=True, span=ctx.span(query.args["limit"]))
