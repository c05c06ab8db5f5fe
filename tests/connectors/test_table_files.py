"""Data files that tasks write for tables: each batch once, whole, whatever ran before."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyspark import cloudpickle

from squallpy.base.settings import Settings
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.runtime.connectors.delta.data_files import statistics
from squallpy.runtime.sinks.outputs import Outputs
from squallpy.runtime.sinks.query_output import QueryOutput
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.connectors.killed_runs import kill_again_and_again
from tests.connectors.test_delta import QUERY, World

SCHEMA = pa.schema([("k", pa.int32()), ('a "name" `é`', pa.string()), ("at", pa.timestamp("us"))])
Row = tuple[Any, ...]


class Delta:
    """A Delta table as a target."""

    format = "delta"

    def __init__(self, folder: Path) -> None:
        self.options, self._path = {"path": f"{folder}/t"}, folder / "t"

    def rows(self) -> Counter[Row]:
        table = DeltaTable(self._path).to_pyarrow_table()
        return Counter(tuple(row.values()) for row in plain(table).to_pylist())

    def files_of_commits(self) -> list[int]:
        """Count the files that each commit has added."""
        logs = sorted((self._path / "_delta_log").glob("*.json"))
        return [sum("add" in json.loads(line) for line in log.read_text().splitlines()) for log in logs]


class Iceberg:
    """An Iceberg table as a target."""

    format = "iceberg"

    def __init__(self, folder: Path) -> None:
        self._uri = f"sqlite:///{folder}/catalog.db"
        self.options = {"catalog.uri": self._uri, "catalog.warehouse": f"file://{folder}/w", "table": "n.t"}

    def _table(self) -> Any:
        return load_catalog("default", uri=self._uri).load_table("n.t")

    def rows(self) -> Counter[Row]:
        return Counter(tuple(row.values()) for row in plain(self._table().scan().to_arrow()).to_pylist())

    def files_of_commits(self) -> list[int]:
        return [int(each.summary["added-data-files"] or 0) for each in self._table().snapshots()]


TARGETS = [Delta, Iceberg]


def plain(table: pa.Table) -> pa.Table:
    fields = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def net(target: Any) -> Counter[Row]:
    """Add changes up."""
    found = Counter[Row]()
    for (_, op, *row), count in target.rows().items():
        found[tuple(row)] += count if op == "+" else -count
    return Counter({row: count for row, count in found.items() if count})


@contextmanager
def opened(target: Any, folder: Path, resumed: bool, mode: str) -> Iterator[QueryOutput]:
    spec = SinkSpec("o", target.format, target.options, mode)
    with closing(Outputs((), folder)) as outputs, closing(outputs.open(spec, "id", resumed)) as sink:
        query: Any = SimpleNamespace(number=1, sink=None, is_printed=True)
        sink.begin(query, SCHEMA, None)
        yield sink


def commit(sink: QueryOutput, number: int, rows: list[Row], partitions: int, least: int) -> None:
    """Write a batch as tasks of some partitions do, of which those with few rows leave them to the driver."""
    writer = cloudpickle.loads(cloudpickle.dumps(sink.part_writer(0, least)))  # type: ignore[no-untyped-call]
    parts = [
        writer(number, p, SCHEMA.empty_table(), pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, row, strict=True)) for row in rows[p::partitions]], SCHEMA
        ))
        for p in range(partitions)
    ]  # fmt: skip
    sink.commit(number, parts)


@pytest.mark.parametrize("mode", ["append", "changes"])
@pytest.mark.parametrize("make", TARGETS)
def test_batches_come_once_by_whatever_partitions(make: Any, mode: str, tmp_path: Path) -> None:
    """Some runs are killed behind a commit that they do not know of: the batch comes again, partitioned anew."""
    draw, target = Random(4), make(tmp_path)
    times = [None, datetime(1, 1, 1), datetime(2026, 2, 3, 4, 5, 6, 7), datetime(9999, 12, 31, 23, 59, 59, 999999)]
    names = [None, "", "é", "x" * 99]
    batches = [
        [(10 * n + i, draw.choice(names), draw.choice(times)) for i in range(draw.randrange(2, 9))] for n in range(6)
    ]
    number, resumed = 0, False
    while number < len(batches):
        with opened(target, tmp_path, resumed, mode) as sink:
            resumed = True
            for _ in range(draw.randrange(1, 3)):
                commit(sink, number, batches[number], draw.choice([1, 2, 3]), draw.choice([1, 2]))
                number += draw.random() < 0.7
                if number == len(batches):
                    break
    wanted = Counter((n, "+", *row) if mode == "changes" else row for n, rows in enumerate(batches) for row in rows)
    assert target.rows() == wanted and max(target.files_of_commits()) > 1


@pytest.mark.parametrize("checks", [False, True], ids=["partitioned", "constraint"])
def test_tables_with_more_than_rows_are_written_by_the_driver(checks: bool, tmp_path: Path) -> None:
    target = Delta(tmp_path)
    nothing = SCHEMA.set(2, pa.field("at", pa.timestamp("us", "UTC"))).empty_table()
    write_deltalake(target.options["path"], nothing, partition_by=None if checks else ["k"])
    if checks:
        DeltaTable(target.options["path"]).alter.add_constraint({"k": "k > 0"})
    with opened(target, tmp_path, False, "append") as sink:
        assert sink.part_writer(0, 1).writer is None
        commit(sink, 0, [(1, "a", None), (2, None, None)], 2, 1)
    assert target.rows() == Counter({(1, "a", None): 1, (2, None, None): 1})


def test_columns_that_are_not_null_are_checked(tmp_path: Path) -> None:
    target = Delta(tmp_path)
    DeltaTable.create(target.options["path"], pa.schema([pa.field("k", pa.int32(), nullable=False), *[*SCHEMA][1:2]]))
    spec = SinkSpec("o", "delta", target.options, "append")
    with closing(Outputs((), tmp_path)) as outputs, closing(outputs.open(spec, "id", False)) as sink:
        query: Any = SimpleNamespace(number=1, sink=None, is_printed=True)
        sink.begin(query, pa.schema([*SCHEMA][:2]), None)
        assert sink.part_writer(0, 1).writer is None


def test_statistics_of_files() -> None:
    """Times are whole milliseconds around the values; where there are no ends, or long ones, none are told."""
    utc = pa.timestamp("us", "UTC")
    rows = pa.table({
        "i": pa.array([3, None, -1], pa.int64()),
        "x": [1.5, None, 2.0],
        "nan": [1.5, float("nan"), 2.0],
        "inf": [float("inf"), 1.0, 2.0],
        "s": ["b", "a", None],
        "long": ["x" * 33, "a", "b"],
        "d": [date(999, 1, 2), None, date(9999, 12, 31)],
        "t": pa.array([datetime(1, 1, 1, 0, 0, 0, 1999, UTC), datetime(2026, 1, 1, 0, 0, 0, 1, UTC), None], utc),
        "last": pa.array([datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)] * 3, utc),
        "none": pa.array([None] * 3, pa.int32()),
        "b": [True, False, None],
    })  # fmt: skip
    ends = {
        "i": (-1, 3), "x": (1.5, 2.0), "s": ("a", "b"), "d": ("0999-01-02", "9999-12-31"),
        "t": ("0001-01-01T00:00:00.001Z", "2026-01-01T00:00:00.001Z"),
    }  # fmt: skip
    nulls = {"i": 1, "x": 1, "nan": 0, "inf": 0, "s": 1, "long": 0, "d": 1, "t": 1, "last": 0, "none": 3, "b": 1}
    assert json.loads(json.dumps(statistics(rows))) == {
        "numRecords": 3,
        "minValues": {name: low for name, (low, _) in ends.items()},
        "maxValues": {name: high for name, (_, high) in ends.items()},
        "nullCount": nulls,
    }


SCRIPT = """
CREATE STREAM r (k INT, v BIGINT) USING csv OPTIONS (path 'r.csv', op 'd');
CREATE SINK o USING {format} OPTIONS ({options}, mode 'changes')
    AS SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r GROUP BY k;
