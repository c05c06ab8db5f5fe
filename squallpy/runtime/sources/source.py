"""Sources: the rows of a relation, independent of the format of its files.

source = open_source(relation, script.parent)
source.read(0, 10_000, ("o_orderkey", "o_totalprice"))   →   Table of these, and __mult for a change stream
"""

import json
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR, Kind, Type, decimal
from squallpy.catalog.format_options import DEAD_LETTER
from squallpy.catalog.relation import CONSTANT, MULT, ROW_COUNT, Field, Relation
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.formats.change_operations import MATERIALIZE, columns_of_change
from squallpy.runtime.formats.counted_table import concat_tables, take_rows
from squallpy.runtime.formats.file_rows import FileRows, mark_read
from squallpy.runtime.formats.relation_files import File, find_files
from squallpy.runtime.formats.skipped_rows import EXAMPLES, SkippedRows, mark_skipped, skipped
from squallpy.runtime.formats.type_conversion import PROGRESS, Problem, check_names
from squallpy.runtime.sources.changelog_rows import read_part, rows_of_changes
from squallpy.runtime.sources.located_rows import LocatedRows
from squallpy.runtime.sources.protocol import Backlog, BatchLimit, Offset, Source
from squallpy.runtime.sources.shuffled_rows import ShuffledRows

SKIP = "OPTIONS (on_error 'skip') leaves such rows out"


class SourceFile(Protocol):
    """One file of a source; rows are numbered from 0."""

    @property
    def rows(self) -> int: ...
    @property
    def seams(self) -> tuple[int, ...]:
        """Row numbers at which jointly decoded rows begin."""
        ...

    @property
    def file(self) -> File: ...
    @property
    def columns(self) -> tuple[str, ...]:
        """Their names as the file has them; none if it is empty."""
        ...

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        """Raise SQ4002 if a declared column is missing."""
        ...

    def check_read(self, fields: Sequence[Field]) -> None:
        """Raise SQ4002 if a column that is read exists twice, or has a type that cannot become the declared one."""
        ...

    def location(self, row: int) -> str: ...
    def hint(self, row: int) -> str:
        """Suggest what to do about a row that cannot be read, if known."""
        ...

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        """Read some rows; with their checksums, if they are to be `with_checksum`."""
        ...

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        """Add up all checksums of some columns over the pieces of the first rows."""
        ...

    def grown(self, file: File) -> "SourceFile | None":
        """Return the same file after more has been appended to it; None if nothing can be."""
        ...


_NO_FILE = File("", 0, 1, "one row")


@dataclass(frozen=True, slots=True)
class OneRow:
    """The row of a CONSTANT or ROW_COUNT relation: its value in each column."""

    value: int = 0
    rows: int = 1
    seams: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    file: File = _NO_FILE

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        """Do nothing: there are no columns to check."""

    def check_read(self, fields: Sequence[Field]) -> None:
        """Do nothing: there are no columns to check."""

    def location(self, row: int) -> str:
        return self.file.display_name

    def hint(self, row: int) -> str:
        return ""

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        """Make the value."""
        values = pa.array(np.full(stop - start, self.value))
        rows = pa.table({"": values}).select([])  # NB: without columns, it still has a number of rows
        for field in fields:
            rows = rows.append_column(field.name, values.cast(column_type(field.type)))
        return FileRows(rows)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        return 0

    def grown(self, file: File) -> None:
        """Return nothing: one row is one row."""


