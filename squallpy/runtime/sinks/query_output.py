"""The rows of a query on their way to its sink: changes, rows that are added, rows by key, or the final result."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.catalog.sink_spec import CHANGES, FINAL, UPSERT, SinkSpec
from squallpy.logical.nodes import Query
from squallpy.runtime.sinks.change_table import ADDED, change_schema
from squallpy.runtime.sinks.mode_table import table_maker
from squallpy.runtime.sinks.output_folder import writing_to
from squallpy.runtime.sinks.part_writer import PartWriter
from squallpy.runtime.sinks.protocol import Destination
from squallpy.runtime.sinks.written_changes import WrittenPart


class QueryOutput:
    """A sink that writes a query's rows to a destination, in the mode that a declaration says."""

    def __init__(self, spec: SinkSpec, destination: Destination) -> None:
        assert spec.mode
        self._spec, self._mode, self._destination = spec, spec.mode, destination
        self._batches, self._result = 0, None

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._spec.check_columns(self._mode, schema.names)
        has_changes, self._schema = self._mode in (CHANGES, UPSERT), schema
        self._table = table_maker(self._mode, schema.names, self._spec.key or ())
        written, added = (change_schema(schema), ADDED) if has_changes else (schema, 0)
        with self._telling():
            self._writer = self._destination.writer(written, added)

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        self._batches = number + 1
        if self._mode != FINAL:
            assert deletes is not None and inserts is not None
            self._write(number, self._table(number, deletes, inserts))

    def part_writer(self, query: int, least: int) -> PartWriter:
        """Make the writer for the tasks in which partitions print a query's changes, where a part has so many rows."""
        return PartWriter(query, self._spec, self._schema.names, self._writer.for_tasks(), least)

    def commit(self, number: int, parts: Sequence[WrittenPart]) -> None:
        """Write the rows of partitions that have few, and let these and those that tasks have written count."""
        self._batches = number + 1
        few, nothing = [part.rows for part in parts if part.rows], self._schema.empty_table()
        deletes, inserts = (pa.concat_tables([nothing, *(rows[side] for rows in few)]) for side in (0, 1))
        self._write(number, self._table(number, deletes, inserts), [part.message for part in parts if not part.rows])

    def final(self, table: pa.Table) -> None:
        self._result = table

    def finish(self, stopped: bool) -> None:
        if self._mode == FINAL and not stopped:
            self._write(self._batches, self._result)
        with self._telling():
            self._destination.finish()

    def close(self) -> None:
        """Let other runs write to the destination."""
        self._destination.close()

    def _write(self, batch: int, rows: pa.Table, written: Sequence[object] = ()) -> None:
        messages = [*written]
        try:
            with self._telling(f"batch {batch:,} to "):
                if len(rows) or not written:
                    messages.append(None)
                    messages[-1] = self._writer.write(iter(rows.to_batches()), batch)
                self._writer.commit(messages, batch)
        except BaseException:
            with suppress(Exception):  # NB: the first error is the one to tell
                self._writer.abort(messages, batch)
            raise

    @contextmanager
    def _telling(self, what: str = "") -> Iterator[None]:
        """Raise what cannot be written as SQ7005, and all errors at the sink's place in the script."""
        try:
            with writing_to(self._destination, what):
                yield
        except SquallError as error:
            raise error.at(self._spec.place("path")) from error.__cause__
