"""BIGINTs that are kept in rows, as doubles."""

from squallpy.base.types import BIGINT, DOUBLE, INT
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import Cast, Column
from squallpy.maintain.factorised.derive_order import derive_order
from squallpy.maintain.factorised.doubles_in_rows import store_doubles
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.leaf_sources import LeafSource
from squallpy.maintain.factorised.stop_push_down import stop_push_down
from squallpy.maintain.factorised.view_tree import build_view_tree
from squallpy.program.calculus import Assign, Rel

K, X, W, U = (Column(i, name, BIGINT) for i, name in enumerate("kxwu"))
FACT, DIM = Leaf("fact", (K, X)), Leaf("dim", (K, W, U), True, (K,))
GRAPH = JoinGraph((FACT, DIM), (X, W, U))


def source(leaf: Leaf) -> LeafSource:
    fields = tuple((v.name, v) for v in leaf.variables)
    relation = Relation(leaf.name, tuple(Field(name, INT) for name, _ in fields), True, "csv")
    return LeafSource(leaf, Rel(relation, fields), ())


def test_a_relation_that_keeps_rows_keeps_doubles() -> None:
    sources = (source(FACT), source(DIM))
    root = stop_push_down(build_view_tree(GRAPH, derive_order(GRAPH)))
    found, graph, tree = store_doubles(sources, GRAPH, root)
    fact, dim = graph.leaves
    assert fact == FACT and [v.name for v in dim.variables] == [v.name for v in DIM.variables]
    assert dim.variables[0] == K and [v.type for v in dim.variables[1:]] == [DOUBLE, DOUBLE]
    assert graph.features == tree.lifted == (X, *dim.variables[1:])
    assert len({v.id for v in (*DIM.variables, X, *dim.variables[1:])}) == 6
    kept = tree.views[1]
    assert kept.leaf is found[1].leaf is dim and kept.stored_keys == dim.variables
    assert found[1].rest == tuple(Assign(v, Cast(w, DOUBLE)) for v, w in zip(dim.variables[1:], (W, U), strict=True))
    assert found[0].rest == () and graph.names().keys() >= {*graph.features}


def test_what_has_payloads_stays_as_it_is() -> None:
    graph = JoinGraph((FACT, Leaf("dim", (K, W, U))), (X, W, U))
    sources = tuple(map(source, graph.leaves))
    root = stop_push_down(build_view_tree(graph, derive_order(graph)))
    assert store_doubles(sources, graph, root) == (sources, graph, root)
