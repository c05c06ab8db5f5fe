"""Sessions: views come and go between batches, and each has the rows that DuckDB has, after every batch."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.compiler import Compiler
from squallpy.live import read_rows, snapshot_query
from squallpy.live.backfill_from_streams import StreamBackfill
from squallpy.live.live_session import LiveSession
from squallpy.live.session_sink import SessionSink
from squallpy.program.explain_text import program_text
from squallpy.runtime.compiled import background, functions
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.result import result, result_scan
from squallpy.testing.compare_rows import difference

STREAMS = """
CREATE STREAM r (a BIGINT, b BIGINT, v BIGINT) USING pushed OPTIONS (op 'op') STORED;
CREATE STREAM s (b BIGINT, w BIGINT, t VARCHAR) USING pushed OPTIONS (op 'op') STORED;
"""
QUERIES = [
    "SELECT a, SUM(v) AS x, COUNT(*) AS n FROM r GROUP BY a",
    "SELECT a, SUM(v * w) AS x FROM r JOIN s ON r.b = s.b GROUP BY a",
    "SELECT a, COUNT(*) AS n, MAX(t) AS t FROM r JOIN s ON r.b = s.b GROUP BY a",
    "SELECT COUNT(*) AS n FROM r WHERE v > (SELECT AVG(w) FROM s WHERE s.b = r.b)",
    "SELECT b, MIN(v) AS least, MAX(v) AS most FROM r GROUP BY b",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND s.w > r.v)",
    "SELECT r.a, s.w FROM r JOIN s ON r.v < s.w",
    "SELECT t, COUNT(DISTINCT w) AS n FROM s GROUP BY t",
    "SELECT a, v, RANK() OVER (PARTITION BY a ORDER BY v NULLS LAST) AS k FROM r",
    "SELECT r.a, s.t FROM r LEFT JOIN s ON r.b = s.b",
    "SELECT b FROM r EXCEPT SELECT b FROM s",
    "SELECT a, SUM(v) AS x, COUNT(*) AS n FROM r GROUP BY a HAVING SUM(v) > 3",
    "SELECT b, SUM(w) AS x, COUNT(t) AS n FROM s GROUP BY b",
]
OVER_VIEWS = ["SELECT COUNT(*) AS n FROM {0}", "SELECT * FROM {0} ORDER BY 1 NULLS LAST", "SELECT DISTINCT * FROM {0}"]
WORLDS = int(os.environ.get("FUZZ", "10"))


class World:
    """A session, and the same streams and views in DuckDB."""

    def __init__(self, seed: int, session: LiveSession | None = None) -> None:
        self.random, self.session = Random(seed), session or LiveSession()
        self.duck = duckdb.connect()
        self.duck.execute("CREATE TABLE r (a BIGINT, b BIGINT, v BIGINT); CREATE TABLE s (b BIGINT, w BIGINT, t TEXT)")
        self.rows: dict[str, list[tuple[Any, ...]]] = {"r": [], "s": []}
        self.views: dict[str, str] = {}
        [*self.session.execute(STREAMS)]

    def push(self) -> None:
        """Push inserts to both streams, and deletes of rows that are there."""
        for name, columns in (("r", "abv"), ("s", "bwt")):
            new = [self._row(name) for _ in range(self.random.randrange(6))]
            old = self.random.sample(self.rows[name], min(len(self.rows[name]), self.random.randrange(3)))
            for row in old:
                self.rows[name].remove(row)
            self.rows[name] += new
            words = ["+"] * len(new) + ["-"] * len(old)
            table = {c: [row[i] for row in new + old] for i, c in enumerate(columns)} | {"op": words}
            self.session.push(name, table, op="op")

    def _row(self, name: str) -> tuple[Any, ...]:
        numbers = [self.random.choice([None, 0, 1, 2, 3]) for _ in range(3)]
        return tuple(numbers) if name == "r" else (*numbers[:2], self.random.choice([None, "x", "é", "z"]))

    def create(self) -> None:
        """Create a view, over streams or over another view."""
        over = self.views and self.random.random() < 0.3
        query = self.random.choice(OVER_VIEWS if over else QUERIES)
        query = query.format(self.random.choice([*self.views])) if over else query
        name = f"v{self.random.randrange(1000)}"
        if name not in self.views:
            [*self.session.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")]
            self.views[name] = query

    def drop(self) -> None:
        """Drop a view with all that read it."""
        if self.views:
            name = self.random.choice([*self.views])
            [*self.session.execute(f"DROP MATERIALIZED VIEW {name} CASCADE")]
            kept = {each.name for each in self.session.entries.maintained.values()}
            self.views = {name: query for name, query in self.views.items() if name in kept}

    def alter(self) -> None:
        """Give a view that none reads another query."""
        if self.views:
            name = self.random.choice([*self.views])
            if not any(name in query for query in self.views.values()):
                self.views[name] = self.random.choice(QUERIES)
                [*self.session.execute(f"ALTER VIEW {name} AS {self.views[name]}")]

    def check(self) -> None:
        """Compare each view, and an ad hoc query over one of them, with DuckDB."""
        for name, columns in (("r", 3), ("s", 3)):
            self.duck.execute(f"DELETE FROM {name}")
            if self.rows[name]:
                self.duck.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * columns)})", self.rows[name])
        for name, query in self.views.items():
            self.duck.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")
        for name in self.views:
            wanted = self.duck.execute(f"SELECT * FROM {name}").fetchall()
            assert not (found := difference(self.session.table(name), wanted)), f"{self.views[name]}\n{found}"
        if self.views:
            query = f"SELECT COUNT(*) AS n FROM {self.random.choice([*self.views])}"
            (outcome,) = self.session.execute(query)
            assert outcome.table and not difference(outcome.table, self.duck.execute(query).fetchall())

    def run(self, actions: int) -> None:
        """Do things at random."""
        for _ in range(actions):
            self.random.choice([self.push, self.push, self.create, self.create, self.drop, self.alter])()
            if self.random.random() < 0.7:
                self.session.run_until_caught_up()
                self.check()
        self.check_program()

    def check_program(self) -> None:
        """Compare the program with that of a session in which the same is declared from the beginning."""
        running, anew = self.session.program.running, LiveSession(self.session.settings)
        [*anew.execute(";".join(self.session.statements))]
        assert bool(running) == bool(self.views)
        if running and anew.program.running:
            found, wanted = (each.compiled.program for each in (running, anew.program.running))
            assert program_text(found) == program_text(wanted)


@pytest.mark.parametrize("seed", range(WORLDS))
def oracle_views_come_and_go(seed: int) -> None:
    """Also where queries share neither results nor joins; when all are dropped, no state is left."""
    alone = Settings(passes="-share_results,-share_products")
    world = World(seed, LiveSession(alone if seed % 3 == 0 else None))
    world.run(12)
    while world.views:
        world.drop()
    assert not world.session.program.usage


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(WORLDS))
def oracle_compiled_views_come_and_go(seed: int) -> None:
    """Also with the code of each program compiled."""
    World(seed, LiveSession(Settings(compile="wait"))).run(12)


def test_compiled_batches_of_pushed_rows() -> None:
    """Code is called for a batch as soon as a view is there, also over state that was carried from another program."""
    session, total = LiveSession(Settings(compile="wait")), 0
    [*session.execute("CREATE STREAM r (a BIGINT, v INT) USING pushed STORED")]
    for view, group in (("v", "a"), ("w", "v")):
        query = f"SELECT {group} AS a, SUM(v) AS x FROM r GROUP BY {group}"
        [*session.execute(f"CREATE MATERIALIZED VIEW {view} AS {query}")]
        for batch in range(3):
            total += batch
            session.push("r", {"a": [1, 2, 3], "v": [batch] * 3})
            session.step()
        running = session.program.running
        assert running and isinstance(running.executor, LocalExecutor) and running.executor._direct
        assert not difference(session.table("v"), [(a, total) for a in (1, 2, 3)])
    assert not difference(session.table("w"), [(v, 6 * v) for v in range(3)])
    pools = [pool for pool in running.executor.store.values() if isinstance(pool, Pool)]
    before, watches = [[*map(np.array, pool.rows())] for pool in pools], [pool.watch() for pool in pools]
    session.push("r", {"a": [3], "v": [1]})
    session.step()
    for pool, was, watch in zip(pools, before, watches, strict=True):
        is_same = all(np.array_equal(x, y) for x, y in zip(was, pool.rows(), strict=True))
        assert is_same or watch.take(len(pool)).tolist() == [0], "pages that compiled code writes are marked"


def test_the_compiler_ends_with_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "WORTH", 0.0)
    monkeypatch.setattr(background, "load_cached", lambda _: None)
    monkeypatch.setattr(functions, "load_cached", lambda _: None)
    started, popen = list[subprocess.Popen[bytes]](), subprocess.Popen

    def start(*_: object, **given: Any) -> subprocess.Popen[bytes]:
        started.append(popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[-1]

    session = LiveSession(Settings(compile="background"))
    [
        *session.execute(
            "CREATE STREAM r (a BIGINT) USING pushed; CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS x FROM r"
        )
    ]
    session.push("r", {"a": [1]})
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", start)
        session.step()
    session.close()
    assert [process.poll() for process in started] == [-9]


@pytest.mark.parametrize(
    "test",
    ["a = 1", "a = 1 AND b = 2", "a = 1 AND b = 2 AND t = 'é'", "t = 'x'", "t = 'never'", "n = 1", "a = NULL", "b = a",
     "1 = a", "a = 1 OR b = 2", "a = 1 AND a = 2", "d = DATE '2024-01-02'", "p = 1.50", "p = 1.5 AND a = 1", "f = 0.0",
     "a = 1.0"],
)  # fmt: skip
def oracle_lookups_by_key(test: str) -> None:
    """Records are found by what keys equal, also where a key is NULL, −0.0, or there is none."""
    session, duck = LiveSession(), duckdb.connect()
    columns = "a BIGINT, b INT, t VARCHAR, d DATE, p DECIMAL(8,2), f DOUBLE"
    [*session.execute(f"CREATE STREAM r ({columns}) USING pushed OPTIONS (op 'op')")]
    duck.execute(f"CREATE TABLE r ({columns})")
    view = "SELECT a, b, t, d, p, f, COUNT(*) AS n FROM r GROUP BY a, b, t, d, p, f"
    [*session.execute(f"CREATE MATERIALIZED VIEW v AS {view}")]
    random = Random(7)
    choices = (
        [None, 1, 2],
        [None, 1, 2],
        [None, "x", "é"],
        [None, "2024-01-02"],
        [None, "1.50", "2.00"],
        [None, 0.0, -0.0],
    )
    rows = [tuple(random.choice(some) for some in choices) for _ in range(200)]
    session.push("r", [dict(zip("abtdpf", row, strict=True)) for row in rows])
    duck.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?)", rows)
    session.run_until_caught_up()
    query = "SELECT * FROM v WHERE " + test
    (outcome,) = session.execute(query)
    wanted = duck.execute(f"SELECT * FROM ({view}) WHERE {test}").fetchall()
    assert outcome.table is not None and not (found := difference(outcome.table, wanted)), found


def test_batches_go_on_while_a_view_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read meanwhile is in the new view, too, though the stream keeps no rows for long."""
    session, run = LiveSession(), StreamBackfill.run
    [*session.execute("CREATE STREAM r (a BIGINT) USING pushed STORED; CREATE VIEW w AS SELECT * FROM r")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM w")]
    session.push("r", {"a": [1, 2]})
    session.step()
    seen = list[int]()

    def slow(backfill: StreamBackfill) -> None:
        run(backfill)
        batches = threading.Thread(target=lambda: seen.append(push_and_step()))
        batches.start()
        batches.join()

    def push_and_step() -> int:
        session.push("r", {"a": [3]})
        session.step()
        return int(session.table("v").to_pylist()[0]["n"])

    monkeypatch.setattr(StreamBackfill, "run", slow)
    [*session.execute("CREATE MATERIALIZED VIEW m AS SELECT MAX(a) AS most, SUM(a) AS total FROM r")]
    assert seen == [3] and session.table("m").to_pylist() == [{"most": 3, "total": 6}]
    session.push("r", {"a": [4]})
    session.step()
    assert session.table("m").to_pylist() == [{"most": 4, "total": 10}]


def test_matrices_of_streams_in_a_session() -> None:
    """Views that come later leave the matrices that are there as they are."""
    session = LiveSession()
    declared = "CREATE STREAM e (i INT, j INT, w DOUBLE) USING pushed OPTIONS (op 'op') STORED;"
    declared += "CREATE MATRIX m (4, 4) FROM STREAM e (i, j, w); CREATE MATRIX PROGRAM p AS $$ c := m * m; $$;"
    [*session.execute(declared + "CREATE MATERIALIZED VIEW c AS SELECT i, j, value FROM p.c")]
    session.push("e", {"i": [0, 1, 2], "j": [1, 2, 3], "w": [1.0, 2.0, 3.0]})
    session.step()
    assert session.table("c").to_pydict() == {"i": [0, 1], "j": [2, 3], "value": [2.0, 6.0]}
    [*session.execute("CREATE MATERIALIZED VIEW s AS SELECT i, SUM(value) AS v FROM p.c GROUP BY i")]
    session.push("e", {"i": [0], "j": [1], "w": [1.0]}, "-")
    session.step()
    assert session.table("c").to_pydict() == {"i": [1], "j": [3], "value": [6.0]}
    assert session.table("s").to_pydict() == {"i": [1], "v": [6.0]}


def test_rows_leave_a_view_as_time_goes() -> None:
    """Also views that are created later, beside one that reads no time."""
    session, now = LiveSession(), [1_767_261_600_000_000]  # 2026-01-01 10:00:00
    session._input.read_time = lambda: now[0]

    def execute(text: str) -> None:
        [*session.execute(text)]

    def rows(view: str) -> list:
        while session.step():
            pass
        return sorted(row["x"] for row in session.table(view).to_pylist())

    execute("CREATE STREAM r (x INT, at TIMESTAMP) USING pushed OPTIONS (op 'op') STORED")
    execute("CREATE MATERIALIZED VIEW every AS SELECT COUNT(*) AS x FROM r")
    times = [datetime(2026, 1, 1, 9, 59), datetime(2026, 1, 1, 10)]
    session.push("r", {"x": [1, 2], "at": times})
    assert rows("every") == [2]
    execute("CREATE MATERIALIZED VIEW late AS SELECT x FROM r WHERE at > NOW() - INTERVAL '2' MINUTE")
    assert [row["x"] for row in session.table("late").to_pylist()] == [1, 2] == rows("late")
    now[0] += 60_000_000
    assert rows("late") == [2]
    now[0] += 60_000_000
    execute("CREATE MATERIALIZED VIEW later AS SELECT COUNT(*) AS x FROM r WHERE at > NOW() - INTERVAL '1' HOUR")
    assert rows("late") == [] and rows("later") == [2] == rows("every")


def test_no_view_is_filled_from_the_rows_that_a_window_has_left() -> None:
    """Neither one of all rows, nor one under a longer window."""
    session = LiveSession()
    [*session.execute("CREATE STREAM r (x INT, at TIMESTAMP) USING pushed TIMESTAMP BY at STORED")]
    [*session.execute("CREATE MATERIALIZED VIEW one AS SELECT x, at FROM r RANGE 1 MIN")]
    session.push("r", {"x": [1, 2], "at": [datetime(2026, 1, 1), datetime(2026, 1, 2)]})
    session.step()
    [*session.execute("CREATE MATERIALIZED VIEW n AS SELECT x, at, COUNT(*) AS n FROM r GROUP BY x, at")]
    [*session.execute("CREATE MATERIALIZED VIEW ten AS SELECT x, at FROM r RANGE 10 DAY")]
    assert [len(session.table(name)) for name in ("one", "n", "ten")] == [1, 2, 2]


def test_windows_over_rows_that_are_pushed() -> None:
    """Rows are numbered as they come, also for views that come later."""
    session = LiveSession()
    [*session.execute("CREATE STREAM r (a BIGINT) USING pushed STORED")]
    for number in range(2):
        [*session.execute(f"CREATE MATERIALIZED VIEW v{number} AS SELECT SUM(a) AS a FROM r ROWS 3")]
        session.push("r", {"a": [1, 2, 3, 4, 5]})
        session.step()
        assert {session.table(f"v{n}").to_pylist()[0]["a"] for n in range(number + 1)} == {12}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM v LEFT JOIN w ON v.b = w.b AND v.a = 1",
        "SELECT * FROM v FULL JOIN w ON v.b = w.b AND v.a = 1 AND w.c = 0",
        "SELECT * FROM (SELECT a, b, RANK() OVER (PARTITION BY b ORDER BY a) AS k FROM v) AS z WHERE a = 1",
        "SELECT a, COUNT(*) FILTER (WHERE b = 1) AS f, COUNT(*) AS n FROM v GROUP BY a",
        "WITH x AS (SELECT * FROM v) SELECT * FROM x WHERE a = 1 UNION ALL SELECT * FROM x",
        "SELECT * FROM v WHERE a = 1 AND n > (SELECT AVG(n) FROM v)",
    ],
)
def oracle_records_are_looked_up_only_where_nothing_else_reads_them(query: str) -> None:
    """A test on a key leaves the other records to whatever reads the view beside it."""
    session, duck = LiveSession(), duckdb.connect()
    [
        *session.execute(
            "CREATE STREAM r (a BIGINT, b BIGINT) USING pushed; CREATE STREAM q (b BIGINT, c BIGINT) USING pushed"
        )
    ]
    duck.execute("CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE q (b BIGINT, c BIGINT)")
    views = {
        "v": "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b",
        "w": "SELECT b, c, COUNT(*) AS m FROM q GROUP BY b, c",
    }
    for name, view in views.items():
        [*session.execute(f"CREATE MATERIALIZED VIEW {name} AS {view}")]
        duck.execute(f"CREATE VIEW {name} AS {view}")
    for stream, columns, rows in (
        ("r", "ab", [(n % 3, n % 4) for n in range(12)]),
        ("q", "bc", [(n % 5, n % 2) for n in range(10)]),
    ):
        session.push(stream, [dict(zip(columns, row, strict=True)) for row in rows])
        duck.executemany(f"INSERT INTO {stream} VALUES (?, ?)", rows)
    session.run_until_caught_up()
    (outcome,) = session.execute(query)
    wanted = duck.execute(query).fetchall()
    assert outcome.table is not None and not (found := difference(outcome.table, wanted)), found


