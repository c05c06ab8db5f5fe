"""Results and changes in PostgreSQL, each batch and its number in one transaction: exactly once.

    squall_commits   query               batch   run
                     totals/3f0c91…         41   77ab…    batches up to this one are in the table

A batch is copied to a temporary table, then moved by key. When the connection is lost while a batch is committed, the
number says whether it was: a batch that comes again is known by it, as after a kill. A run that begins writes its name
there, so that one before it is refused.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import uuid4

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, first_line, log_event
from squallpy.catalog.sink_spec import FINAL, UPSERT, SinkSpec
from squallpy.runtime.connectors.backoff import pause
from squallpy.runtime.connectors.postgres.connection import Connection, Server, is_passing
from squallpy.runtime.connectors.postgres.tables import ServerTable, describe, split_name
from squallpy.runtime.connectors.table_writer import NONE, TableWriter, existing_error, fenced_error, order_error
from squallpy.runtime.formats.csv_writer import csv_rows
from squallpy.runtime.formats.text_columns import code_of
from squallpy.runtime.sinks.change_table import DELETE
from squallpy.runtime.sinks.protocol import SinkWriter

COMMITS, STAGE = "squall_commits", "squall_stage"
ATTEMPTS = 3  # to make two tables: each may be made by another run, after this one has looked for it
T = TypeVar("T")


def open_sink(spec: SinkSpec, identity: str, resumed: bool) -> "PostgresSink":
    """Take the table of a sink; SQ7005 if it has rows that are not of this run."""
    return PostgresSink(spec, Server.of(spec.options), identity, resumed)


class PostgresSink:
    """A table to which a query writes.

    Args:
        identity: That of the query, by which its commits are known.
        resumed: The run goes on where another stopped.
    """

    def __init__(self, spec: SinkSpec, server: Server, identity: str, resumed: bool) -> None:
        assert spec.mode
        self.spec, self.mode, self.server, self.resumed = spec, spec.mode, server, resumed
        self.target = spec.options.get("table", spec.name)
        self.query, self.run = f"{spec.name}/{identity[:32]}", uuid4().hex
        self._is_away = False
        self._connection: Connection | None = None
        self.replaces = False
        server.ask(self.begin)

    def begin(self, connection: Connection) -> None:
        """Look at the table, and at what runs before have left."""
        self._connection = connection
        self.table = describe(connection, self.target, self.server)
        self._migrate(connection)
        self.known = self.check()
        if not self.resumed:
            self._begin_anew(connection)

    def __str__(self) -> str:
        return f"{self.target} of PostgreSQL at {self.server}"

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        return PostgresWriter(self, schema, added)

    def finish(self) -> None:
        """End the run: all batches are committed."""

    def close(self) -> None:
        """Leave the server."""
        if self._connection:
            self._connection.close()

    def connection(self) -> Connection:
        """Return the connection, anew if it was lost."""
        if self._connection is None or self._connection.closed:
            self._connection = self.server.connect(0.0)
        return self._connection

    def retrying(self, work: Callable[[Connection], T], what: str) -> T:
        """Do something, again as long as the server is away; SQ7006 for what a retry does not help."""
        tries = 0
        while True:
            try:
                done = work(self.connection())
                if self._is_away:
                    log_event(SOURCES, WARNING, "server is back", server=str(self.server), sink=self.spec.name)
                self._is_away = False
                return done
            except SquallError as error:  # NB: of `connect`, which tells a passing fault by its hint
                if error.code != "SQ8010" or not error.hint.startswith("it may pass"):
                    raise
                reason: Exception = error
            except psycopg.Error as error:
                if not is_passing(error) and not (self._connection and self._connection.broken):
                    raise self.fault(error, what) from None
                reason = error
            if self._connection is not None:
                self._connection.close()
            if not self._is_away:
                log_event(SOURCES, WARNING, "server is away", server=str(self.server), reason=first_line(reason))
            self._is_away = True
            time.sleep(pause(tries))
            tries += 1

    def fault(self, error: psycopg.Error, what: str) -> SquallError:
        """Describe why a batch cannot be written."""
        said = self.server.error(error)
        return SquallError("SQ7006", f"{what} cannot be written to {self}: {said.message.partition(' says: ')[2]}",
                           self.spec.span, "the batch before is whole")  # fmt: skip

    def last_batch(self, connection: Connection, is_begun: bool = True) -> int | None:
        """Read the number of the last batch that is there; None if nothing is known of this query.

        SQ7005 if a run that began after this one, which `is_begun`, has written its name there.
        """
        if describe(connection, COMMITS, self.server) is None:
            return None
        found = connection.execute(
            sql.SQL("SELECT batch, run FROM {} WHERE query = %s AND target = %s FOR UPDATE").format(
                sql.Identifier(COMMITS)
            ),
            (self.query, self._address),
        ).fetchone()
        if found and is_begun and found[1] != self.run:
            raise fenced_error(self)
        return int(found[0]) if found else None

    def note(self, connection: Connection, batch: int) -> None:
        """Write down that a batch is there, in its transaction."""
        connection.execute(
            sql.SQL("INSERT INTO {} (query, target, batch, run, at) VALUES (%s, %s, %s, %s, now()) ON CONFLICT (query,"
                    " target) DO UPDATE SET batch = excluded.batch, run = excluded.run, at = excluded.at"
                    ).format(sql.Identifier(COMMITS)),
            (self.query, self._address, batch, self.run),
        )  # fmt: skip

    def make(self, connection: Connection, schema: pa.Schema) -> None:
        """Make the tables that are not there.

        NB: one that another transaction is making cannot be seen, and breaks a unique key of the server's catalog.
        """
        connection.execute(
            sql.SQL("CREATE TABLE IF NOT EXISTS {} (query text, target text, batch bigint NOT NULL, run text,"
                    " at timestamptz, PRIMARY KEY (query, target))").format(sql.Identifier(COMMITS))
        )  # fmt: skip
        if self.table is None:
            columns = [sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(sql_type(f))) for f in schema]
            key = self.spec.key if self.mode == UPSERT else None
            if key:
                names = sql.SQL(", ").join(map(sql.Identifier, key))
                columns.append(sql.SQL("UNIQUE NULLS NOT DISTINCT ({})").format(names))
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self.identifier, sql.SQL(", ").join(columns)))
            self.table = describe(connection, self.target, self.server)
            if self.table and _is_published(connection, self.table):
                # NB: a publication FOR ALL TABLES takes it in, and of tables without an identity no row may go
                connection.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(self.identifier))

    @property
    def identifier(self) -> sql.Identifier:
        if self.table:
            return self.table.identifier
        schema, name = split_name(self.target)
        return sql.Identifier(schema, name) if schema else sql.Identifier(name)

    @property
    def _address(self) -> str:
        return self.target

    def _migrate(self, connection: Connection) -> None:
        """Add the column that a table of commits of an earlier version lacks; SQ7005 if it is of something else."""
        commits = describe(connection, COMMITS, self.server)
        if commits is None or commits.column("run"):
            return
        if missing := [name for name in ("query", "target", "batch", "at") if not commits.column(name)]:
            message = f'{commits} of PostgreSQL at {self.server} is no table of a sink: it has no "{missing[0]}"'
            raise SquallError("SQ7005", message, self.spec.span, f"rename it: sinks keep their batches in {COMMITS}")
        connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS run text").format(commits.identifier))

    def check(self) -> int:
        """Compare what is there with what this run knows; SQ7005 unless `existing` says what to do."""
        assert self._connection
        existing, known = self.spec.options.get("existing"), self.last_batch(self._connection, is_begun=False)
        last = NONE if known is None else known
        if self.resumed:
            return last
        has_rows = (
            self.table is not None
            and self._connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(self.table.identifier)).fetchone()
        )
        if existing is None and (has_rows or last != NONE):
            raise existing_error(self, last)
        self.replaces = existing == "replace"
        self._forgets = known is not None
        return NONE

    def _begin_anew(self, connection: Connection) -> None:
        """Delete rows where that was said, and forget batches: a run that is killed then begins like any other."""
        with connection.transaction():
            if self.replaces and self.table and self.mode != FINAL:
                connection.execute(sql.SQL("DELETE FROM {}").format(self.identifier))
            if self._forgets:
                connection.execute(
                    sql.SQL("DELETE FROM {} WHERE query = %s AND target = %s").format(sql.Identifier(COMMITS)),
                    (self.query, self._address),
                )


class PostgresWriter(TableWriter[PostgresSink]):
    """The writer of a table."""

    def __init__(self, sink: PostgresSink, schema: pa.Schema, added: int) -> None:
        super().__init__(sink, schema)
        self._added, self._own = added, pa.schema([*schema][added if sink.mode == UPSERT else 0 :])
        sink.retrying(self._prepare, "the result")

    def store(self, rows: pa.Table, batch: int) -> None:
        sink = self._sink
        if batch > sink.known + 1 and sink.mode != FINAL:
            raise order_error(sink, sink.known, batch)
        if len(rows) or sink.mode == FINAL or batch == 0:
            sink.retrying(lambda connection: self._store(connection, rows, batch), f"batch {batch:,}")
        else:
            sink.retrying(lambda connection: self._pass(connection, batch), f"batch {batch:,}")

    def _prepare(self, connection: Connection) -> None:
        """Make the table, or compare it with the result, and fence runs before this one.

        NB: it looks anew what is there: the attempt before may have made the table, or not.
        """
        self._check_names(connection)
        for _ in range(ATTEMPTS - 1):
            self._sink.begin(connection)
            with suppress(psycopg.errors.DuplicateTable, psycopg.errors.UniqueViolation):
                return self._take_over(connection)
        self._sink.begin(connection)
        return self._take_over(connection)

    def _take_over(self, connection: Connection) -> None:
        sink = self._sink
        with connection.transaction():
            if sink.table is not None:
                self._check_columns(sink.table, connection)
            sink.make(connection, self._own)
            sink.known = sink.check()  # NB: another run may have written a batch since it was looked at
            sink.note(connection, sink.known)

    def _check_names(self, connection: Connection) -> None:
        """Raise SQ7005 for a name that the server would cut off, so that two names may become one."""
        sink, names = self._sink, dict.fromkeys(self._own.names, "column")
        names |= {name: "table" for name in split_name(sink.target) if name}
        ((most,),) = connection.execute("SELECT current_setting('max_identifier_length')::int").fetchall()
        for name, what in names.items():
            if (size := len(name.encode())) > most:
                message = f'"{name}" has {size} bytes, and a name of PostgreSQL at {sink.server} has at most {most}'
                hint = "rename the column in the query: … AS …" if what == "column" else "name another table"
                raise SquallError("SQ7005", message, sink.spec.place("table"), hint)

    def _check_columns(self, table: ServerTable, connection: Connection) -> None:
        missing = [name for name in self._own.names if not table.column(name)]
        if missing:
            columns = ", ".join(f'ADD COLUMN "{f.name}" {sql_type(f)}' for f in self._own if f.name in missing)
            message = f'{self._sink} has no column "{missing[0]}"'
            raise SquallError("SQ7005", message, hint=f"run ALTER TABLE {table} {columns};")
        if self._sink.mode != UPSERT:
            return
        key = {name.lower() for name in self._sink.spec.key or ()}
        unique = connection.execute(
            "SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
            " AND a.attnum = ANY (i.indkey::int2[]) WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL"
            " GROUP BY i.indexrelid",
            (table.oid,),
        ).fetchall()
        if not any({name.lower() for name in names} == key for (names,) in unique):
            columns = ", ".join(f'"{name}"' for name in self._sink.spec.key or ())
            message = f"{self._sink} has no unique key ({', '.join(sorted(key))}), by which mode 'upsert' replaces rows"
            raise SquallError(
                "SQ7005", message, hint=f"run ALTER TABLE {table} ADD UNIQUE NULLS NOT DISTINCT ({columns});"
            )

    def _pass(self, connection: Connection, batch: int) -> None:
        with connection.transaction():
            self._sink.last_batch(connection)
            self._sink.note(connection, batch)

    def _store(self, connection: Connection, rows: pa.Table, batch: int) -> None:
        """Write a batch and its number in one transaction, unless it is there."""
        sink = self._sink
        with connection.transaction():
            known = sink.last_batch(connection)
            if known is not None and known >= batch:
                return
            if sink.mode == UPSERT:
                self._merge(connection, rows.drop_columns(["batch"]))
            else:
                if sink.mode == FINAL and sink.replaces:
                    connection.execute(sql.SQL("DELETE FROM {}").format(sink.identifier))
                self._copy(connection, sink.identifier, rows, self._schema.names, self._added)
            sink.note(connection, batch)

    def _merge(self, connection: Connection, rows: pa.Table) -> None:
        """Delete and upsert by key, by way of a temporary table."""
        sink, stage = self._sink, sql.Identifier(STAGE)
        names = [sql.Identifier(name) for name in self._own.names]
        key = [sql.Identifier(name) for name in sink.spec.key or ()]
        connection.execute(
            sql.SQL(
                "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT NULL::text AS op, {} FROM {} WITH NO DATA"
            ).format(stage, sql.SQL(", ").join(names), sink.identifier)
        )  # fmt: skip
        self._copy(connection, stage, rows, ["op", *self._own.names], 1)
        connection.execute(sql.SQL("ANALYZE {}").format(stage))
        equal = sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(name) for name in key)
        if any(column.null_count for column in (rows.column(name) for name in sink.spec.key or ())):
            equal = sql.SQL(" AND ").join(sql.SQL("t.{0} IS NOT DISTINCT FROM s.{0}").format(name) for name in key)
        connection.execute(
            sql.SQL("DELETE FROM {} t USING {} s WHERE s.op = {} AND {}").format(
                sink.identifier, stage, sql.Literal(DELETE), equal)
        )  # fmt: skip
        rest = [sql.Identifier(name) for name in self._own.names if name not in (sink.spec.key or ())]
        update = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in rest)
        action = sql.SQL("DO UPDATE SET {}").format(update) if rest else sql.SQL("DO NOTHING")
        connection.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE op <> {} ON CONFLICT ({}) {}").format(
                sink.identifier, sql.SQL(", ").join(names), sql.SQL(", ").join(names), stage, sql.Literal(DELETE),
                sql.SQL(", ").join(key), action)
        )  # fmt: skip

    def _copy(
        self, connection: Connection, target: sql.Identifier, rows: pa.Table, names: Sequence[str], added: int
    ) -> None:
        """Copy rows to a table, as CSV."""
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, NULL '')").format(target, columns)
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            for data in csv_rows(
                with_interval_texts(rows), added + 2
            ):  # NB: as of several columns, so that NULL stays without quotes
                copy.write(data)


def _is_published(connection: Connection, table: ServerTable) -> bool:
    """True if a publication has a table."""
    query = "SELECT 1 FROM pg_publication_tables WHERE schemaname = %s AND tablename = %s"
    return connection.execute(query, (table.schema, table.name)).fetchone() is not None


def sql_type(field: pa.Field) -> str:
    """Name the type of the server that holds the values of a column."""
    type = field.type
    if code_of(field):
        return "jsonb"
    if pa.types.is_decimal(type):
        return f"numeric({type.precision},{type.scale})"
    if pa.types.is_int32(type):
        return "integer"
    if pa.types.is_integer(type):
        return "bigint"
    if pa.types.is_floating(type):
        return "double precision"
    if pa.types.is_boolean(type):
        return "boolean"
    if pa.types.is_date(type):
        return "date"
    if pa.types.is_duration(type):
        return "interval"
    return "timestamp" if pa.types.is_timestamp(type) else "text"


def with_interval_texts(rows: pa.Table) -> pa.Table:
    """Write durations as the server reads intervals: −1 s  →  -1000000 microseconds"""
    for at, field in enumerate(rows.schema):
        if pa.types.is_duration(field.type):
            numbers = rows.column(at).cast(pa.int64()).cast(pa.string())
            rows = rows.set_column(at, field.name, pc.binary_join_element_wise(numbers, " microseconds", ""))
    return rows
