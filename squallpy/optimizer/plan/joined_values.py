"""Aggregates that are computed on their own, joined to the groups of the others.

k: COUNT(*), MAX_BY(x, y) of r   →   (k: COUNT(*) of r) left joined with what gives MAX_BY(x, y) for each k ON k <=> k
"""

from collections.abc import Callable

from squallpy.functions.aggregate.entries import Maintenance
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import not_distinct
from squallpy.logical.expressions import Column, conjunction
from squallpy.logical.nodes import Aggregate, LeftJoin, Node, Project

Take = Callable[[Aggregate, Column, Agg, ColumnAllocator], tuple[Node, list[Column]]]
"""Makes the Aggregate of one value, and its keys; it may lack groups without a value."""


def join_values(node: Node, maintenance: Maintenance, take: Take, columns: ColumnAllocator) -> Node | None:
    """Join each aggregate of one maintenance to the groups of the others; None if there is none."""
    if not isinstance(node, Aggregate):
        return None
    chosen = [(column, agg) for column, agg in node.aggs if agg.maintenance is maintenance]
    if not chosen:
        return None
    plan: Node = Aggregate(node.child, node.keys, tuple(each for each in node.aggs if each not in chosen))
    for column, agg in chosen:
        taken, keys = take(node, column, agg, columns)
        same = [not_distinct(group, key) for (group, _), key in zip(node.keys, keys, strict=True)]
        plan = LeftJoin(plan, taken, conjunction(same))
    return Project(plan, tuple((c, c) for c in node.output))
