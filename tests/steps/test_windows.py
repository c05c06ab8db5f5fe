"""Windows of all kinds over disordered streams against DuckDB after every batch, and what is left when all has gone."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.catalog.relation import MULT
from squallpy.runtime.kernels import dictionary
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sources import open_source
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, SparkEngine, VolatileEngine
from squallpy.testing.example_runs import PrintedExample
from squallpy.testing.generators import Case, Change
from squallpy.testing.oracle import Oracle
from squallpy.testing.step_tests import run_steps
from tests.cases import run_text
from tests.marks import long

START = datetime(2026, 1, 1)
SPAN = 40  # seconds from the first row of a stream to the last
TIMED = ("RANGE 10 SEC", "RANGE 12 SEC SLIDE 5 SEC", "TUMBLE 8 SEC", "RANGE 1 MS", "TUMBLE 1 HOUR")
COUNTED = ("ROWS 4", "ROWS 5 SLIDE 2", "ROWS 3 TUMBLE", "ROWS 1")
LANDMARKS = ("LANDMARK", f"LANDMARK SINCE '{START + timedelta(seconds=15)}'")
QUERIES = (
    "SELECT k, v FROM r WHERE v > 0 {}",
    "SELECT k, COUNT(*) AS n, SUM(v) AS t, MIN(v) AS m, COUNT(DISTINCT v) AS d FROM r GROUP BY k {}",
    "SELECT COUNT(*) AS n, MAX(v) AS m FROM r {}",
    "SELECT DISTINCT k FROM r {}",
    "SELECT r.k, r.v, s.v AS w FROM r JOIN s ON r.k = s.k {}",
    "SELECT a.v, b.v AS w FROM r AS a JOIN r AS b ON a.k = b.k AND a.v < b.v {}",
    "SELECT r.v, s.v AS w FROM r, s WHERE r.v BETWEEN s.v - 1 AND s.v + 1 {}",
    "SELECT r.k, COUNT(s.v) AS n FROM r LEFT JOIN s ON r.k = s.k AND r.v < s.v GROUP BY r.k {}",
    "SELECT r.k, s.v FROM r FULL JOIN s ON r.k = s.k {}",
    "SELECT k, v FROM r WHERE NOT EXISTS (SELECT * FROM s WHERE s.k = r.k {}) {}",
    "SELECT k, v FROM r WHERE EXISTS (SELECT * FROM r AS o WHERE o.k = r.k AND o.v <> r.v {}) {}",
    "SELECT r.k, x.m FROM r, LATERAL (SELECT MAX(v) AS m FROM s WHERE s.k = r.k) x {}",
    "SELECT k FROM r {} INTERSECT (SELECT k FROM s {})",
    "SELECT r.k, COUNT(*) AS n FROM r JOIN s ON r.ts BETWEEN s.ts AND s.ts + INTERVAL '3' SECOND GROUP BY r.k {}",
    "SELECT k, v FROM r WHERE v >= (SELECT AVG(v) FROM r AS x WHERE x.k = r.k) {}",
    "SELECT r.k, r.v FROM r, (SELECT SUM(v) AS t FROM s {}) x WHERE r.v < x.t {}",
    "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k {}) t UNION ALL (SELECT k, v FROM r {})",
    "SELECT v FROM r WHERE 0.5 * (SELECT SUM(v) FROM r) > (SELECT SUM(v) FROM r AS x WHERE x.v > r.v) {}",
)
LONG = ("durable", "two partitions")  # only by `make long`
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "durable": LocalEngine,
    "plain": partial(VolatileEngine, optimizer=False),
    "two partitions": partial(PartitionedEngine, 2),
    "three partitions": partial(PartitionedEngine, 3),
}


class Noted(VolatileEngine):
    """Keeps what executors say of each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[BatchReport] = []

    def _step(self) -> Any:
        changes, report = self._executor.step()
        self.reports.append(report)
        return changes


