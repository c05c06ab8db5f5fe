"""Late rows, which arrive after their window has passed, as a CSV: batch, stream, and the row as JSON.

    batch,stream,row
    7,bids,"{""price"": 1.50, ""ts"": ""2026-01-01 00:00:03""}"

Each is written once: a resumed run removes the rows of the batches that it repeats.
"""

import csv
import io
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sinks.output_file import AppendedFile

_HEAD = ["batch", "stream", "row"]


class LateRows(Observer):
    """An observer that adds the late rows of each batch to a file."""

    def __init__(self, path: Path, resumed: bool = False) -> None:
        self._begun = False
        self._path, self._file = path, AppendedFile(path)
        self._rewrite(self._lines() if resumed else [])

    def on_query_progress(self, report: BatchReport) -> None:
        number, late = report.number, report.late_rows
        if not self._begun:
            self._begun = True
            before = self._lines()
            kept = [line for line in before if int(line[0]) < number]
            if len(kept) < len(before):
                self._rewrite(kept)
        lines = [[str(number), stream, row] for stream in sorted(late) for row in sorted(late[stream])]
        if lines:
            self._file.append(_text(lines))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _lines(self) -> list[list[str]]:
        return _lines(self._path, self._file.read())

    def _rewrite(self, lines: list[list[str]]) -> None:
        self._file.rewrite(_text([_HEAD, *lines]))


def _text(lines: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def _lines(path: Path, data: bytes) -> list[list[str]]:
    """Read the whole lines of a file of ours, without its head; a last one that a crash cut short is dropped."""
    try:
        found, *lines = list(csv.reader(io.StringIO(data.decode(), newline=""))) or [_HEAD]
    except (csv.Error, UnicodeDecodeError):
        found, lines = [], []
    if found != _HEAD:
        raise SquallError("SQ7005", f"{path} is no file of late rows of ours", hint="choose another")
    return [line for line in lines if len(line) == len(_HEAD) and line[-1].endswith("}")]
