"""Domain extraction (`dbtoaster-batch-ivm` §3.2.2), and where its examples are evaluated again (§3.2.3).

The programs of Examples 3.1 to 3.3 are in `plans/`, beside what the paper says.
"""

import pytest

from squallpy.physical.planner import place
from squallpy.physical.statement_cost import costs
from squallpy.program.calculus import Cmp
from squallpy.testing.goldens import PLANS
from tests.maintain.test_trigger_program import program

DOMAINS = {
    "example_3_1": ("G_N1", ["b"]),
    "example_3_1_exists": ("M_S", ["b"]),
    "example_3_2": ("M_R", ["a"]),
    "example_3_3": ("M_S", []),
}

NULLABLE = """
CREATE STREAM m (x INT, z INT) USING csv OPTIONS (path 'm');
CREATE STREAM n (y INT, z INT) USING csv OPTIONS (path 'n');
"""


@pytest.mark.parametrize("example", DOMAINS)
def test_domain_is_the_group(example: str) -> None:
    """The groups that change are those of the view's delta, by what the nested query is correlated with."""
    (aux,) = program((PLANS / f"{example}.sql").read_text(), "").auxiliary
    assert aux.source is not None
    assert (aux.source.name, [v.name for v in aux.source.variables]) == DOMAINS[example]


def test_domain_is_as_strict_as_the_delta() -> None:
    """Example 3.2: (B > 3) restricts the domain, for it is in the pre-aggregated delta already."""
    (trigger, _) = program((PLANS / "example_3_2.sql").read_text(), "").triggers
    (delta,), (statement,) = trigger.deltas, trigger.statements
    _, condition = delta.terms[0].body
    assert isinstance(condition, Cmp) and str(condition.predicate) == "b > 3"
    assert [v.name for v in delta.keys] == ["a"] and statement.filters == ()


@pytest.mark.parametrize("example", ["example_3_1", "example_3_1_exists", "example_3_2"])
def test_equality_correlation_is_incremental(example: str) -> None:
    plan = place(program((PLANS / f"{example}.sql").read_text(), ""), 1, {})
    assert {cost for each in costs(plan) for cost in each} <= {"O(1)", "O(log n)", "O(slice)"}


def test_a_join_below_restricts_the_domain() -> None:
    """ΔT reaches the groups of S that it joins, by a slice: no other is looked at."""
    nested = "SELECT s.b, COUNT(*) AS n FROM s, t WHERE s.c = t.c GROUP BY s.b"
    plan = place(program(f"SELECT COUNT(*) FROM r, ({nested}) q WHERE r.b = q.b AND r.a < q.n"), 1, {})
    by_relation = {t.relation.name: each for t, each in zip(plan.program.triggers, costs(plan), strict=True)}
    assert by_relation["t"][0] == "O(slice)" and "O(n)" not in {c for each in by_relation.values() for c in each}


def test_no_correlation_is_evaluated_again_over_a_piece() -> None:
    """Example 3.3: S only changes its count; that looks through Sum_[A](R ⋈ (B = 10)), and R looks up one count."""
    compiled = program((PLANS / "example_3_3.sql").read_text(), "")
    plan = place(compiled, 1, {})
    by_relation = {t.relation.name: each for t, each in zip(compiled.triggers, costs(plan), strict=True)}
    assert set(by_relation["r"]) == set(by_relation["s"]) == {"O(1)"}
    piece = next(v for v in compiled.views if v.name == "M_R")
    assert [v.name for v in piece.keys] == ["a"] and len(piece.terms[0].body) == 2
    (again,) = [s for s in compiled.triggers[2].statements if s.target == "Q"]
    assert [ref.name for ref in again.refs] == ["ΔN1", "M_R"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, COUNT(*) FROM m WHERE x IN (SELECT y FROM n) GROUP BY x",
        "SELECT x, COUNT(*) FROM m WHERE (x, z) IN (SELECT y, z FROM n) GROUP BY x",
        "SELECT z, SUM(CASE WHEN x IN (SELECT y FROM n) THEN 1 ELSE 0 END) FROM m GROUP BY z",
        "SELECT z, SUM(x) FILTER (WHERE x IN (SELECT y FROM n)) FROM m GROUP BY z",
    ],
)
def test_a_condition_does_not_ask_whether_a_list_has_nulls(query: str) -> None:
    """NULL or FALSE, IN lets the row go: a number of rows would change with each, and all of m be gone through."""
    plan = place(program(query, NULLABLE), 1, {})
    assert "O(n)" not in {cost for each in costs(plan) for cost in each}


@pytest.mark.parametrize(
    "where",
    [
        "x NOT IN (SELECT y FROM n)",
        "z = 1 OR EXISTS (SELECT 1 FROM n WHERE n.z = m.z)",
        "z = 1 OR (SELECT COUNT(*) FROM n WHERE n.z = m.z) > 0",
    ],
)
def test_what_asks_whether_there_is_a_row_is_not_told_how_many(where: str) -> None:
    """One more beside others is no change of the rows."""
    for aux in program(f"SELECT x, COUNT(*) FROM m WHERE {where} GROUP BY x", NULLABLE).auxiliary:
        counts = {measure.column for measure in aux.output.measures}
        assert counts and not counts & {expr for _, expr in aux.output.items}
