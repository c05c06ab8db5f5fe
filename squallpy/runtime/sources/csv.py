"""Delimited text: any range of rows, parsed by Arrow; where Arrow gives up, the rows and values at fault are named.

    orders.tbl:  1|36901|O|173665.47|1996-01-02|     a last empty field is no field
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import Kind
from squallpy.catalog.relation import Field
from squallpy.runtime.sources.conform import Problem, column_type, conform, decode_op, sql_type
from squallpy.runtime.sources.dialect import Dialect
from squallpy.runtime.sources.files import File
from squallpy.runtime.sources.lines import EVERY, Index, Scan, build_index

SAMPLE = 10_000  # rows that types are inferred from
TRUE, FALSE = ["true", "True", "TRUE", "1", "t", "T"], ["false", "False", "FALSE", "0", "f", "F"]


@dataclass(frozen=True)
class CsvPart:
    """One file. `names` are its columns in order; `extra` says that each row ends with a delimiter."""

    file: File
    dialect: Dialect
    index: Index
    names: tuple[str, ...]
    extra: bool

    @staticmethod
    def open(file: File, dialect: Dialect, names: Sequence[str] | None = None) -> "CsvPart":
        """Names come from the header, else as given, else they are c0, c1, …"""
        if file.shown.endswith((".gz", ".zst", ".bz2", ".zip", ".xz")):
            raise SquallError("SQ4001", f"{file.shown} is compressed", hint="decompress it, or write it as parquet")
        part = CsvPart(file, dialect, build_index(file, dialect), (), False)
        first = part._cells(0)
        data = part._cells(1) if dialect.header else first
        if dialect.header:
            found = [name.strip() for name in first]
        else:
            found = list(names) if names is not None else [f"c{i}" for i in range(len(first))]
        if len(found) > 1 and (dialect.header or names is None) and first and not first[-1]:
            found = found[:-1]
        extra = len(data) == len(found) + 1 and not data[-1]
        return replace(part, names=tuple(found), extra=extra)

    @property
    def rows(self) -> int:
        return max(0, self.index.rows - self.dialect.header)

    def check(self, fields: Sequence[Field], op: str | None) -> None:
        """Every column must be there, once; SQ4002."""
        known = [name.lower() for name in self.names]
        for name in (*(f.name for f in fields), *([op] if op else [])) if self.index.rows else ():
            if known.count(name.lower()) != 1:
                wrong = "several columns" if name.lower() in known else "no column"
                raise SquallError("SQ4002", f'{self.file.shown} has {wrong} "{name}"', hint=nearest(name, self.names))

    def fields(self) -> list[Field]:
        """The columns as they look in the first rows."""
        sample = self._parse(self._bytes(0, min(self.rows, SAMPLE))[0], {}, range(len(self.names)), None)
        kinds = [sql_type(column.type) for column in sample.columns]
        return [Field(name, kind) for name, kind in zip(self.names, kinds, strict=True) if kind is not None]

    def place(self, row: int) -> str:
        """The file and line of a row."""
        return f"{self.file.shown}:{self._bytes(row, row)[1]}"

    def read(self, start: int, stop: int, fields: Sequence[Field], op: str | None) -> tuple[pa.Table, dict[int, Problem]]:
        """Columns of rows start … stop, the multiplicity last if `op` is given; rows at fault by number from `start`."""
        known = [name.lower() for name in self.names]
        wanted = [known.index(name.lower()) for name in (*(f.name for f in fields), *([op] if op else []))]
        types = {i: pa.int32() if f.type.kind is Kind.INT else column_type(f.type) for i, f in zip(wanted, fields, strict=False)}
        data, _ = self._bytes(start, stop)
        wrong: dict[int, Problem] = {}
        try:
            raw = self._parse(data, types, wanted, None)
            if self.extra and len(raw) and pc.any(pc.not_equal(pc.fill_null(raw.columns[-1], ""), "")).as_py():
                raise pa.ArrowInvalid("one field too many")
        except pa.ArrowInvalid:
            raw = self._parse_loosely(data, wanted, stop - start, wrong)
        columns = conform(raw, tuple(fields), wrong)
        names = [f.name for f in fields]
        if op:
            columns, names = [*columns, decode_op(raw.column(len(fields)), op, wrong)], [*names, op]
        return pa.table(dict(zip(map(str, range(len(names))), columns, strict=True))).rename_columns(names), wrong

    def _bytes(self, start: int, stop: int) -> tuple[bytes, int]:
        """The text of data rows start … stop, and the line of the first."""
        start, stop = start + self.dialect.header, stop + self.dialect.header
        block = start // EVERY
        if block >= len(self.index.starts):
            return b"", 1
        begin = self.index.offset(block)
        with self.file.open() as stream:
            data = stream.read_at(self.index.offset(-(-max(stop, start + 1) // EVERY)) - begin, begin)
        scan = Scan(self.dialect)
        scan.state[:] = [0, block * EVERY, self.index.lines[block], 0, 0]
        at, _, _ = scan.run(data, start)
        line = scan.line
        length, _, _ = scan.run(data[at:], stop)
        return data[at : at + length], line

    def _cells(self, row: int) -> list[str]:
        """The fields of a row of the file, as text."""
        data, _ = self._bytes(row - self.dialect.header, row + 1 - self.dialect.header)
        if not data.strip():
            return []
        options = self._parse_options(None)
        table = csv.read_csv(pa.BufferReader(data), csv.ReadOptions(autogenerate_column_names=True, use_threads=False), options)
        return ["" if value is None else str(value) for value in table.slice(0, 1).to_pylist()[0].values()] if len(table) else []

    def _parse_options(self, handler: Callable[[Any], str] | None) -> csv.ParseOptions:
        d = self.dialect
        return csv.ParseOptions(
            delimiter=d.delimiter, quote_char=d.quote or False, escape_char=d.escape or False,
            newlines_in_values=True, invalid_row_handler=handler,
        )  # fmt: skip

    def _parse(
        self, data: bytes, types: Mapping[int, pa.DataType], wanted: Sequence[int], handler: Callable[[Any], str] | None
    ) -> pa.Table:
        """The wanted columns, and the one after the last delimiter if there is one; untyped ones are inferred."""
        width = len(self.names) + self.extra
        kept = [*wanted, *([width - 1] if self.extra else [])]
        kinds = {str(i): types.get(i, pa.string()) for i in kept} if types or handler else {}
        if not data:
            return pa.table({str(n): pa.array([], kinds.get(str(i), pa.string())) for n, i in enumerate(kept)})
        # NB: a column may be wanted twice (a field that is the operation too), which Arrow would drop
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=[str(i) for i in range(width)]),
            self._parse_options(handler),
            csv.ConvertOptions(
                column_types=kinds, include_columns=[str(i) for i in dict.fromkeys(kept)] or ["0"],
                null_values=[self.dialect.null], strings_can_be_null=True, quoted_strings_can_be_null=False,
                true_values=TRUE, false_values=FALSE,
            ),
        )  # fmt: skip
        return pa.table({str(n): table.column(str(i)) for n, i in enumerate(kept)}) if kept else table.select([])

    def _parse_loosely(self, data: bytes, wanted: Sequence[int], rows: int, wrong: dict[int, Problem]) -> pa.Table:
        """All columns as text; a row with a wrong number of fields is noted, and NULLs stand for it."""

        def note(row: Any) -> str:
            text = row.text if len(row.text) <= 60 else row.text[:57] + "..."
            found = row.actual_columns - self.extra
            wrong[row.number - 1] = Problem("SQ4003", f"expected {len(self.names)} fields, found {found}: {text!r}")
            return "skip"

        try:
            raw = self._parse(data, {}, wanted, note)
        except pa.ArrowInvalid as error:
            raise SquallError("SQ4003", f"{self.file.shown} cannot be read as csv: {error}") from None
        good = np.setdiff1d(np.arange(rows), np.fromiter(wrong, np.int64, len(wrong)))
        if len(raw) != len(good):
            raise SquallError("SQ4003", f"{self.file.shown}: quotes that do not match")
        if self.extra:
            long = np.asarray(pc.not_equal(pc.fill_null(raw.columns[-1], ""), ""))
            for row in good[long]:
                wrong[int(row)] = Problem("SQ4003", f"expected {len(self.names)} fields, found {len(self.names) + 1}")
        places = np.full(rows, -1)
        places[good] = np.arange(len(good))
        return raw.take(pa.array(places, mask=places < 0))


__all__ = ["CsvPart"]
