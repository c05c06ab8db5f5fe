"""Queries that read no stream: constants, rows that are written out, recursion that begins with them."""

from pathlib import Path
from typing import Any

import pytest

from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import rows_of
from squallpy.testing.example_runs import PrintedExample

NUMBERS = "CREATE TABLE r (a INT) USING csv OPTIONS (path '{path}');\n"
CASES = {
    "SELECT 1 + 1 AS x": [(2,)],
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM (VALUES (1), (2), (2)) v(x)": [(3, 5)],
    'SELECT \'it\' \' is\' " so" AS x, "a""b" AS y, \'a""b\' AS z': [("it is so", 'a"b', 'a""b')],
    "SELECT x FROM EXPLODE(SEQUENCE(1, 3)) AS t(x) WHERE x > 1": [(2,), (3,)],
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 4) SELECT n * n FROM t": [
        (1,),
        (4,),
        (9,),
        (16,),
    ],
    "VALUES (1, 'a'), (2, 'b')": [(1, "a"), (2, "b")],
    "(VALUES (1), (2)) ORDER BY 1 DESC LIMIT 1": [(2,)],
    "values 1, 2 union all select 3": [(1,), (2,), (3,)],
    "WITH v AS (SELECT 5 AS x) VALUES (7)": [(7,)],
    "WITH v(x) AS (VALUES (3)) FROM v": [(3,)],
    "SELECT x FROM (VALUES (1)) v(x) WHERE x > 1": [],
    "SELECT 1 AS x WHERE FALSE": [],
    "SELECT COT(0), CSC(0), SMALLINT('7'), TINYINT(3.0)": [(float("inf"), float("inf"), 7, 3)],
}
OF_TABLE = {
    "TABLE r": [(1,), (2,)],
    "table r ORDER BY a DESC LIMIT 1": [(2,)],
    "FROM r": [(1,), (2,)],
    "FROM r SELECT a + 1 AS b WHERE a > 1": [(3,)],
    "SELECT a FROM r WHERE a IN (TABLE r) UNION ALL TABLE r": [(1,), (1,), (2,), (2,)],
    "WITH v AS (SELECT 5 AS x) TABLE v": [(5,)],
    "FROM r |> WHERE a > 1 |> SELECT a * 10 AS z": [(20,)],
    "FROM r |> AGGREGATE SUM(a) AS s, COUNT(*) AS n": [(3, 2)],
}


def answer(text: str) -> list[tuple[Any, ...]]:
    printed = PrintedExample()
    ScriptSession(Path("q.sql"), text=text).run(RunOptions(backend="local"), printed)
    return sorted(rows_of(printed.table))


@pytest.mark.parametrize(("query", "rows"), CASES.items(), ids=range(len(CASES)))
def fault_constant_queries(query: str, rows: list[tuple[Any, ...]]) -> None:
    assert answer(f"{query};") == rows


@pytest.mark.parametrize(("query", "rows"), OF_TABLE.items(), ids=range(len(OF_TABLE)))
def fault_short_forms_of_select(query: str, rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("1\n2\n")
    assert answer(NUMBERS.format(path=path) + f"{query};") == rows
