"""Batches that partitions write in parallel: whole, once, and the query's, whatever is killed."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.settings import Settings
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.physical.plan import Plan
from squallpy.runtime.sinks.batch_files import PartFiles
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.outputs import Outputs
from squallpy.runtime.sinks.part_writer import PartWriter
from squallpy.runtime.sinks.query_output import QueryOutput
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.kept import Killed as Dead
from tests.sinks.mortal_folders import Killed, Life, living

SCHEMA = pa.schema([("k", pa.int64())])


@contextmanager
def opened(folder: Path, resumed: bool, compact: str) -> Iterator[QueryOutput]:
    spec = SinkSpec("o", "csv", {"compact": compact} if compact else {}, "changes", target=folder)
    with closing(Outputs((), Path())) as outputs, closing(outputs.open(spec, "id", resumed)) as sink:
        query: Any = SimpleNamespace(number=1, sink=None, is_printed=True)
        sink.begin(query, SCHEMA, None)
        yield sink


def shown(folder: Path) -> list[int]:
    """The rows of all files that the folder shows."""
    lines = (path.read_text().splitlines()[1:] for path in folder.glob("batch-*"))
    return sorted(int(line.rpartition(",")[2]) for some in lines for line in some)


@settings(deadline=None, max_examples=max(20, settings().max_examples))
@given(seed=st.integers(0, 1 << 30))
def property_files_of_partitions_are_whole_over_kills(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """… by whatever partitions a batch comes again, with rows that tasks or the driver have written."""
    draw, folder = Random(seed), tmp_path_factory.mktemp("out")
    batches, done, resumed = [[*range(10 * n, 10 * n + draw.randrange(10))] for n in range(6)], 0, False
    compact = draw.choice(["", "2", "3"])
    while done < len(batches):
        life = Life(draw.randrange(40), draw.random() < 0.5) if draw.random() < 0.8 else None
        partitions, least = draw.choice([1, 2, 4]), draw.choice([1, 2, 100])
        with suppress(Killed), living(life), opened(folder, resumed, compact) as sink:
            resumed = True
            for number in range(done, len(batches)):
                nothing, writer = SCHEMA.empty_table(), sink.part_writer(0, least)
                shares = (batches[number][p::partitions] for p in range(partitions))
                rows = [pa.table({"k": pa.array(share, pa.int64())}) for share in shares]
                sink.commit(number, [writer(number, p, nothing, some) for p, some in enumerate(rows)])
                done = number + 1
            sink.finish(stopped=False)
        found = json.loads((folder / "_manifest").read_text()) if (folder / "_manifest").exists() else {"batches": 0}
        assert done <= found["batches"] <= done + 1
    with opened(folder, True, compact) as sink:
        sink.finish(stopped=False)
    assert shown(folder) == [row for batch in batches for row in batch]
    assert [path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith("batch-")] == [
        "_manifest"
    ]


SCRIPT = """
CREATE STREAM f (k INT, v BIGINT) USING csv OPTIONS (path 'f.csv');
CREATE STREAM g (k INT, w BIGINT) USING csv OPTIONS (path 'g.csv', header 'true', op 'd');
CREATE SINK a USING csv OPTIONS (path 'a/', mode 'changes') AS SELECT k, COUNT(*) AS n, SUM(v) AS s FROM f GROUP BY k;
CREATE SINK b USING parquet OPTIONS (path 'b/', mode 'upsert', compact '2') AS
    SELECT f.k, SUM(v * w) AS s FROM f JOIN g ON f.k = g.k GROUP BY f.k HAVING SUM(v * w) > 20;
