"""Sinks of tables of open formats, Delta and Iceberg: each batch is one commit that has its number, exactly once.

commit of batch 41, where the table's last of this query is 40    →   one commit: rows, "last batch 41", "run 77ab…"
                                                            41    →   nothing: it was committed before a kill
another writer commits first                                      →   looked at, and committed again
another run of the query has taken over                           →   SQ7005
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar
from uuid import uuid4

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.catalog.sink_spec import APPEND, CHANGES, FINAL, UPSERT, SinkSpec
from squallpy.runtime.connectors.backoff import ask_again
from squallpy.runtime.connectors.data_files import DataFiles
from squallpy.runtime.connectors.table_location import AnyTable, TableLocation, one_line
from squallpy.runtime.connectors.table_writer import (
    NONE,
    TableWriter,
    existing_error,
    fenced_error,
    option_span,
    unwritten_error,
)

AnyFile = TypeVar("AnyFile")


class TableFormatSink(ABC, Generic[AnyTable]):
    """A table to which a query writes.

    Args:
        identity: That of the query, by which its commits are known.
        resumed: The run goes on where another stopped.
    """

    prefix: ClassVar[str]
    """The beginning of the names by which commits know a query."""

    def __init__(self, spec: SinkSpec, location: TableLocation[AnyTable], identity: str, resumed: bool) -> None:
        assert spec.mode
        self.spec, self.mode, self.location = spec, spec.mode, location
        self.application = f"{self.prefix}{spec.name}/{identity[:32]}"
        self.run = str(uuid4().int >> 65)  # NB: a version of Delta, which has 63 bits
        self.replaces, self.known, self._resumed = False, NONE, resumed
        self.keeps = spec.options.get("existing") == "keep"
        self.start(lambda: self.begin(location.find()))

    def start(self, work: Callable[[], None]) -> None:
        """Do something as a run begins: again while the storage is away, and if another writer was first; SQ8010."""
        self.location.retry(lambda: self.location.repeat_conflicts(work), self.location.patience)

    def begin(self, table: AnyTable | None) -> None:
        """Look at what is there, and keep, delete or refuse it; SQ7005 unless `existing` says what to do."""
        existing = self.spec.options.get("existing")
        if table is None:
            return
        self.check_readable(table)
        known = self.last_batch(table)
        if self._resumed:
            self.known = known
            return
        has_rows = self.has_rows(table)
        if existing is None and (known != NONE or has_rows):
            raise existing_error(self, known)
        self.replaces = existing == "replace"
        clears = has_rows and self.replaces and self.mode != FINAL
        if clears or known != NONE:  # NB: a run that is killed then begins like any other
            self.begin_anew(table, clears)

    def check_run(self, table: AnyTable) -> None:
        """Raise SQ7005 if another run has taken over."""
        if self.last_run(table) not in (None, self.run):
            raise fenced_error(self)

    def check_readable(self, table: AnyTable) -> None:
        """Raise SQ3001 if the table has features with which it cannot be read."""

    @abstractmethod
    def last_batch(self, table: AnyTable) -> int:
        """Return the number of the last batch of this query that is in the table; NONE if there is none."""

    @abstractmethod
    def last_run(self, table: AnyTable) -> str | None:
        """Return the run that has taken the table over last; None if there is none."""

    @abstractmethod
    def has_rows(self, table: AnyTable) -> bool:
        """True if the table has rows, of whomever."""

    @abstractmethod
    def begin_anew(self, table: AnyTable, clears: bool) -> None:
        """Forget the batches that are there, and delete all rows if that was said."""

    @abstractmethod
    def take_over(self, table: AnyTable) -> None:
        """Commit nothing but the last batch that this run knows, and that the table is its own: refuses runs before.

        It is a conflict if another run has written a batch of this query since the table was opened.
        """

    def __str__(self) -> str:
        return str(self.location)

    def finish(self) -> None:
        """End the run: all batches are committed."""

    def close(self) -> None:
        """Leave the table."""


AnySink = TypeVar("AnySink", bound=TableFormatSink[Any])


class TableFormatWriter(TableWriter[AnySink], Generic[AnySink, AnyTable, AnyFile]):
    """The writer of a table."""

    def __init__(self, sink: AnySink, schema: pa.Schema, added: int) -> None:
        super().__init__(sink, schema)
        own = [*schema][added if sink.mode == UPSERT else 0 :]
        self._own = pa.schema([pa.field(field.name, self.stored_type(field.type)) for field in own])
        self._files: DataFiles[AnyFile] | None = None
        sink.start(self._prepare)

    def store(self, rows: pa.Table, batch: int) -> None:
        if len(rows) or self._sink.mode == FINAL:
            self._commit(lambda table: self._store(table, rows, batch), batch)

    def for_tasks(self) -> DataFiles[AnyFile] | None:
        """Return the writer of data files, if the table takes some and nothing is looked up in it."""
        return self._files

    def store_files(self, files: list[list[AnyFile]], rows: pa.Table, batch: int) -> None:
        assert self._files
        mine = self._files.write(rows, batch, len(files)) if len(rows) else []
        all_files = [file for written in [*files, mine] for file in written]
        self._commit(lambda table: self.add_files(table, all_files, batch), batch)

    def _prepare(self) -> None:
        """Make the table, or compare its columns with the result, and fence runs before this one."""
        sink = self._sink
        table = sink.location.find()
        sink.begin(table)  # NB: of another run that begins now it may have rows since
        table = self.create() if table is None else table
        there = self.columns_of(table)
        if missing := [name for name in self._own.names if name not in there]:
            message, hint = f'{sink} has no column "{missing[0]}"', self.statement_to_add(missing[0])
            raise SquallError("SQ7005", message, option_span(sink), hint)
        self._own = pa.schema([pa.field(name, there[name]) for name in self._own.names])
        sink.take_over(table)
        if sink.mode in (APPEND, CHANGES):
            self._files = self.data_files(table, sink.known + 1)

    def _commit(self, work: Callable[[AnyTable], None], batch: int) -> None:
        """Commit a batch: again if another writer was first, and while the storage is away; else SQ7006."""
        location = self._sink.location
        ask_again(partial(self._attempt, work, batch), location.is_passing, location)

    def _attempt(self, work: Callable[[AnyTable], None], batch: int) -> None:
        """Commit a batch unless it is there, again if another writer was first; SQ7006."""
        sink = self._sink

        def commit() -> None:
            table: AnyTable = sink.location.open()
            sink.check_run(table)
            if sink.last_batch(table) < batch:
                work(table)

        try:
            sink.location.repeat_conflicts(commit)
        except SquallError:
            raise
        except sink.location.faults as error:
            if sink.location.is_passing(error):
                raise
            raise unwritten_error(sink, batch, one_line(error), sink.spec.span) from None

    @staticmethod
    @abstractmethod
    def stored_type(type: pa.DataType) -> pa.DataType:
        """Return the type in which a new table has values of a type of results."""

    @abstractmethod
    def create(self) -> AnyTable:
        """Make the table; raises a conflict if it is there."""

    @abstractmethod
    def columns_of(self, table: AnyTable) -> Mapping[str, pa.DataType]:
        """Return the columns of the table with their types."""

    @abstractmethod
    def statement_to_add(self, column: str) -> str:
        """Write the statement that adds a column to the table."""

    @abstractmethod
    def data_files(self, table: AnyTable, first: int) -> DataFiles[AnyFile] | None:
        """Make the writer of data files for batches from the `first` on; None if the table takes none."""

    @abstractmethod
    def add_files(self, table: AnyTable, files: Sequence[AnyFile], batch: int) -> None:
        """Add files with the number of their batch in one commit."""

    @abstractmethod
    def _store(self, table: AnyTable, rows: pa.Table, batch: int) -> None:
        """Write a batch with its number in one commit, as the mode of the sink says."""
