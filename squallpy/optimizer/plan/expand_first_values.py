"""FIRST(x ORDER BY y) as the first row of each group, joined.

    k: COUNT(*), FIRST(x ORDER BY y) of r
    →   (k: COUNT(*) of r) left joined with σ_{n = 1}(r with ROW_NUMBER() n OVER (PARTITION BY k ORDER BY y)) ON k <=> k

Ties: SQL takes any of the rows that tie in y; here the further columns that are read decide, as for ROW_NUMBER.
"""

from squallpy.base.types import BIGINT
from squallpy.functions.aggregate.entries import Maintenance
from squallpy.logical.aggregate_calls import OverClause, SortKeys, WindowFunction
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import call, not_distinct
from squallpy.logical.expressions import Column, Expr, Literal, conjunction
from squallpy.logical.nodes import Aggregate, Filter, LeftJoin, Node, Project, WindowFunctions

ONE = Literal(1, BIGINT)


def expand_first_values(node: Node, columns: ColumnAllocator) -> Node | None:
    """Join the first rows of its groups to an Aggregate, those of each order once."""
    if not isinstance(node, Aggregate):
        return None
    others, orders = [], dict[SortKeys, list[tuple[Column, Expr]]]()
    for column, agg in node.aggs:
        if agg.maintenance is Maintenance.FIRST_ROW and agg.arg is not None:
            orders.setdefault(agg.order, []).append((column, agg.arg))
        else:
            others.append((column, agg))
    if not orders:
        return None
    plan: Node = Aggregate(node.child, node.keys, tuple(others))
    for order, items in orders.items():
        partition, number = tuple(expr for _, expr in node.keys), columns.column("number", BIGINT, False)
        read = dict.fromkeys((*partition, *(expr for expr, _, _ in order), *(value for _, value in items)))
        mine = {expr: columns.like(expr) for expr in read}  # NB: columns of its own, as both sides read the child
        over = OverClause(
            tuple(mine[expr] for expr in partition), tuple((mine[expr], down, nulls) for expr, down, nulls in order)
        )
        rows = Project(node.child, tuple((column, expr) for expr, column in mine.items()))
        numbered = WindowFunctions(rows, ((number, WindowFunction("ROW_NUMBER", over)),))
        first, keys = Filter(numbered, call("=", number, ONE)), columns.copies(over.partition)
        taken = ((column, mine[value]) for column, value in items)
        same = [not_distinct(group, key) for (group, _), (key, _) in zip(node.keys, keys, strict=True)]
        plan = LeftJoin(plan, Project(first, (*keys, *taken)), conjunction(same))
    return Project(plan, tuple((c, c) for c in node.output))
