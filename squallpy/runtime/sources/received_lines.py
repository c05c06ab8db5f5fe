"""Lines that are received, as csv or JSON: a socket's, and those that are POSTed.

The spool keeps lines; tasks parse them, so that faulty ones are handled as those of files are.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.csv_dialect import Dialect
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.formats.text_encoding import HEAD
from squallpy.runtime.formats.type_conversion import Problem
from squallpy.runtime.sources.foreign_source import ForeignSource
from squallpy.runtime.sources.source import SourceFile, open_part

_LINE = "line"
_HEAD = b"\n" * HEAD  # NB: bytes of the first row are then never taken for marks of an encoding or a format
_UNCLOSED = Problem("SQ4003", "a quote or an escape that is open at the end of the line")


@dataclass
class LineSource(ForeignSource):
    """A relation whose rows are lines."""

    def asked(self, columns: Sequence[str]) -> tuple[str, ...]:
        return (_LINE,)

    def part(self, raw: pa.Table, first: int) -> SourceFile:
        return ReceivedLines.of(self.relation, self.name, raw.column(_LINE).to_pylist(), first)


def check_columns_of_lines(relation: Relation, name: str) -> None:
    """Raise SQ4002 for a relation without columns, SQ3001 for one with columns that tell where a row is from."""
    if not relation.fields:
        raise SquallError("SQ4002", f"{name} tells no columns", relation.span, "list the columns after the name")
    if located := next((f.metadata for f in relation.fields if f.metadata), None):
        raise SquallError("SQ3001", f"{located} of {name} is not supported yet", relation.span, "leave it out")
    Dialect.of(relation.options)


def lines_of(data: bytes) -> tuple[list[bytes], bytes]:
    """Cut off the lines that have their end, without empty ones; return them, and what is left."""
    *lines, rest = data.replace(b"\r", b"\n").split(b"\n")
    return [*filter(None, lines)], rest


def line_table(lines: Sequence[bytes]) -> pa.Table:
    """Make lines a table."""
    return pa.table({_LINE: pa.array(lines, pa.binary())})


@dataclass(frozen=True, slots=True)
class ReceivedText(File):
    """A text in memory, which is read as a file is."""

    data: bytes = b""

    def open(self) -> "TextReader":
        return TextReader(self.data)


class TextReader:
    """A reader of a text in memory; all of it is not copied, as Arrow's reader does."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __enter__(self) -> "TextReader":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def read_at(self, size: int, offset: int) -> bytes:
        return self._data[offset : offset + size]


@dataclass(frozen=True, slots=True)
class ReceivedLines:
    """Lines as a part of a source.

    Args:
        first: The number of the first since the stream began.
        unclosed: Lines at whose end a quote is open, by their number among these.
    """

    lines: SourceFile
    first: int
    unclosed: frozenset[int]

    @staticmethod
    def of(relation: Relation, name: str, lines: Sequence[bytes], first: int) -> "ReceivedLines":
        """Parse lines, each for itself: a row has no line ends."""
        unclosed = _unclosed(lines, Dialect.of(relation.options)) if relation.row_format == "csv" else frozenset[int]()
        data = _joined([b"-" if i in unclosed else line for i, line in enumerate(lines)] if unclosed else lines)
        text = ReceivedText("", HEAD + len(data), 0, name, data=_HEAD + data)
        part = open_part(replace(relation, format=relation.row_format), text)
        return ReceivedLines(part, first, unclosed)

    @property
    def rows(self) -> int:
        return self.lines.rows

    @property
    def seams(self) -> tuple[int, ...]:
        return ()

    @property
    def file(self) -> File:
        return self.lines.file

    @property
    def columns(self) -> tuple[str, ...]:
        return self.lines.columns

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        self.lines.check(fields, op)

    def check_read(self, fields: Sequence[Field]) -> None:
        self.lines.check_read(fields)

    def location(self, row: int) -> str:
        return f"{self.file.display_name}, row {self.first + row + 1}"

    def hint(self, row: int) -> str:
        return ""

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        rows = self.lines.read(start, stop, fields, op, with_checksum)
        wrong = {row - start: _UNCLOSED for row in self.unclosed if start <= row < stop}
        return replace(rows, wrong=rows.wrong | wrong)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        return 0

    def grown(self, file: File) -> None:
        """Return nothing: lines that were received are whole."""


def _unclosed(lines: Sequence[bytes], dialect: Dialect) -> frozenset[int]:
    """Find the lines that would go on behind their ends."""
    from squallpy.runtime.formats.line_index import AT_LINE, LineScan  # NB: loads kernels, which takes half a second

    def is_whole(some: Sequence[bytes]) -> bool:
        scan = LineScan(dialect)
        scan.run(_joined(some))
        return scan.mode == AT_LINE and scan.rows == len(some)

    return frozenset(() if is_whole(lines) else (i for i, line in enumerate(lines) if not is_whole([line])))


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
