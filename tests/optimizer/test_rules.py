"""Rules: SQL in, plan out."""

import pytest

from squallpy.logical.bind import compile_script
from squallpy.logical.show import show
from squallpy.optimizer.stages import STAGES, optimise, trace

RELATIONS = """
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'r');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 's');
"""


def plan(sql: str) -> str:
    (query,) = compile_script(f"{RELATIONS} {sql};", "q.sql", lambda relation: ()).queries
    return show(optimise(query).plan)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("NOT NOT r.a = 1", "Filter a = 1"),
        ("NOT r.a < 1", "Filter a >= 1"),
        ("r.a = 1 AND TRUE", "Filter a = 1"),
        ("r.a = 1 OR FALSE", "Filter a = 1"),
        ("r.a = 1 AND FALSE", "Filter FALSE"),
        ("(r.a = 1 AND r.b = 2) OR (r.a = 1 AND r.b = 3)", "Filter a = 1 AND ((b = 2) OR (b = 3))"),
    ],
)
def test_predicates(where: str, expected: str) -> None:
    lines = [line.strip() for line in plan(f"SELECT r.a FROM r WHERE {where}").splitlines()]
    assert expected.replace("((b = 2) OR (b = 3))", "(b = 2 OR b = 3)") in lines, lines


def test_true_filter_is_dropped() -> None:
    assert "Filter" not in plan("SELECT r.a FROM r WHERE TRUE")


def test_filters_move_below_joins() -> None:
    lines = plan("SELECT r.a FROM r, s WHERE r.b = s.b AND r.a > 1 AND s.c < 2").splitlines()
    assert [line.strip() for line in lines] == [
        "Project a",
        "Join on b = b",
        "Filter a > 1",
        "Scan r",
        "Filter c < 2",
        "Scan s",
    ]


def test_join_predicate_is_found_in_every_arm() -> None:
    """TPC-H Q19: the join hides in the disjunction, and each input can be restricted on its own."""
    text = plan("SELECT r.a FROM r, s WHERE (r.b = s.b AND r.a = 1 AND s.c = 2) OR (r.b = s.b AND r.a = 3 AND s.c = 4)")
    assert "Join on b = b AND" in text
    assert "Filter a = 1 OR a = 3" in text and "Filter c = 2 OR c = 4" in text


def test_filter_moves_below_a_view() -> None:
    lines = plan("SELECT x FROM (SELECT a + 1 AS x FROM r) v WHERE x > 3").splitlines()
    assert [line.strip() for line in lines][-2:] == ["Filter a + 1 > 3", "Scan r"] or "Filter (a + 1) > 3" in lines[-2]


def test_an_unchanged_plan_is_the_same_object() -> None:
    (query,) = compile_script(f"{RELATIONS} SELECT a FROM r;", "q.sql", lambda relation: ()).queries
    assert optimise(query) is query
    assert list(trace(query.plan)) == []


def test_stages_say_why() -> None:
    assert all(stage.why and (stage.nodes or stage.exprs) for stage in STAGES)
