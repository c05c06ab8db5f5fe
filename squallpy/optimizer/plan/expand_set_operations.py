"""UNION, INTERSECT and EXCEPT as aggregates of a UNION ALL, the last two by counting which side each row comes from."""

from squallpy.base.types import BIGINT, INT
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Literal, conjunction
from squallpy.logical.nodes import Aggregate, Filter, Node, Project, Repeat, SetOperation, Union


def expand_set_operation(node: Node, context: ColumnAllocator) -> Node | None:
    """Replace a set operation by an Aggregate of the rows of all sides.

    a UNION b       →  Aggregate by all columns of (a UNION ALL b)
    a EXCEPT b      →  Filter n > 0 AND m = 0 (Aggregate by all columns: COUNT(a's) n, COUNT(b's) m of (a UNION ALL b))
    a EXCEPT ALL b  →  Repeat n - m times (the same Aggregate)
    """
    if not isinstance(node, SetOperation):
        return None
    columns = tuple(context.column(c.name, c.type, c.nullable) for c in node.columns)
    keys = tuple(zip(node.columns, columns, strict=True))
    if node.kind == "UNION":
        return Aggregate(Union(node.children, columns), keys, ())
    marks = tuple(context.column(f"of_{i}", INT, True) for i in (1, 2))
    sides = tuple(
        Project(
            child,
            (*((c, c) for c in child.output), *((m, Literal(1 if i == j else None, INT)) for j, m in enumerate(marks))),
        )
        for i, child in enumerate(node.children)
    )
    n, m = (context.column(name, BIGINT, False) for name in ("n", "m"))
    counts = tuple((count, Agg("count", mark)) for count, mark in zip((n, m), marks, strict=True))
    counted = Aggregate(Union(sides, (*columns, *marks)), keys, counts)
    is_intersect, zero = node.kind == "INTERSECT", Literal(0, INT)
    rows: Node
    if node.all:
        rows = Repeat(counted, case([(call("<", n, m), n)], m) if is_intersect else call("-", n, m))
    else:
        rows = Filter(counted, conjunction((call(">", n, zero), call(">" if is_intersect else "=", m, zero))))
    return Project(rows, tuple((c, c) for c in node.columns))
