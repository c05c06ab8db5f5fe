"""Iceberg tables in and out, in a catalog on SQLite: after each batch, the answer is DuckDB's over the table."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import snapshot
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import LongType, StringType
from requests.exceptions import ConnectionError

from squallpy.base.errors import SquallError
from squallpy.runtime.connectors.iceberg import iceberg_sink
from tests.connectors.killed_runs import BACKENDS, kill_again_and_again
from tests.connectors.runs import Answers, Row, Running, Versions, run
from tests.marks import long

SCHEMA = pa.schema([
    ("k", pa.int64()), ("part", pa.int32()), ("name", pa.string()), ("x", pa.decimal128(12, 2)),
    ("moment", pa.timestamp("us")),
])  # fmt: skip
QUERY = "SELECT name, part, COUNT(*) AS n, SUM(x) AS x, MAX(moment) AS moment FROM r GROUP BY name, part"


class World:
    """A catalog with a table `db.r` that changes."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder, self.draw = folder, random.Random(seed)
        self.catalog.create_namespace("db")
        self.table = self.catalog.create_table("db.r", SCHEMA)

    @property
    def catalog(self) -> Catalog:
        return load_catalog("default", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=f"file://{self.folder}")

    def append(self) -> None:
        rows = [self._row(self.draw.randrange(50)) for _ in range(self.draw.randrange(1, 9))]
        self.table.append(pa.Table.from_pylist(rows, SCHEMA))

    def answer(self, database_rows: pa.Table | None = None) -> Counter[Row]:
        """Ask DuckDB over the rows that are there."""
        with duckdb.connect() as database:
            database.register("r", self.table.refresh().scan().to_arrow() if database_rows is None else database_rows)
            return Counter(database.execute(QUERY).fetchall())

    def written(self, name: str = "db.s") -> Counter[Row]:
        try:
            table = self.catalog.load_table(name)
        except NoSuchTableError:
            return Counter()
        return Counter(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())

    def of(self, table: str, more: str = "") -> str:
        """Write where a table is."""
        place = f"catalog.uri 'sqlite:///{self.folder}/catalog.db', catalog.warehouse 'file://{self.folder}'"
        return f"USING iceberg OPTIONS ({place}, table '{table}'{more})"

    def script(self, sink: str = "", query: str = QUERY, columns: str = "") -> str:
        out = f"CREATE SINK s {self.of('db.s', sink)} AS {query};" if sink else ""
        return f"CREATE STREAM r {columns} {self.of('db.r')}; {out} {query};"

    def sink(self, table: str, mode: str, query: str = QUERY) -> str:
        """Write where a query goes, from the stream or table `r`."""
        options = f", mode '{mode}'"
        return f"CREATE SINK {table.replace('.', '_')} {self.of(table, options)} AS {query};"

    def _row(self, k: int) -> dict[str, Any]:
        moment = self.draw.choice([None, 1_700_000_000_000_000 + self.draw.randrange(10**12)])
        name = self.draw.choice([None, "a", "b"])
        return {"k": k, "part": k % 3, "name": name, "x": self.draw.randrange(99), "moment": moment}


@pytest.mark.parametrize("seed", [1, *map(long, range(2, 8))])
def oracle_appends(tmp_path: Path, seed: int) -> None:
    """Snapshots are read as they come, into a sink by a key of several columns with NULLs; each batch ends at one."""
    world = World(tmp_path, seed)
    versions = Versions(world.answer())
    answers = Answers(versions.check)
    for turn in range(4):
        for _ in range(world.draw.randrange(4)):
            world.append()
            versions.tell(world.answer())
        run(world.script(", mode 'upsert'"), answers, tmp_path / "kept", rows=world.draw.choice([None, 1]))
        assert answers.rows == world.answer() == world.written(), turn


@pytest.mark.spark
@pytest.mark.connectors
def oracle_appends_on_spark(tmp_path: Path) -> None:
    world, answers = World(tmp_path), Answers()
    for _ in range(2):
        for _ in range(3):
            world.append()
        run(world.script(", mode 'upsert'"), answers, tmp_path / "kept", backend="spark")
        assert answers.rows == world.answer() == world.written()
    text = f"CREATE TABLE r {world.of('db.r')}; {QUERY};"
    assert run(text, backend="spark").rows == world.answer()


