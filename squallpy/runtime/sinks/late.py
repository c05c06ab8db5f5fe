"""Rows that came when a window had passed them, as a CSV: batch, stream, and the row as JSON.

    batch,stream,row
    7,bids,"{""price"": 1.50, ""ts"": ""2026-01-01 00:00:03""}"

Each is there once: a resumed run takes away the rows of the batches that it does again.
"""

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.logical.nodes import Query
from squallpy.runtime.sinks.sink import writing

_HEAD = ["batch", "stream", "row"]


class LateRows:
    """A sink that adds the late rows of each batch to a file."""

    def __init__(self, path: Path, several: bool = False, resumed: bool = False) -> None:
        self._path, self._head = path, ["query", *_HEAD] if several else _HEAD
        self._query, self._several, self._begun = 1, several, False
        kept = _lines(path, self._head) if resumed else []
        self._write([self._head, *kept], "w")

    def begin(self, query: Query, schema: pa.Schema, batches: int) -> None:
        self._query, self._begun = query.number, False

    def batch(self, number: int, deletes: pa.Table | None, inserts: pa.Table | None, stats: dict[str, Any]) -> None:
        mine = [str(self._query)] if self._several else []
        if not self._begun:
            self._begun = True
            before = [line for line in _lines(self._path, self._head) if not self._is_again(line, number)]
            self._write([self._head, *before], "w")
        late = stats.get("late_rows", {})
        lines = [[*mine, str(number), stream, row] for stream in sorted(late) for row in sorted(late[stream])]
        if lines:
            self._write(lines, "a")

    def final(self, table: pa.Table) -> None: ...

    def finish(self, summary: dict[str, Any]) -> None: ...

    def _is_again(self, line: list[str], number: int) -> bool:
        """Is it of a batch of this query from that one on?"""
        mine = not self._several or line[0] == str(self._query)
        return mine and int(line[self._head.index("batch")]) >= number

    def _write(self, lines: list[list[str]], mode: str) -> None:
        with writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode, encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(lines)


def _lines(path: Path, head: list[str]) -> list[list[str]]:
    """The whole lines of a file of ours, without its head; a last one that a crash cut short is left out."""
    if not path.exists():
        return []
    try:
        with writing(path), path.open(encoding="utf-8", newline="") as file:
            found, *lines = list(csv.reader(file)) or [head]
    except (csv.Error, UnicodeDecodeError):
        found, lines = [], []
    if found != head:
        raise SquallError("SQ7005", f"{path} is no file of late rows of ours", hint="choose another")
    return [line for line in lines if len(line) == len(head) and line[-1].endswith("}")]
