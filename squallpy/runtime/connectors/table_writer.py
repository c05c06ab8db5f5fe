"""The writer of sinks whose batches are commits of the driver: what is there is not written again, nor by two runs.

commit of batch 41 where 40 is the last     →   store(rows, 41)
                         41                 →   nothing: it was committed before a kill
                         42                 →   SQ7005: another checkpoint has written
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from squallpy.base.errors import Span, SquallError, counted
from squallpy.catalog.connector_options import CONNECTORS
from squallpy.catalog.sink_spec import FINAL, SinkSpec
from squallpy.runtime.formats.text_columns import text_column
from squallpy.runtime.sinks.protocol import TaskWriter

NONE = -1
"""The number of the last batch where there is none."""


class NumberedSink(Protocol):
    """A target that knows the last batch of its query.

    Args:
        known: The number of that batch.
    """

    spec: SinkSpec
    mode: str
    known: int


AnySink = TypeVar("AnySink", bound=NumberedSink)


class TableWriter(ABC, Generic[AnySink]):
    """The writer of a target that takes each batch whole."""

    def __init__(self, sink: AnySink, schema: pa.Schema) -> None:
        self._sink, self._schema = sink, schema
        self._batch: pa.Table | None = None

    def write(self, rows: Iterator[pa.RecordBatch], batch: int) -> None:
        """Keep the rows of a batch."""
        self._batch = pa.Table.from_batches(rows, self._schema)

    def commit(self, messages: list[Any], batch: int) -> None:
        """Store a batch unless it is there; SQ7005 if later ones are, of another checkpoint."""
        sink, rows = self._sink, self._batch
        files = [message for message in messages if message]
        if batch < sink.known and sink.mode != FINAL:
            raise order_error(sink, sink.known, batch)
        if batch > sink.known:
            rows = self._schema.empty_table() if rows is None else rows
            if files:
                self.store_files(files, rows, batch)
            else:
                self.store(rows, batch)
            sink.known = batch
        self._batch = None

    @abstractmethod
    def store(self, rows: pa.Table, batch: int) -> None:
        """Write a batch and its number, all or nothing."""

    def store_files(self, files: list[Any], rows: pa.Table, batch: int) -> None:
        """Let files that tasks have written count, with rows that they have not; as `store`."""
        raise NotImplementedError

    def abort(self, messages: list[Any], batch: int) -> None:
        """Do nothing: of a batch that is not committed nothing counts."""

    def for_tasks(self) -> TaskWriter | None:
        """Return nothing: the rows of a batch are one commit, of the driver."""
        return None


def cast_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows, column by column, to the types and names of a schema."""
    return pa.table([_cast(column, f.type) for column, f in zip(rows.columns, schema, strict=True)], schema=schema)


def _cast(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_duration(column.type) and not pa.types.is_duration(type):
        column = text_column(column)
    return column.cast(type)


def unwritten_error(target: object, batch: int, why: str, span: Span | None = None) -> SquallError:
    """Describe a batch that a target does not take, and of which nothing is there."""
    message = f"batch {batch:,} cannot be written to {target}: {why}"
    return SquallError("SQ7006", message, span, "the batch before is whole")


def order_error(sink: NumberedSink, known: int, batch: int) -> SquallError:
    """Describe a target whose batches are not those of the checkpoint."""
    message = f"{sink} has {_batches(known)} of this query, and the checkpoint has given {batch:,}"
    hint = "another checkpoint has written to it, or one of both was put back: begin anew with both"
    return SquallError("SQ7005", message, option_span(sink), hint)


def existing_error(sink: NumberedSink, last: int, rows: str = "rows") -> SquallError:
    """Describe a target that a run which begins anew may not take.

    Args:
        last: The last batch of the same query that is there, `NONE` if what is there is of others.
        rows: What a target of this kind has.
    """
    what = f"has {rows}" if last == NONE else f"has {_batches(last)} of this query"
    hint = "write existing 'replace' to delete them, or existing 'keep'"
    return SquallError("SQ7005", f"{sink} {what}, and this run begins anew", option_span(sink), hint)


def fenced_error(sink: NumberedSink) -> SquallError:
    """Describe a target that a run which began later has taken over."""
    hint = "of two runs that write to one target, the one that began last goes on"
    return SquallError("SQ7005", f"another run has taken over {sink}", option_span(sink), hint)


def _batches(last: int) -> str:
    return counted(last + 1, "batch", "batches")


def option_span(sink: NumberedSink) -> Span | None:
    """Return the span of the option that names the target."""
    return sink.spec.place(CONNECTORS[sink.spec.format].writes)
