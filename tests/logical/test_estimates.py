"""What `estimate` refuses, each in one line at its place."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.logical.bind import compile_script

STREAMS = """
CREATE STREAM r (id INT PRIMARY KEY, g VARCHAR, x DOUBLE) USING csv OPTIONS (path 'r.csv', order 'random');
CREATE STREAM u (k INT, x DOUBLE) USING csv OPTIONS (path 'u.csv', Order 'RANDOM', seed '9');
CREATE STREAM p (k INT, x DOUBLE) USING csv OPTIONS (path 'p.csv', order 'file');
CREATE TABLE t (k INT) USING csv OPTIONS (path 't.csv');
CREATE VIEW v AS SELECT id, x FROM r;
"""
_OF_KEY = 'SQ2005 estimate of a join needs the PRIMARY KEY of "u"'
MISTAKES = {
    "estimate(r)": "SQ2005 estimate reads a query with aggregates",
    "estimate()": "SQ2005 estimate reads a query with aggregates",
    "estimate(TABLE(SELECT g FROM r GROUP BY g))": "SQ2005 estimate reads a query with aggregates",
    "estimate(TABLE(SELECT MIN(x) AS m FROM r))": "SQ3001 MIN(x) is not estimated",
    "estimate(TABLE(SELECT COUNT(DISTINCT x) FROM r))": "SQ3001 COUNT(DISTINCT x) is not estimated",
    "estimate(TABLE(SELECT SUM(x) + 1 AS s FROM r))": "SQ3001 SUM(x) + 1 is not estimated",
    "estimate(TABLE(SELECT id, SUM(x) AS s FROM r GROUP BY g))": "SQ3001 id is not estimated",
    "estimate(TABLE(SELECT SUM(x) AS s FROM r), confidence => 1)": "SQ2012 a confidence of 1",
    "estimate(TABLE(SELECT SUM(x) AS s FROM r), 0)": "SQ2012 a confidence of 0",
    "estimate(TABLE(SELECT SUM(x) AS s FROM r), confidence => '0.9')": "SQ2012 a confidence of '0.9'",
    "estimate(TABLE(SELECT SUM(x) AS s FROM r), 0.9, 3)": "SQ2005 estimate takes a table and a confidence, not 3",
    "estimate(TABLE(SELECT SUM(x) AS s FROM r), level => 0.9)": 'SQ2005 estimate has no argument "level"',
    "estimate(TABLE(SELECT SUM(x) AS s FROM nowhere))": 'SQ2001 unknown table "nowhere"',
    "estimate(TABLE(SELECT SUM(y) AS s FROM r))": 'SQ2003 unknown column "y"',
    "estimate(TABLE(SELECT SUM(x) AS s FROM p))": 'SQ2005 "p" comes in the order of its source, which is no sample',
    "estimate(TABLE(SELECT COUNT(*) AS n FROM t))": "SQ2005 estimate reads at least one stream in random order",
    "estimate(TABLE(SELECT COUNT(*) AS n FROM v))": 'SQ3001 the view "v" inside of estimate',
    "estimate(TABLE(SELECT COUNT(*) AS n FROM (SELECT * FROM r) q))": "SQ3001 a subquery in FROM inside of estimate",
    "estimate(TABLE(SELECT COUNT(*) AS n FROM r WHERE x > (SELECT MAX(x) FROM u)))": 'SQ3001 a subquery over "u"',
    "estimate(TABLE(SELECT COUNT(*) AS n FROM r a, r b WHERE a.x < b.x))": 'SQ3001 "r" twice inside of estimate',
    "estimate(TABLE(SELECT COUNT(*) AS n FROM r JOIN u ON id = k))": _OF_KEY,
    "estimate(TABLE(SELECT COUNT(*) AS n FROM r LEFT JOIN t ON id = k))": "SQ3001 LEFT JOIN inside of estimate",
    "estimate(TABLE(SELECT COUNT(*) AS n FROM r LEFT SEMI JOIN t ON id = k))": "SQ3001 LEFT JOIN inside of estimate",
    "estimate(TABLE(SELECT g, COUNT(*) AS n FROM r GROUP BY g HAVING COUNT(*) > 1))": "SQ3001 HAVING inside",
    "estimate(TABLE(SELECT g, COUNT(*) AS n FROM r GROUP BY CUBE (g)))": "SQ3001 GROUP BY with several sets of keys",
    "estimate(TABLE(SELECT COUNT(*) AS n FROM r LIMIT 1))": "SQ3001 LIMIT inside of estimate",
    "estimate(TABLE(SELECT DISTINCT COUNT(*) AS n FROM r))": "SQ3001 DISTINCT inside of estimate",
}  # fmt: skip
DECLARATIONS = {
    "CREATE TABLE x (k INT) USING csv OPTIONS (path 'x', order 'random')": "SQ7002 a TABLE is read at once",
    "CREATE STREAM x (k INT) USING csv OPTIONS (path 'x', seed '3')": "SQ7002 a seed is for rows in a random order",
    "CREATE STREAM x (k INT) USING csv OPTIONS (path 'x', order 'random', seed '-3')": 'SQ7002 option "seed"',
    "CREATE STREAM x (k INT) USING csv OPTIONS (path 'x', order 'rnd')": 'SQ7002 option "order" cannot be "rnd"',
    "CREATE STREAM x (k INT) USING csv OPTIONS (path 'x', order 'random', watch 'true')": "SQ7002 order 'random'",
    "CREATE STREAM x (k INT) USING csv OPTIONS (path 'x', op '__op', order 'random')": "SQ7002 order 'random'",
    "CREATE STREAM x (k INT) USING http OPTIONS (port '80', order 'random')": "SQ7002 option \"order\" is for files",
}  # fmt: skip


def told(script: str) -> SquallError:
    with pytest.raises(SquallError) as found:
        compile_script(script, "q.sql", lambda relation: relation.fields, lambda *_: ())
    return found.value


@pytest.mark.parametrize("call", MISTAKES)
def test_mistakes(call: str) -> None:
    error = told(f"{STREAMS}SELECT * FROM {call};")
    assert f"{error.code} {error.message}".startswith(MISTAKES[call])
    assert error.span and error.span.line == 7


@pytest.mark.parametrize("statement", DECLARATIONS)
def test_orders_that_are_refused(statement: str) -> None:
    error = told(f"{statement};")
    assert f"{error.code} {error.message}".startswith(DECLARATIONS[statement])


def test_a_query_of_with_is_no_stream() -> None:
    error = told(f"{STREAMS}WITH r AS (SELECT 1 AS x) SELECT * FROM estimate(TABLE(SELECT SUM(x) AS s FROM r));")
    assert error.message == '"r" of WITH inside of estimate'
