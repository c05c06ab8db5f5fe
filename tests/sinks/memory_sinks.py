"""Sinks as others write them for PySpark, which keep in memory what they are given."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

EVENTS = list[Any]()
"""What sinks were told, in order."""
FAILS = dict[str, str]()
"""Methods that raise, with what."""


def note(method: str, *what: Any) -> None:
    EVENTS.append((method, *what))
    if method in FAILS:
        raise ValueError(FAILS[method])


class Batches(DataSourceStreamWriter):
    """Rows of batches."""

    def write(self, iterator: Iterator[Row]) -> Any:
        context = TaskContext.get()
        assert context
        rows = [row.asDict() for row in iterator]
        note("write", context.partitionId(), context.getLocalProperty("streaming.sql.batchId"), rows)
        return len(rows)

    def commit(self, messages: list[Any], batchId: int) -> None:
        note("commit", messages, batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:
        note("abort", messages, batchId)


class ArrowBatches(Batches, DataSourceStreamArrowWriter):
    """Record batches."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        rows = [row for batch in iterator for row in batch.to_pylist()]
        note("write", rows)
        return len(rows)


class Result(DataSourceWriter):
    """Rows of a result."""

    def write(self, iterator: Iterator[Row]) -> Any:
        note("write", [tuple(row) for row in iterator])

    def commit(self, messages: list[Any]) -> None:
        note("commit", messages)


class ArrowResult(Result, DataSourceArrowWriter):
    """Record batches of a result."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        note("write", pa.Table.from_batches(iterator).to_pylist())


class Rows(DataSource):
    """A sink of rows, of batches and of results."""

    stream: Any = Batches
    table: Any = Result

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        note("__init__", {name: options[name] for name in sorted(options)})

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        note("streamWriter", schema.simpleString(), overwrite)
        return self.stream()

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        note("writer", schema.simpleString(), overwrite)
        return self.table()


class Arrow(Rows):
    """A sink of record batches."""

    stream, table = ArrowBatches, ArrowResult


class OnlyResults(DataSource):
    """A sink of results."""

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return Result()


class NoSource:
    """No data source at all."""
