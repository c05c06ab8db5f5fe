"""What tells the rows of a query apart."""

import pytest

from squallpy.logical.bind import compile_script
from squallpy.logical.nodes import Project
from squallpy.logical.plan_properties import unique_columns

DECLARATIONS = """
CREATE STREAM orders (o INT PRIMARY KEY, c INT, x INT) USING csv OPTIONS (path 'o.csv');
CREATE STREAM customers (c INT PRIMARY KEY, n VARCHAR) USING csv OPTIONS (path 'c.csv');
CREATE STREAM calls (c INT, n VARCHAR) USING csv OPTIONS (path 'l.csv');
"""
UNIQUE = {
    "SELECT o, x FROM orders": "o",
    "SELECT o, n FROM orders JOIN customers ON orders.c = customers.c": "o",
    "SELECT o, n FROM customers, orders WHERE orders.c = customers.c AND n > 'a'": "o",
    "SELECT o, n FROM orders LEFT JOIN customers ON orders.c = customers.c": "o",
    "SELECT o, k.c, n FROM customers k LEFT JOIN orders ON orders.c = k.c": "c, o",  # NULLs are beside many
    "SELECT o, k.c, n FROM customers k, orders": "c, o",
    "SELECT o, k.c, n FROM customers k JOIN orders ON orders.c > k.c": "c, o",
    "SELECT o, calls.n FROM orders JOIN calls ON orders.c = calls.c": None,
    "SELECT g.c, s, n FROM (SELECT c, SUM(x) AS s FROM orders GROUP BY c) g JOIN customers k ON k.c = g.c": "c",
    "SELECT a.o FROM orders a JOIN orders b ON a.o = b.x LEFT JOIN customers k ON b.o = k.c": None,  # no b.o shown
    "SELECT c, RANK() OVER (ORDER BY s) AS r FROM (SELECT c, SUM(x) AS s FROM orders GROUP BY c) g": "c",
    "SELECT o, SUM(x) OVER (PARTITION BY c) AS s, (SELECT MAX(n) FROM customers k WHERE k.c = r.c) FROM orders r": "o",
}


@pytest.mark.parametrize("sql", UNIQUE)
def test_unique_columns(sql: str) -> None:
    (query,) = compile_script(DECLARATIONS + sql, "q.sql", lambda relation: ()).queries
    plan = query.plan
    assert isinstance(plan, Project)
    found = unique_columns(plan, declared=True)
    assert (", ".join(c.name for c in found) if found is not None else None) == UNIQUE[sql]
