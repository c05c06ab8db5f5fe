"""Sums read from finer views and deltas: which views and deltas of a program stay."""

import pytest

from squallpy.base.settings import Settings
from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script

RELATIONS = """
CREATE STREAM stock (part INT NOT NULL, shop INT NOT NULL, n INT NOT NULL, x DOUBLE NOT NULL) USING csv
    OPTIONS (path 's');
CREATE STREAM shop (shop INT NOT NULL PRIMARY KEY, city INT NOT NULL) USING csv OPTIONS (path 'c');
CREATE STREAM visit (shop INT NOT NULL) USING csv OPTIONS (path 'v');
"""
SHARE = """
SELECT q.part FROM (SELECT part, SUM(n) AS n FROM stock JOIN {other} ON stock.shop = {other}.shop GROUP BY part) AS q
JOIN (SELECT SUM({value}) AS n FROM stock JOIN {other} ON stock.shop = {other}.shop) AS t ON q.n > t.n
"""


def views_of(sql: str, passes: str = "") -> list[list[str]]:
    """Name the keys of the views of stock alone, and of its deltas."""
    (query,) = compile_script(f"{RELATIONS} {sql};", "q.sql", lambda relation: ()).queries
    program = to_program(query, settings=Settings(passes=passes)).program
    deltas = [delta for trigger in program.triggers for delta in trigger.deltas]
    alone = [view for view in (*program.stored, *deltas) if [a.relation.name for a in view.atoms] == ["stock"]]
    return [[key.name for key in view.keys] for view in alone]


def test_one_view_and_one_delta() -> None:
    sql = SHARE.format(other="shop", value="n")
    assert views_of(sql, "-read_finer_views") == [["part", "shop"], ["shop"], ["part", "shop"], ["shop"]]
    assert views_of(sql) == [["part", "shop"], ["part", "shop"]]


@pytest.mark.parametrize(
    ("other", "value", "reason"),
    [
        ("visit", "n", "each visit of a shop would look at all of its stock"),
        ("shop", "x", "the finer view has no sum of doubles"),
    ],
)
def test_kept(other: str, value: str, reason: str) -> None:
    assert views_of(SHARE.format(other=other, value=value)) == [["part", "shop"], ["shop"]] * 2, reason


def test_sums_of_keys() -> None:
    """A finer view counts the values of which a sum is read."""
    average = "SELECT AVG(n) FROM stock s WHERE s.shop = shop.shop"
    sql = f"SELECT COUNT(*) FROM stock JOIN shop ON stock.shop = shop.shop WHERE city = 1 AND n < ({average})"
    assert views_of(sql) == [["shop", "n"], ["shop", "n"]]
