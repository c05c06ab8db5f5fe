"""Results of statements on stdout or in a file, in the format of `.mode`; a table on a terminal is cut to fit it."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from squallpy.base.errors import SquallError, nearest

if TYPE_CHECKING:  # NB: the prompt shows before Arrow is there
    import pyarrow as pa

    from squallpy.live.subscription import ViewChange

MODES = {
    "table": "columns of aligned text, on a terminal at most .maxrows rows, and the columns that fit",
    "csv": "comma-separated values with a header",
    "json": "a JSON object in each line",
    "line": "a line for each value, for rows of many columns",
}
SYNONYMS = {"box": "table", "duckbox": "table", "column": "table", "jsonlines": "json"}
"""Modes of DuckDB that are ours by another name."""
_STDOUT = Path("stdout")
MAX_ROWS = 40
"""Rows that a table on a terminal shows at most, as in DuckDB: the first and the last ones."""


class ResultPrinter:
    """The place and the form in which results are printed.

    Args:
        mode: A format of MODES; None: a table on a terminal, else csv, and by the suffix of a file.
        separates: A blank line stands between results.
    """

    def __init__(self, mode: str | None = None, separates: bool = False) -> None:
        self.max_rows = MAX_ROWS
        self.set_mode(mode)
        self._separates, self._has_results = separates, {_STDOUT: False}
        self._file: BinaryIO | None = None
        self._path = _STDOUT

    def set_mode(self, mode: str | None) -> None:
        """Choose a format; SQ7003 for an unknown one."""
        mode = mode and SYNONYMS.get(mode.lower(), mode.lower())
        if mode and mode not in MODES:
            raise SquallError("SQ7003", f'unknown mode "{mode}"', hint=nearest(mode, MODES))
        self.mode = mode

    def redirect(self, path: Path | None) -> None:
        """Print to a file from now on, or to stdout again; SQ7005 if it cannot be written."""
        self.close()
        if path:
            try:
                self._file = path.open("wb")
            except OSError as error:
                raise SquallError("SQ7005", f"cannot write {path}: {(error.strerror or '').lower()}") from None
            self._path, self._has_results[path] = path, False

    def close(self) -> None:
        """Close the file, if results go to one."""
        if self._file:
            self._file.close()
        self._file, self._path = None, _STDOUT

    @property
    def is_terminal(self) -> bool:
        return self._file is None and sys.stdout.isatty()

    @property
    def format(self) -> str:
        """The format that is printed."""
        if self.mode:
            return self.mode
        by_suffix = {".json": "json", ".jsonl": "json", ".txt": "table"}
        return "table" if self.is_terminal else by_suffix.get(self._path.suffix, "csv")

    @property
    def has_color(self) -> bool:
        return self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def table(self, table: "pa.Table") -> None:
        """Print the rows of a result."""
        self._begin()
        self._write(self._rows(table))

    def text(self, text: str) -> None:
        """Print a text."""
        self._begin()
        self._write([text.encode() if text.endswith("\n") else f"{text}\n".encode()])

    def change_header(self, schema: "pa.Schema") -> None:
        """Begin to print the changes of a view."""
        from squallpy.runtime.formats.csv_writer import csv_header
        from squallpy.runtime.sinks.change_table import change_schema

        self._begin()
        if self.format == "csv":
            self._write([csv_header(change_schema(schema))])

    def change(self, change: "ViewChange") -> None:
        """Print what a batch has changed."""
        from squallpy.runtime.formats.csv_writer import csv_rows
        from squallpy.runtime.sinks.change_table import ADDED, change_table

        table = change_table(change.number, change.deletes, change.inserts)
        self._write(csv_rows(table, ADDED) if self.format == "csv" else self._rows(table, counts=False))

    def _begin(self) -> None:
        if self._separates and self._has_results[self._path]:
            self._write([b"\n"])
        self._has_results[self._path] = True

    def _rows(self, table: "pa.Table", counts: bool = True) -> Iterator[bytes]:
        from squallpy.runtime.formats.csv_writer import csv_header, csv_rows
        from squallpy.runtime.formats.json_lines import json_rows
        from squallpy.terminal.text_table import table_text

        match self.format:
            case "csv":
                yield csv_header(table.schema)
                yield from csv_rows(table)
            case "json":
                yield from json_rows(table)
            case "line":
                yield from line_text(table)
            case _ if self.is_terminal:
                yield from self._fitted(table, counts)
            case _:
                yield from table_text(table)

    def _fitted(self, table: "pa.Table", counts: bool) -> Iterator[bytes]:
        """Write a table as far as it fits the terminal, and its number of rows, or what is left out."""
        import pyarrow as pa

        from squallpy.terminal.fit_columns import fit
        from squallpy.terminal.text_table import table_text

        rows, most = len(table), self.max_rows
        is_cut = 0 < most < rows
        head = most - most // 2
        drawn = pa.concat_tables([table.slice(0, head), table.slice(rows - most // 2)]) if is_cut else table
        drawn = fit(drawn, self.width - 1, range(table.num_columns))
        lines = b"".join(table_text(drawn, self.has_color)).splitlines(keepends=True)
        yield from lines[: 2 + head] if is_cut else lines
        if is_cut:
            yield "⋮\n".encode()
            yield from lines[2 + head :]
        told = "1 row" if rows == 1 else f"{rows:,} rows"
        if is_cut:
            told += f", {most:,} shown (.maxrows)"
        if left_out := table.num_columns - drawn.num_columns:
            told += f", {left_out} of {table.num_columns} columns not shown (.mode line)"
        if counts or is_cut or left_out:
            yield (f"\x1b[2m{told}\x1b[0m\n" if self.has_color else f"{told}\n").encode()

    def _write(self, parts: Iterable[bytes]) -> None:
        from squallpy.runtime.sinks.protocol import writing

        with writing(f"to {self._path}"):
            stream = self._file or sys.stdout.buffer
            for part in parts:
                stream.write(part)
            stream.flush()


def line_text(table: "pa.Table") -> Iterator[bytes]:
    """Write each value in a line of its own behind the name of its column, a blank line between rows.

    user = ann
     sum = 1.75
    """
    from squallpy.terminal.text_table import shown

    width = max((len(name) for name in table.column_names), default=0)
    names, between = [f"{name:>{width}} = " for name in table.column_names], ""
    for batch in table.to_batches(max_chunksize=1_000):
        columns = [shown(column).to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            lines = "\n".join(name + cell for name, cell in zip(names, row, strict=True))
            yield f"{between}{lines}\n".encode()
            between = "\n"