"""


@pytest.mark.spark
@pytest.mark.parametrize("make", [Delta, pytest.param(Iceberg, marks=pytest.mark.connectors)])
def test_tasks_of_spark_write_files(make: Any, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    draw, target = Random(3), make(tmp_path)
    rows = [(draw.randrange(40), draw.randrange(9)) for _ in range(300)]
    changes = [*((k, v, "+") for k, v in rows), *((k, v, "-") for k, v in rows[:90])]
    (tmp_path / "r.csv").write_text("k,v,d\n" + "".join(f"{k},{v},{d}\n" for k, v, d in changes))
    options = ", ".join(f"{name} '{value}'" for name, value in target.options.items())
    script = SCRIPT.format(format=target.format, options=options).replace("op 'd'", "op 'd', header 'true'")
    (tmp_path / "q.sql").write_text(script)
    here = Settings(partitions=2, sinks_part_rows=4, local_dir=str(tmp_path / "local"))
    run = RunOptions("spark", batch_rows=100, checkpoint=str(tmp_path / "kept"))
    ScriptSession(tmp_path / "q.sql", here).run(run, IgnoringSink())
    found = net(target)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE r (k INT, v BIGINT)")
        database.executemany("INSERT INTO r VALUES (?, ?)", rows[90:])
        wanted = database.execute("SELECT k, COUNT(*), SUM(v)::BIGINT FROM r GROUP BY k").fetchall()
    assert found == Counter(wanted)
    assert max(target.files_of_commits()) == 2


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.connectors
@pytest.mark.parametrize("make", TARGETS)
def fault_kills_of_tasks(make: Any, tmp_path: Path) -> None:
    world, target = World(tmp_path / "r", 5), make(tmp_path)
    options = ", ".join(f"{name} '{value}'" for name, value in target.options.items())
    (tmp_path / "q.sql").write_text(
        f"CREATE STREAM r USING delta OPTIONS (path '{world.folder}', readChangeFeed 'true');\n"
        f"CREATE SINK o USING {target.format} OPTIONS ({options}, mode 'changes') AS {QUERY};"
    )

    def is_done() -> bool:
        try:
            return net(target) == world.answer()
        except (TableNotFoundError, NoSuchTableError):
            return False

    settings = ("sinks.part_rows=1", "partitions=2")
    kill_again_and_again(tmp_path, "spark", world.draw, world.change, is_done, settings=settings)
    assert max(target.files_of_commits()) == 2