def test_a_stream_that_is_replaced_has_the_columns_of_its_new_files(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("x,y\n1,2\n")
    (tmp_path / "new.csv").write_text("p\n7\n")
    session = LiveSession(base=tmp_path)
    for name in ("old", "new"):
        create = f"CREATE OR REPLACE STREAM z USING csv OPTIONS (path '{name}.csv', header 'true')"
        [*session.execute(create)]
    assert [field.name for field in session.columns("z")] == ["p"]


def fault_a_view_under_a_sink_is_altered(tmp_path: Path) -> None:
    """The sink has the rows of then, which nothing would take back."""
    session = LiveSession(base=tmp_path)
    [*session.execute("CREATE STREAM r (a BIGINT) USING pushed STORED")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM r")]
    [*session.execute("CREATE SINK o USING csv OPTIONS (path 'out/', mode 'changes') AS SELECT n FROM v")]
    with pytest.raises(SquallError, match=r"SQ2014 .* the sink o has the rows of v as it is"):
        [*session.execute("ALTER VIEW v AS SELECT COUNT(*) * 10 AS n FROM r")]
    session.push("r", {"a": [1]})
    session.step()
    assert session.table("v").to_pylist() == [{"n": 1}]


def fault_a_reader_of_changes_of_a_view_that_is_altered() -> None:
    session = LiveSession()
    [*session.execute("CREATE STREAM r (a BIGINT) USING pushed STORED")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM r")]
    reader = session.subscribe("v")
    [*session.execute("ALTER VIEW v AS SELECT COUNT(*) * 10 AS n FROM r")]
    with pytest.raises(SquallError, match="SQ2014 v has become another view"):
        list(reader)
    assert list(session.subscribe("v")) == []


def fault_settings_that_cannot_be_are_as_before() -> None:
    """Other sums of cofactor matrices want the rows that were read, which are gone."""
    session = LiveSession()
    [*session.execute("CREATE STREAM r (a DOUBLE, b DOUBLE) USING pushed")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM cofactor(TABLE(SELECT a, b FROM r))")]
    for _ in range(2):
        session.push("r", {"a": [1.0], "b": [2.0]})
        session.step()
    before = session.settings
    with pytest.raises(SquallError, match="SQ6009"):
        [*session.execute("SET fivm.sums = 'plain'")]
    assert session.settings == before
    session.push("r", {"a": [1.0], "b": [2.0]})
    session.step()
    assert {"a": "", "b": "", "value": 3.0} in session.table("v").to_pylist()


def fault_a_sink_that_cannot_be_created_lets_its_place_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = LiveSession(base=tmp_path)
    [*session.execute("CREATE STREAM r (a BIGINT) USING pushed")]
    [*session.execute("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM r")]
    for _ in range(2):
        session.push("r", {"a": [1]})
        session.step()
    closed, close = list[SessionSink](), SessionSink.close

    def closing(sink: SessionSink) -> None:
        closed.append(sink)
        close(sink)

    monkeypatch.setattr(SessionSink, "close", closing)
    with pytest.raises(SquallError, match="SQ6009"):
        [*session.execute("CREATE SINK o USING csv OPTIONS (path 'out/') AS SELECT a FROM r")]
    assert len(closed) == 1


def answer(session: LiveSession, text: str) -> list[dict[str, Any]]:
    (outcome,) = session.execute(text)
    assert outcome.table is not None
    return outcome.table.to_pylist()


def beside(work: Callable[[], object]) -> None:
    """Do something in another thread, which must not wait for this one."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(600)
    assert not thread.is_alive()


def test_explain_says_who_shares_a_view() -> None:
    session = LiveSession()
    [
        *session.execute(
            STREAMS + "CREATE MATERIALIZED VIEW sums AS SELECT r.b, SUM(w) AS x FROM r JOIN s USING (b) GROUP BY b"
        )
    ]
    [*session.execute("CREATE MATERIALIZED VIEW large AS SELECT b FROM sums WHERE x > 3 ORDER BY x LIMIT 2")]
    [*session.execute("CREATE MATERIALIZED VIEW other AS SELECT COUNT(*) AS n FROM s")]
    shown, alone = (outcome.text or "" for name in ("sums", "other") for outcome in session.execute(f"EXPLAIN {name}"))
    assert "    -- shared by sums, large" in shown and "other" not in shown
    assert "RESULT Q1 of sums" in shown and "RESULT Q1 of large\n  SUM(w)" in shown
    assert "shared" not in alone and "ΔR" not in alone
    [*session.execute("CREATE MATERIALIZED VIEW `a, b` AS SELECT COUNT(*) AS n FROM r")]
    (odd,) = session.execute("explain `a, b`")
    assert "RESULT of a, b\n" in (odd.text or "") and "shared" not in (odd.text or "")  # NB: one name with a comma


def test_queries_are_answered_while_a_view_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    """They read what is in force; nobody sees the view that is not."""
    session, seen, fill = LiveSession(), list[object](), StreamBackfill.run
    [*session.execute(f"{STREAMS}; CREATE MATERIALIZED VIEW v AS SELECT a FROM r")]
    session.push("r", [{"a": 1, "b": 1, "v": 1}])
    session.step()

    def ask() -> None:
        seen.extend([answer(session, "SELECT SUM(a) AS s FROM v"), len(answer(session, "SHOW VIEWS"))])
        with pytest.raises(SquallError, match="SQ2001"):
            session.table("w")
        session.push("r", [{"a": 5, "b": 1, "v": 1}])
        report = session.step()
        seen.append(report and report.tuples)

    def slow(backfill: StreamBackfill) -> None:
        beside(ask)
        fill(backfill)

    monkeypatch.setattr(StreamBackfill, "run", slow)
    [*session.execute("CREATE MATERIALIZED VIEW w AS SELECT SUM(v) AS n FROM r")]
    assert seen == [[{"s": 1}], 1, 1]
    assert answer(session, "SELECT n FROM w") == [{"n": 2}]


@pytest.mark.parametrize("alters", [False, True])
def test_batches_and_statements_wait_for_no_query_that_compiles(alters: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its views are read at once, of one batch, when it is compiled; if they are others by then, it is bound anew."""
    session, times = LiveSession(), count()
    [*session.execute("CREATE STREAM r (a INT) USING pushed STORED; CREATE MATERIALIZED VIEW v AS SELECT a FROM r")]

    def meanwhile() -> None:
        session.push("r", [{"a": 7}])
        assert session.step()
        if alters:
            [*session.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a + 1 AS a, a AS b FROM r")]

    class Slow(Compiler):
        def compile(self, *arguments: Any, **more: Any) -> Any:
            if next(times) == 0:
                beside(meanwhile)
            return super().compile(*arguments, **more)

    monkeypatch.setattr(snapshot_query, "Compiler", Slow)
    found = answer(session, "SELECT x.a FROM v AS x JOIN v AS y ON x.a = y.a")
    assert found == [{"a": 8 if alters else 7}] and next(times) == (2 if alters else 1)


def test_batches_go_on_while_a_snapshot_is_read_for_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their changes are behind it, those alone that it does not have."""
    session, more = LiveSession(), iter([3, 1, 4, 1, 5])
    for module in (result, result_scan):
        monkeypatch.setattr(module, "PIECE", 2)
    [*session.execute("CREATE STREAM r (a INT) USING pushed; CREATE MATERIALIZED VIEW v AS SELECT a FROM r")]
    session.push("r", {"a": [*range(10, 20)]})
    session.step()

    def meanwhile(_: float) -> None:
        session.push("r", {"a": [next(more)]})
        session.step()

    monkeypatch.setattr(read_rows, "sleep", meanwhile)
    first, *others = session.subscribe("v", with_snapshot=True)
    assert sorted(first.inserts["a"].to_pylist()) == [*range(10, 20)] and not len(first.deletes)
    found = [(each.number - first.number, each.inserts["a"].to_pylist()) for each in others]
    assert found == [(1, [3]), (2, [1]), (3, [4]), (4, [1])]
    with pytest.raises(SquallError, match="SQ2001"):
        session.subscribe("w", with_snapshot=True)
