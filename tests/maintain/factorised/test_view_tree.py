"""View trees: the dissertation's figures, what is stored, and the naive join as the oracle."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.types import BIGINT
from squallpy.frontend.source_text import ScriptText
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.cardinalities import Cardinalities
from squallpy.maintain.factorised.derive_order import derive_order
from squallpy.maintain.factorised.explain_text import viewtree_text
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.order_text import read_order
from squallpy.maintain.factorised.stop_push_down import stop_push_down
from squallpy.maintain.factorised.variable_order import VariableOrder
from squallpy.maintain.factorised.view_tree import ViewNode, build_view_tree
from squallpy.testing.rings.abstract_ring import FormalSums
from squallpy.testing.rings.matrix_chain import MatrixChain
from squallpy.testing.rings.relational import Relational
from squallpy.testing.view_tree_oracle import PowerSums, evaluate, evaluate_join
from tests.maintain.factorised.random_joins import Rows, graph, joins, random_order, rows, variables

FIGURE = graph("ABCDEFG", R="BE", S="ABCD", T="EG", U="EF")
FIGURE_ORDER = """\
7 4
0 A int -1 {} 0
1 B int 0 {0} 0
2 C int 1 {0,1} 0
3 D int 2 {0,1,2} 0
4 E int 1 {1} 0
5 F int 4 {4} 0
6 G int 4 {4} 0
R 4 B,E
S 3 A,B,C,D
T 6 E,G
U 5 E,F"""
RINGS = st.sampled_from([PowerSums(), PowerSums(4), Relational()])
FIGURES = {"figure_2_1": False, "figure_3_2": True}  # whether it is compressed


def read(text: str) -> VariableOrder:
    return read_order(ScriptText(text, "order"))


def figure(compress: bool) -> str:
    order = read(FIGURE_ORDER)
    return viewtree_text(FIGURE, order, [("VIEW TREE", build_view_tree(FIGURE, order, compress=compress))])


@pytest.mark.parametrize("name", FIGURES)
def golden_figures(name: str) -> None:
    assert figure(FIGURES[name]) == (Path(__file__).parent / f"{name}.txt").read_text()


def test_dep_of_figure_2_1_as_printed() -> None:
    """Its list of dep(), and V_RS@B[A], are those of T[A, F, G] and U[F, H] instead of T[E, G] and U[E, F]."""
    query = graph("ABCDEFGH", R="BE", S="ABCD", T="AFG", U="FH")
    order = read(
        "8 4\n0 A int -1 {} 0\n1 B int 0 {0} 0\n2 C int 1 {0,1} 0\n3 D int 2 {0,1,2} 0\n4 E int 1 {1} 0\n"
        "5 F int 0 {0} 0\n6 G int 5 {0,5} 0\n7 H int 5 {5} 0\nR 4 B,E\nS 3 A,B,C,D\nT 6 A,F,G\nU 7 F,H"
    )
    names = "ABCDEFGH"
    dep = {names[id]: "".join(names[key] for key in keys) for id, keys in enumerate(order.dep())}
    assert dep == {"A": "", "B": "A", "C": "AB", "D": "ABC", "E": "B", "F": "A", "G": "AF", "H": "F"}
    root = build_view_tree(query, order)
    below = [child for child in root.children if isinstance(child, ViewNode)]
    assert [(v.marginalised, v.keys) for v in below] == [
        (variables("B"), variables("A")),
        (variables("F"), variables("A")),
    ]


def shape(query: JoinGraph, order: VariableOrder | None = None) -> str:
    """Show the derived tree in short: V@B(A)* is materialised."""
    root = build_view_tree(query, order or derive_order(query))
    text = viewtree_text(query, derive_order(query), [("VIEW TREE", root)])
    lines = (line for line in text.split("VIEW TREE\n")[1].splitlines() if "V" in line)
    return "\n".join(f"{line[2:].split(' ⟨')[0]}{'*' * ('materialised' in line)}" for line in lines)


@pytest.mark.parametrize(
    ("query", "views"),
    [
        (graph("X", F="KX"), "V@K,X()*"),
        (graph("X", "K", F="KX"), "V@X(K)*"),
        (graph("XU", F="KX", D="KU"), "V@K()*\n  V@X(K)*\n  V@U(K)*"),
        (graph("XU", F="KX", D="KU", tables="D"), "V@K()*\n  V@X(K)\n  V@U(K)*"),
        (graph("XU", F="KX", D="KU", tables="FD"), "V@K()*\n  V@X(K)*\n  V@U(K)*"),
        (graph("X", F="KX", D="K", tables="D"), "V@K()*\n  V@X(K)\n  V(K)*"),
        (
            graph("A", R="AB", S="BC", T="CA"),
            "V@A()*\n  V@B(A)\n    V@C(A, B)*\n      V(B, C)*\n      V(A, C)*\n    V(A, B)*",
        ),
        (graph("XU", "K", F="KX", D="KU"), "V(K)*\n  V@X(K)*\n  V@U(K)*"),
        (graph("XU", "G", F="KX", D="KUG"), "V@K(G)*\n  V@X(K)*\n  V@U(G, K)*"),
        (graph("GXU", "G", F="KX", D="KUG"), "V(G)*\n  V@K(G)\n    V@X(K)*\n    V@U(G, K)*"),
        (graph("XU", R="X", S="U"), "V()*\n  V@X()*\n  V@U()*"),
        (graph("X", "X", R="X"), "V(X)*"),
        (graph(R=""), "V()*"),
        (graph(R="", S=""), "V()*\n  V()*\n  V()*"),
    ],
)
def test_shapes(query: JoinGraph, views: str) -> None:
    assert shape(query) == views


def test_what_does_not_have_a_variable_is_joined_above_it() -> None:
    query = graph("XU", F="KX", D="KU")
    order = read("3 2\n0 K int -1 {} 0\n1 X int 0 {0} 0\n2 U int 1 {0} 0\nF 1 K,X\nD 2 K,U")
    assert shape(query, order) == "V@K()*\n  V@X(K)*\n  V@U(K)*"


def test_columns_that_are_not_read_are_left_out() -> None:
    query = JoinGraph((Leaf("F", variables("KX"), unread=("w",)), Leaf("D", variables("K"))), variables("X"))
    order = read("3 2\n0 K int -1 {} 0\n1 w int 0 {0} 0\n2 X int 1 {0,1} 0\nF 2 K,w,X\nD 0 K")
    assert shape(query, order) == "V@K()*\n  V@X(K)*\n  V(K)*"


def test_a_thousand_features_are_no_depth() -> None:
    many = tuple(Column(i, f"v{i}", variables("A")[0].type) for i in range(1000))
    query = JoinGraph((Leaf("t", many), Leaf("u", many[:1])), many)
    root = build_view_tree(query, derive_order(query))
    assert root.lifted == (*many[1:], many[0])


@pytest.mark.parametrize(
    ("key", "lifted", "stops"),
    [
        ("K", "XUV", True),  # one row a key: 4 words instead of 15
        ("KU", "XUV", False),  # several rows
        ("", "XUV", False),
        ("K", "XW", True),
        ("K", "X", False),  # nothing that payloads would have
    ],
)
def test_rows_are_kept_where_a_key_has_one(key: str, lifted: str, stops: bool) -> None:
    wide = Column(1, "W", BIGINT)
    named = {v.name: v for v in (*variables("KXUV"), wide)}
    features = tuple(named[name] for name in lifted)
    dim = tuple(dict.fromkeys((*variables("K"), *variables(key), *(f for f in features if f.name != "X"))))
    query = JoinGraph((Leaf("F", variables("KX")), Leaf("D", dim, False, variables(key))), features)
    root = stop_push_down(build_view_tree(query, derive_order(query)))
    below = [child for child in root.children if isinstance(child, ViewNode)]
    assert [child.keeps_rows for child in below] == [False, stops]
    if stops:
        assert below[1].stored_keys == (named["K"], *features[1:]) and below[1].stored_lifts == ()


def test_the_root_keeps_payloads() -> None:
    query = JoinGraph((Leaf("F", variables("KX"), True, variables("K")),), variables("KX"), variables("K"))
    root = build_view_tree(query, derive_order(query))
    assert stop_push_down(root) == root


def stopped(query: JoinGraph, **rows: int) -> str:
    """Show what views keep where the rows of relations are known: V(K)* payloads, V(K)= rows, V(K)- nothing."""

    def lines(view: ViewNode, indent: str = "") -> Iterator[str]:
        mark = "-" if view.is_virtual else "=" if view.keeps_rows else "*" if view.is_materialised else ""
        yield f"{indent}V({', '.join(v.name for v in view.keys)}){mark}"
        for child in view.views:
            yield from lines(child, indent + "  ")

    tree = build_view_tree(query, derive_order(query))
    changing = [leaf.name for leaf in query.leaves if leaf.has_deletes]
    return "\n".join(lines(stop_push_down(tree, Cardinalities(query, rows, changing) if rows else None)))


STAR = graph("WXYZUV", F="KJXYZW", D="KU", E="JV")


@pytest.mark.parametrize(
    ("query", "rows", "kept"),
    [
        # a fact that hardly has a pair of keys twice
        (STAR, {"F": 1000, "D": 100, "E": 100}, "V()*\n  V(K)-\n    V(K, J)=\n    V(J)*\n  V(K)*"),
        # one that has each a hundred times, and one of which nothing is known
        (STAR, {"F": 1000, "D": 3, "E": 3}, "V()*\n  V(K)-\n    V(K, J)*\n    V(J)*\n  V(K)*"),
        (STAR, {}, "V()*\n  V(K)*\n    V(K, J)*\n    V(J)*\n  V(K)*"),
        # the largest relation alone keeps rows, if its others have few for each of its own
        (STAR, {"F": 50, "D": 100, "E": 40}, "V()*\n  V(K)-\n    V(K, J)*\n    V(J)*\n  V(K)*"),
        (graph("XYU", F="KXY", D="KU"), {"F": 1000, "D": 100}, "V()*\n  V(K)*\n  V(K)*"),
        (graph("XYZU", F="KXYZ", D="KU"), {"F": 100, "D": 100}, "V()*\n  V(K)=\n  V(K)*"),
        # a view of two relations that has more keys than these have rows
        (graph("ABC", R="AB", S="BC", T="CA"), dict.fromkeys("RST", 1000),
         "V()*\n  V(A)-\n    V(A, B)-\n      V(B, C)*\n      V(A, C)*\n    V(A, B)*"),
        # streams that join static tables: nobody reads the joins, which are not built on the way, either
        (graph("WXYZUV", tables="DE", F="KJXYZW", D="KU", E="JV"), {"F": 1000, "D": 100, "E": 100},
         "V()*\n  V(K)-\n    V(K, J)=\n    V(J)*\n  V(K)*"),
        (graph("WXYZUV", tables="DE", F="KJXYZW", D="KU", E="JV"), {},
         "V()*\n  V(K)-\n    V(K, J)\n    V(J)*\n  V(K)*"),
        (graph("WXYZUV", "U", "DE", F="KJXYZW", D="KU", E="JV"), {},
         "V(U)*\n  V(U)\n    V(U, J)\n      V(J, K)\n      V(U, K)*\n    V(J)*"),
        # small joins beside the largest relation are worth having
        (graph("XYZUV", F="KXYZ", D="KLU", E="LV"), {"F": 9000, "D": 100, "E": 10},
         "V()*\n  V(K)*\n  V(K)*\n    V(K, L)*\n    V(L)*"),
    ],
)  # fmt: skip
def test_what_is_kept_where_rows_are_known(query: JoinGraph, rows: dict[str, int], kept: str) -> None:
    assert stopped(query, **rows) == kept


def of_leaves(query: JoinGraph, keys: str = "", deletes: str = "") -> JoinGraph:
    """Declare the first column of some leaves their PRIMARY KEY, and let rows of some go."""
    leaves = (
        replace(leaf, primary_key=leaf.variables[: leaf.name in keys], has_deletes=leaf.name in deletes)
        for leaf in query.leaves
    )
    return replace(query, leaves=tuple(leaves))


PAYLOADS, VIRTUAL = (
    "V()*\n  V(K)*\n    V(K, J)*\n    V(J){}\n  V(K){}",
    "V()*\n  V(K)-\n    V(K, J)*\n    V(J){}\n  V(K){}",
)


@pytest.mark.parametrize(
    ("keys", "deletes", "kept"),
    [
        ("DE", "", VIRTUAL.format("=", "=")),
        ("D", "", VIRTUAL.format("*", "=")),  # joined with E where D meets it, whatever comes to E
        ("E", "", PAYLOADS.format("=", "*")),
        ("DE", "D", PAYLOADS.format("=", "=")),
        ("DE", "EF", VIRTUAL.format("=", "=")),
    ],
)
def test_joins_have_no_records_where_what_they_meet_comes_once(keys: str, deletes: str, kept: str) -> None:
    assert stopped(of_leaves(graph("WXYZUVS", F="KJXYZW", D="KUS", E="JVT"), keys, deletes)) == kept


@pytest.mark.parametrize(
    ("deletes", "rows", "kept"),
    [
        # changes of the fact alone, or of a dimension that may be of one key where others have enough
        ("F", {"F": 1000, "D": 100, "E": 100}, "V()*\n  V(K)-\n    V(K, J)=\n    V(J)*\n  V(K)*"),
        ("E", {"F": 1000, "D": 900, "E": 100}, "V()*\n  V(K)-\n    V(K, J)=\n    V(J)*\n  V(K)*"),
        ("E", {"F": 1000, "D": 300, "E": 100}, "V()*\n  V(K)-\n    V(K, J)*\n    V(J)*\n  V(K)*"),
        # of one that meets a view with fewer keys than rows, or perhaps so
        ("D", {"F": 1000, "D": 900, "E": 800}, "V()*\n  V(K)*\n    V(K, J)=\n    V(J)*\n  V(K)*"),
        ("DE", {"F": 1000, "D": 900, "E": 800}, "V()*\n  V(K)*\n    V(K, J)*\n    V(J)*\n  V(K)*"),
    ],
)
def test_rows_with_deletes_are_changes(deletes: str, rows: dict[str, int], kept: str) -> None:
    assert stopped(of_leaves(STAR, "", deletes), **rows) == kept


def test_views_that_virtual_ones_join_are_stored() -> None:
    query = graph("WXYZUVT", tables="DE", F="KJIXYZW", D="KU", E="JV", G="IT")
    root = stop_push_down(
        build_view_tree(query, derive_order(query)), Cardinalities(query, {"F": 900, "D": 90, "E": 90, "G": 90})
    )
    for view in views(root):
        if view.is_virtual:
            assert not view.is_materialised and all(c.is_materialised or c.is_virtual for c in view.views)


def views(part: ViewNode | Leaf) -> Iterator[ViewNode]:
    if isinstance(part, ViewNode):
        yield part
        for child in part.children:
            yield from views(child)


@given(
    st.data(), joins(), st.randoms(use_true_random=False), st.sampled_from([PowerSums(), PowerSums(4), Relational()])
)
def oracle_trees_equal_the_naive_join(
    data: st.DataObject, join: JoinGraph, random: Random, ring: FormalSums[Any]
) -> None:
    contents = data.draw(rows(join))
    naive = evaluate_join(join, contents, ring)
    for order in (derive_order(join), random_order(join, random)):
        for compress in (True, False):
            root = build_view_tree(join, order, compress=compress)
            sizes = Cardinalities(join, {leaf.name: random.randint(1, 99) for leaf in join.leaves})
            for tree in (root, stop_push_down(root), stop_push_down(root, sizes)):
                assert evaluate(tree, contents, ring) == naive


def test_the_relational_ring_lists_the_join() -> None:
    join = graph("AXY", R="KAX", S="KY")
    data: Rows = {"R": {(1, 5, 7): 2, (2, 6, 8): 1}, "S": {(1, 3): 1, (1, 4): -1, (3, 9): 1}}
    root = evaluate(build_view_tree(join, derive_order(join)), data, Relational())
    assert root == {(): {frozenset({"A": 5, "X": 7, "Y": y}.items()): n for y, n in ((3, 2), (4, -2))}}


def test_the_ring_of_matrix_chains_multiplies_in_the_order_of_the_leaves() -> None:
    join = graph("XYZ", R="JX", S="JKY", T="KZ")
    draw = np.random.default_rng(2)
    a, b, c = (draw.integers(-3, 4, (2, *shape)) for shape in ((2, 3), (3, 4), (4, 2)))

    def value(matrix: NDArray[np.int64]) -> Any:
        return tuple(map(tuple, matrix.tolist()))

    data: Any = {
        "R": {(1, value(a[0])): 1, (2, value(a[1])): 1}, "S": {(1, 1, value(b[0])): 1, (2, 1, value(b[1])): 3},
        "T": {(1, value(c[0])): 1, (1, value(c[1])): -1, (2, value(c[1])): 1},
    }  # fmt: skip
    root = evaluate(build_view_tree(join, derive_order(join)), data, MatrixChain())
    expected = (a[0] @ b[0] + 3 * a[1] @ b[1]) @ (c[0] - c[1])
    assert root == {(): MatrixChain().lift("", value(expected))}


@given(joins(), st.randoms(use_true_random=False))
def property_trees(join: JoinGraph, random: Random) -> None:
    for order in (derive_order(join), random_order(join, random)):
        root = build_view_tree(join, order)
        found = [*views(root)]
        bound = [v for view in found for v in view.marginalised]
        assert sorted(bound, key=hash) == sorted({*join.variables} - {*join.free}, key=hash)
        assert sorted(root.lifted, key=hash) == sorted(join.features, key=hash)
        assert all(v in root.lifted for view in found for v in view.lifts)
        assert [leaf.name for leaf in join.leaves] == sorted(
            child.name for view in found for child in view.children if isinstance(child, Leaf)
        )
        for view in found:
            below = view.lifted
            assert any(root.lifted[i : i + len(below)] == below for i in range(len(root.lifted) + 1))
            assert (
                view is root
                or view.is_join
                or view.leaf
                or not isinstance(view.children[0], ViewNode)
                or view.marginalised
                or view.lifts
            )
            for child in (c for c in view.children if view.is_join):
                assert isinstance(child, ViewNode), "a relation that is joined has a view of its own"
                others = any(c.is_stream for c in view.children if c is not child)
                assert child.is_materialised == (others or not view.is_stream)


@given(joins())
def property_derived_orders_join_only_what_shares_the_variable(join: JoinGraph) -> None:
    """Each variable's parts all have it, so that nothing is joined above its place in the order."""
    order = derive_order(join)
    assert all(v.parent in keys or v.parent < 0 for v, keys in zip(order.variables, order.dep(), strict=True))


if __name__ == "__main__":  # rewrites the files, to be reviewed as a diff
    for name, compress in FIGURES.items():
        (Path(__file__).parent / f"{name}.txt").write_text(figure(compress))