class RowSource(Source):
    """A source whose rows are numbered from 0; its offsets are {"row": the number of the next one}."""

    @property
    @abstractmethod
    def rows(self) -> int: ...

    @abstractmethod
    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        """Read some columns of the rows start..stop."""

    def resident(self, columns: tuple[str, ...]) -> pa.RecordBatch | None:
        """Return some columns of all rows, if these are in memory in one piece: always the same object, or None."""
        return None

    def initial(self) -> Offset:
        return {"row": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        return {"row": self.rows if limit.rows is None else min(self.rows, start["row"] + limit.rows)}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence["RowRange"]:
        first, stop = start["row"], end["row"]
        if tasks == 1:  # NB: as in one process, where a batch is soon over
            return (RowRange(self, first, stop),)
        cuts = (self.cut(first, stop, number, tasks) for number in range(1, tasks))
        return [RowRange(self, *ends) for ends in pairwise((first, *cuts, stop))]

    def backlog(self, end: Offset) -> Backlog:
        return Backlog(self.rows - end["row"])

    def cut(self, start: int, stop: int, number: int, count: int) -> int:
        """Find where a part of the rows start..stop begins, if there are `count` of them."""
        return cut(start, stop, number, count)


@dataclass(frozen=True, slots=True)
class RowRange:
    """A slice of a source whose rows are numbered."""

    source: RowSource
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        return self.source.read(self.start, self.stop, columns)


@dataclass(frozen=True)
class FileSource(RowSource):
    """The rows of a relation, numbered over all its files. Plain data: it can be sent to other processes."""

    is_bounded = True
    relation: Relation
    parts: tuple[SourceFile, ...]
    with_checksum: bool = False
    """True if tables that are read carry the checksums of their parts."""
    first_part: int = 0
    first_row: int = 0
    """The numbers of the first part and row in a source that this one is a piece of."""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The number of each part's first row, and of all rows."""
        return (0, *accumulate(part.rows for part in self.parts))

    @property
    def rows(self) -> int:
        return self.starts[-1]

    def check(self, columns: Sequence[str]) -> None:
        """Raise SQ4002 if columns that are read exist twice in a file, or have a type that cannot become the
        relation's."""
        fields = fields_read(self.relation, columns)
        try:
            for part in self.parts:
                part.check_read(fields)
        except SquallError as error:
            raise error.at(self.relation.span) from None

    @cached_property
    def _seams(self) -> tuple[int, ...]:
        return tuple(start + seam for start, part in zip(self.starts, self.parts, strict=False) for seam in part.seams)

    def cut(self, start: int, stop: int, number: int, count: int) -> int:
        """Find where a part of some rows begins; if possible, no two readers decode a row group."""
        return cut(start, stop, number, count, self._seams)

    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        """Read some columns of the rows start..stop, with `__mult` (±1) for a change stream and, in ARRIVAL, their
        numbers.

        A row at fault raises SquallError: SQ4003 wrong number of fields, SQ4004 a value that is not of its type, SQ4005
        an unknown operation, SQ4006 NULL in a NOT NULL column. Under on_error 'skip' and 'dead-letter' it is left
        out instead, and `skipped(table)` says how many were and why.
        """
        assert 0 <= start <= stop <= self.rows, (start, stop, self.rows)
        fields, counted = self._fields(columns), ARRIVAL in columns
        if start == stop:
            return numbered(self._schema(fields).empty_table(), self.first_row + start, counted)
        tables, left_out, sums, images = [], SkippedRows(), dict[str, Mapping[str, int]](), 0
        for i in range(bisect_right(self.starts, start) - 1, bisect_left(self.starts, stop)):
            begin = self.starts[i]
            first, last = max(start, begin) - begin, min(stop, self.starts[i + 1]) - begin
            if first < last:
                piece = read_part(self.relation, self.parts[i], (first, last), fields, self.with_checksum)
                table = self._settle(self.parts[i], piece, first, self.first_row + begin if counted else None)
                tables.append(rows_of_changes(table, self.relation, fields))
                left_out += skipped(table)
                sums |= {str(self.first_part + i): piece.checksums} if piece.checksums else {}
                images += piece.images
        return mark_read(mark_skipped(concat_tables(tables), left_out), sums, images)

    @cached_property
    def _found(self) -> dict[tuple[str, ...], tuple[Field, ...]]:
        """Fields that were found by name."""
        return {}

    def _fields(self, columns: tuple[str, ...]) -> tuple[Field, ...]:
        """Find the fields of some columns, but not their numbers."""
        if columns not in self._found:
            self._found[columns] = tuple(self._field(name) for name in columns if name != ARRIVAL)
        return self._found[columns]

    def _field(self, name: str) -> Field:
        field = self.relation.field(name)
        assert field, (
            f'{self.relation.name} has no column "{name}", {nearest(name, [f.name for f in self.relation.fields])}'
        )
        return field

    def _schema(self, fields: tuple[Field, ...]) -> pa.Schema:
        mult = [(MULT, pa.int64())] if self.relation.is_signed else []
        return pa.schema([*((f.name, column_type(f.type)) for f in fields), *mult])

    def _settle(self, part: SourceFile, piece: FileRows, start: int, begin: int | None) -> pa.Table:
        """Settle the rows read from one part, whose first row is number `begin`: those at fault raise or are
        dropped."""
        wrong, rows_read = piece.wrong, len(piece.table)
        table = numbered(piece.table, start + (begin or 0), begin is not None)
        if not wrong:
            return table
        good = np.delete(np.arange(rows_read), list(wrong))
        rows = sorted(row for row, problem in wrong.items() if problem != PROGRESS)
        fatal = ([r for r in rows if wrong[r].hint] if self.relation.skips_faults else rows)[:1]
        for row in fatal:
            text = f"{part.location(start + row)}: {wrong[row].text}"
            raise SquallError(wrong[row].code, text, hint=wrong[row].hint or part.hint(start + row) or SKIP)
        examples = tuple(f"{part.location(start + row)}: {wrong[row].text}" for row in rows[:EXAMPLES])
        is_kept = self.relation.options.get("on_error") == DEAD_LETTER
        letters = tuple(_letter(part, start + row, wrong[row]) for row in rows) if is_kept else ()
        return mark_skipped(take_rows(table, good), SkippedRows(len(rows), examples, letters))


@runtime_checkable
class Placed(Protocol):
    """A part that knows more of where a row is than its number."""

    def place(self, row: int) -> Mapping[str, Any]: ...


def _letter(part: SourceFile, row: int, problem: Problem) -> str:
    """Write a dead letter: the place of a row, as its file and line, or number, and the reason."""
    file = part.file.display_name
    place = part.location(row).removeprefix(file)
    kind = "line" if place.startswith(":") else "row"
    number = place.removeprefix(":").removeprefix(", row ")
    at = part.place(row) if isinstance(part, Placed) else {kind: int(number) if number.isdecimal() else row + 1}
    about: dict[str, Any] = {"file": file, **at}
    return json.dumps(about | {"code": problem.code, "reason": problem.text}, ensure_ascii=False)


def columns_of_files(relation: Relation, columns: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of a relation's files that are read for some of its columns, and those that tell changes."""
    fields = [relation.field(name) for name in columns]
    return (*(field.path[0] for field in fields if field), *columns_of_changes(relation))


def columns_of_changes(relation: Relation) -> tuple[str, ...]:
    """Name the columns of a relation's files that tell changes."""
    return (*columns_of_change(relation.op), *([relation.tombstone.name] if relation.tombstone else []))


def fields_read(relation: Relation, columns: Sequence[str]) -> list[Field]:
    """List the columns of a relation's files that are read for some of its columns."""
    told = [name for name in (relation.op, relation.options.get("tombstone")) if name]
    return [*(f for f in relation.fields if f.name in columns), *(Field(name, VARCHAR) for name in told)]


def check_columns(relation: Relation, part: SourceFile) -> None:
    """Raise SQ4002 if a file lacks a column that it needs, or has one that cannot become the relation's."""
    told = [replace(relation.tombstone, nullable=False)] if relation.tombstone else []
    part.check((*relation.fields, *told), relation.op)


def cut(start: int, stop: int, number: int, count: int, seams: Sequence[int] = ()) -> int:
    """Find where a part of the rows start..stop begins: parts are equal, or end at the seam next to that.

    cut(0, 100, 1, 2)   →   50            cut(0, 100, 1, 2, (40, 80))   →   40
    """
    even = start + (stop - start) * number // count
    at = bisect_left(seams, even)
    near = min(seams[max(0, at - 1) : at + 1], key=lambda seam: abs(seam - even), default=even)
    return near if 0 < number < count and 2 * count * abs(near - even) < stop - start else even


def numbered(table: pa.Table, start: int, wanted: bool = True) -> pa.Table:
    """Add the numbers of rows, if they are `wanted`."""
    return table.append_column(ARRIVAL, pa.array(np.arange(start, start + len(table)))) if wanted else table


def count_rows(relation: Relation, base: Path) -> int:
    """Count the rows of a relation's files; 0 if they are not there, or it has none."""
    if relation.is_foreign:
        return 0
    try:
        return open_source(relation, base).rows
    except SquallError:
        return 0


def open_source(relation: Relation, base: Path, with_checksum: bool = False) -> FileSource:
    """Find a relation's files and compare them with its columns; relative paths start at `base`, then at the cwd.
    Tables that are read tell checksums if they are to be `with_checksum`.

    Raises SQ4001 for files that are not there or cannot be read, SQ4002 for columns that are not there or cannot have
    the declared type.
    """
    if relation.format == CONSTANT:
        return FileSource(relation, (OneRow(),))
    if relation.format == ROW_COUNT:
        assert relation.counts, relation.name
        return FileSource(relation, (OneRow(open_source(relation.counts, base).rows),))
    try:
        files = find_files(relation.options["path"], base)
        parts: tuple[SourceFile, ...] = tuple(open_part(relation, file) for file in files)
        for part in parts:
            check_columns(relation, part)
        known = list(dict.fromkeys(name for part in parts for name in part.columns))
        if known:
            shown = parts[0].file.display_name if len(parts) == 1 else f'"{relation.options["path"]}"'
            check_names(shown, known, [f.path[0] for f in relation.fields if not f.metadata])
    except SquallError as error:
        raise error.at(relation.span) from None
    if relation.is_random and parts:
        parts = (ShuffledRows(parts, int(relation.options.get("seed", "0"))),)
    return FileSource(relation, parts, with_checksum)


def infer_fields(relation: Relation, base: Path) -> tuple[Field, ...]:
    """Infer the columns of a relation that is declared without.

    For csv they are those of the first file that has any, for parquet those of all files. Raises SQ4001, SQ4002.
    """
    try:
        files = find_files(relation.options["path"], base)
        fields = _fields(relation, files)
        if fields:
            changes = columns_of_change(relation.op)
            out = {name.lower() for name in (*changes, *(MATERIALIZE if len(changes) > 1 else ()))}
            return tuple(f for f in fields if f.name.lower() not in out)
        path = relation.options["path"]
        raise SquallError("SQ4002", f'"{path}" is empty and tells no columns', hint="list the columns after the name")
    except SquallError as error:
        raise error.at(relation.span) from None


def _fields(relation: Relation, files: Sequence[File]) -> tuple[Field, ...]:
    if relation.format == "parquet":
        from squallpy.runtime.formats.parquet import ParquetPart

        return united([(file, ParquetPart.open(file).fields()) for file in files if file.size])
    if relation.format == "avro":
        from squallpy.runtime.formats.avro import AvroPart

        return united([(file, AvroPart.open(file).fields()) for file in files if file.size])
    if relation.format == "json":
        from squallpy.runtime.formats.json_reader import JsonPart

        compression = relation.options.get("compression", "")
        return united([(file, JsonPart.open(file, compression).infer()) for file in files if file.size])
    from squallpy.runtime.formats.csv import CsvPart
    from squallpy.runtime.formats.csv_dialect import Dialect
    from squallpy.runtime.formats.infer_schema import infer_csv

    found = (tuple(infer_csv(CsvPart.open(file, Dialect.of(relation.options)))) for file in files)
    return next(filter(None, found), ())


def united(files: Sequence[tuple[File, tuple[Field, ...]]]) -> tuple[Field, ...]:
    """Unite the columns of several files in the order of their appearance, with numbers as wide as the widest.

    A column that a file lacks can be NULL. Raises SQ4002 for a column whose types in two files have nothing in common.
    """
    found: dict[str, tuple[Field, File]] = {}
    for file, fields in files:
        twins = {f.name.lower() for f in fields if sum(g.name.lower() == f.name.lower() for g in fields) > 1}
        for f in fields:
            key = f.name if f.name.lower() in twins else f.name.lower()
            was, first = found.get(key, (f, file))
            type = common(was.type, f.type)
            if type is None:
                message = f'column "{f.name}" is {was.type} in {first.display_name} and {f.type} in {file.display_name}'
                raise SquallError("SQ4002", message, hint="declare the columns")
            found[key] = Field(was.name, type, was.nullable or f.nullable), first
    has = [{f.name.lower() for f in fields} for _, fields in files]
    there = {name for name in set[str]().union(*has) if all(name in names for names in has)}
    return tuple(Field(f.name, f.type, f.nullable or f.name.lower() not in there) for f, _ in found.values())


def common(one: Type, other: Type) -> Type | None:
    """Find the type that holds the values of both, if there is one; for a DOUBLE and another number it is DOUBLE."""
    if one == other:
        return one
    if not (one.is_numeric and other.is_numeric):
        return TIMESTAMP if one.is_temporal and other.is_temporal else None
    if DOUBLE in (one, other):
        return DOUBLE
    if one.is_integer and other.is_integer:
        return BIGINT
    (digits, scale), (more, finer) = ((_DIGITS.get(t.kind, t.precision), t.scale) for t in (one, other))
    return decimal(min(38, max(digits - scale, more - finer) + max(scale, finer)), max(scale, finer))


_DIGITS = {Kind.INT: 10, Kind.BIGINT: 19}


def open_part(relation: Relation, file: File) -> SourceFile:
    """Open a file of a relation; of one that may still grow, only whole rows count."""
    part = _open_rows(relation, file)
    return LocatedRows(part) if any(field.metadata for field in relation.fields) else part


def _open_rows(relation: Relation, file: File) -> SourceFile:
    if relation.format == "parquet":
        from squallpy.runtime.formats.parquet import ParquetPart

        return ParquetPart.open(file)
    if relation.format == "avro":
        from squallpy.runtime.formats.avro import AvroPart

        return AvroPart.open(file)
    if relation.format == "json":
        from squallpy.runtime.formats.json_reader import JsonPart

        return JsonPart.open(file, relation.options.get("compression", ""), relation.is_watched)
    from squallpy.runtime.formats.csv import CsvPart  # NB: loads kernels, which takes half a second
    from squallpy.runtime.formats.csv_dialect import Dialect

    return CsvPart.open(file, Dialect.of(relation.options), positional(relation), relation.is_watched)


def positional(relation: Relation) -> tuple[str, ...]:
    """List the columns of a file without a header: as declared, what tells changes first, unless named c0, c1, … by
    position."""
    names = [f.name for f in relation.fields if not f.metadata]
    if told := relation.op or relation.options.get("tombstone"):
        position = told[1:]
        numbered = told[:1].lower() == "c" and position.isdigit() and int(position) <= len(names)
        names.insert(int(position) if numbered else 0, told)
    return tuple(names)
