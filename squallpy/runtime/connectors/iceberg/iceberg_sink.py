"""Results and changes in an Iceberg table, each batch one commit that has its number: exactly once.

squall.totals/3f0c91… = 41     a property of the table, set by the commit: batches up to 41 are there
squall.totals/3f0c91….run      the run that began last, which alone may write
squall.batch = 41              in the summaries of its snapshots, which expire
"""

import time
import warnings
from collections.abc import Callable
from typing import cast
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, In, IsNaN, IsNull, Or, Reference
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction

from squallpy.base.errors import SquallError
from squallpy.catalog.sink_spec import APPEND, CHANGES, FINAL, UPSERT, SinkSpec
from squallpy.runtime.connectors.backoff import ask_again, pause
from squallpy.runtime.connectors.iceberg.catalogs import Place, is_passing, one_line
from squallpy.runtime.connectors.iceberg.data_files import DataFiles, append_files
from squallpy.runtime.connectors.table_writer import (
    NONE,
    TableWriter,
    cast_rows,
    existing_error,
    fenced_error,
    unwritten_error,
)
from squallpy.runtime.sinks.change_table import DELETE, INSERT
from squallpy.runtime.sinks.protocol import SinkWriter
from squallpy.runtime.sinks.upsert_table import number_rows

TRIES = 5  # attempts of a commit that others come before


def open_sink(spec: SinkSpec, identity: str, resumed: bool) -> "IcebergSink":
    """Take the table of a sink; SQ7005 if it has rows that are not of this run."""
    return IcebergSink(spec, Place.of(spec.options), identity, resumed)


class IcebergSink:
    """An Iceberg table to which a query writes."""

    def __init__(self, spec: SinkSpec, place: Place, identity: str, resumed: bool) -> None:
        assert spec.mode
        self.spec, self.mode, self.place = spec, spec.mode, place
        self.application, self._run = f"squall.{spec.name}/{identity[:32]}", uuid4().hex
        existing, self.replaces, self.known = spec.options.get("existing"), False, NONE
        self.keeps = existing == "keep"
        table = place.find(place.patience)
        if table is None:
            return
        known = int(table.properties.get(self.application, NONE))
        if resumed:
            self.known = known
            return
        has_rows = table.current_snapshot() is not None and table.scan().count() > 0
        if existing is None and (known != NONE or has_rows):
            raise existing_error(self, known)
        self.replaces = existing == "replace"
        self._begin_anew(table, has_rows and self.replaces and self.mode != FINAL, known != NONE)

    def _begin_anew(self, table: Table, clears: bool, forgets: bool) -> None:
        """Delete rows, and forget batches: a run that is killed then begins like any other."""

        def begin() -> None:
            with table.refresh().transaction() as work, warnings.catch_warnings(action="ignore"):
                if clears:
                    work.delete(AlwaysTrue())
                work.set_properties(self.numbered(NONE))

        if clears or forgets:
            retry_conflicts(begin)

    def numbered(self, batch: int) -> dict[str, str]:
        """Return the properties that make a commit that of a batch, and of this run."""
        return {self.application: str(batch), f"{self.application}.run": self._run}

    def take_over(self) -> None:
        """Refuse runs before this one, and tell the last batch that this one knows."""

        def mark() -> None:
            with self.place.catalog.load_table(self.place.name).transaction() as work:
                work.set_properties(self.numbered(self.known))

        retry_conflicts(mark)

    def check_run(self, table: Table) -> None:
        """Raise SQ7005 if another run has taken over."""
        if table.properties.get(f"{self.application}.run", self._run) != self._run:
            raise fenced_error(self)

    def __str__(self) -> str:
        return str(self.place)

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        return IcebergWriter(self, schema, added)

    def finish(self) -> None:
        """End the run: all batches are committed."""

    def close(self) -> None:
        """Leave the table."""


