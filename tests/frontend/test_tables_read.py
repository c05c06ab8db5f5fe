"""Names that a query reads."""

import pytest

from squallpy.frontend.query import tables_read
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import Select

READ = {
    "WITH n AS (SELECT a FROM n), m AS (SELECT * FROM N) SELECT * FROM m JOIN k USING (a)": {"n", "k"},
    "WITH RECURSIVE n AS (SELECT a FROM r UNION SELECT a FROM m), m AS (SELECT n.a FROM n) SELECT a FROM n": {"r"},
    "SELECT * FROM (WITH x AS (SELECT 1 AS a) SELECT * FROM x) JOIN x USING (a)": {"x"},
    "WITH x AS (SELECT 1 AS a) SELECT a FROM y WHERE a IN (SELECT a FROM X) AND a IN (SELECT a FROM s.x)": {"y", "s.x"},
}


@pytest.mark.parametrize("text", READ)
def test_tables_of_with_are_none_of_the_catalogue(text: str) -> None:
    (statement,) = parse_script(text, "q.sql")
    assert isinstance(statement, Select) and tables_read(statement.query) == READ[text]
