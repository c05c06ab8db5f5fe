"""ROLLUP, CUBE and GROUPING SETS as the union of one aggregate for each set of keys."""

from squallpy.base.types import INT
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Expr, Literal
from squallpy.logical.nodes import Aggregate, GroupingSets, Node, Project, Union


def expand_grouping_sets(node: Node, context: ColumnAllocator) -> Node | None:
    """Aggregate once for each set, with NULL for the keys that it lacks.

    Aggregate by sets (a), (): SUM(x)   →   (Aggregate by a: SUM(x))  UNION ALL  (NULL, SUM(x) of (Aggregate: SUM(x)))
    """
    if not isinstance(node, GroupingSets):
        return None
    parts = []
    for chosen in node.sets:
        mine = {key: context.like(expr) for key, expr in node.keys if key in chosen}
        keys = tuple((mine[key], expr) for key, expr in node.keys if key in mine)
        aggs = tuple((context.column(c.name, c.type, c.nullable), agg) for c, agg in node.aggs)
        values: tuple[Expr, ...] = (
            *(mine.get(key) or Literal(None, expr.type) for key, expr in node.keys),
            *(column for column, _ in aggs),
            *(Literal(int(key not in mine), INT) for _, key in node.groupings),
        )
        parts.append(Project(Aggregate(node.child, keys, aggs), context.copies(values)))
    return Union(tuple(parts), node.output)
