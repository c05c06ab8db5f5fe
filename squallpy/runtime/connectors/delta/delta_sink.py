"""Results and changes in a Delta table, each batch one commit with an application transaction: exactly once.

{"txn": {"appId": "squall-totals/3f0c91…", "version": 41}}             batches up to 41 are in the table
{"txn": {"appId": "squall-totals/3f0c91…/run", "version": 5501…}}      the run that began last, which alone may write
"""

import time
from collections.abc import Callable
from math import inf
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from squallpy.base.errors import SquallError
from squallpy.catalog.sink_spec import APPEND, CHANGES, FINAL, UPSERT, SinkSpec
from squallpy.runtime.connectors.backoff import ask_again, is_store_away
from squallpy.runtime.connectors.delta.data_files import DataFile, DataFiles, add_files, stored_schema, takes_files
from squallpy.runtime.connectors.delta.delta_log import Place, one_line
from squallpy.runtime.connectors.table_writer import (
    NONE,
    TableWriter,
    cast_rows,
    existing_error,
    fenced_error,
    unwritten_error,
)
from squallpy.runtime.sinks.change_table import DELETE
from squallpy.runtime.sinks.protocol import SinkWriter

TRIES = 5  # attempts of a commit that others come before


def open_sink(spec: SinkSpec, identity: str, resumed: bool) -> "DeltaSink":
    """Take the table of a sink; SQ7005 if it has rows that are not of this run."""
    return DeltaSink(spec, Place.of(spec.options), identity, resumed)


class DeltaSink:
    """A Delta table to which a query writes."""

    def __init__(self, spec: SinkSpec, place: Place, identity: str, resumed: bool) -> None:
        assert spec.mode
        self.spec, self.mode, self.place = spec, spec.mode, place
        self.application, self._run = f"squall-{spec.name}/{identity[:32]}", uuid4().int >> 65
        self.replaces, self.known = False, NONE
        place.patiently(lambda: self._begin(resumed))

    def _begin(self, resumed: bool) -> None:
        """Look at what is there, and take it over or refuse it."""
        existing, place = self.spec.options.get("existing"), self.place
        table = self.table(place.patience)
        if table is None:
            return
        if fault := place.unread(table):
            raise fault
        known = table.transaction_version(self.application)
        known = NONE if known is None else known
        if resumed:
            self.known = known
            return
        if existing is None and (known != NONE or table.count()):
            raise existing_error(self, known)
        self.replaces = existing == "replace"
        if self.replaces and self.mode != FINAL:
            table.delete()
        if known != NONE:  # NB: a run that is killed then begins like any other
            self.take_over(table)

    def take_over(self, table: DeltaTable) -> None:
        """Refuse runs before this one, and tell the last batch that this one knows."""
        nothing = pa.schema(table.schema().to_arrow()).empty_table()
        write_deltalake(table, nothing, mode="append", commit_properties=self.numbered(self.known))

    def check_run(self, table: DeltaTable) -> None:
        """Raise SQ7005 if another run has taken over."""
        if table.transaction_version(f"{self.application}/run") not in (None, self._run):
            raise fenced_error(self)

    def numbered(self, batch: int) -> CommitProperties:
        """Return what makes a commit that of a batch, and of this run."""
        marks = (self.application, batch), (f"{self.application}/run", self._run)
        return CommitProperties(app_transactions=[Transaction(*mark) for mark in marks])

    def __str__(self) -> str:
        return f"the Delta table {self.place}"

    def table(self, seconds: float = inf) -> DeltaTable | None:
        """Open the table, after waiting for a storage that is away; None if there is none."""
        try:
            return self.place.table(seconds=seconds)
        except SquallError as error:
            if error.code == "SQ4001":
                return None
            raise

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        return DeltaWriter(self, schema, added)

    def finish(self) -> None:
        """End the run: all batches are committed."""

    def close(self) -> None:
        """Leave the table."""


