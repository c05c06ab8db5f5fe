"""FIRST(x ORDER BY y) as the value of the first row of each group, joined.

    k: COUNT(*), FIRST(x ORDER BY y) of r
    →   (k: COUNT(*) of r) left joined with (k: MIN(x) of the first row by y of r for each k) ON k <=> k

Ties: SQL takes any of the rows that tie in y; here it is the one with the least x that is not NULL, as for MAX_BY.
"""

from squallpy.functions.aggregate.entries import Maintenance
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import not_distinct
from squallpy.logical.expressions import Column, Expr, conjunction
from squallpy.logical.nodes import Aggregate, LeftJoin, Node, Project, TopN


def expand_first_values(node: Node, columns: ColumnAllocator) -> Node | None:
    """Join the first value of each of its groups to an Aggregate."""
    if not isinstance(node, Aggregate):
        return None
    chosen = [(column, agg) for column, agg in node.aggs if agg.maintenance is Maintenance.FIRST_ROW]
    if not chosen:
        return None
    plan: Node = Aggregate(node.child, node.keys, tuple(each for each in node.aggs if each not in chosen))
    for column, agg in chosen:
        taken, keys = _take_value(node, column, agg, columns)
        same = [not_distinct(group, key) for (group, _), key in zip(node.keys, keys, strict=True)]
        plan = LeftJoin(plan, taken, conjunction(same))
    return Project(plan, tuple((c, c) for c in node.output))


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
