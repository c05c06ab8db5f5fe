"""The final result as one file that appears whole; a pipe or device gets the results of all queries in turn."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.output_file import check_writable, open_stream, write_stream, write_whole
from squallpy.runtime.sinks.output_folder import OutputFolder
from squallpy.runtime.sinks.protocol import SinkWriter, writing


class ResultFile:
    """One file for the result of a query, by its path or URI.

    Args:
        streams: Paths that are no regular files, opened by the queries before.
    """

    def __init__(self, place: Path | str, format: FileFormat, streams: dict[Path, IO[bytes]]) -> None:
        self._place, self._format, self._streams = place, format, streams
        self._folder, self._name = None, ""
        if isinstance(place, Path):
            with writing(place):
                if place.is_dir():
                    raise SquallError("SQ7005", f"{place} is a folder", hint="the final result is one file")
            check_writable(place, makes_folder=True)
        else:
            path, mark, options = place.partition("?")
            folder, _, self._name = path.rpartition("/")
            self._folder = OutputFolder(folder + mark + options)

    def __str__(self) -> str:
        return str(self._place)

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        self._schema = schema
        return self

    def write(self, rows: Iterator[pa.RecordBatch], batch: int) -> None:
        table = pa.Table.from_batches(rows, self._schema)
        if self._folder:
            self._folder.draft(lambda out: self._format.write(table, out))
            return
        assert isinstance(self._place, Path)
        stream = self._streams.get(self._place) or open_stream(self._place)
        if stream is None:
            write_whole(self._place, lambda out: self._format.write(table, out))
        else:
            self._streams[self._place] = stream
            write_stream(stream, self._place, lambda out: self._format.write(table, out))

    def commit(self, messages: list[Any], batch: int) -> None:
        if self._folder:
            self._folder.publish(self._name)

    def abort(self, messages: list[Any], batch: int) -> None:
        """Leave what there was before."""

    def for_tasks(self) -> None:
        """Return nothing: it is one file."""

    def finish(self) -> None:
        """End the run."""

    def close(self) -> None:
        """Leave streams open for the queries that follow."""
