"""Which spellings of a query a checkpoint takes for the same one."""

import pytest

from squallpy.catalog.relation import Field, Relation
from squallpy.logical.bind import compile_script
from squallpy.logical.query_identity import identity_text

STREAMS = (
    "CREATE STREAM r (a INT, b INT, c INT) USING csv OPTIONS (path 'r.csv');"
    "CREATE STREAM s (a INT, b INT) USING csv OPTIONS (path 's.csv');\n"
)
QUERY = (
    "SELECT a, SUM(b) AS total FROM (SELECT r.a, s.b FROM r JOIN s ON r.a = s.a WHERE s.b > 1) q "
    "WHERE EXISTS (SELECT 1 FROM s WHERE s.a = q.a) GROUP BY a ORDER BY total DESC LIMIT 3"
)
SAME = (
    QUERY.lower(),
    QUERY.replace(" WHERE ", "\n-- only some\n  WHERE "),
    QUERY.replace("q", "inner_rows").replace("FROM s WHERE s.a", "FROM s other WHERE other.a"),
    QUERY.replace("(SELECT r.a, s.b FROM r JOIN s", "(SELECT one.a, two.b FROM r one JOIN s two")
    .replace("ON r.a = s.a", "ON one.a = two.a")
    .replace("WHERE s.b > 1", "WHERE two.b > 1"),
    f"WITH q AS (SELECT r.a, s.b FROM r JOIN s ON r.a = s.a WHERE s.b > 1) {QUERY.split('FROM', 1)[0]} FROM q "
    f"WHERE{QUERY.rsplit(' q WHERE', 1)[1]}",
)
OTHERS = (
    QUERY.replace("SUM(b)", "MAX(b)"),
    QUERY.replace("SUM(b)", "SUM(DISTINCT b)"),
    QUERY.replace("r.a, s.b", "r.a, r.b"),
    QUERY.replace("r.a, s.b", "s.a, s.b"),
    QUERY.replace("s.b > 1", "s.b > 2"),
    QUERY.replace("s.b > 1", "s.b >= 1"),
    QUERY.replace("JOIN s", "LEFT JOIN s"),
    QUERY.replace("FROM r JOIN", "FROM s r JOIN"),
    QUERY.replace("s.a = q.a", "s.b = q.a"),
    QUERY.replace("EXISTS", "NOT EXISTS"),
    QUERY.replace("DESC", "ASC"),
    QUERY.replace("LIMIT 3", "LIMIT 4"),
    QUERY.replace("LIMIT 3", "LIMIT 3 OFFSET 1"),
    QUERY.replace("SUM(b)", "SUM(SUM(b)) OVER (ORDER BY a)"),
)


def no_files(relation: Relation) -> tuple[Field, ...]:
    raise AssertionError(f"{relation.name} has columns")


def identity(sql: str) -> str:
    (query,) = compile_script(STREAMS + sql, "q.sql", no_files).queries
    return identity_text(query.plan)


@pytest.mark.parametrize("sql", SAME)
def test_names_and_spelling_make_no_other_query(sql: str) -> None:
    assert sql != QUERY and identity(sql) == identity(QUERY)


@pytest.mark.parametrize("sql", OTHERS)
def test_another_meaning_is_another_query(sql: str) -> None:
    assert sql != QUERY and identity(sql) != identity(QUERY)


def test_columns_that_nothing_reads_do_not_matter() -> None:
    wider = STREAMS.replace("(a INT, b INT)", "(z INT, a INT, b INT)")
    (query,) = compile_script(wider + QUERY, "q.sql", no_files).queries
    assert identity_text(query.plan) == identity(QUERY)
