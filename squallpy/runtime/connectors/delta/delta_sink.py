"""Results and changes in a Delta table, each batch one commit with an application transaction: exactly once.

{"txn": {"appId": "squall-totals/3f0c91…", "version": 41}}             batches up to 41 are in the table
{"txn": {"appId": "squall-totals/3f0c91…/run", "version": 5501…}}      the run that began last, which alone may write
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from squallpy.catalog.sink_spec import FINAL, UPSERT, SinkSpec
from squallpy.runtime.connectors.delta.data_files import DataFile, DeltaDataFiles, add_files, takes_files
from squallpy.runtime.connectors.delta.delta_log import DeltaTableLocation
from squallpy.runtime.connectors.table_format_sink import TableFormatSink, TableFormatWriter
from squallpy.runtime.connectors.table_writer import NONE, cast_rows
from squallpy.runtime.sinks.change_table import DELETE
from squallpy.runtime.sinks.protocol import SinkWriter


def open_sink(spec: SinkSpec, identity: str, resumed: bool) -> "DeltaSink":
    """Take the table of a sink; SQ7005 if it has rows that are not of this run."""
    return DeltaSink(spec, DeltaTableLocation.of(spec.options), identity, resumed)


class DeltaSink(TableFormatSink[DeltaTable]):
    """A Delta table to which a query writes."""

    prefix = "squall-"
    location: DeltaTableLocation

    def check_readable(self, table: DeltaTable) -> None:
        if fault := self.location.unread(table):
            raise fault

    def last_batch(self, table: DeltaTable) -> int:
        known = table.transaction_version(self.application)
        return NONE if known is None else known

    def last_run(self, table: DeltaTable) -> str | None:
        run = table.transaction_version(f"{self.application}/run")
        return None if run is None else str(run)

    def has_rows(self, table: DeltaTable) -> bool:
        return table.count() > 0

    def begin_anew(self, table: DeltaTable, clears: bool) -> None:
        if clears:
            table.delete()
        self.take_over(table)

    def take_over(self, table: DeltaTable) -> None:
        nothing = pa.schema(table.schema().to_arrow()).empty_table()
        write_deltalake(table, nothing, mode="append", commit_properties=self.numbered(self.known))

    def numbered(self, batch: int) -> CommitProperties:
        """Return what makes a commit that of a batch, and of this run."""
        marks = (self.application, batch), (f"{self.application}/run", int(self.run))
        return CommitProperties(app_transactions=[Transaction(*mark) for mark in marks])

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        return DeltaWriter(self, schema, added)


class DeltaWriter(TableFormatWriter[DeltaSink, DeltaTable, DataFile]):
    """The writer of a Delta table."""

    @staticmethod
    def stored_type(type: pa.DataType) -> pa.DataType:
        """Return the type in which values are stored: times in UTC, which every reader knows, intervals as text."""
        if pa.types.is_duration(type):
            return pa.string()
        return pa.timestamp("us", "UTC") if pa.types.is_timestamp(type) else type

    def create(self) -> DeltaTable:
        location = self._sink.location
        return DeltaTable.create(location.path, self._own, storage_options=location.secrets)

    def columns_of(self, table: DeltaTable) -> Mapping[str, pa.DataType]:
        return {field.name: field.type for field in pa.schema(table.schema().to_arrow())}

    def statement_to_add(self, column: str) -> str:
        return f"run ALTER TABLE delta.`{self._sink.location.path}` ADD COLUMNS ({column} …);"

    def data_files(self, table: DeltaTable, first: int) -> DeltaDataFiles | None:
        if not takes_files(table):
            return None
        location = self._sink.location
        return DeltaDataFiles(location, self._own, first, location.path, location.secrets)

    def add_files(self, table: DeltaTable, files: Sequence[DataFile], batch: int) -> None:
        add_files(table, files, self._sink.numbered(batch))

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
