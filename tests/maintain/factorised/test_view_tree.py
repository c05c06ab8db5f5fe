"""View trees: the dissertation's figures, what is stored, and the naive join as the oracle."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.frontend.source_text import ScriptText
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.cost import PLAIN, count_groups, payload_words
from squallpy.maintain.factorised.derive_order import derive_order
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.order_text import read_order
from squallpy.maintain.factorised.show import viewtree_text
from squallpy.maintain.factorised.stop_push_down import stop_push_down
from squallpy.maintain.factorised.variable_order import VariableOrder
from squallpy.maintain.factorised.view_tree import View, build_view_tree
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
FIGURES = {"figure_2_1": False, "figure_3_2": True}  # whether it is compressed


def read(text: str) -> VariableOrder:
    return read_order(ScriptText(text, "order"))


def figure(compress: bool) -> str:
    order = read(FIGURE_ORDER)
    return viewtree_text(FIGURE, order, build_view_tree(FIGURE, order, compress=compress))


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
    below = [child for child in root.children if isinstance(child, View)]
    assert [(v.marginalised, v.keys) for v in below] == [
        (variables("B"), variables("A")),
        (variables("F"), variables("A")),
    ]


def shape(query: JoinGraph, order: VariableOrder | None = None) -> str:
    """Show the derived tree in short: V@B(A)* is materialised."""
    text = viewtree_text(query, derive_order(query), build_view_tree(query, order or derive_order(query)))
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


def sized(fact: int | None, dim: int | None) -> JoinGraph:
    return JoinGraph((Leaf("F", variables("KX"), rows=fact), Leaf("D", variables("KUV"), False, dim)), variables("XUV"))


@pytest.mark.parametrize(
    ("fact", "dim", "stops"),
    [
        (1000, 1000, [False, True]),  # one row a key: 4 words instead of 15; F is not read
        (1000, 100, [False, True]),
        (1000, None, [False, False]),
        (None, 1000, [False, False]),
        (100, 1000, [False, False]),  # 100 keys at most in the join: 16 words each, not 4 in 1,000 rows
    ],
)
def test_rows_are_kept_where_they_are_smaller(fact: int | None, dim: int | None, stops: list[bool]) -> None:
    query = sized(fact, dim)
    root = stop_push_down(build_view_tree(query, derive_order(query)), query)
    below = [child for child in root.children if isinstance(child, View)]
    assert [child.keeps_rows for child in below] == stops
    if stops[1]:
        assert below[1].stored_keys == variables("KUV") and below[1].stored_lifts == ()


def test_the_root_keeps_payloads() -> None:
    query = JoinGraph((Leaf("F", variables("KX"), rows=10),), variables("KX"), variables("K"))
    root = build_view_tree(query, derive_order(query))
    assert stop_push_down(root, query) == root


def test_words() -> None:
    assert [payload_words(m, PLAIN) for m in range(3)] == [1, 5, 9]
    assert [payload_words(m) for m in (0, 1, 2, 27)] == [1, 7, 14, 2 + 27 + 2 * (27 + 27 * 14)]


def test_groups_are_bounded_by_the_rows_of_all_relations_with_the_keys() -> None:
    query = sized(1000, 50)
    assert count_groups(query, query.leaves[0], variables("K")) == 50
    assert count_groups(query, query.leaves[0], variables("KX")) == 1000
    assert count_groups(query, query.leaves[0], ()) == 1
    unknown = sized(None, 50)
    assert count_groups(unknown, unknown.leaves[0], ()) is None


# The oracle: payloads as (count, sums, sums of products), each lifted variable at its position

Payload = tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]]
Contents = dict[tuple[int, ...], Payload]


def lift(*values: int) -> Payload:
    return 1, values, tuple(tuple(x * y for y in values) for x in values)


def multiply(a: Payload, b: Payload) -> Payload:
    """Multiply payloads of variables side by side."""
    (c, s, q), (d, t, r) = a, b
    upper = (tuple(d * x for x in row) + tuple(s[i] * y for y in t) for i, row in enumerate(q))
    lower = (tuple(x * t[i] for x in s) + tuple(c * y for y in row) for i, row in enumerate(r))
    return c * d, tuple(d * x for x in s) + tuple(c * y for y in t), (*upper, *lower)


def add(a: Payload, b: Payload) -> Payload:
    (c, s, q), (d, t, r) = a, b
    sums = tuple(x + y for x, y in zip(s, t, strict=True))
    return c + d, sums, tuple(tuple(x + y for x, y in zip(v, w, strict=True)) for v, w in zip(q, r, strict=True))


def grouped(pairs: Iterator[tuple[tuple[int, ...], Payload]]) -> Contents:
    found: Contents = {}
    for key, payload in pairs:
        found[key] = add(found[key], payload) if key in found else payload
    return {key: payload for key, payload in found.items() if payload != multiply(payload, (0, (), ()))}


def evaluate(part: View | Leaf, data: Rows) -> Contents:
    """Compute the contents of a view from those of its children, as it would be stored, then as it is read."""
    if isinstance(part, Leaf):
        return {row: (count, (), ()) for row, count in data[part.name].items()}
    inputs = [(c.keys if isinstance(c, View) else c.variables, evaluate(c, data)) for c in part.children]
    stored = grouped(joined(inputs, part.stored_keys, () if part.keeps_rows else part.lifts))
    assert all(len(payload[1]) == len(part.stored_lifts) for payload in stored.values())
    return grouped(joined([(part.stored_keys, stored)], part.keys, part.lifts)) if part.keeps_rows else stored


def joined(
    inputs: list[tuple[tuple[Column, ...], Contents]], keys: tuple[Column, ...], lifts: tuple[Column, ...]
) -> Iterator[tuple[tuple[int, ...], Payload]]:
    for records in product(*(contents.items() for _, contents in inputs)):
        row: dict[Column, int] = {}
        payload: Payload = (1, (), ())
        for (columns, _), (key, factor) in zip(inputs, records, strict=True):
            if any(row.setdefault(v, value) != value for v, value in zip(columns, key, strict=True)):
                break
            payload = multiply(payload, factor)
        else:
            yield tuple(row[v] for v in keys), multiply(payload, lift(*(row[v] for v in lifts)))


def in_order_of(features: tuple[Column, ...], view: View, contents: Contents) -> Contents:
    at = [view.lifted.index(v) for v in features]
    return {
        k: (c, tuple(s[i] for i in at), tuple(tuple(q[i][j] for j in at) for i in at))
        for k, (c, s, q) in contents.items()
    }


def views(part: View | Leaf) -> Iterator[View]:
    if isinstance(part, View):
        yield part
        for child in part.children:
            yield from views(child)


@given(st.data(), joins(), st.randoms(use_true_random=False))
def oracle_trees_equal_the_naive_join(data: st.DataObject, join: JoinGraph, random: Random) -> None:
    contents = data.draw(rows(join))
    relations = [(leaf.variables, evaluate(leaf, contents)) for leaf in join.leaves]
    naive = grouped(joined(relations, join.free, join.features))
    for order in (derive_order(join), random_order(join, random)):
        for compress in (True, False):
            root = build_view_tree(join, order, compress=compress)
            for tree in (root, stop_push_down(root, join)):
                assert in_order_of(join.features, tree, evaluate(tree, contents)) == naive


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
                or not isinstance(view.children[0], View)
                or view.marginalised
                or view.lifts
            )
            for child in (c for c in view.children if view.is_join):
                assert isinstance(child, View), "a relation that is joined has a view of its own"
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
