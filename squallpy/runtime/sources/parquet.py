"""Parquet: any range of rows; a row group is decoded once by each process that reads from it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from squallpy.base.errors import SquallError, nearest
from squallpy.catalog.relation import Field
from squallpy.runtime.sources.conform import Problem, conform, convertible, decode_op, sql_type
from squallpy.runtime.sources.files import File, reason

KEPT = 16  # decoded row groups that a process keeps: one or two of each stream are in use at a time


@dataclass(frozen=True)
class ParquetPart:
    """One file: its schema, and the first row of each row group (and the end of the last)."""

    file: File
    schema: pa.Schema
    bounds: tuple[int, ...]

    @staticmethod
    def open(file: File) -> "ParquetPart":
        """SQ4001 for what is no parquet file."""
        with file.open() as stream:
            try:
                opened = pq.ParquetFile(stream)
            except (pa.ArrowInvalid, OSError) as error:
                raise SquallError("SQ4001", f"{file.shown} is not a parquet file: {reason(error)}") from None
            bounds = [0]
            for group in range(opened.metadata.num_row_groups):
                bounds.append(bounds[-1] + opened.metadata.row_group(group).num_rows)
            return ParquetPart(file, opened.schema_arrow, tuple(bounds))

    @property
    def rows(self) -> int:
        return self.bounds[-1]

    def check(self, fields: Sequence[Field], op: str | None) -> None:
        """Every column must be there in a type that can become the declared one; SQ4002."""
        for name in (*(f.name for f in fields), *([op] if op else [])):
            if self._column(name) is None:
                raise SquallError("SQ4002", f'{self.file.shown} has no column "{name}"', hint=nearest(name, self.schema.names))
        for f in fields:
            given = self.schema.field(self._column(f.name)).type
            if not convertible(given, f.type):
                raise SquallError("SQ4002", f'{self.file.shown}: column "{f.name}" is {given}, which cannot become {f.type}')

    def fields(self) -> list[Field]:
        """The columns that have a SQL type."""
        kinds = [(f.name, sql_type(f.type)) for f in self.schema]
        return [Field(name, kind) for name, kind in kinds if kind is not None]

    def place(self, row: int) -> str:
        return f"{self.file.shown}: row {row + 1}"

    def read(self, start: int, stop: int, fields: Sequence[Field], op: str | None) -> tuple[pa.Table, dict[int, Problem]]:
        """Columns of rows start … stop, the multiplicity last if `op` is given; rows at fault by number from `start`."""
        pieces, wrong = [], dict[int, Problem]()
        group = bisect_right(self.bounds, start) - 1
        while not pieces or self.bounds[group] < stop:
            if group >= len(self.bounds) - 1:  # an empty file
                columns = [pa.array([], self.schema.field(self._column(f.name)).type) for f in fields]
                empty = pa.table({str(i): pa.chunked_array([c]) for i, c in enumerate(columns)})
                names = [f.name for f in fields]
                table = pa.table(dict(zip(names, conform(empty, tuple(fields), wrong), strict=True)))
                return (table.append_column(op, pa.array([], pa.int64())) if op else table), wrong
            table, found = _decoded(self, group, tuple(fields), op)
            first = self.bounds[group]
            low, high = max(start, first), min(stop, self.bounds[group + 1])
            pieces.append(table.slice(low - first, high - low))
            wrong |= {first + row - start: problem for row, problem in found.items() if low <= first + row < high}
            group += 1
        return pa.concat_tables(pieces), wrong

    def _column(self, name: str) -> str | None:
        return next((n for n in self.schema.names if n.lower() == name.lower()), None)

    def __hash__(self) -> int:
        return hash(self.file)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParquetPart) and other.file == self.file


@lru_cache(maxsize=KEPT)
def _decoded(part: ParquetPart, group: int, fields: tuple[Field, ...], op: str | None) -> tuple[pa.Table, dict[int, Problem]]:
    """A row group in the types of the relation."""
    wanted = [part._column(f.name) for f in fields] + ([part._column(op)] if op else [])
    with part.file.open() as stream:
        # NB: one thread, as Spark gives a task one core
        raw = pq.ParquetFile(stream).read_row_group(group, columns=list(dict.fromkeys(wanted)), use_threads=False)
    wrong: dict[int, Problem] = {}
    table = pa.table({str(i): raw.column(name) for i, name in enumerate(wanted)})
    columns = [column.combine_chunks() for column in conform(table, fields, wrong)]
    names = [f.name for f in fields]
    if op:
        columns, names = [*columns, decode_op(table.column(len(fields)), op, wrong)], [*names, op]
    return pa.table(columns, names), wrong
