"""MAX_BY, MIN_BY and MODE as joins of the rows with the extreme, or the greatest count, of their group.

    k: MAX_BY(x, y)  of r   →   k: MIN(x)  of (r joined with (k: MAX(y) of r) ON k <=> k AND y = MAX(y))
    k: MODE(x)       of r   →   k: MAX_BY(x, n)  of (k, x: COUNT(*) n  of r)

Ties: SQL takes any of the rows that tie in y; here it is the one with the least x that is not NULL, or the greatest one
for MODE() WITHIN GROUP (ORDER BY x DESC).
"""

from squallpy.base.types import BIGINT
from squallpy.functions.aggregate.entries import Maintenance
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.column_allocator import ColumnAllocator, short_name
from squallpy.logical.expression_builders import call, not_distinct
from squallpy.logical.expressions import Column, Expr, conjunction, not_null
from squallpy.logical.nodes import Aggregate, Filter, Join, Node
from squallpy.optimizer.plan.joined_values import join_values


def expand_arg_extremes(node: Node, columns: ColumnAllocator) -> Node | None:
    """Join each MAX_BY, MIN_BY and MODE of an Aggregate to the groups of the others."""
    return join_values(node, Maintenance.ARG_EXTREME, _take_value, columns)


def _take_value(groups: Aggregate, column: Column, agg: Agg, columns: ColumnAllocator) -> tuple[Node, list[Column]]:
    """Make the Aggregate of one value, and its keys; it lacks groups without a value."""
    assert agg.arg is not None
    rows, value, mine = groups.child, agg.arg, [expr for _, expr in groups.keys]
    by: Expr
    if agg.function == "mode":
        function, first = "max", "max" if agg.order else "min"
        counted = columns.copies((*mine, value))
        by = count = columns.column("COUNT(*)", BIGINT, False)
        there = Filter(rows, not_null(value)) if value.nullable else rows
        rows = Aggregate(there, counted, ((count, Agg("count", None)),))
        *known, (value, _) = counted
        mine = [key for key, _ in known]
    else:
        function, first, by = agg.function.removesuffix("_by"), "min", agg.order[0][0]
    best, same = columns.column(short_name(f"{function.upper()}({by})"), by.type, True), columns.copies(mine)
    ends = Aggregate(rows, same, ((best, Agg(function, by)),))
    on = conjunction((*(not_distinct(a, b) for b, a in same), call("=", by, best)))
    keys = columns.copies(mine)
    return Aggregate(Join(rows, ends, on), keys, ((column, Agg(first, value)),)), [key for key, _ in keys]
