"""Derivation of a variable order from a join.

fact(k, j, x) ⋈ dimk(k, u) ⋈ dimj(j, z)   →   k ─┬─ j ─┬─ x
                                                 │     └─ z
                                                 └─ u
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from squallpy.base.types import Kind
from squallpy.maintain.factorised.join_graph import JoinGraph
from squallpy.maintain.factorised.variable_order import NO_PARENT, Schema, Variable, VariableOrder

TYPES = {
    Kind.BOOLEAN: "boolean", Kind.INT: "int", Kind.BIGINT: "long", Kind.DECIMAL: "decimal", Kind.DOUBLE: "double",
    Kind.VARCHAR: "string", Kind.DATE: "date", Kind.TIMESTAMP: "timestamp",
}  # fmt: skip


def derive_order(graph: JoinGraph) -> VariableOrder:
    """Derive an order: free variables on top, then the variable that most relations share.

    Below each choice, relations that share no further variable are in subtrees of their own. Among variables that
    equally many share, the one is chosen whose largest subtree has the fewest features, as the views there have more
    keys than those above; ties by position.
    """
    names, columns = graph.names(), graph.variables
    position, ids = {v: i for i, v in enumerate(columns)}, dict[int, int]()
    free, features = ({position[v] for v in some} for some in (graph.free, graph.features))
    variables = list[Variable]()
    waiting = [(c, NO_PARENT) for c in _components([position[v] for v in leaf.variables] for leaf in graph.leaves)][
        ::-1
    ]
    while waiting:
        schemas, parent = waiting.pop()
        within = _relations_of(schemas)
        ranks = {v: (v not in free, -len(relations)) for v, relations in within.items()}
        first = min(ranks.values())
        best = {within[v]: v for v in sorted(ranks, reverse=True) if ranks[v] == first}  # NB: the first of those alike
        top = min(
            best.values(), key=lambda v: (_most_features(features, _below(v, schemas)) if len(best) > 1 else 0, v)
        )
        ids[top] = len(variables)
        variables.append(Variable(names[columns[top]], TYPES[columns[top].type.kind], parent))
        waiting += [(component, ids[top]) for component in reversed(_below(top, schemas))]
    relations = (Schema(leaf.name, tuple(ids[position[v]] for v in leaf.variables)) for leaf in graph.leaves)
    return VariableOrder(tuple(variables), tuple(relations))


def _relations_of(schemas: Sequence[list[int]]) -> dict[int, tuple[int, ...]]:
    """Map each variable to the numbers of the relations that have it."""
    found = dict[int, tuple[int, ...]]()
    for number, schema in enumerate(schemas):
        for v in schema:
            found[v] = (*found.get(v, ()), number)
    return found


def _below(top: int, schemas: Iterable[list[int]]) -> list[list[list[int]]]:
    """Group what relations have below a variable into those that are connected."""
    return _components([v for v in schema if v != top] for schema in schemas)


def _most_features(features: Collection[int], subtrees: Iterable[list[list[int]]]) -> int:
    """Count the features of the subtree that has most."""
    return max((len({*chain.from_iterable(subtree)}.intersection(features)) for subtree in subtrees), default=0)


def _components(schemas: Iterable[list[int]]) -> list[list[list[int]]]:
    """Group sets of variables into those that are connected; the empty ones are left out."""
    groups = list[tuple[set[int], list[list[int]]]]()
    for schema in filter(None, schemas):
        joined = [g for g in groups if not g[0].isdisjoint(schema)]
        merged = (set(schema).union(*(g[0] for g in joined)), [*chain.from_iterable(g[1] for g in joined), schema])
        at = groups.index(joined[0]) if joined else len(groups)
        groups = [*groups[:at], merged, *(g for g in groups[at:] if g not in joined)]
    return [members for _, members in groups]
