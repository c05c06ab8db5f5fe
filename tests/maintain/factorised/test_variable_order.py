"""Variable orders: text, rules, derivation, and the check against a query."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.types import DOUBLE, INT, VARCHAR
from squallpy.frontend.source_text import ScriptText
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.check_order import check_order
from squallpy.maintain.factorised.derive_order import derive_order
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.order_text import read_order
from squallpy.maintain.factorised.variable_order import Schema, Variable, VariableOrder
from tests.maintain.factorised.random_joins import graph, joins, random_order, variables

TEXT = """\
4 2
0 A int -1 {} 0
1 B int 0 {0} 1
2 C double 0 {0} 0
3 D int 2 {0,2} 0
R 1 A,B
S 3 A,C,D"""
QUERY = graph(R="AB", S="ACD")


def read(text: str) -> VariableOrder:
    return read_order(ScriptText(text, "order"))


def tree(order: VariableOrder) -> str:
    """Show a forest in a line: A(B C(D))"""

    def below(parent: int) -> str:
        nodes = (f"{v.name}{below(id)}" for id, v in enumerate(order.variables) if v.parent == parent)
        text = " ".join(nodes)
        return f"({text})" if text and parent >= 0 else text

    return below(-1)


def test_text_is_read_and_written() -> None:
    order = read(TEXT)
    assert str(order) == TEXT
    assert order.variables[1] == Variable("B", "int", 0, is_cached=True)
    assert order.relations[1] == Schema("S", (0, 2, 3))
    assert [order.lowest(r) for r in order.relations] == [1, 3]
    assert order.dep() == ((), (0,), (0,), (0, 2))


def test_text_may_have_comments_blanks_and_ids_in_any_order() -> None:
    text = """
    /* A
       B -- a comment */
    2 1   -- another

    1 `b -- {1}` LONG 0 { 0 } 1
    0 A int -1 {} 0
    R 1 A , `B -- {1}`
    """
    assert str(read(text)) == "2 1\n0 A int -1 {} 0\n1 `b -- {1}` long 0 {0} 1\nR 1 A,`b -- {1}`"


def test_a_part_of_a_script_is_read_at_its_place() -> None:
    script = ScriptText(f"CREATE VARIABLE ORDER o AS $$\n{TEXT.replace('R 1 A,B', 'R 1 A,Bee')}\n$$;", "q.sql")
    with pytest.raises(SquallError) as error:
        read_order(script, script.text.index("$$") + 2, script.text.rindex("$$"))
    assert str(error.value) == 'SQ2003 q.sql:7:7: unknown variable "Bee", did you mean "B"?'
    assert error.value.caret() == "    R 1 A,Bee\n          ^^^"


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("4 2", "", "SQ1001 order:2:1: a variable order begins with the numbers of its variables and relations"),
        ("4 2", "5 2", "SQ1001 order:1:1: 4 variables are listed, not 5, write 4, or list all variables"),
        ("4 2", "4 1", "SQ1001 order:1:3: 2 relations are listed, not 1, write 2, or list all relations"),
        ("3 D int 2", "3 D int", "SQ1001 order:5:1: line 5 is no line of a variable order, a variable is written"),
        ("0 A int -1 {} 0", "0 A int -1 {} 2", "SQ1001 order:2:1: line 2 is no line of a variable order"),
        ("S 3 A,C,D", "S 3 A,,D", "SQ1001 order:7:1: line 7 is no line of a variable order"),
        ("2 C double", "2 C dubble", 'SQ2005 order:4:5: unknown type "dubble", did you mean "double"?'),
        ("2 C double", "1 C double", "SQ2007 order:4:1: two variables have the id 1"),
        ("3 D int", "4 D int", "SQ2013 order:5:1: no variable has the id 3, ids count from 0"),
        ("3 D int", "3 c int", 'SQ2003 order:7:9: unknown variable "D"'),
        ("S 3 A,C,D", "S 3 A,C,D\nT 1 B", "SQ1001 order:1:3: 3 relations are listed, not 2"),
        ("S 3 A,C,D", "r 1 A,B", 'SQ2007 order:7:1: relation "r" is there twice'),
        ("S 3 A,C,D", "S 3 A,C,C", 'SQ2007 order:7:9: "C" is twice in "S"'),
        ("S 3 A,C,D", "S 3 A,C,E", 'SQ2003 order:7:9: unknown variable "E"'),
        ("3 D int 2", "3 D int 7", 'SQ2003 order:5:1: there is no variable 7, the parent of "D", a root has'),
        ("2 C double 0", "2 C double 3", "SQ2013 order:4:1: parents make a cycle: C → D → C, a root has the parent -1"),
        ("2 C double 0", "2 C double 2", "SQ2013 order:4:1: parents make a cycle: C → C"),
        (
            "3 D int 2 {0,2}",
            "3 D int 1 {0,2}",
            'SQ2013 order:7:1: "D" and "C" of "S" are not on one path from the root',
        ),
        (
            "2 C double 0 {0}",
            "2 C double -1 {}",
            'SQ2013 order:7:1: "A" and "C" of "S" are not on one path from the root: there are two roots, "A" and "C"',
        ),
        ("3 D int 2 {0,2}", "3 D int 2 {0,1}", 'SQ2013 order:5:12: key 1 of "D" is none of its ancestors'),
        ("S 3 A,C,D", "S 2 A,C,D", 'SQ2013 order:7:3: "S" hangs below its lowest variable, not 2, write 3'),
    ],
)
def fault_text(line: str, instead: str, message: str) -> None:
    assert line in TEXT
    with pytest.raises(SquallError) as error:
        read(TEXT.replace(line, instead))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (graph(R="AB", S="ACDE"), 'SQ2013 the variable order has no variable "E"'),
        (graph(R="AB", S="AC"), 'SQ2003 order:5:1: unknown variable "D"'),
        (graph(R="AB", T="ACD"), 'SQ2001 order:7:1: the query does not join "S"'),
        (graph(R="AB", S="ACD", T="AB"), 'SQ2013 the variable order has no relation "T"'),
        (graph(R="ABC", S="ACD"), 'SQ2013 order:6:1: "C" is missing in the columns of "R"'),
        (graph(R="AB", S="CD"), 'SQ2003 order:7:1: "A" is no column of "S"'),
    ],
)
def fault_query(query: JoinGraph, message: str) -> None:
    with pytest.raises(SquallError) as error:
        check_order(read(TEXT), query)
    assert str(error.value).startswith(message)


def test_names_are_compared_without_case() -> None:
    assert check_order(read(TEXT.lower()), QUERY) == variables("ABCD")


SELF_JOIN = JoinGraph(  # edges e1 JOIN edges e2 ON e1.dst = e2.src
    (
        Leaf("e1", (Column(1, "src", INT), Column(2, "dst", INT)), unread=("w",)),
        Leaf("e2", (Column(2, "dst", INT), Column(3, "dst", INT)), columns=("src", "dst"), unread=("w",)),
    ),
    (Column(1, "src", INT), Column(3, "dst", INT)),
)


def test_variables_are_named_by_leaf_where_their_columns_are_not_enough() -> None:
    order = derive_order(SELF_JOIN)
    assert str(order) == "3 2\n0 e1.dst int -1 {} 0\n1 e1.src int 0 {0} 0\n2 e2.dst int 0 {0} 0\n" + (
        "e1 1 e1.src,e1.dst\ne2 2 e1.dst,e2.dst"
    )
    text = str(order).replace("e1.dst", "E2.SRC").replace("3 2", "4 2").replace("e1 1", "3 e1.w int 1 {0,1} 0\ne1 3")
    given = read(text.replace("e1.src,", "e1.src,e1.w,"))
    assert [column and column.id for column in check_order(given, SELF_JOIN)] == [2, 1, 3, None]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dst", 'SQ2002 order:2:1: ambiguous variable "dst", write e1.dst or e2.dst'),
        ("e2.dsd", 'SQ2003 order:2:1: unknown variable "e2.dsd", did you mean "e2.dst"?'),
    ],
)
def fault_names_of_a_self_join(name: str, message: str) -> None:
    order = str(derive_order(SELF_JOIN)).replace("e1.dst", name)
    with pytest.raises(SquallError) as error:
        check_order(read(order), SELF_JOIN)
    assert str(error.value) == message


def fault_one_name_of_two_variables() -> None:
    with pytest.raises(SquallError, match='SQ2007 order:3:1: variable "a" is there twice'):
        read("2 1\n0 A int -1 {} 0\n1 a int 0 {} 0\nR 0 A".replace("R 0", "R 1"))


def fault_one_variable_by_two_names() -> None:
    text = str(derive_order(SELF_JOIN)).replace("3 2", "4 2").replace("e1 1", "3 e2.src int 1 {} 0\ne1 1")
    with pytest.raises(SquallError, match=r'order:5:1: "e1\.dst" and "e2\.src" are one variable'):
        check_order(read(text), SELF_JOIN)


def fault_columns_of_another_relation() -> None:
    text = TEXT.replace("4 2", "5 2").replace("R 1 A,B", "4 W int 1 {} 0\nR 4 A,B,W")
    query = JoinGraph((QUERY.leaves[0], Leaf("S", variables("ACD"), unread=("W",))), ())
    with pytest.raises(SquallError, match='"W" is no column of "R"'):
        check_order(read(text), query)


@pytest.mark.parametrize(
    ("query", "derived"),
    [
        (graph(R="BE", S="ABCD", T="EG", U="EF"), "E(B(A(C(D))) G F)"),
        (graph(R="AB", S="BC", T="CA"), "A(B(C))"),  # a triangle
        (graph(R="AB", S="BC", T="CD", U="DA"), "A(B(C(D)))"),
        (graph(F="KJX", D="KU", E="JZ"), "K(J(X Z) U)"),
        (graph("UXYZ", F="KJX", D="KU", E="JYZ"), "J(K(X U) Y(Z))"),  # Y and Z are in no view with K
        (graph(F="KJX", D="KUG", E="JZ", free="G"), "G(K(J(X Z) U))"),
        (graph(F="KJX", D="KU", free="XU"), "X(U(K(J)))"),
        (graph(R="AB", S="CD"), "A(B) C(D)"),
        (graph(R="AB", S=""), "A(B)"),
        (graph(R=""), ""),
    ],
)
def test_orders_are_derived(query: JoinGraph, derived: str) -> None:
    assert tree(derive_order(query)) == derived


def test_types_of_derived_orders() -> None:
    leaf = Leaf("t", (Column(1, "x", DOUBLE), Column(2, "two words", VARCHAR)))
    text = str(derive_order(JoinGraph((leaf,), ())))
    assert text == "2 1\n0 x double -1 {} 0\n1 `two words` string 0 {0} 0\nt 1 x,`two words`"
    assert str(read(text)) == text


def test_a_thousand_variables_are_no_depth() -> None:
    many = tuple(Column(i, f"v{i}", INT) for i in range(1000))
    order = derive_order(JoinGraph((Leaf("t", many),), many))
    assert read(str(order)) == order


@given(joins(), st.randoms(use_true_random=False))
def property_orders_are_valid_and_printed_as_they_are_read(join: JoinGraph, random: Random) -> None:
    for order in (derive_order(join), random_order(join, random)):
        assert check_order(order, join) == tuple(variables(v.name)[0] for v in order.variables)
        assert read(str(order)) == order
        assert str(read(str(order))) == str(order)


@given(joins(), st.randoms(use_true_random=False))
def property_dep_is_what_it_is_defined_as(join: JoinGraph, random: Random) -> None:
    order = random_order(join, random)
    for id, keys in enumerate(order.dep()):
        subtree = {i for i in range(len(order.variables)) if i == id or order.is_ancestor(id, i)}
        shared = {v for r in order.relations if subtree & {*r.variables} for v in r.variables}
        assert set(keys) == {v for v in shared if order.is_ancestor(v, id)}
