"""Estimates of keys and rows of views."""

import pytest

from squallpy.maintain.factorised.cardinalities import Cardinalities, Records
from tests.maintain.factorised.random_joins import graph, variables

STAR = graph(F="KJX", D="KU", E="JV")
SIZES = {"F": 60_000, "D": 600, "E": 4_000}


def test_a_variable_has_no_more_values_than_the_smallest_relation_has_rows() -> None:
    known, (k, j, x) = Cardinalities(STAR, SIZES), variables("KJX")
    assert [known.values(v) for v in (k, j, x)] == [600, 4_000, 60_000]
    assert known.largest.name == "F" and known.words == 3 * 60_000 + 2 * 4_600


@pytest.mark.parametrize(
    ("keys", "found"), [("KJ", 59_256), ("K", 600), ("J", 4_000), ("", 1), ("KX", 59_950), ("KJX", 60_000)]
)
def test_rows_are_drawn_of_the_combinations_of_values(keys: str, found: int) -> None:
    known = Cardinalities(STAR, SIZES)
    assert round(known.keys(variables(keys), SIZES["F"], STAR.leaves[:1])) == found


def test_other_relations_bound_combinations() -> None:
    query = graph(L="PSX", Q="PSY", P="PU", S="SV")
    known = Cardinalities(query, {"L": 60_000, "Q": 8_000, "P": 2_000, "S": 100})
    assert round(known.keys(variables("PS"), 60_000, query.leaves[:1])) == 7_996
    assert known.matches(query.leaves[0]) == pytest.approx(7.5, rel=1e-3)
    assert known.matches(query.leaves[1]) == pytest.approx(1.068, rel=1e-3)


def test_a_join_has_the_rows_of_its_largest_input_where_others_have_one_for_each() -> None:
    known = Cardinalities(STAR, SIZES)
    fact, dim = Records(variables("KJX"), 60_000), Records(variables("K"), 600)
    assert known.joined([dim, fact]) == 60_000
    assert known.joined([Records(variables("K"), 600), Records(variables("KU"), 1_200)]) == 1_200
    assert known.joined([fact, Records(variables("K"), 3_000)]) == 300_000
    assert known.joined([Records(variables("KX"), 9), Records(variables("J"), 3)]) == 27


def test_there_may_be_more_combinations_than_doubles_tell_apart() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    known = Cardinalities(graph(F=letters), {"F": 2**60})
    assert known.keys(variables(letters), 2.0**60, known.graph.leaves) == 2.0**60
