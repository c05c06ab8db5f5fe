"""Text files whose rows are found by an index of their lines, as of csv and of JSON lines."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Self

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.relation import MULT, Field
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.formats.checksum import add_checksums, checksum
from squallpy.runtime.formats.compression import codec_of, open_text
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.formats.csv_dialect import Dialect
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.line_index import EVERY, Index, LineScan, build_index, extend_index
from squallpy.runtime.formats.read_ahead import BYTES, PARSED, ROWS, ParsedRows
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.formats.type_conversion import Problem

PIECE = 1 << 25  # bytes that are parsed at once


@dataclass(frozen=True)
class IndexedText(ABC):
    """A text file, its rows by number; a header is none."""

    file: File
    dialect: Dialect
    index: Index

    @classmethod
    def of_file(cls, file: File, dialect: Dialect, is_growing: bool = False) -> Self:
        """Index a file; while it `is_growing`, and is not compressed, a last row without a line end is left out."""
        dialect = replace(dialect, compression=codec_of(file, dialect.compression))
        source, size = open_text(file, dialect.compression)
        with source:
            head = source.read_at(min(5, size), 0)
        if head == b"PAR1\x15":
            raise SquallError("SQ4003", f"{file.display_name} is a parquet file", hint="write USING parquet")
        build = build_index if file.path else build_index.__wrapped__  # NB: a text in memory is not kept there
        part = cls(file, dialect, build(file, dialect))
        if is_growing and not dialect.compression:
            return part._whole_rows()
        if part.index.open_quote:
            raise SquallError("SQ4003", f"{part.location(part.rows - 1)}: a quote that is never closed")
        return part

    def grown(self, file: File) -> Self | None:
        """Return the same file after more has been appended to it; None if it is compressed, for then it is whole."""
        if self.dialect.compression:
            return None
        return replace(self, file=file, index=extend_index(self.index, file, self.dialect))._whole_rows()

    def _whole_rows(self) -> Self:
        """Leave out a last row that has no line end."""
        if self.index.is_ended:
            return self
        last = self.index.rows - 1
        text, start = self._text(last // EVERY * EVERY, last)
        index = self.index.up_to(last, start + len(text))
        return replace(self, file=replace(self.file, size=index.size), index=index)

    @property
    def rows(self) -> int:
        return max(0, self.index.rows - self.dialect.header)

    @property
    def seams(self) -> tuple[int, ...]:
        return (0, self.rows) if self.dialect.compression else ()

    def location(self, row: int) -> str:
        """Describe the location of a row, as file and line."""
        row += self.dialect.header
        block = row // EVERY
        scan = LineScan(self.dialect, int(self.index.lines[block]), self.index.encoding)
        scan.run(self._text(block * EVERY, row + 1)[0], row % EVERY)
        return f"{self.file.display_name}:{scan.line}"

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        """Read rows start..stop; the checksum covers their text, and the header with the first row."""
        if start >= stop:
            types = {f.name: column_type(f.type) for f in fields} | ({MULT: pa.int64()} if op else {})
            return FileRows(pa.schema(list(types.items())).empty_table())
        found = self._read_ahead(start, stop, fields, op, with_checksum) if self.file.path else None
        return found or self._read(start, stop, fields, op, with_checksum)

    def _read_ahead(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool
    ) -> FileRows | None:
        """Read few rows of many that are parsed together; None if they have to be parsed by themselves."""
        key = (self.file, self.dialect, fields, op)
        parsed = PARSED.find(key, start, stop)
        if parsed is None:
            last = min(self.rows, start + min(ROWS, BYTES * self.index.rows // max(1, self.index.size)))
            if stop >= last or 2 * (stop - start) > ROWS:  # NB: of a file that grows, all that is there is read
                return None
            parsed = self._parse_ahead(start, last, fields, op)
            PARSED.keep(key, parsed)
        else:
            self.file.check()
        rows = parsed.part(start, stop)
        if rows is None or not with_checksum:
            return rows
        begin, end = self._span(parsed, start, stop)
        sum = checksum(parsed.text[begin:end], parsed.offset + begin)
        return replace(rows, checksums={"": self._with_header(sum, start)})

    def _parse_ahead(self, start: int, stop: int, fields: tuple[Field, ...], op: str | None) -> ParsedRows:
        """Parse rows that are given out later; errors wait for the rows that have them."""
        wrong: dict[int, Problem] = {}
        text, offset = self._text(start + self.dialect.header, stop + self.dialect.header)
        rows = None
        try:
            table, images = self._parse_piece(self.index.encoding.utf8(text), start, stop, fields, op, wrong)
            rows = None if images or len(table) != stop - start else FileRows(table, wrong)
        except SquallError:
            pass
        return ParsedRows(start, stop, rows, text, offset, (start, 0))

    def _span(self, parsed: ParsedRows, start: int, stop: int) -> tuple[int, int]:
        """Find where rows begin and end in the text that they were parsed from."""
        row, place = parsed.place if parsed.place[0] <= start else (parsed.first, 0)
        begin = self._find(parsed.text, place, start - row)
        end = self._find(parsed.text, begin, stop - start) if stop < parsed.stop else len(parsed.text)
        parsed.place = stop, end
        return begin, end

    def _with_header(self, sum: int, start: int) -> int:
        """Add the header's checksum to that of rows that begin with the first."""
        is_first = start == 0 and self.dialect.header
        return add_checksums(sum, checksum(*self._text(0, 1))) if is_first else sum

    def _read(self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool) -> FileRows:
        wrong: dict[int, Problem] = {}
        tables, sum, images = [], 0, 0
        for first, last in self._pieces(start, stop):
            found: dict[int, Problem] = {}
            text, at = self._text(first + self.dialect.header, last + self.dialect.header)
            table, more = self._parse_piece(self.index.encoding.utf8(text), first, last, fields, op, found)
            tables.append(table)
            images += more
            wrong.update({first - start + row: problem for row, problem in found.items()})
            sum = add_checksums(sum, checksum(text, at)) if with_checksum else 0
        sums = {"": self._with_header(sum, start)} if with_checksum else {}
        return FileRows(concat_tables(tables), wrong, sums, images)

    @abstractmethod
    def _parse_piece(
        self, data: bytes, start: int, stop: int, fields: tuple[Field, ...], op: str | None, wrong: dict[int, Problem]
    ) -> tuple[pa.Table, int]:
        """Parse the rows start..stop, and count by how much old rows of updates exceed new ones."""

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        """Compute the checksum of the text of the first rows, and of the header with them."""
        sum, header = 0, int(self.dialect.header)
        for first, last in self._pieces(0, min(rows, self.rows)):
            sum = add_checksums(sum, checksum(*self._text(first + header if first else 0, last + header)))
        return sum

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Split a range of rows into pieces of about PIECE bytes."""
        step = max(1, PIECE * self.index.rows // max(1, self.index.size))
        for first in range(start, stop, step):
            yield first, min(stop, first + step)

    def _utf8(self, start: int, stop: int) -> bytes:
        """Read the text of rows start..stop as UTF-8, the header being row 0."""
        return self.index.encoding.utf8(self._text(start, stop)[0])

    def _text(self, start: int, stop: int) -> tuple[bytes, int]:
        """Read the text of rows start..stop in the file's encoding, and its offset in the file."""
        low, high = start // EVERY, -(-stop // EVERY)
        offset = self.index.offset(low)
        with open_text(self.file, self.dialect.compression)[0] as file:
            data: bytes = file.read_at(self.index.offset(high) - offset, offset)
        last = self.index.offset(stop // EVERY) - offset
        begin = self._find(data, 0, start % EVERY)
        end = self._find(data, last, stop % EVERY) if stop % EVERY and stop < self.index.rows else len(data)
        return data[begin:end] if begin or end < len(data) else data, offset + begin

    def _find(self, data: bytes, offset: int, rows: int) -> int:
        """Find the offset of the row `rows` after the one that starts at `offset`."""
        scan = LineScan(self.dialect, encoding=self.index.encoding)
        return offset + scan.run(memoryview(data)[offset:], rows)[0] if rows else offset
