"""Protocols of sinks: what takes the rows of queries, and below that, what writes batches somewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.logical.nodes import Query


class SinkWriter(Protocol):
    """Writer of batches to a sink, in the shape of PySpark's `DataSourceStreamArrowWriter`.

    `write` is called for the rows of each partition, `commit` then on the driver with all messages. A batch that was
    committed may come again after a crash, with the same number and rows, and must not count twice.
    """

    def write(self, rows: Iterator[pa.RecordBatch], batch: int) -> Any:
        """Write rows, which do not count yet, and return a message for the commit."""

    def commit(self, messages: list[Any], batch: int) -> None:
        """Let the rows of a batch count, all at once."""

    def abort(self, messages: list[Any], batch: int) -> None:
        """Forget the rows of a batch that failed; None is the message of a `write` that did."""

    def for_tasks(self) -> "TaskWriter | None":
        """Return what writes rows in tasks, whose messages are committed with the others; None: nothing can."""


class TaskWriter(Protocol):
    """The part of a writer that tasks have; it can be pickled."""

    @property
    def is_shared(self) -> bool:
        """True if tasks on other hosts write to the same place."""

    def write(self, rows: pa.Table, batch: int, partition: int) -> Any:
        """Write rows, which do not count yet, and return a message for the commit."""


class Destination(Protocol):
    """A place that a run writes to, from before its query begins until it is closed."""

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        """Begin to write rows of a schema, in which the first columns may be `added` to those of the query."""

    def finish(self) -> None:
        """Complete what is written, when the run has ended or was stopped, but not after an error."""

    def close(self) -> None:
        """Let other runs write there."""


class Sink(Protocol):
    """A taker of rows. Calls come in this order: begin, (batch)*, final, finish; of several queries in turn."""

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        """Begin a query, with its printed columns and the number of its batches."""

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        """Take the printed rows that a batch deleted and inserted (None in a run that only wants the final result).

        NB: after a crash the same batch may come again, with the same rows.
        """

    def final(self, table: pa.Table) -> None:
        """Take the printed result as of the last batch, in order."""

    def finish(self, stopped: bool) -> None:
        """End a query, which was `stopped` before the end of its input or not."""


class NoOutput:
    """A sink that ignores all rows."""

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None: ...

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None: ...

    def final(self, table: pa.Table) -> None: ...

    def finish(self, stopped: bool) -> None: ...


class Sinks:
    """Several sinks as one."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        for sink in self._sinks:
            sink.begin(query, schema, batches)

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        for sink in self._sinks:
            sink.batch(number, deletes, inserts)

    def final(self, table: pa.Table) -> None:
        for sink in self._sinks:
            sink.final(table)

    def finish(self, stopped: bool) -> None:
        for sink in self._sinks:
            sink.finish(stopped)


class AtEnd:
    """A query at a sink that is told of it when it has ended, so that several come in their order."""

    def __init__(self, sink: Sink) -> None:
        self._sink, self._begun = sink, tuple[Any, ...]()

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._begun = query, schema, batches

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None: ...

    def final(self, table: pa.Table) -> None:
        self._sink.begin(*self._begun)
        self._sink.final(table)

    def finish(self, stopped: bool) -> None:
        self._sink.finish(stopped)


@contextmanager
def writing(what: object) -> Iterator[None]:
    """Raise SQ7005 for an error of the operating system; a reader that left is no error of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SquallError("SQ7005", f"cannot write {what}: {(error.strerror or str(error)).lower()}") from None