def test_snapshots_that_are_no_appends(tmp_path: Path) -> None:
    """Data files that are put together are not read again; a snapshot that takes rows is refused, those before read."""
    world, answers = World(tmp_path), Answers()
    world.append()
    run(world.script(), answers, tmp_path / "kept")
    rewrite(world.table)
    world.append()
    run(world.script(), answers, tmp_path / "kept")
    before = world.answer()
    assert answers.rows == before
    text = f"CREATE TABLE r {world.of('db.r')}; {QUERY};"
    assert run(text).rows == before
    world.append()
    before = world.answer()
    world.table.delete("part = 1")
    number = world.table.refresh().current_snapshot().snapshot_id
    with pytest.raises(SquallError, match=f"SQ4009 script.sql:1:15: snapshot {number} of db.r deletes or updates rows"):
        run(world.script(), answers, tmp_path / "kept")
    assert answers.rows == before
    assert run(text).rows == world.answer() == run(world.script()).rows  # NB: as it is


def rewrite(table: Table) -> None:
    """Put the data files of a table together, as a compaction does."""
    rows, files = table.scan().to_arrow(), [task.file for task in table.scan().plan_files()]
    with (
        pytest.MonkeyPatch.context() as patch,
        table.transaction() as work,
        work.update_snapshot().overwrite() as update,
    ):
        update._operation = Operation.REPLACE
        patch.setattr(snapshot, "update_snapshot_summaries", lambda summary, **_: summary)  # NB: it refuses a REPLACE
        for file in files:
            update.delete_data_file(file)
        for file in _dataframe_to_data_files(table.metadata, rows, table.io):
            update.append_data_file(file)


