"""Aggregates of the rows of a group in which another value is greatest, least or most frequent, as Aggregates beside.

    k: MAX_BY(x, y)  of r   →   k: MIN(x)  of (r joined with (k: MAX(y) of r) ON k <=> k AND y = MAX(y))
    k: MODE(x)       of r   →   k: MAX_BY(x, n)  of (k, x: COUNT(*) n  of r)

SQL takes any of the rows that are alike in y; here it is the one of the least x that is not NULL.
"""

from dataclasses import dataclass

from squallpy.base.types import BIGINT
from squallpy.logical.bind.context import Context
from squallpy.logical.expressions import TRUE, Column, Expr, conjunction, not_null
from squallpy.logical.functions import call, not_distinct
from squallpy.logical.nodes import Agg, Aggregate, Beside, Filter, Join, LeftJoin, Node

Items = tuple[tuple[Column, Expr], ...]
MODE = "mode"


@dataclass(frozen=True, slots=True)
class Chosen:
    """`value` where `by` is "max" or "min" of its group, or the MODE of values, `by` themselves."""

    function: str
    value: Expr
    by: Expr

    def __str__(self) -> str:
        return (
            f"MODE({self.value})" if self.function == MODE else f"{self.function.upper()}_BY({self.value}, {self.by})"
        )


def beside(ctx: Context, plan: Node, groups: Node, keys: Items, chosen: Chosen, column: Column) -> Node:
    """The rows of `groups`, which are those of a plan by some keys, with what is chosen of each as one more column."""
    value, by, function, mine = chosen.value, chosen.by, chosen.function, tuple(expr for _, expr in keys)
    rows = plan
    if function == MODE:
        counted = ctx.copies((*mine, value))
        count = ctx.column("COUNT(*)", BIGINT, False)
        there = Filter(plan, not_null(value)) if value.nullable else plan
        rows = Aggregate(there, counted, ((count, Agg("count", None)),))
        (*known, (value, _)), by, function = counted, count, "max"
        mine = tuple(column for column, _ in known)
    best, same = ctx.column(f"{function.upper()}({by})", by.type, True), ctx.copies(mine)
    ends = Aggregate(rows, same, ((best, Agg(function, by)),))
    on = conjunction((*(not_distinct(a, b) for b, a in same), call("=", by, best)))
    found = ctx.copies(mine)
    taken = Aggregate(joined(rows, ends, on), found, ((column, Agg("min", value)),))
    return joined(
        groups, taken, conjunction(not_distinct(a, b) for (a, _), (b, _) in zip(keys, found, strict=True)), lost=True
    )


def joined(left: Node, right: Node, on: Expr, lost: bool = False) -> Node:
    """Rows side by side, for each of the domain's values by itself; `lost`: those of `left` stay that find none."""
    if left.borrows:
        return Beside(left, right, on, lost)
    return LeftJoin(left, right, on) if lost else Join(left, right, on if on != TRUE else None)