class DeltaWriter(TableWriter[DeltaSink]):
    """The writer of a Delta table."""

    def __init__(self, sink: DeltaSink, schema: pa.Schema, added: int) -> None:
        super().__init__(sink, schema)
        own = pa.schema([*schema][added if sink.mode == UPSERT else 0 :])
        self._own = pa.schema([field.with_type(_stored(field.type)).remove_metadata() for field in own])
        self._files: DataFiles | None = None
        sink.place.patiently(self._prepare)

    def store(self, rows: pa.Table, batch: int) -> None:
        if len(rows) or self._sink.mode == FINAL:
            self._retrying(lambda table: self._store(table, rows, batch), batch)

    def for_tasks(self) -> DataFiles | None:
        """Return the writer of data files, if the table takes some and nothing is looked up in it."""
        return self._files

    def store_files(self, files: list[DataFile], rows: pa.Table, batch: int) -> None:
        assert self._files
        if len(rows) and (mine := self._files.write(rows, batch, len(files))):
            files.append(mine)
        self._retrying(lambda table: add_files(table, files, self._sink.numbered(batch)), batch)

    def _prepare(self) -> None:
        """Make the table, or compare its columns with the result."""
        sink, place = self._sink, self._sink.place
        table = sink.table(place.patience)
        if table is None:
            table = DeltaTable.create(place.path, self._own, storage_options=place.secrets)
        there = {field.name for field in table.schema().fields}
        if missing := [name for name in self._own.names if name not in there]:
            hint = f"run ALTER TABLE delta.`{sink.place}` ADD COLUMNS ({missing[0]} …);"
            raise SquallError("SQ7005", f'{sink} has no column "{missing[0]}"', hint=hint)
        sink.take_over(table)
        if sink.mode in (APPEND, CHANGES) and takes_files(table):
            stored = stored_schema(table, self._own)
            self._files = DataFiles(sink.place.path, sink.place.secrets, stored, sink.known + 1)

    def _retrying(self, work: Callable[[DeltaTable], None], batch: int) -> None:
        """Commit a batch: again if another writer was first, and while the storage is away; else SQ7006."""
        ask_again(lambda: self._commit(work, batch), is_store_away, self._sink.place)

    def _commit(self, work: Callable[[DeltaTable], None], batch: int) -> None:
        """Commit a batch unless it is there, again if another writer was first; SQ7006."""
        sink = self._sink
        for attempt in range(TRIES):
            table = sink.place.table()
            sink.check_run(table)
            known = table.transaction_version(sink.application)
            if known is not None and known >= batch:
                return
            try:
                work(table)
                return
            except CommitFailedError as error:
                reason: Exception = error
                time.sleep(0.1 * 2**attempt)
            except (DeltaError, OSError, pa.ArrowInvalid, ValueError) as error:
                if is_store_away(error):
                    raise
                reason = error
                break
        raise unwritten_error(sink, batch, one_line(reason), sink.spec.span)

    def _store(self, table: DeltaTable, rows: pa.Table, batch: int) -> None:
        properties = self._sink.numbered(batch)
        if self._sink.mode == UPSERT:
            self._merge(table, rows, properties)
            return
        write_deltalake(
            table,
            cast_rows(rows, self._own),
            mode="overwrite" if self._sink.mode == FINAL and self._sink.replaces else "append",
            commit_properties=properties,
        )

    def _merge(self, table: DeltaTable, rows: pa.Table, properties: CommitProperties) -> None:
        """Delete, update and insert by key in one commit."""
        names, key = self._own.names, self._sink.spec.key or ()
        own = cast_rows(rows.select(names), self._own)
        source = own.append_column("__squall_op", rows.column("op"))
        is_null = {name: bool(rows.column(name).null_count) for name in key}
        equal = (
            f"({_at('t', n)} = {_at('s', n)} OR ({_at('t', n)} IS NULL AND {_at('s', n)} IS NULL))"
            if is_null[n]
            else f"{_at('t', n)} = {_at('s', n)}"
            for n in key
        )
        values, gone = {_quoted(n): _at("s", n) for n in names}, f"s.__squall_op = '{DELETE}'"
        table.merge(
            source, " AND ".join(equal) or "true", source_alias="s", target_alias="t", commit_properties=properties
        ).when_matched_delete(gone).when_matched_update(values, f"NOT ({gone})").when_not_matched_insert(
            values, f"NOT ({gone})"
        ).execute()


def _at(alias: str, name: str) -> str:
    return f"{alias}.{_quoted(name)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _stored(type: pa.DataType) -> pa.DataType:
    """Return the type in which values are stored: times in UTC, which every reader knows."""
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(type) else type
