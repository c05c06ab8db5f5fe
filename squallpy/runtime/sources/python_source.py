"""Data sources written for PySpark, read without Spark: USING python OPTIONS (class 'package.module.DataSource').

streamReader         DataSourceStreamReader        partitions are read by tasks; `latestOffset()` of either form
simpleStreamReader   SimpleDataSourceStreamReader  rows are read on the driver; a batch that is tried again, by
                                                   `readBetweenOffsets`
reader               DataSourceReader              all partitions at once, in the first batch

A row is a tuple, a list or a Row, or rows come in Arrow record batches. Of several readers CREATE STREAM takes the
first, CREATE TABLE the last of these.
"""

import inspect
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from squallpy.base.errors import SquallError
from squallpy.base.python_objects import find_object, look_in, search_path, suggest_object
from squallpy.base.records import dataclass
from squallpy.catalog.format_options import passed_options
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.arrow_rows import fields_of
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.sources.foreign_source import SourceFault, described
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Source
from squallpy.runtime.sources.python_rows import arrow_schema, arrow_table
from squallpy.runtime.sources.source import columns_of_changes, cut, fields_read
from squallpy.runtime.sources.spark_schema import declared_schema, spark_schema
from squallpy.runtime.sources.table_slice import TableSlice, located

STREAM_READERS, TABLE_READER = ("streamReader", "simpleStreamReader"), "reader"


def open_python(relation: Relation, base: Path) -> Source:
    """Open the data source of a relation."""
    data_source, folders = _create(relation, base)
    schema, name = _schema(data_source, relation), relation.options["class"]
    streams = [each for each in STREAM_READERS if _has(data_source, each)]
    table = [TABLE_READER] if _has(data_source, TABLE_READER) else []
    readers = [*streams, *table] if relation.stream else [*table, *streams]
    match readers[:1]:
        case ["streamReader"]:
            return PythonStream(name, data_source, schema, folders)
        case ["simpleStreamReader"]:
            return SimplePythonStream(name, data_source, schema)
        case ["reader"]:
            return PythonTable(name, data_source, schema, folders)
    raise SourceFault(name, f"has none of {', '.join((*STREAM_READERS, TABLE_READER))}")


def python_fields(relation: Relation, base: Path) -> tuple[Field, ...]:
    """List the columns of a data source's own schema."""
    data_source, _ = _create(relation, base)
    changes = [name.lower() for name in columns_of_changes(relation)]
    fields = fields_of(arrow_schema(_schema(data_source, relation)))
    return tuple(f for f in fields if f.name.lower() not in changes)


class _PythonSource(Source):
    """A data source with its schema."""

    locates = ("_offset", "_partition")

    def __init__(self, schema: StructType, reader: object) -> None:
        self._schema, self._any_reader = schema, reader

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._schema)

    def begin(self, folder: str | None, ends: bool) -> None:
        if ends and isinstance(self._any_reader, SupportsTriggerAvailableNow):
            self._any_reader.prepareForTriggerAvailableNow()


class PythonStream(_PythonSource):
    """A stream of a DataSourceStreamReader."""

    is_counted = False

    def __init__(self, name: str, data_source: DataSource, schema: StructType, folders: Sequence[str]) -> None:
        self._reader = data_source.streamReader(schema)
        super().__init__(schema, self._reader)
        self._takes_limit = bool(inspect.signature(self._reader.latestOffset).parameters)
        # NB: tasks read by one of its own, as in Spark: the driver's may hold what cannot be sent
        self._work = _Work.of(name, data_source.streamReader(schema), schema, folders)

    def initial(self) -> Offset:
        return self._reader.initialOffset()

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        if not self._takes_limit:
            found: Offset = self._reader.latestOffset()  # type: ignore[call-arg]
            return found
        return self._reader.latestOffset(dict(start), self._limit(limit))

    def split(self, start: Offset, end: Offset, tasks: int) -> "Sequence[PartitionSlice]":
        return self._work.slices(self._reader.partitions(dict(start), dict(end)), tasks)

    def commit(self, end: Offset) -> None:
        self._reader.commit(dict(end))

    def close(self) -> None:
        self._reader.stop()

    def _limit(self, limit: BatchLimit) -> ReadLimit:
        """Return the limit that the reader asks for, within that of a batch.

        NB: a reader need not know any other limit than the one it asks for, and that there is none.
        """
        asked = self._reader.getDefaultReadLimit()
        if limit.rows is None:
            return ReadAllAvailable()
        return ReadMaxRows(min(asked.max_rows, limit.rows)) if isinstance(asked, ReadMaxRows) else asked


