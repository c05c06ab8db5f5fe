"""Queries whose results only grow, and the operators by which others take rows back."""

from pathlib import Path

import pytest

from squallpy.logical.retractions import retracting_operator
from squallpy.script_session import ScriptSession

SCRIPT = """
CREATE STREAM r (k INT, v INT, at TIMESTAMP) USING csv OPTIONS (path 'r.csv') TIMESTAMP BY at;
CREATE STREAM s (k INT, w INT) USING csv OPTIONS (path 's.csv');
CREATE STREAM c (k INT, w INT) USING csv OPTIONS (path 'c.csv', op 'op');
CREATE STREAM u (k INT PRIMARY KEY, w INT) USING csv OPTIONS (path 'u.csv', changelog 'upsert');
CREATE TABLE t (k INT, name VARCHAR) USING csv OPTIONS (path 't.csv');
CREATE MATRIX m (n, n) FROM STREAM s (k, w);
"""
MATCH, ANSWER = (
    "an outer or anti join takes rows back when they get a match",
    "a subquery takes rows back when its answer",
)
QUERIES = {
    "SELECT v + 1 AS x FROM r WHERE v > 2": None,
    "SELECT r.v, s.w FROM r JOIN s ON r.k < s.k JOIN t ON t.k = s.k": None,
    "SELECT DISTINCT v FROM r": None,
    "SELECT v FROM r UNION ALL SELECT w FROM s": None,
    "SELECT v FROM r UNION SELECT w FROM s": None,
    "SELECT v FROM r INTERSECT SELECT w FROM s": None,
    "SELECT v FROM r LEFT SEMI JOIN s ON r.k = s.k": None,
    "SELECT v FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k)": None,
    "SELECT v FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k) OR v > 3": None,
    "SELECT v FROM r WHERE k IN (SELECT k FROM s) AND k IN (SELECT k FROM t)": None,
    "SELECT v, name FROM r LEFT JOIN t ON r.k = t.k": None,
    "SELECT v FROM r WHERE k NOT IN (SELECT k FROM t WHERE k > 0)": None,
    "SELECT v, (SELECT COUNT(*) FROM t) AS n FROM r": None,
    "SELECT v FROM r ORDER BY v": None,
    "SELECT v, COUNT(*) AS n FROM r GROUP BY v": "COUNT(*) … GROUP BY v changes rows that it has given",
    "SELECT SUM(v) AS s FROM r": "SUM(v) changes rows that it has given",
    "SELECT v FROM r WHERE k = (SELECT MAX(k) FROM s)": "MAX(k) changes rows that it has given",
    "SELECT w FROM c": "c is a change stream",
    "SELECT w FROM u": "u is a change stream",
    "SELECT r.v FROM r JOIN c ON r.k = c.k": "c is a change stream",
    "SELECT r.v, w FROM r LEFT JOIN s ON r.k = s.k": MATCH,
    "SELECT name, w FROM t LEFT JOIN s ON t.k = s.k": MATCH,
    "SELECT r.v, w FROM r FULL JOIN s ON r.k = s.k": MATCH,
    "SELECT v FROM r LEFT ANTI JOIN s ON r.k = s.k": MATCH,
    "SELECT v FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = r.k)": ANSWER,
    "SELECT v FROM r WHERE k NOT IN (SELECT k FROM s)": ANSWER,
    "SELECT v, k IN (SELECT k FROM s) AS found FROM r": ANSWER,
    "SELECT v FROM r WHERE (k IN (SELECT k FROM s)) IS NOT NULL": ANSWER,
    "SELECT v FROM r EXCEPT SELECT w FROM s": "EXCEPT takes rows back that come on its right",
    "SELECT v FROM r ORDER BY v LIMIT 3": "LIMIT takes rows back for others",
    "SELECT DISTINCT ON (v) v, k FROM r ORDER BY v, k": "DISTINCT ON takes rows back for others",
    "SELECT v FROM (SELECT v FROM r ORDER BY v LIMIT 3) x": "LIMIT takes rows back for others",
    "SELECT v, RANK() OVER (ORDER BY v) AS n FROM r": "RANK OVER (…) changes rows that it has given",
    "SELECT v FROM r RANGE 10 SEC": "RANGE 10 SEC takes rows back that leave the window",
    "SELECT i FROM m": "the cells of m change",
}


@pytest.mark.parametrize("query", QUERIES)
def test_operators(query: str) -> None:
    (bound,) = ScriptSession(Path("q.sql"), text=f"{SCRIPT}{query};").script.queries
    found, wanted = retracting_operator(bound.plan), QUERIES[query]
    assert found == wanted or (wanted and found and found.startswith(wanted)), found
