"""Results and changes on stdout, in a format of `--format`; a blank line separates the results of several queries."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

import pyarrow as pa

from squallpy.logical.nodes import Query
from squallpy.runtime.formats.csv_writer import csv_header, csv_rows
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.sinks.change_table import ADDED, change_schema, change_table, end_mark
from squallpy.runtime.sinks.protocol import writing
from squallpy.terminal.text_table import table_text

Aside = Callable[[], AbstractContextManager[None]]


class StdoutSink:
    """A sink that writes each batch's changes, or the final result, to `stream`, within `aside()`.

    NB: changes of a batch come again after a crash; only files (--out) are exactly once.

    Args:
        marks: changes mark the ends of batches and of the query, by a row with op = or a line below a table.
    """

    def __init__(
        self, stream: BinaryIO, format: str, changes: bool, color: bool, aside: Aside, marks: bool = False
    ) -> None:
        self._stream, self._format, self._changes, self._color, self._aside = stream, format, changes, color, aside
        self._marks, self._queries = marks and changes, 0

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._queries += 1
        self._schema = schema
        if self._changes:
            self._separate()
            if self._format == "csv":
                self._write([csv_header(change_schema(schema))])

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        if not self._changes or deletes is None or inserts is None:
            return
        if len(deletes) + len(inserts):
            table = change_table(number, deletes, inserts)
            self._write(csv_rows(table, ADDED) if self._format == "csv" else self._whole(table))
        self._mark_end(number)

    def final(self, table: pa.Table) -> None:
        if not self._changes:
            self._separate()
            self._write(self._whole(table))

    def finish(self, stopped: bool) -> None:
        if not stopped:
            self._mark_end()

    def _mark_end(self, batch: int | None = None) -> None:
        """Mark the end of a batch, or of the query, if ends are marked."""
        if not self._marks:
            return
        end = end_mark(batch, self._schema)
        match self._format:
            case "csv":
                self._write(csv_rows(end))
            case "json":
                self._write(json_rows(end.select(range(ADDED))))
            case _:
                part = "" if batch is None else f"batch {batch} of "
                self._write([f"= end of {part}query\n".encode()])

    def _whole(self, table: pa.Table) -> Iterator[bytes]:
        match self._format:
            case "csv":
                yield csv_header(table.schema)
                yield from csv_rows(table)
            case "json":
                yield from json_rows(table)
            case _:
                yield from table_text(table, self._color)

    def _separate(self) -> None:
        if self._queries > 1:
            self._write([b"\n"])

    def _write(self, parts: Iterable[bytes]) -> None:
        with self._aside(), writing("to stdout"):
            for part in parts:
                self._stream.write(part)
            self._stream.flush()
