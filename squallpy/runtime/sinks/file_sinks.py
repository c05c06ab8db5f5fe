"""Changes and results as files that appear whole, and once: a draft, then a rename (see `output_file`).

    --out changes/ --mode changes    changes/batch-000000.csv, changes/batch-000001.csv, …
    --out result.parquet             result.parquet

A batch that comes again after a crash has the same rows, and its file is written again with the same bytes. A run that
starts over deletes the batches of an earlier one. With several queries, the second goes to changes/query-2 and
result-2.parquet.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from squallpy.base.errors import SquallError, nearest
from squallpy.logical.nodes import Query
from squallpy.runtime.formats.csv_writer import csv_header, csv_rows
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.sinks.change_table import ADDED, change_table
from squallpy.runtime.sinks.output_file import check_writable, is_stream, lock, open_stream, write_stream, write_whole
from squallpy.runtime.sinks.protocol import writing

FORMATS = ("csv", "json", "parquet")
_SUFFIXES = {f".{name}": name for name in FORMATS} | {".jsonl": "json", ".ndjson": "json", ".pq": "parquet"}
_BATCH = re.compile(r"batch-\d{6,}\.(csv|json|parquet)(\.tmp)?")


def file_format(path: Path, asked: str | None) -> str:
    """Choose the given format, else that of the path's suffix, else csv; SQ7003 for one that files cannot have."""
    if asked is None:
        return _SUFFIXES.get(path.suffix.lower(), "csv")
    if asked not in FORMATS:
        raise SquallError("SQ7003", f"--format {asked} is not for files", hint=nearest(asked, FORMATS))
    return asked


def filler(table: pa.Table, format: str, added: int = 0) -> Callable[[IO[bytes]], None]:
    """Write a table in a format to a file that is given.

    Args:
        added: how many columns, from the first, are not the result's own.
    """

    def fill(out: IO[bytes]) -> None:
        if format == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, out)
        else:
            out.writelines(_lines(table, format, added))

    return fill


def _lines(table: pa.Table, format: str, added: int) -> Iterator[bytes]:
    if format == "csv":
        yield csv_header(table.schema)
        yield from csv_rows(table, added)
    else:
        yield from json_rows(table)


class ChangeFiles:
    """A sink with one file for each batch, in a folder that one run at a time writes to."""

    def __init__(self, folder: Path, format: str, several: bool = False, resumed: bool = False) -> None:
        self._root, self._format, self._several, self._resumed = folder, format, several, resumed
        self._folder, self._held = folder, -1

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._folder = self._root / f"query-{query.number}" if self._several else self._root
        with writing(self._folder):
            if self._folder.exists() and not self._folder.is_dir():
                hint = "changes are written to a folder, a file for each batch"
                raise SquallError("SQ7005", f"{self._folder} is a file", hint=hint)
            self._folder.mkdir(parents=True, exist_ok=True)
            self._held = os.open(self._folder, os.O_RDONLY)
            lock(self._held, self._folder)
            if not self._resumed:
                for old in self._folder.iterdir():
                    if _BATCH.fullmatch(old.name):
                        old.unlink()

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None:
        assert deletes is not None and inserts is not None
        table = change_table(number, deletes, inserts)
        fill = filler(table, self._format, ADDED)
        write_whole(self._folder / f"batch-{number:06}.{self._format}", fill)

    def final(self, table: pa.Table) -> None: ...

    def finish(self, stopped: bool) -> None:
        self.close()

    def close(self) -> None:
        """Let other runs write to the folder."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


class ResultFile:
    """A sink with one file for the final result; none for a run that was stopped before its end.

    A path that is not a regular file gets the results of all queries, one after the other.
    """

    def __init__(self, path: Path, format: str, several: bool = False, resumed: bool = False) -> None:
        self._root, self._format, self._several = path, format, several
        self._path, self._table = path, None
        self._stream: IO[bytes] | None = None

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        several = self._several and not is_stream(self._root)
        name = f"{self._root.stem}-{query.number}{self._root.suffix}" if several else self._root.name
        self._path = self._root.parent / name  # NB: a root without a name is a folder
        with writing(self._path):
            if self._path.is_dir():
                raise SquallError("SQ7005", f"{self._path} is a folder", hint="the final result is one file")
        check_writable(self._path, makes_folder=True)

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None) -> None: ...

    def final(self, table: pa.Table) -> None:
        self._table = table

    def finish(self, stopped: bool) -> None:
        if stopped:
            return
        fill = filler(self._table, self._format)
        self._stream = self._stream or open_stream(self._path)
        if self._stream is None:
            write_whole(self._path, fill)
        else:
            write_stream(self._stream, self._path, fill)

    def close(self) -> None:
        """Close the stream for its reader."""
        if self._stream is not None:
            with writing(self._path):
                self._stream.close()
