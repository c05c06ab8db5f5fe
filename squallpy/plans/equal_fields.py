"""Fields of streams that the columns of a plan stand for, with those that its joins equate with them.

EquiJoin(customer, "c_custkey", orders, "o_custkey"): c_custkey  →  customer.c_custkey, orders.o_custkey
"""

from collections.abc import Iterator

from squallpy.logical.expressions import Call, Column, Expr, conjuncts
from squallpy.logical.nodes import Aggregate, Filter, Join, Node, Project, Scan, nodes

RelationField = tuple[str, str]


def equal_fields(plan: Node, column: Expr) -> tuple[RelationField, ...]:
    """List the fields that a column of a plan is equal to; none for one that is computed."""
    own = dict(_fields(plan))
    if not isinstance(column, Column) or column.id not in own:
        return ()
    found, pairs = {own[column.id]}, [(own[a.id], own[b.id]) for a, b in _equated(plan) if {a.id, b.id} <= own.keys()]
    while more := {field for pair in pairs if found & {*pair} for field in pair} - found:
        found |= more
    return tuple(sorted(found))


def _fields(plan: Node) -> Iterator[tuple[int, RelationField]]:
    """Yield the ids of columns that are fields, with these."""
    known = dict[int, RelationField]()
    for node in nodes(plan):
        match node:
            case Scan(relation, _, columns):
                known |= {c.id: (relation.name, f.name) for c, f in zip(columns, relation.fields, strict=True)}
            case Project(_, items) | Aggregate(_, items):
                known |= {c.id: known[e.id] for c, e in items if isinstance(e, Column) and e.id in known}
    yield from known.items()


def _equated(plan: Node) -> Iterator[tuple[Column, Column]]:
    """Yield the pairs of columns that are compared by equality."""
    for node in nodes(plan):
        predicate = node.on if isinstance(node, Join) else node.predicate if isinstance(node, Filter) else None
        for part in conjuncts(predicate) if predicate is not None else ():
            match part:
                case Call("=", (Column() as a, Column() as b)):
                    yield a, b