CREATE SINK c USING json OPTIONS (path 'c/', mode 'append') AS SELECT k, v FROM f WHERE v % 3 = 0;
CREATE SINK d USING csv OPTIONS (path 'd/', mode 'changes') AS SELECT SUM(w) AS s FROM g;
"""
CHANGES = "SELECT {columns} FROM {read} GROUP BY ALL HAVING SUM(CASE op WHEN '+' THEN 1 ELSE -1 END) > 0"
LAST = "SELECT k, s FROM (SELECT * FROM {read} QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY batch DESC) = 1)"
ANSWERS = {
    "a": ("csv", CHANGES.replace("{columns}", "k, n, s"), "SELECT k, COUNT(*), SUM(v) FROM f GROUP BY k"),
    "b": (
        "parquet",
        f"{LAST} WHERE op <> '-'",
        "SELECT f.k, SUM(v * w) AS s FROM f JOIN g ON f.k = g.k GROUP BY f.k HAVING SUM(v * w) > 20",
    ),
    "c": ("json", "SELECT k, v FROM {read}", "SELECT k, v FROM f WHERE v % 3 = 0"),
    "d": ("csv", CHANGES.replace("{columns}", "s"), "SELECT SUM(w) FROM g"),
}


class World:
    """Two streams, and sinks over them."""

    def __init__(self, folder: Path) -> None:
        self.folder, draw = folder, Random(5)
        self.f = [(draw.randrange(40), draw.randrange(9)) for _ in range(300)]
        self.g = [(draw.randrange(40), draw.randrange(9)) for _ in range(100)]
        (folder / "f.csv").write_text("".join(f"{k},{v}\n" for k, v in self.f))
        changes = [*((k, w, "+") for k, w in self.g), *((k, w, "-") for k, w in self.g[:30])]
        (folder / "g.csv").write_text("k,w,d\n" + "".join(f"{k},{w},{d}\n" for k, w, d in changes))
        (folder / "q.sql").write_text(SCRIPT)

    def run(self, partitions: int, batch_rows: int = 60, life: Life | None = None) -> None:
        here = Settings(partitions=partitions, sinks_part_rows=4, local_dir=str(self.folder / "local"))
        options = RunOptions("spark", batch_rows=batch_rows, checkpoint=str(self.folder / "kept"))
        with suppress(Dead), living(life):
            ScriptSession(self.folder / "q.sql", here).run(options, IgnoringSink())

    def check(self) -> None:
        database = duckdb.connect()
        database.execute("CREATE TABLE f (k INT, v BIGINT)")
        database.executemany("INSERT INTO f VALUES (?, ?)", self.f)
        database.execute("CREATE TABLE g (k INT, w BIGINT)")
        database.executemany("INSERT INTO g VALUES (?, ?)", self.g[30:])
        for name, (format, found, wanted) in ANSWERS.items():
            read = f"read_{format}{'_auto' if format != 'parquet' else ''}('{self.folder}/{name}/batch-*')"
            rows = sorted(database.sql(found.format(read=read)).fetchall())
            assert rows == sorted(database.sql(wanted).fetchall()), name


@pytest.mark.spark
@pytest.mark.slow
def test_sinks_of_partitions(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = World(tmp_path)
    world.run(2, batch_rows=200)
    world.check()
    parts = {path.parent.name for path in tmp_path.glob("*/batch-*.part-*")}
    assert parts == {"a", "c"}, "those of b are compacted, and d is one row"


@pytest.mark.spark
@pytest.mark.long
def test_sinks_of_partitions_over_kills_and_other_partitions(tmp_path: Path) -> None:
    world, draw = World(tmp_path), Random(9)
    for partitions in (2, 2, 3, 1):
        world.run(partitions, life=Life(draw.randrange(8, 30), draw.random() < 0.5, Dead))
    world.run(2, batch_rows=100)
    world.check()


def plan_of(script: str, *apart: int) -> Plan:
    session = ScriptSession(Path("q.sql"), text=script)
    return session.compiler.compile(session.script.queries, 4, {"r": 1000, "s": 1000}, apart=apart).plan


STREAMS = """
CREATE STREAM r (a INT, b INT) USING csv OPTIONS (path 'r.csv', op 'o');
CREATE STREAM s (b INT, c INT) USING csv OPTIONS (path 's.csv');
"""


@pytest.mark.parametrize(
    ("query", "hashed"),
    [
        ("SELECT a, COUNT(*) AS n FROM r GROUP BY a", {"Q": (0,)}),  # else added up by the driver
        ("SELECT r.b, c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.b, c", {"Q": (0,)}),  # as the views are
        ("SELECT c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY c", {}),  # would take another exchange
        ("SELECT COUNT(*) AS n FROM r", {}),
        ("SELECT a, COUNT(*) AS n FROM r GROUP BY a ORDER BY n LIMIT 3", {}),
    ],
)
def test_results_whose_groups_are_whole_are_printed_by_partitions(query: str, hashed: dict[str, Any]) -> None:
    plan = plan_of(STREAMS + query, 0)
    assert {name: dict(plan.places)[name] for name in plan.partitioned} == hashed
    assert plan_of(STREAMS + query).partitioned == ()


def test_a_result_that_somebody_else_prints_is_the_drivers() -> None:
    both = STREAMS + "SELECT a, COUNT(*) AS n FROM r GROUP BY a; SELECT a AS x, COUNT(*) AS y FROM r GROUP BY a;"
    assert plan_of(both, 0).partitioned == ()
    assert plan_of(both, 0, 1).partitioned == ("Q",)


def test_on_a_cluster_the_driver_writes_what_other_hosts_may_not_reach() -> None:
    rows, nothing = pa.table({"k": [1]}), SCHEMA.empty_table()

    class Written:
        def __init__(self, is_shared: bool) -> None:
            self.is_shared = is_shared

        def write(self, rows: pa.Table, batch: int, partition: int) -> str:
            return "written"

    for is_shared, is_one, by_task in ((False, True, True), (False, False, False), (True, False, True)):
        spec = SinkSpec("o", "csv", {}, "changes", target=Path("out"))
        writer = PartWriter(0, spec, ["k"], Written(is_shared), least=1).on_hosts(is_one)
        assert (writer(7, 0, nothing, rows).message == "written") is by_task
    for place, reached in ((Path("out"), False), ("s3://b/out", True)):
        assert PartFiles(place, FileFormat("csv", None), 0, 0).is_shared is reached