class PythonTable(_PythonSource):
    """All rows of a DataSourceReader."""

    is_bounded, is_counted = True, False

    def __init__(self, name: str, data_source: DataSource, schema: StructType, folders: Sequence[str]) -> None:
        self._reader = data_source.reader(schema)
        super().__init__(schema, self._reader)
        self._work = _Work.of(name, self._reader, schema, folders)

    def initial(self) -> Offset:
        return {"read": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        return {"read": 1}

    def split(self, start: Offset, end: Offset, tasks: int) -> "Sequence[PartitionSlice]":
        return self._work.slices(self._reader.partitions(), tasks)


class SimplePythonStream(_PythonSource):
    """A stream of a SimpleDataSourceStreamReader, whose rows are read on the driver."""

    def __init__(self, name: str, data_source: DataSource, schema: StructType) -> None:
        self._name, self._reader = name, data_source.simpleStreamReader(schema)
        super().__init__(schema, self._reader)
        self._held = list[tuple[Offset, Offset, pa.Table]]()  # what was read and is not committed

    @property
    def is_replayable(self) -> bool:
        return type(self._reader).readBetweenOffsets is not SimpleDataSourceStreamReader.readBetweenOffsets

    def initial(self) -> Offset:
        return self._reader.initialOffset()

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        rows, end = self._reader.read(dict(start))
        table = arrow_table(self._name, rows, self._schema)
        if end != start:
            self._held.append((start, json.loads(json.dumps(end)), table))
        elif len(table):
            raise SourceFault(self._name, f"read {len(table)} rows, and stays at {json.dumps(start)}")
        return end

    def split(self, start: Offset, end: Offset, tasks: int) -> "Sequence[TableSlice]":
        table = self._find(start, end)
        if table is None:
            table = arrow_table(self._name, self._reader.readBetweenOffsets(dict(start), dict(end)), self._schema)
            self._held.append((start, end, table))
        ends = [*(cut(0, len(table), number, tasks) for number in range(tasks)), len(table)]
        return [TableSlice(table.slice(a, b - a), a) for a, b in pairwise(ends)]

    def commit(self, end: Offset) -> None:
        done = next((i for i, (_, stop, _) in enumerate(self._held) if stop == end), -1)
        del self._held[: done + 1]
        self._reader.commit(dict(end))

    def _find(self, start: Offset, end: Offset) -> pa.Table | None:
        """Find rows that were read already; None if they were not."""
        found, at = list[pa.Table](), start
        for begin, stop, table in self._held:
            if begin == at != end:
                found, at = [*found, table], stop
        return concat_tables(found) if at == end and found else None


@dataclass(frozen=True, slots=True)
class _Work:
    """A reader as tasks get it, pickled once.

    Args:
        token: Another one for each run, so that a process that outlives a run does not read as it did.
        folders: Where its module is looked for.
    """

    token: str
    name: str
    reader: bytes
    folders: tuple[str, ...]

    @staticmethod
    def of(
        name: str, reader: DataSourceReader | DataSourceStreamReader, schema: StructType, folders: Sequence[str]
    ) -> "_Work":
        """Encode a reader and the schema of its rows."""
        try:
            return _Work(uuid.uuid4().hex, name, _pickled((reader, schema)), tuple(folders))
        except Exception as error:
            raise SourceFault(
                name, f"has a reader that cannot be sent to tasks: {described(error, 'pickle')}"
            ) from error

    def slices(self, partitions: Iterable[Any], tasks: int) -> "list[PartitionSlice]":
        """Deal partitions out to at most so many tasks, in order."""
        all = list(partitions)
        ends = [*(cut(0, len(all), number, tasks) for number in range(tasks)), len(all)]
        return [PartitionSlice(self, _pickled(all[a:b]), a) for a, b in pairwise(ends) if a < b]


@dataclass(frozen=True, slots=True)
class PartitionSlice:
    """Partitions that a task reads; the `first` has this number in its batch."""

    work: _Work
    partitions: bytes
    first: int

    @property
    def rows(self) -> None:
        """No number: it is known when they are read."""

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        reader, schema = _unpickled(self.work)
        read = (reader.read(partition) for partition in cloudpickle.loads(self.partitions))
        found = (arrow_table(self.work.name, rows, schema) for rows in read)
        tables = [located(table, columns, number) for number, table in enumerate(found, self.first)]
        return concat_tables([table.cast(tables[0].schema) for table in tables])


def _pickled(value: Any) -> bytes:
    found: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return found


@lru_cache(maxsize=8)
def _unpickled(work: _Work) -> tuple[Any, StructType]:
    look_in(work.folders)
    found: tuple[Any, StructType] = cloudpickle.loads(work.reader)
    return found


def _create(relation: Relation, base: Path) -> tuple[DataSource, Sequence[str]]:
    """Create the data source of a relation; SQ7002 if there is no such class."""
    made, folders = find_data_source(relation, base)
    name = relation.options["class"]
    try:
        return made(CaseInsensitiveDict(passed_options(relation.format, relation.options))), folders
    except Exception as error:
        raise SourceFault(name, f"raised {described(error, '__init__')}", span=relation.span) from error


def find_data_source(relation: Relation, base: Path) -> tuple[type[DataSource], Sequence[str]]:
    """Find the class of a relation's data source, with the folders where it was looked for; SQ7002."""
    folders, name = search_path(base), relation.options["class"]
    found = find("class", relation, folders, is_data_source)
    if not is_data_source(found):
        message = f"{name} is no class that derives from pyspark.sql.datasource.DataSource"
        raise SquallError("SQ7002", message, relation.span, suggest_object(name, is_data_source))
    return found, folders


def find(option: str, relation: Relation, folders: Sequence[str], is_meant: Callable[[Any], bool]) -> Any:
    """Find what an option of a relation names in a module; SQ7002 if there is none."""
    name = relation.options[option]
    try:
        return find_object(option, name, folders, is_meant, relation.span)
    except SquallError:
        raise
    except Exception as error:
        raise SourceFault(name, f"raised {described(error, 'import')}", None, relation.span) from error


def is_data_source(found: Any) -> bool:
    """True if something is a class of data sources."""
    return isinstance(found, type) and issubclass(found, DataSource) and found is not DataSource


def _has(data_source: DataSource, method: str) -> bool:
    """True if a data source overrides a method."""
    return getattr(type(data_source), method) is not getattr(DataSource, method)


def _schema(data_source: DataSource, relation: Relation) -> StructType:
    """Return the schema of a data source, or the declared columns where it has none; SQ4002 if nobody tells any."""
    name = relation.options["class"]
    if not _has(data_source, "schema"):
        return schema_as_declared(relation, f"the source {name} has no schema()")
    try:
        found = data_source.schema()
        return found if isinstance(found, StructType) else spark_schema(found)
    except Exception as error:
        raise SourceFault(name, f"raised {described(error, 'schema')}", span=relation.span) from error


def schema_as_declared(relation: Relation, why: str) -> StructType:
    """Return the columns that the script lists, that of changes first; SQ4002 if it lists none."""
    if not relation.fields:
        raise SquallError("SQ4002", why, relation.span, "list the columns after the name")
    return declared_schema([*fields_read(relation, ()), *(f for f in relation.fields if not f.metadata)])
