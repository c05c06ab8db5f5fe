"""ORDER BY, LIMIT and OFFSET: for what is printed."""

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.aggregate_calls import SortKeys
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime.intervals import to_value
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.scope import Scope
from squallpy.logical.expression_builders import replace_known
from squallpy.logical.expressions import Column, Expr, columns
from squallpy.logical.nested_order import in_order
from squallpy.logical.nodes import Limit, Node, Project, Sort

MOST = 2**62  # rows that a number of theirs counts; more are all


class SelectColumn(Protocol):
    """A column of the result."""

    @property
    def expr(self) -> Expr: ...


@dataclass(frozen=True, slots=True)
class Ordering:
    """One key of ORDER BY and where it was written."""

    expr: Expr
    descending: bool
    nulls_first: bool
    node: exp.Expr


def constant_number(ctx: Context, node: exp.Expr) -> int | None:
    """Compute the whole number that a constant expression is, cut to ±MOST; None where it is none."""
    if node.find(exp.Column, exp.Query):
        return None
    value = ctx.constant(Scalars(ctx, Scope(), "a constant").bind(node))
    if value is None or value.value is None or not value.type.is_exact or value.type.scale:
        return None
    return max(-MOST, min(int(value.value), MOST))


def ordinal(ctx: Context, node: exp.Expr, items: Sequence[SelectColumn], clause: str) -> Expr | None:
    """Return the item that a bare whole number names; None for anything else."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdecimal():
        return None
    position = constant_number(ctx, node)
    assert position is not None
    if not 1 <= position <= len(items):
        raise ctx.error("SQ2006", f"{clause} {position}: the select list has {len(items)} columns", node)
    return items[position - 1].expr


def bind_order(clause: exp.Order | None, items: Sequence[SelectColumn], scalars: Scalars) -> list[Ordering]:
    """Bind the keys of ORDER BY; ALL are all that is selected.

    As in Spark, NULLs come first when ascending and last when descending.
    """
    if clause is None:
        return []
    ctx = scalars.ctx
    ctx.refuse_other_args(clause, "expressions")
    keys = list[Ordering]()
    for key in clause.expressions:
        ctx.refuse_other_args(key, "this", "desc", "nulls_first")
        if isinstance(key.this, exp.Var) and key.this.name.upper() == "ALL":
            exprs = [item.expr for item in items]
        else:
            expr = ordinal(ctx, key.this, items, "ORDER BY")
            exprs = [scalars.bind(key.this) if expr is None else expr]
        with ctx.at(key.this):
            exprs = [key for expr in exprs for key in in_order([to_value(expr)])]
        ways = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
        keys += [Ordering(expr, *ways, key.this) for expr in exprs]
    return keys


def place_sort(plan: Node, outputs: tuple[tuple[Column, Expr], ...], order: list[Ordering]) -> Node:
    """Project with the Sort above it, or below where a key is not selected.

    SELECT a ORDER BY a  →  Sort(Project)        SELECT a ORDER BY b  →  Project(Sort)
    """
    if not order:
        return Project(plan, outputs)
    names = {expr: column for column, expr in reversed(outputs)}
    above = [replace_known(key.expr, names) for key in order]
    known = {column for column, _ in outputs}
    if all(columns(expr) <= known for expr in above):
        keys = tuple((e, key.descending, key.nulls_first) for e, key in zip(above, order, strict=True))
        return Sort(Project(plan, outputs), keys)
    return Project(Sort(plan, sort_keys(order)), outputs)


def sort_keys(order: Sequence[Ordering]) -> SortKeys:
    """Convert ORDER BY to the keys of a Sort."""
    return tuple((key.expr, key.descending, key.nulls_first) for key in order)


def bind_limit(ctx: Context, query: exp.Query, plan: Node) -> Node:
    """Bind LIMIT and OFFSET, whole numbers both."""
    count, offset = numbers(ctx, query)
    if has_ties(query):  # whose rows are already counted
        count = None
    return plan if count is None and not offset else Limit(plan, count, offset)


def has_ties(query: exp.Query) -> bool:
    """True if LIMIT or FETCH takes the rows WITH TIES: all that are alike in the order with the last one."""
    limit = query.args.get("limit")
    options = limit.args.get("limit_options") if limit is not None else None
    return options is not None and bool(options.args.get("with_ties"))


def numbers(ctx: Context, query: exp.Query) -> tuple[int | None, int]:
    """Read the numbers of LIMIT, None for all rows, and of OFFSET."""
    limit, offset, count = query.args.get("limit"), query.args.get("offset"), None
    if limit is not None:
        count = read_fetch(ctx, limit) if isinstance(limit, exp.Fetch) else read_limit(ctx, limit)
        count = None if count == MOST else count
    if offset is not None:
        ctx.refuse_other_args(offset, "expression")
    return count, read_whole_number(ctx, offset.expression, "OFFSET") if offset is not None else 0


def read_limit(ctx: Context, limit: exp.Expr) -> int | None:
    """Read the number of LIMIT; None for LIMIT ALL and LIMIT NULL."""
    ctx.refuse_other_args(limit, "expression", "limit_options")
    refuse_percent(ctx, limit)
    if isinstance(limit.expression, exp.Null) or limit.expression.name.upper() == "ALL":
        return None
    return read_whole_number(ctx, limit.expression, "LIMIT")


def read_fetch(ctx: Context, fetch: exp.Fetch) -> int:
    """Read the number of FETCH FIRST n ROWS, or FETCH FIRST ROW."""
    refuse_percent(ctx, fetch)
    count = fetch.args.get("count")
    return 1 if count is None else read_whole_number(ctx, count, "FETCH")


def refuse_percent(ctx: Context, limit: exp.Expr) -> None:
    """Refuse a LIMIT or FETCH of a share of the rows."""
    options = limit.args.get("limit_options")
    if options is not None and options.args.get("percent"):
        raise ctx.refuse(limit, QUERIES["FETCH"])


def read_whole_number(ctx: Context, node: exp.Expr, clause: str) -> int:
    number = constant_number(ctx, node)
    if number is None or number < 0:
        raise SquallError("SQ2005", f"{clause} needs a constant whole number", ctx.query.keyword(node, clause))
    return number
