"""Sources that others have written, kept to the protocol: offsets are JSON that goes on, rows have declared columns.

source = ForeignSource(relation, "ticks", Ticks(relation))
source.latest(start, limit)      what Ticks says, checked
slice.read(("k", "v"))           what its slice reads, in the types of the relation; faulty rows by `on_error`

A fault of the source is SQ4008, with its name and the batch.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, TypeVar

import pyarrow as pa

from squallpy.base.errors import SquallError, shorten
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.arrow_rows import check_read, check_schema, decode_rows
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.formats.type_conversion import check_names
from squallpy.runtime.sources.protocol import Backlog, BatchLimit, Offset, Slice, Source
from squallpy.runtime.sources.source import (
    FileSource,
    RowRange,
    SourceFile,
    check_columns,
    columns_of_changes,
    fields_read,
)

T = TypeVar("T")


class SourceFault(SquallError):
    """A fault of a source that others have written: it raises, or does not keep to the protocol."""

    def __init__(self, source: str, what: str, batch: int | None = None, span: Any = None) -> None:
        self.source, self.what, self.batch = source, what, batch
        where = "" if batch is None else f" in batch {batch}"
        super().__init__("SQ4008", f"the source {source} {what}{where}", span, "the batch before is whole")

    def __reduce__(self) -> tuple[Any, ...]:
        return SourceFault, (self.source, self.what, self.batch, self.span)

    def at(self, span: Any) -> "SourceFault":
        return self if self.span else SourceFault(self.source, self.what, self.batch, span)


@contextmanager
def in_batch(batch: int) -> Iterator[None]:
    """Name the batch in faults of sources."""
    try:
        yield
    except SourceFault as fault:
        raise name_batch(fault, batch) from fault.__cause__


def name_batch(fault: SourceFault, batch: int) -> SourceFault:
    """Name the batch in a fault of a source that names none."""
    known = batch if fault.batch is None else fault.batch
    return SourceFault(fault.source, fault.what, known, fault.span)


@dataclass(frozen=True)
class ArrowPart:
    """Rows in memory as a part of a source.

    Args:
        name: What they are called in messages.
    """

    name: str
    table: pa.Table

    @property
    def rows(self) -> int:
        return len(self.table)

    @property
    def seams(self) -> tuple[int, ...]:
        return ()

    @property
    def file(self) -> File:
        return File("", 0, 0, self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        check_names(self.name, self.table.column_names, [f.path[0] for f in fields])
        check_schema(self.name, self.table.schema, fields, op)

    def check_read(self, fields: Sequence[Field]) -> None:
        check_read(self.name, self.table.schema, fields)

    def location(self, row: int) -> str:
        return f"{self.name}, row {row + 1}"

    def hint(self, row: int) -> str:
        return ""

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        rows = decode_rows(self.table.slice(start, stop - start), fields, op)
        return FileRows(rows.table, rows.wrong, images=0 if rows.images is None else int(rows.images.sum()))

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        return 0

    def grown(self, file: File) -> None:
        """Return nothing: rows in memory are whole."""


@dataclass
class ForeignSource(Source):
    """A source that others have written, over a relation.

    Tasks have it without the `inner` one: they are sent its slices.
    """

    relation: Relation
    name: str
    inner: Source = field(repr=False)
    cut: tuple[Offset, Offset] | None = field(default=None, init=False, repr=False)
    checked: dict[tuple[str, ...], pa.Schema] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The schema of rows that were last read, by the columns that were asked for."""

    def is_checked(self, schema: pa.Schema, columns: tuple[str, ...]) -> bool:
        """True if rows of that schema were read before, so that they fit the relation."""
        known = self.checked.get(columns)
        return known is not None and known.equals(schema)

    slices: dict[int, "list[ForeignSlice]"] = field(default_factory=dict, init=False, repr=False)
    """The slices of what was cut last, by their number."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"inner": None, "slices": {}, "cut": None}

    @property
    def is_bounded(self) -> bool:
        return self.inner.is_bounded

    @property
    def is_counted(self) -> bool:
        return self.inner.is_counted

    @property
    def is_replayable(self) -> bool:
        return self.inner.is_replayable and self.relation.options.get("spool") != "true"

    @property
    def is_behind(self) -> bool:
        return self.inner.is_behind

    @property
    def rows(self) -> int:
        return self.inner.rows

    @property
    def shared_log(self) -> object | None:
        return self.inner.shared_log

    @property
    def needs_folder(self) -> bool:
        return self.inner.needs_folder

    def begin(self, folder: str | None, ends: bool) -> None:
        self._call("begin", lambda: self.inner.begin(folder, ends))

    def check(self, columns: Sequence[str]) -> None:
        self._call("check", lambda: self.inner.check(columns))
        schema = self._call("schema", lambda: self.inner.schema)
        if schema is not None:
            fields = tuple(f for f in self.relation.fields if f.metadata not in self.inner.locates)
            check_rows(replace(self.relation, fields=fields), ArrowPart(self.name, schema.empty_table()), columns)

    def asked(self, columns: Sequence[str]) -> tuple[str, ...]:
        """List the columns that the inner source is asked for where some are read."""
        return names_asked([field for field in self.relation.fields if field.name in columns], self.relation)

    def part(self, raw: pa.Table, first: int) -> SourceFile:
        """Return what a slice has read as a part of files; `first`: the number of its first row."""
        return ArrowPart(self.name, raw)

    def initial(self) -> Offset:
        return self._offset("initial", self.inner.initial)

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        end = self._offset("latest", lambda: self.inner.latest(start, limit))
        if is_before(end, start):
            raise SourceFault(self.name, f"went back from {_shown(start)} to {_shown(end)}", span=self.relation.span)
        return end

    def split(self, start: Offset, end: Offset, tasks: int) -> "Sequence[ForeignSlice]":
        if start == end:
            return ()
        if self.cut != (start, end):
            self.cut, self.slices = (start, end), {}
        if tasks not in self.slices:  # NB: rows are counted first
            found = self._call("split", lambda: list(self.inner.split(start, end, tasks)))
            if len(found) > tasks:
                message = f"cut the rows for {tasks} tasks into {len(found)} slices"
                raise SourceFault(self.name, message, span=self.relation.span)
            self.slices[tasks] = [ForeignSlice(self, each) for each in found]
        return self.slices[tasks]

    @property
    def waits_for(self) -> str:
        return self._call("waits_for", lambda: self.inner.waits_for)

    def backlog(self, end: Offset) -> Backlog | None:
        return self._call("backlog", lambda: self.inner.backlog(end))

    def committed(self, start: Offset, end: Offset) -> float | None:
        return self._call("committed", lambda: self.inner.committed(start, end))

    def commit(self, end: Offset) -> None:
        self._call("commit", lambda: self.inner.commit(end))

    def close(self) -> None:
        self._call("close", self.inner.close)

    def _offset(self, method: str, ask: Callable[[], Offset]) -> Offset:
        """Ask for an offset, and return it as it is logged."""
        offset = self._call(method, ask)
        try:
            text = json.dumps(offset, allow_nan=False)
        except (TypeError, ValueError):
            text = ""
        if not text or not isinstance(offset, Mapping):
            raise SourceFault(self.name, f"has the offset {_shown(offset)}, no JSON object", span=self.relation.span)
        found: Offset = json.loads(text)
        return found

    def _call(self, method: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except SquallError as error:
            raise error.at(self.relation.span) from error.__cause__
        except Exception as error:
            raise SourceFault(self.name, f"raised {described(error, method)}", span=self.relation.span) from error


@dataclass(frozen=True, slots=True)
class ForeignSlice:
    """A slice that others have written; `batch` is that which reads it, if known."""

    source: ForeignSource
    inner: Slice
    batch: int | None = None

    @property
    def rows(self) -> int | None:
        return self.inner.rows

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        """Read some columns in the types of the relation, and their numbers if rows have any."""
        relation, name = self.source.relation, self.source.name
        read = tuple(field for field in relation.fields if field.name in columns)
        first = self.inner.start if isinstance(self.inner, RowRange) else 0
        try:
            raw = self.inner.read(self.source.asked(columns))
            if not isinstance(raw, pa.Table):
                raise SourceFault(name, f"read a {type(raw).__name__}, not an Arrow table", self.batch)
            if self.rows is not None and len(raw) != self.rows:
                raise SourceFault(name, f"read {len(raw)} rows, and had said {self.rows}", self.batch)
        except SourceFault as fault:
            raise SourceFault(name, fault.what, self.batch, relation.span) from fault.__cause__
        except SquallError as error:
            raise error.at(relation.span) from error.__cause__
        except Exception as error:
            raise SourceFault(name, f"raised {described(error, 'read')}", self.batch, relation.span) from error
        part = self.source.part(raw, first)
        if not (isinstance(part, ArrowPart) and self.source.is_checked(raw.schema, columns)):
            check_rows(replace(relation, fields=read), part, columns)
            self.source.checked[columns] = raw.schema
        try:
            return FileSource(relation, (part,), first_row=first).read(0, len(raw), columns)
        except SquallError as error:
            raise error.at(relation.span) from None


def names_asked(fields: Sequence[Field], relation: Relation) -> tuple[str, ...]:
    """List the columns that a source is asked for: those of rows, where they are from, and what tells changes."""
    names = (field.metadata or field.path[0] for field in fields)
    return tuple(dict.fromkeys((*names, *columns_of_changes(relation))))


def check_rows(relation: Relation, part: SourceFile, columns: Sequence[str]) -> None:
    """Compare rows with the columns of a relation, and those that are read; SQ4002."""
    try:
        check_columns(relation, part)
        part.check_read(fields_read(relation, columns))
    except SquallError as error:
        raise error.at(relation.span) from None


def described(error: Exception, method: str) -> str:
    """Describe an exception in one line, with the method that raised it."""
    return f"{type(error).__name__} in {method}: {' '.join(str(error).split())}".removesuffix(": ")


def is_before(one: Offset, other: Offset) -> bool:
    """True if an offset is certainly before another: numbers of the same shape, none greater and some less."""
    both = list(zip(_numbers(one), _numbers(other), strict=False))
    if _shape(one) != _shape(other) or not both:
        return False
    return all(a <= b for a, b in both) and any(a < b for a, b in both)


def _numbers(value: Any) -> Iterator[float]:
    """Yield all numbers of a JSON value, by the order of their names."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    for each in _parts(value):
        yield from _numbers(each[1])


def _shape(value: Any) -> Any:
    """Return a JSON value with a mark in place of each number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0
    return {name: _shape(part) for name, part in _parts(value)} or value


def _parts(value: Any) -> list[tuple[Any, Any]]:
    """List the parts of a JSON object or array, by name or place."""
    if isinstance(value, Mapping):
        return sorted(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _shown(offset: Any) -> str:
    try:
        return shorten(json.dumps(offset))
    except (TypeError, ValueError):
        return shorten(repr(offset))
