"""Runs that begin at once and make what is not there yet: the one that comes second takes what the first has made."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables, SqlCatalog
from sqlalchemy import Table, create_engine, event

from squallpy.base.errors import SquallError
from squallpy.runtime.connectors.delta.delta_sink import DeltaSink
from squallpy.runtime.connectors.iceberg.iceberg_sink import IcebergSink
from squallpy.runtime.connectors.kafka.kafka_sink import KafkaSink
from squallpy.runtime.connectors.postgres import slot_log
from squallpy.runtime.connectors.postgres.postgres_sink import PostgresSink, PostgresWriter
from tests.connectors.kafka_topics import messages
from tests.connectors.runs import Running, run
from tests.connectors.servers import KafkaServer, PostgresServer


@contextmanager
def coming_between(owner: Any, name: str, other: Callable[[], object], after: bool = False) -> Iterator[None]:
    """Let another run do something just before the first call of a function, or just after it."""
    made, patch, done = getattr(owner, name), pytest.MonkeyPatch(), list[bool]()

    def call(*given: Any, **named: Any) -> Any:
        patch.undo()
        answer = made(*given, **named) if after else None
        other()
        done.append(True)
        return answer if after else made(*given, **named)

    patch.setattr(owner, name, call)
    try:
        yield
    finally:
        patch.undo()
    assert done, f"{name} is called"


class IcebergRun:
    """A run that writes to the table `db.t` of a catalog."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.uri = folder, f"sqlite:///{folder}/catalog.db"

    @property
    def catalog(self) -> Catalog:
        return load_catalog("default", uri=self.uri, warehouse=f"file://{self.folder}")

    @property
    def target(self) -> str:
        place = f"catalog.uri '{self.uri}', catalog.warehouse 'file://{self.folder}', table 'db.t'"
        return f"iceberg OPTIONS ({place}"

    def write(self, sink: str, rows: str = "1,2\n3,4\n") -> None:
        run(script(self.folder, sink, self.target, rows))

    @property
    def rows(self) -> list[int]:
        return sorted(self.catalog.load_table("db.t").scan().to_arrow().column("k").to_pylist())


@pytest.mark.parametrize("made", [[0], [1], [0, 1]])
def test_a_sql_catalog_whose_tables_another_run_makes(tmp_path: Path, made: list[int]) -> None:
    """It makes them after this run has looked for them; each by itself, so that this run comes in between again."""
    here = IcebergRun(tmp_path)
    tables: list[Table] = [IcebergTables.__table__, IcebergNamespaceProperties.__table__]  # type: ignore[list-item]
    for number in made:

        def create(table: Table, *_: object, **__: object) -> None:
            table.create(create_engine(here.uri))

        event.listen(tables[number], "before_create", create, once=True)
    here.write("a")
    assert here.rows == [1, 3]


def test_a_namespace_that_another_run_makes(tmp_path: Path) -> None:
    here = IcebergRun(tmp_path)
    with coming_between(SqlCatalog, "namespace_exists", lambda: here.catalog.create_namespace("db"), after=True):
        here.write("a")
    assert here.rows == [1, 3]


@pytest.mark.parametrize("where", ["commit_table", "_update_and_stage_table"])
def test_an_iceberg_table_that_another_run_takes_over(tmp_path: Path, where: str) -> None:
    """Both write to it: before this one takes it over, or while it does."""
    here = IcebergRun(tmp_path)
    with coming_between(SqlCatalog, where, lambda: here.write("b", "")):
        here.write("a")
    assert here.rows == [1, 3]


def script(folder: Path, sink: str, target: str, rows: str = "1,2\n3,4\n", existing: str = "") -> str:
    """Write a query over some rows, whose sink is one of several of a target."""
    (folder / f"{sink}.csv").write_text(rows)
    stream = f"CREATE STREAM r (k BIGINT, v BIGINT) USING csv OPTIONS (path '{folder}/{sink}.csv');"
    return f"{stream} CREATE SINK {sink} USING {target}, mode 'append'{existing}) AS SELECT k, v FROM r;"


Target = tuple[str, Callable[[], list[int]], Any, str]
"""The options of a sink, what reads its rows, and the function before which another run comes in between."""