class IcebergWriter(TableWriter[IcebergSink]):
    """The writer of an Iceberg table."""

    def __init__(self, sink: IcebergSink, schema: pa.Schema, added: int) -> None:
        super().__init__(sink, schema)
        own = pa.schema([*schema][added if sink.mode == UPSERT else 0 :])
        self._own = pa.schema([pa.field(field.name, _stored(field.type)) for field in own])
        self._files: DataFiles | None = None
        self._prepare()

    def store(self, rows: pa.Table, batch: int) -> None:
        if len(rows) or self._sink.mode == FINAL:
            self._retrying(lambda table: self._store(table, rows, batch), batch)

    def for_tasks(self) -> DataFiles | None:
        """Return the writer of data files, if nothing is looked up in the table."""
        return self._files

    def store_files(self, files: list[list[DataFile]], rows: pa.Table, batch: int) -> None:
        assert self._files
        if len(rows):
            files.append(self._files.write(rows, batch, len(files)))
        self._retrying(lambda table: self._append(table, files, batch), batch)

    def _prepare(self) -> None:
        """Make the table, or compare its columns with the result."""
        sink, place = self._sink, self._sink.place
        table = place.find(place.patience)
        if table is None:
            table = place.patiently(self._create, place.patience)
        there = {field.name: field.type for field in table.schema().as_arrow()}
        if missing := [name for name in self._own.names if name not in there]:
            hint = f"run ALTER TABLE {place.name} ADD COLUMN {missing[0]} …;"
            raise SquallError("SQ7005", f'{sink} has no column "{missing[0]}"', sink.spec.place("table"), hint)
        self._own = pa.schema([pa.field(name, there[name]) for name in self._own.names])
        place.patiently(sink.take_over, place.patience)
        if sink.mode in (APPEND, CHANGES):
            self._files = DataFiles(str(sink), table.metadata, table.io, self._own, sink.known + 1)

    def _create(self) -> Table:
        place, catalog = self._sink.place, self._sink.place.catalog
        namespace = catalog.namespace_from(place.name)
        try:
            catalog.create_namespace_if_not_exists(namespace)
        except Exception:  # NB: if another run was first, SQL catalogs tell it by an error of their database
            if not catalog.namespace_exists(namespace):
                raise
        return catalog.create_table_if_not_exists(place.name, self._own)

    def _retrying(self, work: Callable[[Table], None], batch: int) -> None:
        """Commit a batch: again if another writer was first, and while the catalog is away; else SQ7006."""
        ask_again(lambda: self._commit(work, batch), is_passing, self._sink.place)

    def _commit(self, work: Callable[[Table], None], batch: int) -> None:
        """Commit a batch unless it is there, again if another writer was first; SQ7006."""
        sink = self._sink

        def attempt() -> None:
            table = sink.place.catalog.load_table(sink.place.name)
            sink.check_run(table)
            if int(table.properties.get(sink.application, NONE)) < batch:
                with warnings.catch_warnings(action="ignore"):
                    work(table)

        try:
            retry_conflicts(attempt)
        except SquallError:
            raise
        except Exception as error:
            if is_passing(error):
                raise
            raise unwritten_error(sink, batch, one_line(error), sink.spec.span) from None

    def _store(self, table: Table, rows: pa.Table, batch: int) -> None:
        """Write a batch with its number in one commit."""
        sink, work = self._sink, Transaction(table)
        taken: BooleanExpression = AlwaysFalse()
        if sink.mode == UPSERT:
            rows, taken = self._merged(table, rows)
        elif sink.mode == FINAL and sink.replaces:
            taken = AlwaysTrue()
        work.overwrite(cast_rows(rows.select(self._own.names), self._own), taken, self._summary(batch))
        work.set_properties(sink.numbered(batch))
        work.commit_transaction()

    def _append(self, table: Table, files: list[list[DataFile]], batch: int) -> None:
        """Append files with the number of their batch in one commit."""
        work = Transaction(table)
        append_files(work, files, self._summary(batch))
        work.set_properties(self._sink.numbered(batch))
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


def retry_conflicts(commit: Callable[[], None]) -> None:
    """Commit, again if another writer was first."""
    for conflicts in range(TRIES - 1):
        try:
            return commit()
        except (CommitFailedException, ValidationException):
            time.sleep(pause(conflicts))
    return commit()


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


def _stored(type: pa.DataType) -> pa.DataType:
    """Return a type that Iceberg has: integers of 32 bits at least, times in microseconds."""
    if pa.types.is_integer(type) and type.bit_width < 32:
        return pa.int32()
    return pa.timestamp("us", type.tz) if pa.types.is_timestamp(type) else type
