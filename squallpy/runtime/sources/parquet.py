"""Parquet, row group by row group: decoded once, only the columns asked for, in the relation's types.

The row group decoded last is kept, so that batches that walk through one do not decode it again.
"""

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from squallpy.base.errors import SquallError
from squallpy.base.types import VARCHAR
from squallpy.catalog.relation import MULT, Field
from squallpy.runtime.sources.conform import Problem, check_names, conform, convertible, decode_op, sql_type
from squallpy.runtime.sources.counted import joined
from squallpy.runtime.sources.files import File, reason

KEEP = 256 << 20  # bytes of decoded row groups per process, of files that are read in turns


@dataclass(frozen=True)
class ParquetPart:
    """One file; row group g holds the rows ends[g]..ends[g + 1]."""

    file: File
    ends: tuple[int, ...]

    @staticmethod
    def open(file: File) -> "ParquetPart":
        if not file.size:
            return ParquetPart(file, (0,))
        about = _opened(file).metadata
        sizes = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
        return ParquetPart(file, (0, *accumulate(sizes)))

    @property
    def rows(self) -> int:
        return self.ends[-1]

    @property
    def seams(self) -> tuple[int, ...]:
        return self.ends

    def fields(self) -> tuple[Field, ...]:
        """The columns as the file has them; SQ4002 for one whose type has no SQL type."""
        found = []
        for column in _opened(self.file).schema_arrow if self.file.size else ():
            type = sql_type(column.type)
            if type is None:
                text = f'{self.file.shown}: column "{column.name}" is {column.type}, which has no SQL type'
                raise SquallError("SQ4002", text, hint="declare the columns to read")
            found.append(Field(column.name, type, column.nullable))
        return tuple(found)

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        """Every column must be there, with a type that can become the declared one; SQ4002."""
        if not self.file.size:
            return
        schema = _opened(self.file).schema_arrow
        check_names(self.file.shown, schema.names, (*(f.name for f in fields), *([op] if op else [])))
        for f in (*fields, *([Field(op, VARCHAR)] if op else [])):
            given = schema.types[_position(schema, f.name)]
            if not convertible(given, f.type):
                raise SquallError("SQ4002", f'{self.file.shown}: column "{f.name}" is {given}, declared {f.type}')

    def place(self, row: int) -> str:
        return f"{self.file.shown}, row {row + 1}"

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None
    ) -> tuple[pa.Table, dict[int, Problem]]:
        """Rows start..stop, and the problems of those at fault by their number from `start`."""
        tables: list[pa.Table] = []
        wrong: dict[int, Problem] = {}
        at = start
        while at < stop or not tables:
            group = max(0, min(bisect_right(self.ends, at) - 1, len(self.ends) - 2))
            first, last = (self.ends[group], self.ends[group + 1]) if self.rows else (0, 0)
            rows = _decoded.get(self.file, group, fields, op)
            end = min(stop, last)
            tables.append(rows.table.slice(at - first, max(0, end - at)))
            wrong.update({first + r - start: p for r, p in rows.wrong.items() if at <= first + r < end})
            at = max(end, at + (last == 0))
        return joined(tables), wrong


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Decoded rows, and the problems of some of them."""

    table: pa.Table
    wrong: dict[int, Problem]


@dataclass(slots=True)
class Decoded:
    """The row groups decoded last: of what is read of a file one, for who walks through it does not come back; at most
    KEEP bytes of them, and always the last one."""

    groups: OrderedDict[Any, tuple[int, RowGroup]] = field(default_factory=OrderedDict)

    def get(self, file: File, group: int, fields: tuple[Field, ...], op: str | None) -> RowGroup:
        key = (file, fields, op)
        known, rows = self.groups.pop(key, (None, None))
        if rows is None or known != group:
            del rows  # NB: before there is another: its memory can take that
            rows = _decode(file, group, fields, op)
        self.groups[key] = group, rows
        while len(self.groups) > 1 and sum(g.table.nbytes for _, g in self.groups.values()) > KEEP:
            self.groups.popitem(last=False)
        return rows


_decoded = Decoded()  # NB: a cache of this process, of what never changes: the file's size and time are in the key


def _decode(file: File, group: int, fields: tuple[Field, ...], op: str | None) -> RowGroup:
    opened = _opened(file)
    schema = opened.schema_arrow
    names = [schema.names[_position(schema, name)] for name in (*(f.name for f in fields), *([op] if op else []))]
    try:
        # NB: a row group needs a column to know how many rows it has
        raw = opened.read_row_group(group, columns=names or schema.names[:1], use_threads=False)
        raw = _unwrapped(file, group, raw)
    except (OSError, pa.ArrowInvalid) as error:
        raise SquallError("SQ4001", f"cannot read {file.shown}: {reason(error)}") from None
    wrong: dict[int, Problem] = {}
    columns = conform(raw.select(names), fields, wrong)
    out = [f.name for f in fields]
    if op:
        columns, out = [*columns, decode_op(raw.column(names[-1]), op, wrong)], [*out, MULT]
    return RowGroup(pa.table(columns, out) if columns else raw.select([]), wrong)


def _unwrapped(file: File, group: int, raw: pa.Table) -> pa.Table:
    """The same; INT96 times that wrapped around in 64 bits of microseconds are the last one there, beyond all years."""
    columns = map(_opened(file).schema.column, range(len(_opened(file).schema)))
    wide = [c.path for c in columns if c.physical_type == "INT96" and c.path in raw.column_names]
    if wide:
        seconds = _opened(file, "s").read_row_group(group, columns=wide, use_threads=False)
        for name in wide:
            times = raw.column(name)
            is_whole = pc.equal(pc.floor_temporal(times, unit="second").cast(pa.timestamp("s")), seconds.column(name))
            last = pa.scalar(2**63 - 1, times.type)
            raw = raw.set_column(raw.schema.get_field_index(name), name, pc.if_else(is_whole, times, last))
    return raw


def _position(schema: pa.Schema, name: str) -> int:
    return [n.lower() for n in schema.names].index(name.lower())


@lru_cache(maxsize=64)
def _opened(file: File, int96: str = "us") -> pq.ParquetFile:
    try:
        # NB: of INT96, nanoseconds in 64 bits would hold the years 1677 to 2262 only
        return pq.ParquetFile(file.open(), coerce_int96_timestamp_unit=int96)
    except (OSError, pa.ArrowInvalid) as error:
        raise SquallError("SQ4001", f"{file.shown} is not a parquet file: {reason(error)}") from None