def test_modes_and_tables_that_have_rows(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.append()
    text = world.script(", mode 'upsert'")
    run(text, checkpoint=tmp_path / "1")
    with pytest.raises(SquallError, match=r"SQ7005 .*db.s has 1 batch of this query, and this run begins anew"):
        run(text, checkpoint=tmp_path / "2")
    world.append()
    replaced = world.script(", mode 'upsert', existing 'replace'")
    answers = run(replaced, checkpoint=tmp_path / "3")
    world.append()
    run(replaced, answers, tmp_path / "3")
    assert world.written() == world.answer()
    world.catalog.load_table("db.s").append(pa.table({"name": ["z"], "part": pa.array([7], pa.int32())}))
    world.append()
    run(world.script(", mode 'upsert', existing 'keep'"), checkpoint=tmp_path / "4")
    assert world.written() == world.answer() + Counter([("z", 7, None, None, None)])
    changes = world.script().replace(f"{QUERY};", world.sink("made.c", "changes"))
    for _ in range(2):
        run(changes, checkpoint=tmp_path / "5")  # NB: all of its queries have sinks
        world.append()
    table, told = world.catalog.load_table("made.c"), Counter[Row]()
    for batch, op, *row in (tuple(each.values()) for each in table.scan().to_arrow().to_pylist()):
        assert batch in (0, 1)
        told[tuple(row)] += 1 if op == "+" else -1
    before = world.table.refresh().snapshots()[-2].snapshot_id
    assert +told == world.answer(world.table.scan(snapshot_id=before).to_arrow())
    numbers = [dict(each.summary.additional_properties)["squall.batch"] for each in table.snapshots()]
    marks = {name: value for name, value in table.properties.items() if name.startswith("squall.made_c/")}
    assert numbers == ["0", "1"] and [value for name, value in marks.items() if not name.endswith(".run")] == ["1"]
    op, columns = ", op 'op'", "(name VARCHAR, part INT, n BIGINT)"
    told_by_op = f"CREATE STREAM r {columns} {world.of('made.c', op)};"
    found = run(f"{told_by_op} SELECT name, part, SUM(n) AS n FROM r GROUP BY name, part;").rows
    assert found == Counter(row[:3] for row in +told)  # NB: what one run writes another reads
    sinks = world.sink("db.a", "append", "SELECT k, x FROM r") + world.sink("db.f", "final")
    run(f"CREATE TABLE r {world.of('db.r')}; {sinks}")
    assert world.written("db.a").total() == world.table.scan().count() and world.written("db.f") == world.answer()


def test_a_batch_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    """A run that dies between the commit of its table and its own finds the batch by its number."""
    world, stored = World(tmp_path), iceberg_sink.IcebergWriter._store

    def dies(writer: iceberg_sink.IcebergWriter, *words: Any) -> None:
        stored(writer, *words)
        raise KeyboardInterrupt

    text = world.script().replace(f"{QUERY};", world.sink("db.s", "append", "SELECT k FROM r"))
    for _ in range(3):
        world.append()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(iceberg_sink.IcebergWriter, "_store", dies)
            run(text, checkpoint=tmp_path / "kept")
    run(text, checkpoint=tmp_path / "kept")
    keys = world.table.refresh().scan().to_arrow()["k"].to_pylist()
    assert world.written() == Counter((k,) for k in keys)


@pytest.mark.connectors
def test_keys_of_all_types(tmp_path: Path) -> None:
    """Rows are replaced by keys of any type, alone and beside others, NULL and NaN among them."""
    world, draw, answers = World(tmp_path), random.Random(3), Answers()
    schema = pa.schema([
        ("k", pa.int64()), ("b", pa.bool_()), ("f", pa.float64()), ("d", pa.decimal128(9, 2)), ("day", pa.date32()),
        ("m", pa.timestamp("us")), ("s", pa.string()), ("v", pa.int64()),
    ])  # fmt: skip
    table = world.catalog.create_table("db.t", schema)
    many = [*([name] for name in schema.names[:-1]), ["b", "s"], ["f", "day"], ["d", "m", "k"]]
    query = "SELECT {0}, SUM(v) AS v FROM t GROUP BY {0} HAVING SUM(v) % 3 > 0"
    sinks = "".join(world.sink(f"db.t{n}", "upsert", query.format(", ".join(key))) for n, key in enumerate(many))
    for _ in range(4):
        n = [draw.choice([None, 0, 1, 2]) for _ in range(8)]
        rows = [
            {"k": i, "b": None if i is None else i > 1, "f": float("nan") if i == 2 else i, "d": i, "day": i, "m": i,
             "s": i if i is None else f"s'{i}", "v": draw.randrange(5)} for i in n
        ]  # fmt: skip
        table.append(pa.Table.from_pylist(rows, schema))
        run(f"CREATE STREAM t {world.of('db.t')}; {sinks}", answers, tmp_path / "kept")
        with duckdb.connect() as database:
            database.register("t", table.scan().to_arrow())
            for number, key in enumerate(many):
                wanted = Counter(map(str, database.execute(query.format(", ".join(key))).fetchall()))
                assert Counter(map(str, world.written(f"db.t{number}").elements())) == wanted, key


def refused(text: str, checkpoint: Path | None = None) -> str:
    with pytest.raises(SquallError) as error:
        run(text, checkpoint=checkpoint)
    return str(error.value)


def test_what_is_wrong_with_tables(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.append()
    found = refused(world.script().replace("'db.r'", "'db.nothing'"))
    assert found == "SQ4001 script.sql:1:15: there is no Iceberg table db.nothing, make one, or mend the name"
    found = refused(world.script().replace("'db.r'", "'r'"))
    assert found.endswith("1:15: the table is not named with its namespace, such as table 'shop.orders'")
    secret = "'catalog.s3.secret-access-key' '${env:NOTHING_HERE}', catalog.warehouse '"
    found = refused(world.script().replace("catalog.warehouse '", secret))
    assert found.endswith("the environment has no variable NOTHING_HERE, export NOTHING_HERE=…")
    options = "catalog.uri '{0}', table 'a.b', connect_timeout '1 second'"
    away = f"CREATE STREAM r USING iceberg OPTIONS ({options}); SELECT * FROM r;"
    found = refused(away.format("sqlite:////nowhere/c.db"))
    assert found.startswith("SQ8010 ") and found.endswith(
        "unable to open database file, a retry does not help before that is mended"
    )
    found = refused(away.format("http://127.0.0.1:9"))
    assert found.startswith("SQ8010 ") and "it may pass: run the same command again when the catalog is there" in found
    world.catalog.create_table("db.s", pa.schema([("name", pa.string()), ("part", pa.string())]))
    found = refused(world.script(", mode 'upsert'"))
    assert found.endswith('the Iceberg table db.s has no column "n", run ALTER TABLE db.s ADD COLUMN n …;')
    world.catalog.drop_table("db.s")
    world.catalog.create_table("db.s", SCHEMA.append(pa.field("n", pa.int32())))
    query = "SELECT name, part, x, moment, 5000000000 AS n FROM r"
    found = refused(world.script(", mode 'append'", query), tmp_path / "kept")
    assert "batch 0 cannot be written to the Iceberg table db.s: Integer value 5000000000 not in range" in found
    with world.catalog.load_table("db.s").update_schema() as update:
        update.update_column("n", LongType())
    run(world.script(", mode 'append'", query), checkpoint=tmp_path / "kept")  # NB: what is mended goes on
    assert world.written().total() == world.table.scan().count()


def test_tables_whose_columns_change(tmp_path: Path) -> None:
    """Columns that are not read may; a run ends where one that is read has gone or has another type."""
    world = World(tmp_path)
    world.append()
    with Running(world.script(query="SELECT k, name FROM r")) as running:
        running.wait_for(lambda: running.answers.batches > 0)
        with world.table.update_schema() as update:
            update.rename_column("name", "called")
        world.table.append(pa.table({"k": [501], "called": ["c"]}))
        running.wait_for(lambda: running.answers.rows[501, "c"] == 1)  # NB: by the id of the column
    world.table.delete(AlwaysTrue())
    changes: list[tuple[Callable[[UpdateSchema], object], str]] = [
        (lambda update: update.update_column("part", LongType()), "was int and is long, the batch before is whole"),
        (lambda update: update.delete_column("part"), "was dropped, the batch before is whole"),
    ]
    for change, says in changes:
        world.table.append(pa.table({"k": [1]}))
        with Running(world.script(query="SELECT k, part FROM r")) as running:
            running.wait_for(lambda: running.answers.batches > 0)
            with world.table.update_schema() as update:
                change(update)
            world.table.append(pa.table({"k": [1]}))
            assert f'the column "part" of db.r {says}' in str(running.ended())
    text, answers = world.script(query="SELECT k, title FROM r"), Answers()
    with world.table.update_schema() as update:
        update.add_column("title", StringType())
    run(text, answers, tmp_path / "kept")
    assert answers.rows == Counter({(1, None): 4})  # NB: no snapshot has it yet
    world.table.append(pa.table({"k": [77], "title": ["a"]}))
    assert run(text, answers, tmp_path / "kept").rows[77, "a"] == 1
    last = world.table.refresh().current_snapshot().snapshot_id
    for _ in range(2):
        world.table.append(pa.table({"k": [78]}))
    numbers = [each.snapshot_id for each in world.table.snapshots()[:-1]]
    world.table.maintenance.expire_snapshots().by_ids(numbers).commit()
    found = refused(text, tmp_path / "kept")
    assert (
        f"what came after snapshot {last} of db.r cannot be read any more: expired, or rolled back, begin anew" in found
    )


def test_a_catalog_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run waits for it, when it reads and when it writes."""
    world = World(tmp_path)
    world.append()
    with Running(world.script(", mode 'upsert'"), tmp_path / "kept") as running:
        running.wait_for(lambda: running.answers.batches > 0)
        loads, away = type(world.catalog).load_table, list[str]()

        def load(catalog: Catalog, name: Any) -> Table:
            if len(away) < 6:
                away.append(str(name))
                raise ConnectionError("Connection refused")
            return loads(catalog, name)

        monkeypatch.setattr(type(world.catalog), "load_table", load)
        running.wait_for(lambda: len(away) == 6)
        world.append()
        running.wait_for(lambda: world.written() == world.answer())


@pytest.mark.connectors
@pytest.mark.parametrize("backend", BACKENDS)
def fault_kills(tmp_path: Path, backend: str) -> None:
    world = World(tmp_path, 5)
    (tmp_path / "q.sql").write_text(world.script(", mode 'upsert'").rpartition("; ")[0] + ";")

    def is_done() -> bool:
        return world.written() == world.answer()

    kill_again_and_again(tmp_path, backend, world.draw, world.append, is_done)
