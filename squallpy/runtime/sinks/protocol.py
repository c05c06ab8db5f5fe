"""Protocol of sinks, which files and the terminal implement."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.logical.nodes import Query


class Sink(Protocol):
    """Calls come in this order: begin, (batch)*, final, finish; for each query of a script in turn."""

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


@contextmanager
def writing(what: object) -> Iterator[None]:
    """Raise SQ7005 for an error of the operating system; a reader that left is no error of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SquallError("SQ7005", f"cannot write {what}: {(error.strerror or str(error)).lower()}") from None
