"""FIRST(x ORDER BY y) as the value of the first row of each group, joined.

    k: COUNT(*), FIRST(x ORDER BY y) of r
    →   (k: COUNT(*) of r) left joined with (k: MIN(x) of the first row by y of r for each k) ON k <=> k

Ties: SQL takes any of the rows that tie in y; here it is the one with the least x that is not NULL, as for MAX_BY.
"""

from squallpy.functions.aggregate.entries import Maintenance
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Column, Expr
from squallpy.logical.nodes import Aggregate, Node, Project, TopN
from squallpy.optimizer.plan.joined_values import join_values


def expand_first_values(node: Node, columns: ColumnAllocator) -> Node | None:
    """Join the first value of each of its groups to an Aggregate."""
    return join_values(node, Maintenance.FIRST_ROW, _take_value, columns)


def _take_value(groups: Aggregate, column: Column, agg: Agg, columns: ColumnAllocator) -> tuple[Node, list[Column]]:
    """Make the Aggregate of one value, and its keys."""
    assert agg.arg is not None
    partition = tuple(expr for _, expr in groups.keys)
    read: dict[Expr, Column] = {expr: columns.like(expr) for expr in dict.fromkeys((*partition, *agg.args))}
    rows = Project(groups.child, tuple((c, expr) for expr, c in read.items()))  # NB: both sides read the child
    order = tuple((read[expr], down, nulls_first) for expr, down, nulls_first in agg.order)
    first = TopN(rows, order, 1, partition=tuple(read[expr] for expr in partition))
    shown, keys = columns.copies((*first.partition, read[agg.arg])), columns.copies(first.partition)
    found = Project(first, shown)
    taken = tuple((key, c) for (key, _), (c, _) in zip(keys, shown[:-1], strict=True))
    return Aggregate(found, taken, ((column, Agg("min", shown[-1][0])),)), [key for key, _ in keys]