@st.composite
def cases(draw: st.DrawFn, passing: bool = False) -> Case:
    """Two streams whose times go up, but for a few seconds, and a query with windows; `passing` ones, no landmarks."""
    changing = draw(st.booleans())
    frames = (*TIMED, *(() if changing else COUNTED), *(() if passing else LANDMARKS))
    query = draw(st.sampled_from(QUERIES))
    query = query.format(*(draw(st.sampled_from(frames)) for _ in range(query.count("{}"))))
    source = "" if changing else " USING csv OPTIONS (path 'x')"
    creates = [
        f"CREATE STREAM {name} (k INT, v INT, ts TIMESTAMP){source} TIMESTAMP BY ts DELAY {delay} SEC;"
        for name, delay in zip("rs", draw(st.tuples(st.integers(0, 5), st.integers(0, 5))), strict=True)
    ]
    changes: list[Change] = []
    for number in range(draw(st.integers(1, 24))):
        name = draw(st.sampled_from("rrs"))
        late = draw(st.sampled_from([0, 0, 0, 1, 3, 8, 20, None]))
        there = [row for stream, sign, row in changes if stream == name and sign > 0]
        if changing and there and draw(st.integers(0, 4)) == 0:
            changes.append((name, -1, draw(st.sampled_from(there))))
            continue
        k, v = draw(st.sampled_from([1, 2, 3, None])), draw(st.sampled_from([-1, 0, 1, 2, 5, None]))
        time = None if late is None else str(START + timedelta(seconds=number * SPAN / 24 - late))
        changes.append((name, 1, (k, v, time)))
    return Case("\n".join([*creates, f"{query};"]), [changes])


def run(case: Case, engine: MemoryEngine) -> None:
    run_text(case.text(), engine)


