"""Delimited text: Arrow parses any range of rows; if it fails, bisection finds the faulty rows and values.

1|36901|O|173665.47|1996-01-02|   →   five fields: the empty one after the last delimiter is ignored
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from squallpy.base.errors import SquallError, shorten
from squallpy.base.records import dataclass
from squallpy.base.types import VARCHAR, Kind
from squallpy.catalog.relation import MULT, Field
from squallpy.runtime.evaluate.text_column_casts import column_type, is_read_exactly
from squallpy.runtime.formats.change_operations import columns_of_change, decode_op
from squallpy.runtime.formats.csv_dialect import Dialect
from squallpy.runtime.formats.indexed_text import IndexedText
from squallpy.runtime.formats.numerals import EXPONENT, HEXADECIMAL, find_numerals
from squallpy.runtime.formats.relation_files import File, reason
from squallpy.runtime.formats.type_conversion import Problem, check_names, check_once, conform

TRUE, FALSE = ("true", "True", "TRUE", "1", "t", "T"), ("false", "False", "FALSE", "0", "f", "F")


@dataclass(frozen=True)
class CsvPart(IndexedText):
    """A delimited file. `names` are its columns in order; `extra`: its rows end with a delimiter."""

    names: tuple[str, ...] = ()
    extra: bool = False

    @staticmethod
    def open(file: File, dialect: Dialect, names: Sequence[str] | None = None, is_growing: bool = False) -> "CsvPart":
        """Open a file; names come from the header, or as given, or are c0, c1, …

        While it `is_growing`, a last row without a line end is left out.
        """
        part = CsvPart.of_file(file, dialect, is_growing)
        first = part.cells(0)
        if dialect.header or names is None:
            found = first[:-1] if len(first) > 1 and not first[-1] else first
            names = [name.strip() if dialect.header and name else f"c{i}" for i, name in enumerate(found)]
        data = part.cells(1) if dialect.header else first
        return replace(part, names=tuple(names), extra=len(data) == len(names) + 1 and not data[-1])

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names if self.index.rows else ()

    @cached_property
    def positions(self) -> dict[str, int]:
        """Column names in lower case → positions."""
        return {name.lower(): i for i, name in enumerate(self.names)}

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        """Check that every column exists; SQ4002. A file without even a header is an empty stream."""
        if self.index.rows:
            check_names(self.file.display_name, self.names, (*(f.name for f in fields), *([op] if op else [])))

    def check_read(self, fields: Sequence[Field]) -> None:
        check_once(self.file.display_name, self.names, (f.name for f in fields))

    def hint(self, row: int) -> str:
        """Suggest the option `header` if the first row names the columns."""
        if row or self.dialect.header:
            return ""
        cells = [cell.strip().lower() for cell in self.cells(0)]
        named = sum(cell in self.positions for cell in cells)
        return "it names columns: write OPTIONS (header 'true')" if 2 * named >= len(cells) else ""

    def cells(self, row: int) -> list[str]:
        """Return the fields of one row, the header being row 0; none after the last row."""
        if row >= self.index.rows:
            return []
        # NB: only the number of fields matters here; values that are not UTF-8 are found when they are read
        text = self._utf8(row, row + 1).decode(errors="replace").encode() + b"\n"  # NB: Arrow expects a line end
        try:
            header = csv.read_csv(pa.BufferReader(text), _read_options(text), self._parse_options(None))
        except pa.ArrowInvalid as error:
            raise SquallError("SQ4003", f"{self.file.display_name} cannot be read as csv: {reason(error)}") from None
        return list(header.column_names)

    def sample(self, rows: int, type: pa.DataType | None = None) -> pa.Table:
        """Read the first rows, in types that Arrow infers or in one type; rows with a wrong number of fields are
        left out."""
        text = self._utf8(int(self.dialect.header), min(self.index.rows, rows + self.dialect.header))
        data = text.decode(errors="replace").encode()
        try:
            return self._parse(data, dict.fromkeys(range(len(self.names)), type), lambda _: "skip")
        except pa.ArrowInvalid as error:
            message = f"{self.file.display_name} cannot be read as csv: {reason(error)}"
            raise SquallError("SQ4003", message, hint="list the columns after the name") from None

    def _parse_piece(
        self, data: bytes, start: int, stop: int, fields: tuple[Field, ...], op: str | None, wrong: dict[int, Problem]
    ) -> tuple[pa.Table, int]:
        change = [Field(name, VARCHAR) for name in columns_of_change(op) if name.lower() in self.positions]
        # NB: the number of rows is that of a column
        wanted = {self.positions[f.name.lower()]: f for f in (*change, *fields)} or {0: Field(self.names[0], VARCHAR)}
        try:
            raw = self._parse_typed(data, wanted)
            if len(raw) != stop - start or self._overflow(raw) is not None or not all(map(fits_precision, raw.columns)):
                raise pa.ArrowInvalid("values do not fit")
        except pa.ArrowException:
            raw = self._parse_loosely(data, wanted, start, stop, wrong)
        own = raw.select([str(self.positions[f.name.lower()]) for f in fields])
        columns, names, images = conform(own, fields, wrong), [f.name for f in fields], 0
        if op:
            given = (raw.column(str(self.positions[f.name.lower()])) for f in change)
            operations = decode_op(*given, name=op, wrong=wrong)
            columns, names = [*columns, operations.multiplicities], [*names, MULT]
            images = 0 if operations.images is None else int(operations.images.sum())
        return pa.table(columns, names) if columns else raw.select([]), images

    def _parse_typed(self, data: bytes, wanted: Mapping[int, Field]) -> pa.Table:
        """Parse columns by Arrow; as text where it may accept what is not a number in SQL."""
        types = {at: parsed_type(field) for at, field in wanted.items()}
        found = find_numerals(np.frombuffer(data, np.uint8))
        for spelling, is_read_so in ((HEXADECIMAL, pa.types.is_integer), (EXPONENT, pa.types.is_decimal)):
            if found & spelling:
                types = {at: pa.binary() if is_read_so(type) else type for at, type in types.items()}
        raw = self._parse(data, types)
        numbers = [at for at, type in types.items() if pa.types.is_floating(type)]
        if doubtful := [at for at in numbers if pc.any(pc.is_nan(raw.column(str(at)))).as_py()]:  # -nan, nan(1)
            raw = self._parse(data, types | dict.fromkeys(doubtful, pa.binary()))
        return raw

    def _parse_options(self, handler: Any) -> csv.ParseOptions:
        d = self.dialect
        return csv.ParseOptions(
            delimiter=d.delimiter, quote_char=d.quote or False, escape_char=d.escape or False,
            newlines_in_values=True, invalid_row_handler=handler,
        )  # fmt: skip

    def _parse(self, data: bytes, types: Mapping[int, pa.DataType | None], handler: Any = None) -> pa.Table:
        """Parse the columns at these positions, named by them; with the field after the last delimiter if there is
        one."""
        width = len(self.names) + self.extra
        kept = {**types, width - 1: pa.binary()} if self.extra else types
        reading = _read_options(data, [str(i) for i in range(width)])
        converting = csv.ConvertOptions(
            column_types={str(at): type for at, type in kept.items() if type}, include_columns=[str(at) for at in kept],
            null_values=[self.dialect.null], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=TRUE, false_values=FALSE,
        )  # fmt: skip
        return csv.read_csv(pa.BufferReader(data), reading, self._parse_options(handler), converting)

    def _parse_loosely(
        self, data: bytes, wanted: Mapping[int, Field], start: int, stop: int, wrong: dict[int, Problem]
    ) -> pa.Table:
        """Parse columns as text; rows with a wrong number of fields are noted, and NULL in all columns."""
        invalid: dict[int, Problem] = {}
        marked, mark = mark_bytes(data)

        def note(row: Any) -> str:
            invalid[row.number - 1] = self._wrong_width(row.text, row.actual_columns)
            return "skip"

        try:
            raw = self._parse(marked, dict.fromkeys(wanted, pa.binary()), note)
            parsed = len(raw) + len(invalid) == stop - start
        except pa.ArrowException:
            parsed = False
        if not parsed:
            raise SquallError("SQ4003", f"{self.location(start)}: unbalanced quotes, here or in the rows below")
        if mark:
            raw = pa.table([unmark_bytes(raw.column(i), mark) for i in range(raw.num_columns)], raw.column_names)
        if invalid:
            number = iter(range(len(raw)))
            raw = raw.take(pa.array([None if i in invalid else next(number) for i in range(stop - start)], pa.int64()))
            wrong.update(invalid)
        overflow = self._overflow(raw)
        if overflow is not None:
            for row in pc.indices_nonzero(overflow).to_pylist():
                wrong[row] = self._wrong_width("", len(self.names) + 1)
        null = pa.scalar(self.dialect.null.encode(), pa.binary())
        for i, (at, field) in enumerate(wanted.items()):
            if field.type.kind is not Kind.VARCHAR:  # quoted NULLs matter only for text
                values = raw.column(str(at))
                raw = raw.set_column(
                    i, str(at), pc.if_else(pc.equal(values, null), pa.scalar(None, pa.binary()), values)
                )
        return raw

    def _wrong_width(self, text: str, found: int) -> Problem:
        shown = f": {shorten(repr(text))}" if text else ""
        return Problem("SQ4003", f"expected {len(self.names)} fields, found {found}{shown}")

    def _overflow(self, raw: pa.Table) -> Any:
        """Mark rows whose field after the last delimiter is not empty; None if there are none."""
        if not self.extra:
            return None
        full = pc.greater(pc.fill_null(pc.binary_length(raw.column(str(len(self.names)))), 0), 0)
        return full if pc.any(full).as_py() else None


def _read_options(data: bytes, names: Sequence[str] = ()) -> csv.ReadOptions:
    """Read all in one block, as a row has to be in one; names come from the first row if none are given."""
    return csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(names))


def parsed_type(field: Field) -> pa.DataType:
    """Choose the Arrow type to parse: INT in 32 bits, so that larger numbers fail; text for what it may misread."""
    if not is_read_exactly(field.type):
        return pa.binary()
    return pa.int32() if field.type.kind is Kind.INT else column_type(field.type)


def mark_bytes(data: bytes) -> tuple[bytes, str]:
    """Replace each byte that is not UTF-8 by a mark and two digits, and return the mark; '' if there are none.

    NB: Arrow passes rows with a wrong number of fields to Python as text, and fails if they are not.
    """
    try:
        data.decode()
        return data, ""
    except UnicodeDecodeError:
        text = data.decode(errors="surrogateescape")
    mark = next(chr(c) for c in range(0xFDD0, 0xFDF0) if chr(c) not in text)  # characters that no text contains
    return re.sub("[\udc80-\udcff]", lambda m: f"{mark}{ord(m[0]) - 0xDC00:02x}", text).encode(), mark


def unmark_bytes(values: pa.ChunkedArray, mark: str) -> pa.ChunkedArray:
    """Restore the marked bytes."""
    some = pc.match_substring(values, mark.encode())
    if not pc.any(some).as_py():
        return values
    pattern = re.compile(mark.encode() + b"(..)")
    back = [pattern.sub(lambda m: bytes([int(m[1], 16)]), v.as_py()) for v in values.filter(some)]
    return pc.replace_with_mask(values.combine_chunks(), some.combine_chunks(), pa.array(back, pa.binary()))


def fits_precision(values: pa.ChunkedArray) -> bool:
    """True if decimals are within their precision, which Arrow's parser does not check."""
    if not pa.types.is_decimal(values.type):
        return True
    least, most = pc.min_max(values).as_py().values()
    end = Decimal((0, (1,), values.type.precision - values.type.scale))
    return most is None or -end < least <= most < end  # NB: comparison is exact, arithmetic would round
