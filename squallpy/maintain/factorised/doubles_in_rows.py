"""Doubles in rows: BIGINTs of relations that are kept as rows are stored as the doubles that are lifted of them.

dim(k, u), u BIGINT, kept as rows (k, u)   →   rows (k, u′), u′ := CAST(u AS DOUBLE)

Stored rows are keys, and one BIGINT is reserved, which cannot be a key but can be added up.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, count

from squallpy.base.types import DOUBLE, Kind
from squallpy.logical.expressions import Cast, Column
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.leaf_sources import LeafSource
from squallpy.maintain.factorised.view_tree import ViewNode
from squallpy.program.calculus import Assign
from squallpy.program.components import bound_by


def store_doubles(
    sources: tuple[LeafSource, ...], graph: JoinGraph, root: ViewNode
) -> tuple[tuple[LeafSource, ...], JoinGraph, ViewNode]:
    """Replace the BIGINTs that views keep in rows by doubles, in the leaves of a join, its graph, and its view tree."""
    old = {v: None for node in _nodes(root) if node.keeps_rows for v in _bigints(node)}
    if not old:
        return sources, graph, root
    used = chain(graph.variables, graph.features, graph.free, *(bound_by(source.body) for source in sources))
    ids = count(1 + max(v.id for v in used))
    doubles = {v: replace(v, id=next(ids), type=DOUBLE) for v in old}
    leaves = {id(leaf): _with(leaf, doubles) for leaf in graph.leaves}
    found = tuple(
        replace(source, leaf=leaves[id(source.leaf)], rest=(*source.rest, *_assign(source.leaf, doubles)))
        for source in sources
    )
    features = tuple(doubles.get(v, v) for v in graph.features)
    graph = replace(graph, leaves=tuple(leaves[id(leaf)] for leaf in graph.leaves), features=features)
    return found, graph, _replaced(root, doubles, leaves)


def _bigints(node: ViewNode) -> Iterator[Column]:
    return (v for v in node.lifts if v.type.kind is Kind.BIGINT and v not in node.keys)


def _nodes(node: ViewNode) -> Iterator[ViewNode]:
    yield node
    for child in node.views:
        yield from _nodes(child)


def _with(leaf: Leaf, doubles: dict[Column, Column]) -> Leaf:
    return replace(leaf, variables=tuple(doubles.get(v, v) for v in leaf.variables))


def _assign(leaf: Leaf, doubles: dict[Column, Column]) -> Iterator[Assign]:
    return (Assign(doubles[v], Cast(v, DOUBLE)) for v in leaf.variables if v in doubles)


def _replaced(node: ViewNode, doubles: dict[Column, Column], leaves: dict[int, Leaf]) -> ViewNode:
    children = tuple(
        leaves[id(child)] if isinstance(child, Leaf) else _replaced(child, doubles, leaves) for child in node.children
    )
    marginalised, lifts = (tuple(doubles.get(v, v) for v in some) for some in (node.marginalised, node.lifts))
    return replace(node, marginalised=marginalised, lifts=lifts, children=children)