@pytest.mark.xdist_group("random windows")
@pytest.mark.parametrize("engine", [long(name) if name in LONG else name for name in ENGINES])
@settings(max_examples=max(1, settings().max_examples // 4), suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), size=st.sampled_from([1, 7, 1000]))
def oracle_random_windows(engine: str, case: Case, size: int) -> None:
    run(case.rebatch(size), ENGINES[engine]())


@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=cases(), size=st.sampled_from([7, 1000]))
def oracle_random_windows_on_spark(cluster: Any, case: Case, size: int) -> None:
    run(case.rebatch(size), SparkEngine(cluster, 3))


@settings(max_examples=max(1, settings().max_examples // 4), suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(passing=True), size=st.sampled_from([1, 7, 1000]))
def property_nothing_stays(case: Case, size: int) -> None:
    """When time has passed all that there was, views hold what they hold where it never was.

    The last rows fill any window of rows, and begin where one begins: behind a multiple of 30.
    """
    end: list[Change] = [(name, 1, (9, 9, f"2030-01-01 00:00:0{i}")) for i in range(6) for name in "rs"]
    short, long = VolatileEngine(), VolatileEngine()
    before = case.rebatch(size).batches
    count = {name: sum(change[0] == name for batch in before for change in batch) for name in "rs"}
    filler: list[Change] = [
        (name, 1, (None, None, "2029-01-01 00:00:00")) for name in "rs" for _ in range(-count[name] % 30)
    ]
    run(Case(case.script, [end]), short)
    run(Case(case.script, [*before, filler, end]), long)
    assert long.row_counts() == short.row_counts()


@pytest.mark.parametrize("batch_rows", [1, 10, 1000])
@pytest.mark.parametrize(
    "example",
    [
        "windows/clicks",
        "windows/sessions",
        "recursion/bill_of_materials",
        "recursion/same_generation",
        "recursion/shortest_paths",
    ],
)
def oracle_example(example: str, batch_rows: int) -> None:
    """The examples, from their files."""
    session, kept = ScriptSession(Path(__file__).parents[2] / "examples" / f"{example}.sql"), PrintedExample()
    session.run(RunOptions(backend="local", batch_rows=batch_rows), kept)
    (query,), relations = session.script.queries, session.script.relations
    oracle = Oracle(relations, query.text)
    for name, relation in relations.items():
        source = open_source(relation, session.path.parent)
        oracle.push(name, source.read(0, source.rows, tuple(f.name for f in relation.fields)))
    assert len(kept.table) > 1
    assert not difference(kept.table, oracle.answer(), ordered=True)


@pytest.mark.parametrize("batch_rows", [1, 3, 1000])
def test_rows_that_are_skipped_have_their_number(batch_rows: int, tmp_path: Path) -> None:
    """However many come at once: of the last three rows of two files, one cannot be read."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "1.csv").write_text("v\n1\nx\n3\n4\n")
    (tmp_path / "s" / "2.csv").write_text("v\n5\ny\n7\n")
    options = "(path 's', header 'true', on_error 'skip')"
    (tmp_path / "q.sql").write_text(f"CREATE STREAM s (v INT) USING csv OPTIONS {options}; SELECT v FROM s ROWS 3;")
    kept = PrintedExample()
    ScriptSession(tmp_path / "q.sql").run(RunOptions(backend="local", batch_rows=batch_rows), kept)
    assert sorted(kept.table["v"].to_pylist()) == [5, 7]


NOTED = """
CREATE STREAM s (k VARCHAR, ts TIMESTAMP) TIMESTAMP BY ts;
SELECT k, COUNT(*) AS n FROM s GROUP BY k RANGE 10 SEC;

batch
+ s 'a', '2026-01-01 00:00:00'
- s 'b', '2026-01-01 00:00:01'

batch
+ s 'a', '2026-01-01 00:00:09'
+ s 'b', '2026-01-01 00:00:01'

batch
+ s 'a', '2026-01-01 00:00:30'
- s 'c', '2026-01-01 00:00:12'

batch
- s 'a', '2026-01-01 00:00:09'
- s 'd', '2026-01-01 00:00:20'
+ s 'e', '2026-01-01 00:00:20'
+ s 'e', '2026-01-01 00:00:20'
+ s 'f', NULL
- s 'g', '2026-01-01 00:00:21'
"""


def test_what_is_late_and_what_is_unmatched(tmp_path: Path) -> None:
    """Deletes in the window that found nothing; inserts below it, and without a time. There is no ledger."""
    path, engine = tmp_path / "noted.slt", Noted()
    path.write_text(NOTED)
    run_steps(path, engine, tmp_path)
    assert [(report.unmatched, report.late) for report in engine.reports] == [(1, 0), (0, 0), (0, 0), (1, 3)]
    assert "ledger s" not in engine.row_counts()


def test_state_stays_flat(tmp_path: Path) -> None:
    """A join, and an aggregate of changes, over a stream without an end: bytes after 60 windows are those after 12."""
    script = """
        CREATE STREAM r (k INT, v INT, ts TIMESTAMP) USING csv OPTIONS (path 'r', op 'op') TIMESTAMP BY ts;
        CREATE STREAM s (k INT, v INT, ts TIMESTAMP) USING csv OPTIONS (path 's', op 'op') TIMESTAMP BY ts;
        SELECT r.k, COUNT(*) AS n, MAX(s.v) AS most FROM r JOIN s ON r.k = s.k AND r.v < s.v GROUP BY r.k RANGE 10 SEC;
    """
    engine, taken = VolatileEngine(), []
    engine.start(script, tmp_path, {})
    for window in range(60):
        times = [START + timedelta(seconds=10 * window, milliseconds=50 * i) for i in range(200)]
        columns = {"k": [i % 7 + window for i in range(200)], "v": [i % 13 for i in range(200)], "ts": times}
        rows = pa.table(columns).append_column(MULT, pa.array([1] * 200))
        engine.push({"r": rows, "s": rows})
        taken.append(engine.state_bytes)
    assert set(taken[12:]) == {taken[12]} and taken[12] == max(taken)


def test_state_of_ever_new_strings_stays_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings go with the windows that they were in."""
    monkeypatch.setattr(dictionary, "_FEW", 1 << 12)
    script = """
        CREATE STREAM r (k VARCHAR, v INT, ts TIMESTAMP) USING csv OPTIONS (path 'r', op 'op') TIMESTAMP BY ts;
        SELECT k, COUNT(*) AS n, MAX(k) AS most FROM r GROUP BY k RANGE 10 SEC;
    """
    engine, taken = VolatileEngine(), []
    engine.start(script, tmp_path, {})
    for window in range(40):
        times = [START + timedelta(seconds=10 * window, milliseconds=50 * i) for i in range(200)]
        columns = {"k": [f"{window} {i % 70} of a long name" for i in range(200)], "v": [0] * 200, "ts": times}
        engine.push({"r": pa.table(columns).append_column(MULT, pa.array([1] * 200))})
        taken.append(engine.state_bytes)
    assert max(taken[20:]) <= max(taken[:20])
