"""Joins that subqueries become."""

import pytest

from squallpy.logical.bind import compile_script
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.explain_text import show
from squallpy.optimizer.pass_manager import fresh_ids
from squallpy.optimizer.plan.decorrelate import decorrelate

DECLARATIONS = (
    "CREATE STREAM r (a INT NOT NULL, s VARCHAR, k BIGINT) USING csv OPTIONS (path 'r.csv'); "
    "CREATE STREAM u (a INT, k BIGINT, v VARCHAR) USING csv OPTIONS (path 'u.csv');\n"
)


def plan(sql: str) -> str:
    """Bind a query, and show what its subqueries become."""
    (query,) = compile_script(DECLARATIONS + sql, "q.sql", lambda _: ()).queries
    return show(decorrelate(query.plan, ColumnAllocator(ids=fresh_ids(query.plan))))


FROMS = ("r JOIN u ON r.a = u.a AND {}", "r JOIN u ON r.a = u.a WHERE {}", "r, u WHERE r.a = u.a AND {}")


@pytest.mark.parametrize("sources", FROMS)
def test_what_a_subquery_reads_of_two_sources_is_of_rows_that_meet(sources: str) -> None:
    """NB: a subquery evaluated for all pairs of rows takes the square of what it could."""
    subquery = "NOT EXISTS (SELECT 1 FROM u AS o WHERE o.k = r.k AND o.a < u.a)"
    shown = plan(f"SELECT r.s FROM {sources.format(subquery)};").split("\n")
    met = [line.strip() for line in shown if " r.a = u.a" in line]
    assert len(met) == 2, "the rows themselves, and what the subquery reads of them"
    assert met[0] == met[1]


def test_a_subquery_in_on_of_two_sources_is_of_rows_that_meet() -> None:
    shown = plan(
        "SELECT r.s FROM r LEFT JOIN u ON r.a = u.a AND NOT EXISTS (SELECT 1 FROM u o WHERE o.k = r.k AND o.a < u.a)"
    )
    lines = [line.strip() for line in shown.split("\n")]
    assert lines.count("Join on r.a = u.a") == 4
    assert len([line for line in lines if line.startswith("Anti join on r.a <=> ")]) == 1
