"""Derivation of a variable order from a join.

fact(k, j, x) ⋈ dimk(k, u) ⋈ dimj(j, z)   →   k ─┬─ j ─┬─ x
                                                 │     └─ z
                                                 └─ u
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from squallpy.base.types import Kind
from squallpy.maintain.factorised.join_graph import JoinGraph
from squallpy.maintain.factorised.variable_order import NO_PARENT, Schema, Variable, VariableOrder

TYPES = {
    Kind.BOOLEAN: "boolean", Kind.INT: "int", Kind.BIGINT: "long", Kind.DECIMAL: "decimal", Kind.DOUBLE: "double",
    Kind.VARCHAR: "string", Kind.DATE: "date", Kind.TIMESTAMP: "timestamp",
}  # fmt: skip


def derive_order(graph: JoinGraph) -> VariableOrder:
    """Derive an order: free variables on top, then the variable that most relations share, ties by position.

    Below each choice, relations that share no further variable are in subtrees of their own.
    """
    names, columns = graph.names(), graph.variables
    position, ids = {v: i for i, v in enumerate(columns)}, dict[int, int]()
    free = {position[v] for v in graph.free}
    variables = list[Variable]()
    waiting = [(c, NO_PARENT) for c in _components([position[v] for v in leaf.variables] for leaf in graph.leaves)][
        ::-1
    ]
    while waiting:
        schemas, parent = waiting.pop()
        shared = Counter(chain.from_iterable(schemas))
        top = min(shared, key=lambda v: (v not in free, -shared[v], v))
        ids[top] = len(variables)
        variables.append(Variable(names[columns[top]], TYPES[columns[top].type.kind], parent))
        below = _components([v for v in schema if v != top] for schema in schemas)
        waiting += [(component, ids[top]) for component in reversed(below)]
    relations = (Schema(leaf.name, tuple(ids[position[v]] for v in leaf.variables)) for leaf in graph.leaves)
    return VariableOrder(tuple(variables), tuple(relations))


def _components(schemas: Iterable[list[int]]) -> list[list[list[int]]]:
    """Group sets of variables into those that are connected; the empty ones are left out."""
    groups = list[tuple[set[int], list[list[int]]]]()
    for schema in filter(None, schemas):
        joined = [g for g in groups if not g[0].isdisjoint(schema)]
        merged = (set(schema).union(*(g[0] for g in joined)), [*chain.from_iterable(g[1] for g in joined), schema])
        at = groups.index(joined[0]) if joined else len(groups)
        groups = [*groups[:at], merged, *(g for g in groups[at:] if g not in joined)]
    return [members for _, members in groups]