@pytest.fixture(params=["postgres", "delta", "iceberg", pytest.param("kafka", marks=pytest.mark.connectors)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    match request.param:
        case "postgres":
            postgres: PostgresServer = request.getfixturevalue("postgres")
            where = f"postgres OPTIONS (url '{postgres.url}', table 't'"
            return where, lambda: [k for (k,) in postgres.execute("SELECT k FROM t ORDER BY k")], PostgresSink, "make"
        case "kafka":
            kafka: KafkaServer = request.getfixturevalue("kafka")
            topic = request.node.name.replace("[", "-").replace("]", "")
            where = f"kafka OPTIONS (kafka.bootstrap.servers '{kafka.address}', topic '{topic}'"
            found = partial(messages, kafka, topic)
            read = lambda: sorted(json.loads(each.value() or b"")["k"] for each in found())  # noqa: E731
            return where, read, AdminClient, "create_topics"
        case "delta":
            place = tmp_path / "t"
            read = lambda: sorted(DeltaTable(place).to_pyarrow_table().column("k").to_pylist())  # noqa: E731
            return f"delta OPTIONS (path '{place}'", read, DeltaTable, "create"
    here = IcebergRun(tmp_path)
    here.catalog.create_namespace("db")
    return here.target, lambda: here.rows, SqlCatalog, "create_table"


def test_a_target_that_another_run_makes(target: Target, tmp_path: Path) -> None:
    """It makes the target after this run has found none, and has no rows; or has some, which are kept."""
    where, rows, owner, name = target
    with coming_between(owner, name, lambda: run(script(tmp_path, "b", where, ""))):
        run(script(tmp_path, "a", where))
    assert rows() == [1, 3]


def fault_a_target_that_another_run_makes_and_fills(target: Target, tmp_path: Path) -> None:
    """This run is as one that begins after it."""
    where, rows, owner, name = target
    with (
        coming_between(owner, name, lambda: run(script(tmp_path, "b", where))),
        pytest.raises(SquallError, match=r"SQ7005 .* has (rows|records), and this run begins anew"),
    ):
        run(script(tmp_path, "a", where))
    run(script(tmp_path, "a", where, existing=", existing 'keep'"))
    assert rows() == [1, 1, 3, 3]


TAKES_OVER = {"postgres": (PostgresWriter, "_take_over"), "delta": (DeltaSink, "take_over"),
              "iceberg": (IcebergSink, "take_over"), "kafka": (KafkaSink, "_made")}  # fmt: skip


def fault_a_target_that_another_run_of_the_query_fills(target: Target, tmp_path: Path) -> None:
    """It does so after this run has found no rows, and before it fences others: it may not be written twice."""
    where, rows, *_ = target
    run(script(tmp_path, "b", where, ""))
    text = script(tmp_path, "a", where)
    with (
        coming_between(*TAKES_OVER[where.partition(" ")[0]], lambda: run(text)),
        pytest.raises(SquallError, match=r"SQ7005 .* has 1 batch of this query, and this run begins anew"),
    ):
        run(text)
    assert rows() == [1, 3]


@pytest.mark.parametrize("table", ["squall_commits", "t"])
def test_a_table_of_postgres_that_another_run_is_making(postgres: PostgresServer, tmp_path: Path, table: str) -> None:
    """The other transaction is not committed, so that this run cannot see what it waits for."""
    text = script(tmp_path, "a", f"postgres OPTIONS (url '{postgres.url}', table 't'")
    run(text)
    postgres.execute("ALTER TABLE t RENAME TO model_t", "ALTER TABLE squall_commits RENAME TO model_squall_commits")
    with psycopg.connect(postgres.url) as other:
        other.execute(f"CREATE TABLE {table} (LIKE model_{table} INCLUDING ALL)")
        with Running(text) as here:
            here.wait_for(lambda: bool(postgres.execute("SELECT 1 FROM pg_locks WHERE NOT granted")))
            other.commit()
            here.wait_for(lambda: bool(postgres.execute("SELECT 1 FROM pg_tables WHERE tablename = 't'")))
            here.wait_for(lambda: postgres.execute("SELECT k FROM t ORDER BY k") == [(1,), (3,)])


def fault_a_connection_that_is_lost_while_a_table_is_made(postgres: PostgresServer, tmp_path: Path) -> None:
    """The table is not there then, though this run has seen it."""
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'squallpy'"
    with coming_between(PostgresSink, "note", lambda: postgres.execute(ends)):
        run(script(tmp_path, "a", f"postgres OPTIONS (url '{postgres.url}', table 't'"))
    assert postgres.execute("SELECT k FROM t ORDER BY k") == [(1,), (3,)]


def test_runs_without_a_checkpoint_follow_one_table(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a slot of its own, also if they are processes alike, as in containers."""
    monkeypatch.setattr(slot_log, "id", lambda _: 7, raising=False)
    postgres.execute(
        "CREATE TABLE t (k INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE PUBLICATION squall FOR TABLE t"
    )
    text = f"CREATE STREAM t USING postgres OPTIONS (url '{postgres.url}'); SELECT k FROM t;"
    with Running(text) as first:
        first.wait_for(lambda: first.answers.batches > 0)
        assert run(text).rows == first.answers.rows == Counter([(1,)])
