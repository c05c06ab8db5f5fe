"""Queries that are long or deep: chains of thousands, nests of hundreds, and what is refused by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.recursion import guarded_depth
from squallpy.base.settings import parse_settings
from squallpy.catalog.relation import MULT
from squallpy.logical.expressions import MOST_DEPTH
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.engines import SparkEngine
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.marks import long

STREAM = "CREATE STREAM t (x INT, s VARCHAR, d DOUBLE) USING csv OPTIONS (path 't.csv', header 'true', op 'op');\n"
ROWS = [(5, "a", 0.1), (999, "b", 2.5), (5000, None, None)]


class Result(IgnoringSink):
    """The final rows of a run."""

    def final(self, table: pa.Table) -> None:
        self.rows = [tuple(row.values()) for row in table.to_pylist()]


def session(folder: Path, query: str, settings: tuple[str, ...] = ()) -> ScriptSession:
    """A script over ROWS, and a row that came and went."""
    cells = [("+", *row) for row in (*ROWS, (7, "c", 1.0))] + [("-", 7, "c", 1.0)]
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in cells]
    (folder / "t.csv").write_text("\n".join(["op,x,s,d", *lines]) + "\n")
    (folder / "q.sql").write_text(query if query.startswith("CREATE") else STREAM + query)
    return ScriptSession(folder / "q.sql", parse_settings(settings))


def answer(folder: Path, query: str, settings: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    result = Result()
    session(folder, query, settings).run(RunOptions("local", batch_rows=2), result)
    return sorted(result.rows, key=str)


def nest(left: Any, inside: Any, right: Any, times: Any) -> Any:
    return left * times + inside + right * times


def values(function: Callable[..., Any]) -> list[tuple[int]]:
    """The answer that has one column, of x."""
    return sorted(((function(x),) for x, _, _ in ROWS), key=str)


def chosen(test: Any) -> Any:
    return sorted(((x,) for x, _, _ in ROWS if test(x)), key=str)


def in_turns(times: int) -> str:
    """x + x - 1 + x - 1 …, which no chain of one operator is."""
    return "x" + "".join((" + x", " - 1")[i % 2] for i in range(times))


def added(d: Any, times: Any) -> Any:
    """A sum of doubles from left to right."""
    total = d
    for _ in range(times - 1):
        total += d
    return total


QUERIES = {
    "sum": (f"SELECT {' + '.join(['x'] * 2000)} FROM t", values(lambda x: 2000 * x)),
    "sum of doubles": (
        f"SELECT {' + '.join(['d'] * 2000)} FROM t WHERE d IS NOT NULL", [(added(0.1, 2000),), (added(2.5, 2000),)],
    ),
    "sums and differences": (f"SELECT {in_turns(2000)} FROM t", values(lambda x: 1001 * x - 1000)),
    "SUM of a sum": (f"SELECT SUM({' + '.join(['x'] * 400)}) FROM t", [(400 * sum(x for x, *_ in ROWS),)]),
    "sum of SUMs": (
        f"SELECT {' + '.join(f'SUM(x * {i % 10})' for i in range(500))} FROM t", [(2250 * sum(x for x, *_ in ROWS),)],
    ),
    "OR": (f"SELECT x FROM t WHERE {' OR '.join(f'x = {i}' for i in range(2000))}", chosen(lambda x: x < 2000)),
    "AND": (f"SELECT x FROM t WHERE {' AND '.join(f'x <> {i}' for i in range(2000))}", chosen(lambda x: x >= 2000)),
    "BETWEEN": (
        f"SELECT x FROM t WHERE {' AND '.join(f'x BETWEEN {-i} AND {4000 + i}' for i in range(1000))}",
        chosen(lambda x: x <= 4000),
    ),
    "texts": (
        f"SELECT LENGTH({' || '.join(['s'] * 1000)}), LENGTH(CONCAT({', '.join(['s'] * 1000)})) FROM t",
        [(1000, 1000), (1000, 1000), (None, None)],
    ),
    "NOT": (f"SELECT x FROM t WHERE {'NOT ' * 300}x = 5", [(5,)]),
    "minus": (f"SELECT {'- ' * 301}x FROM t", values(lambda x: -x)),
    "parentheses": (f"SELECT {nest('(1 + ', 'x', ')', 500)} FROM t", values(lambda x: x + 500)),
    "functions": (f"SELECT {nest('ABS(', 'x', ')', 300)} FROM t", values(abs)),
    "functions of texts": (f"SELECT {nest('UPPER(', 's', ')', 300)} FROM t", [("A",), ("B",), (None,)]),
    "ELSE": (
        f"SELECT {''.join(f'CASE WHEN x = {i} THEN {-i} ELSE ' for i in range(300))}1{' END' * 300} FROM t",
        values(lambda x: -x if x < 300 else 1),
    ),
    "WHEN": (
        f"SELECT CASE {' '.join(f'WHEN x = {i} THEN {-i}' for i in range(1000))} ELSE 1 END FROM t",
        values(lambda x: -x if x < 1000 else 1),
    ),
    "COALESCE": (
        f"SELECT COALESCE({', '.join(f'NULLIF(x, {x})' for x, *_ in ROWS for _ in range(150))}) FROM t", values(int)
    ),
    "IN": (f"SELECT x FROM t WHERE x IN ({', '.join(map(str, range(4000)))})", chosen(lambda x: x < 4000)),
    "UNION ALL": (" UNION ALL ".join(["SELECT x FROM t"] * 300), sorted(300 * values(int), key=str)),
    "UNION": (" UNION ".join(["SELECT x FROM t"] * 300), values(int)),
    "INTERSECT": (" INTERSECT ".join(["SELECT x FROM t"] * 60), values(int)),
    "EXCEPT": (
        f"SELECT x FROM t{''.join(f' EXCEPT SELECT x FROM t WHERE x = {i}' for i in range(60))}",
        chosen(lambda x: x >= 60),
    ),
    "FROM": (
        f"SELECT x FROM ({nest('SELECT x + 1 AS x FROM (', 'SELECT x FROM t', ') AS q', 200)}) AS q",
        values(lambda x: x + 200),
    ),
    "WITH": (
        f"WITH c0 AS (SELECT x FROM t){''.join(f', c{i + 1} AS (SELECT x + 1 AS x FROM c{i})' for i in range(200))}"
        " SELECT x FROM c200",
        values(lambda x: x + 200),
    ),
    "views": (
        f"{STREAM}CREATE VIEW v0 AS SELECT x FROM t;"
        f"{''.join(f'CREATE VIEW v{i + 1} AS SELECT x + 1 AS x FROM v{i};' for i in range(200))} SELECT x FROM v200;",
        values(lambda x: x + 200),
    ),
    "keys": (
        f"SELECT COUNT(*) FROM t GROUP BY {', '.join(f'x % {i + 2}' for i in range(200))}", [(1,), (1,), (1,)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("optimizer", ["on", long("off")])
@pytest.mark.parametrize("name", QUERIES)
def test_what_is_long_or_deep_runs(name: str, optimizer: str, tmp_path: Path) -> None:
    query, rows = QUERIES[name]
    assert answer(tmp_path, query, (f"optimizer={optimizer}",)) == sorted(rows, key=str)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["sums and differences", "functions"])
def differential_workers_have_room_too(name: Any, tmp_path: Path, cluster: Any) -> None:
    query, rows = QUERIES[name]
    engine = SparkEngine(cluster, 2)
    x, s, d = zip(*ROWS, strict=True)
    with guarded_depth():
        engine.start(STREAM + query, tmp_path, {})
        engine.push({"t": pa.table({"x": pa.array(x, pa.int32()), "s": s, "d": d, MULT: [1] * len(ROWS)})})
    assert sorted((tuple(row.values()) for row in engine.result().to_pylist()), key=str) == sorted(rows, key=str)


def test_the_deepest_expression_runs(tmp_path: Path) -> None:
    rows = answer(tmp_path, f"SELECT {in_turns(MOST_DEPTH)} FROM t")
    assert rows == values(lambda x: (MOST_DEPTH // 2 + 1) * x - MOST_DEPTH // 2)


REFUSED = {
    "terms": (f"SELECT {in_turns(MOST_DEPTH + 1)} FROM t", "an expression nested more than 3,000 levels deep"),
    "parentheses": (f"SELECT {nest('(', 'x', ')', 50_000)} FROM t", "a query nested this deeply"),
    "queries": (nest("SELECT x FROM (", "SELECT x FROM t", ") AS q", 20_000), "a query nested this deeply"),
    "copies": (f"SELECT COUNT(*) FROM {', '.join(f't AS t{i}' for i in range(300))}", '300 copies of "t" in a join'),
    "doublings": (
        f"WITH c0 AS (SELECT x FROM t)"
        f"{''.join(f', c{i + 1} AS (SELECT a.x FROM c{i} a JOIN c{i} b ON a.x = b.x)' for i in range(10))}"
        " SELECT COUNT(*) FROM c10",
        '1,024 copies of "t" in a join are not supported, 64 are the most',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_deeper_or_multiplied_is_refused_in_a_line(name: str, tmp_path: Path) -> None:
    query, told = REFUSED[name]
    with pytest.raises(SquallError) as refused:
        answer(tmp_path, query)
    assert refused.value.code == "SQ3001" and told in str(refused.value) and "\n" not in str(refused.value)


def test_copies_that_no_join_has_are_not_counted(tmp_path: Path) -> None:
    counts = " UNION ALL ".join(f"SELECT x FROM t WHERE EXISTS (SELECT * FROM t AS u WHERE u.x = t.x + {i})"
                                for i in range(40))  # fmt: skip
    assert session(tmp_path, f"{counts} UNION ALL {counts}").script.queries
