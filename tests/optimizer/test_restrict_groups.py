"""Groups restricted by a join: which queries, and by what."""

import pytest

from squallpy.base.settings import Settings
from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.logical.nodes import Aggregate, Filter, Join, Scan, nodes

RELATIONS = """
CREATE STREAM fact (p INT, q INT, v INT) USING csv OPTIONS (path 'f');
CREATE STREAM part (p INT PRIMARY KEY, kind INT, name INT) USING csv OPTIONS (path 'p');
CREATE STREAM pair (p INT, q INT, kind INT, PRIMARY KEY (p, q)) USING csv OPTIONS (path 'q');
CREATE STREAM loose (p INT, kind INT) USING csv OPTIONS (path 'l');
"""
GROUPS = "(SELECT p, MAX(v) AS most FROM fact GROUP BY p) AS g"


def restricting(sql: str) -> list[str]:
    """Name the relations by which the groups of a query are restricted."""
    (query,) = compile_script(f"{RELATIONS} {sql};", "q.sql", lambda relation: ()).queries
    groups = [node for node in nodes(to_program(query, settings=Settings()).optimised[0].plan) if is_groups(node)]
    return [
        join.right.child.relation.name
        for node in groups
        for join in nodes(node)
        if isinstance(join, Join) and isinstance(join.right, Filter) and isinstance(join.right.child, Scan)
    ]


def is_groups(node: object) -> bool:
    return isinstance(node, Aggregate) and bool(node.keys)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT g.most FROM part JOIN {GROUPS} ON g.p = part.p WHERE kind = 1",
        f"SELECT g.most FROM {GROUPS} JOIN part ON g.p = part.p WHERE kind = 1",
        f"SELECT g.most FROM fact JOIN part ON fact.p = part.p JOIN {GROUPS} ON g.p = fact.p WHERE kind = 1",
        "SELECT q FROM part JOIN fact ON fact.p = part.p "
        "WHERE kind = 1 AND v < (SELECT MAX(v) FROM fact f WHERE f.p = part.p)",
        "SELECT name FROM part WHERE kind = 1 AND EXISTS (SELECT * FROM fact WHERE fact.p = part.p)",
        f"SELECT g.most FROM part JOIN {GROUPS} ON g.p = part.p LEFT JOIN fact ON fact.p = part.p WHERE kind = 1",
    ],
)
def test_restricted(sql: str) -> None:
    assert restricting(sql) == ["part"]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"SELECT g.most FROM part JOIN {GROUPS} ON g.p = part.p", "all rows of the relation are joined"),
        (f"SELECT g.most FROM part JOIN {GROUPS} ON g.p = part.p WHERE kind IS NOT NULL", "nearly all are"),
        (f"SELECT g.most FROM loose JOIN {GROUPS} ON g.p = loose.p WHERE kind = 1", "a row may have several"),
        (f"SELECT g.most FROM pair JOIN {GROUPS} ON g.p = pair.p WHERE kind = 1", "the key has a second column"),
        (f"SELECT g.most FROM part JOIN {GROUPS} ON g.most = part.p WHERE kind = 1", "that is no key of the groups"),
        (f"SELECT g.most FROM part JOIN {GROUPS} ON g.p = part.p + 1 WHERE kind = 1", "that is not the key"),
        (f"SELECT g.most FROM part JOIN {GROUPS} ON g.p <=> part.p WHERE kind = 1", "NULL would have to be looked up"),
        (f"SELECT kind FROM part LEFT JOIN {GROUPS} ON g.p = part.p WHERE kind = 1", "groupjoins do that"),
        (f"SELECT g.most FROM {GROUPS} LEFT JOIN part ON g.p = part.p AND kind = 1", "all groups are in the result"),
        (
            "WITH g AS (SELECT p, MAX(v) AS most FROM fact GROUP BY p) "
            "SELECT g.most FROM part JOIN g ON g.p = part.p JOIN g AS h ON h.most = g.most WHERE kind = 1",
            "others read all groups",
        ),
    ],
)
def test_not_restricted(sql: str, reason: str) -> None:
    assert restricting(sql) == [], reason


def test_restricted_already() -> None:
    groups = "SELECT f.p, MAX(v) AS most FROM fact f JOIN part ON part.p = f.p WHERE part.kind = 1 GROUP BY f.p"
    assert restricting(f"SELECT g.most FROM part JOIN ({groups}) AS g ON g.p = part.p WHERE name = 1") == ["part"]


def test_restricted_inside() -> None:
    """The rows of groups are another join with groups."""
    inner = f"SELECT name, MIN(g.most) AS least FROM part JOIN {GROUPS} ON g.p = part.p WHERE kind = 1 GROUP BY name"
    assert {*restricting(f"SELECT h.least FROM ({inner}) AS h JOIN fact ON fact.v = h.least")} == {"part"}


def test_composite_key() -> None:
    groups = "(SELECT q, p, COUNT(*) AS n FROM fact GROUP BY q, p) AS g"
    assert restricting(f"SELECT n FROM pair JOIN {groups} ON g.p = pair.p AND g.q = pair.q WHERE kind = 1") == ["pair"]
