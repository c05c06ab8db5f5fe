"""Results and changes in an Iceberg table, each batch one commit that has its number: exactly once.

squall.totals/3f0c91… = 41     a property of the table, set by the commit: batches up to 41 are there
squall.totals/3f0c91….run      the run that began last, which alone may write
squall.batch = 41              in the summaries of its snapshots, which expire
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, In, IsNaN, IsNull, Or, Reference
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AssertRefSnapshotId

from squallpy.catalog.sink_spec import FINAL, UPSERT, SinkSpec
from squallpy.runtime.connectors.iceberg.catalogs import IcebergTableLocation
from squallpy.runtime.connectors.iceberg.data_files import IcebergDataFiles, append_files
from squallpy.runtime.connectors.table_format_sink import TableFormatSink, TableFormatWriter
from squallpy.runtime.connectors.table_writer import NONE, cast_rows
from squallpy.runtime.sinks.change_table import DELETE, INSERT
from squallpy.runtime.sinks.protocol import SinkWriter
from squallpy.runtime.sinks.upsert_table import number_rows


def open_sink(spec: SinkSpec, identity: str, resumed: bool) -> "IcebergSink":
    """Take the table of a sink; SQ7005 if it has rows that are not of this run."""
    return IcebergSink(spec, IcebergTableLocation.of(spec.options), identity, resumed)


class IcebergSink(TableFormatSink[Table]):
    """An Iceberg table to which a query writes."""

    prefix = "squall."
    location: IcebergTableLocation

    def last_batch(self, table: Table) -> int:
        return int(table.properties.get(self.application, NONE))

    def last_run(self, table: Table) -> str | None:
        return table.properties.get(f"{self.application}.run")

    def has_rows(self, table: Table) -> bool:
        return table.current_snapshot() is not None and table.scan().count() > 0

    def begin_anew(self, table: Table, clears: bool) -> None:
        with table.transaction() as work, warnings.catch_warnings(action="ignore"):
            if clears:
                work.delete(AlwaysTrue())
            work.set_properties(self.numbered(NONE))

    def take_over(self, table: Table) -> None:
        last = table.current_snapshot()
        about = {"ref": MAIN_BRANCH, "snapshot-id": last.snapshot_id if last else None}
        with table.transaction() as work:
            work.set_properties(self.numbered(self.known))
            work._apply(
                (), (AssertRefSnapshotId.model_validate(about),)
            )  # NB: there is no public way to ask for what a transaction requires

    def numbered(self, batch: int) -> dict[str, str]:
        """Return the properties that make a commit that of a batch, and of this run."""
        return {self.application: str(batch), f"{self.application}.run": self.run}

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        return IcebergWriter(self, schema, added)


class IcebergWriter(TableFormatWriter[IcebergSink, Table, DataFile]):
    """The writer of an Iceberg table."""

    @staticmethod
    def stored_type(type: pa.DataType) -> pa.DataType:
        """Return a type that Iceberg has: integers of 32 bits at least, times in microseconds, intervals as text."""
        if pa.types.is_duration(type):
            return pa.string()
        if pa.types.is_integer(type) and type.bit_width < 32:
            return pa.int32()
        return pa.timestamp("us", type.tz) if pa.types.is_timestamp(type) else type

    def create(self) -> Table:
        location, catalog = self._sink.location, self._sink.location.catalog
        namespace = catalog.namespace_from(location.name)
        try:
            catalog.create_namespace_if_not_exists(namespace)
        except Exception:  # NB: if another run was first, SQL catalogs tell it by an error of their database
            if not catalog.namespace_exists(namespace):
                raise
        return catalog.create_table(location.name, self._own)

    def columns_of(self, table: Table) -> Mapping[str, pa.DataType]:
        return {field.name: field.type for field in table.schema().as_arrow()}

    def statement_to_add(self, column: str) -> str:
        return f"run ALTER TABLE {self._sink.location.name} ADD COLUMN {column} …;"

    def data_files(self, table: Table, first: int) -> IcebergDataFiles:
        return IcebergDataFiles(self._sink.location, self._own, first, table.metadata, table.io)

    def add_files(self, table: Table, files: Sequence[DataFile], batch: int) -> None:
        with warnings.catch_warnings(action="ignore"):
            work = Transaction(table)
            append_files(work, files, self._summary(batch))
            work.set_properties(self._sink.numbered(batch))
            work.commit_transaction()

    def _store(self, table: Table, rows: pa.Table, batch: int) -> None:
        sink, work = self._sink, Transaction(table)
        taken: BooleanExpression = AlwaysFalse()
        with warnings.catch_warnings(action="ignore"):
            if sink.mode == UPSERT:
                rows, taken = self._merged(table, rows)
            elif sink.mode == FINAL and sink.replaces:
                taken = AlwaysTrue()
            work.overwrite(cast_rows(rows.select(self._own.names), self._own), taken, self._summary(batch))
            work.set_properties(sink.numbered(batch))
            work.commit_transaction()

    def _summary(self, batch: int) -> dict[str, str]:
        return {"squall.query": self._sink.application, "squall.batch": str(batch)}

    def _merged(self, table: Table, rows: pa.Table) -> tuple[pa.Table, BooleanExpression]:
        """Find which rows of a table a batch takes, by one column of the key, and what is written in their place.

        Rows that are alike in that column, and not in the others of the key, are written again.
        """
        key = self._sink.spec.key or ()
        arrives = rows.filter(pc.not_equal(rows.column("op"), DELETE)).select(self._own.names)
        known = rows if self._sink.keeps else rows.filter(pc.not_equal(rows.column("op"), INSERT))
        known = cast_rows(known.select(self._own.names), self._own)
        if not key:
            return arrives, AlwaysTrue()
        if not len(known):
            return arrives, AlwaysFalse()
        by = max(key, key=lambda name: pc.count_distinct(known.column(name), "all").as_py())
        taken = _one_of(by, known.column(by))
        arrives = cast_rows(arrives, self._own)
        if len(key) > 1:
            there = table.scan(taken, selected_fields=tuple(self._own.names)).to_arrow().select(self._own.names)
            there = cast_rows(there, self._own)
            groups = number_rows(pa.concat_tables([there, known]), [self._own.names.index(name) for name in key])
            stays = ~np.isin(groups[: len(there)], groups[len(there) :])
            arrives = pa.concat_tables([there.filter(pa.array(stays)), arrives])
        return arrives, taken


def _one_of(name: str, values: pa.ChunkedArray) -> BooleanExpression:
    """Make the test whether a column has one of some values, NULL and NaN among them."""
    column, test = Reference(name), cast(BooleanExpression, AlwaysFalse())
    if values.null_count:
        test = Or(test, IsNull(term=column))
    if pa.types.is_floating(values.type):
        is_nan = pc.fill_null(pc.is_nan(values), False)
        test = Or(test, IsNaN(term=column)) if pc.any(is_nan).as_py() else test
        values = values.filter(pc.invert(is_nan))
    distinct = pc.unique(values.drop_null()).to_pylist()
    return Or(test, In(term=column, values=distinct)) if distinct else test
