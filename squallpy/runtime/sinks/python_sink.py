"""Data sources written for PySpark, written to without Spark: USING python OPTIONS (class 'package.module.DataSource').

streamWriter   DataSourceStreamWriter, …ArrowWriter     modes changes, append and upsert: each batch
writer         DataSourceWriter, DataSourceArrowWriter  mode final: the result

The driver writes a batch as one task would, or partitions that have many rows do; the driver commits it by its number.
The same may come again after a crash.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from squallpy.base.entry_points import SINKS, load
from squallpy.base.errors import Span, SquallError
from squallpy.base.python_objects import find_object, look_in, search_path, suggest_object
from squallpy.base.records import dataclass
from squallpy.catalog.sink_spec import FINAL, PYTHON, SinkSpec
from squallpy.runtime.sinks.protocol import SinkWriter
from squallpy.runtime.sources.foreign_source import described
from squallpy.runtime.sources.python_source import is_data_source

BATCH = "streaming.sql.batchId"  # NB: the property by which a task of Spark's knows its batch
_ARROW = (DataSourceArrowWriter, DataSourceStreamArrowWriter)
T = TypeVar("T")


class PythonSink:
    """A data source that a query writes to; SQ7002 if it cannot write in its mode."""

    def __init__(self, sink: SinkSpec, base: Path) -> None:
        self._sink, self._is_final = sink, sink.mode == FINAL
        made, self._folders = self._call("import", lambda: _load(sink, base)), search_path(base)
        key = {} if sink.key is None else {"key": ", ".join(sink.key)}
        options = CaseInsensitiveDict({**sink.options, "mode": str(sink.mode), **key})
        self._source = self._call("__init__", lambda: made(options))
        method = "writer" if self._is_final else "streamWriter"
        if getattr(made, method) is getattr(DataSource, method):
            message = f"{made.__module__}.{made.__qualname__} has no {method}, which mode '{sink.mode}' needs"
            other = "changes" if self._is_final else "final"
            raise SquallError("SQ7002", message, sink.place("mode"), f"define it, or write mode '{other}'")

    def __str__(self) -> str:
        return self._sink.name

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        columns = from_arrow_schema(_with_zones(schema))
        method = "writer" if self._is_final else "streamWriter"
        made = self._call(method, lambda: getattr(self._source, method)(columns, overwrite=self._is_final))
        return PythonWriter(made, schema, columns, self._call, self._for_tasks(made, schema, columns))

    def _for_tasks(self, writer: Any, schema: pa.Schema, columns: StructType) -> "PythonTaskWriter | None":
        try:
            packed = cloudpickle.dumps(writer)  # type: ignore[no-untyped-call]
        except Exception:  # NB: whatever cannot be pickled raises what it likes; then the driver writes
            return None
        return PythonTaskWriter(self._sink.name, self._sink.span, packed, schema, columns, self._folders)

    def finish(self) -> None:
        """End the run: all batches are committed."""

    def close(self) -> None:
        """Leave the data source."""

    def _call(self, method: str, ask: Callable[[], T]) -> T:
        return _call(self._sink.name, self._sink.span, method, ask)


def _call(name: str, span: Span | None, method: str, ask: Callable[[], T]) -> T:
    """Call a method of a sink; SQ7006 for what it raises."""
    try:
        return ask()
    except SquallError:
        raise
    except Exception as error:
        what = f"the sink {name} raised {described(error, method)}"
        raise SquallError("SQ7006", what, span, "the batch before is whole") from error


class PythonWriter:
    """A writer of a data source, with rows as it takes them.

    Args:
        call: Calls a method of it, by what is said if that raises.
    """

    def __init__(
        self,
        writer: DataSourceWriter | DataSourceStreamWriter,
        schema: pa.Schema,
        columns: StructType,
        call: Callable[[str, Callable[[], Any]], Any],
        for_tasks: "PythonTaskWriter | None",
    ) -> None:
        self._writer, self._schema, self._columns, self._call = writer, schema, columns, call
        self._for_tasks = for_tasks

    def write(self, rows: Iterator[pa.RecordBatch], batch: int) -> Any:
        given = _given(self._writer, pa.Table.from_batches(rows, self._schema), self._columns)
        with _task(batch):
            return self._call(f"write of batch {batch:,}", lambda: self._writer.write(given))

    def for_tasks(self) -> "PythonTaskWriter | None":
        return self._for_tasks

    def commit(self, messages: list[Any], batch: int) -> None:
        self._call(f"commit of batch {batch:,}", lambda: self._writer.commit(messages, *self._number(batch)))

    def abort(self, messages: list[Any], batch: int) -> None:
        with suppress(Exception):  # NB: the error that led here is told
            self._writer.abort(messages, *self._number(batch))

    def _number(self, batch: int) -> tuple[int, ...]:
        return (batch,) if isinstance(self._writer, DataSourceStreamWriter) else ()


@dataclass
class PythonTaskWriter:
    """A writer of a data source in tasks, pickled; the module of its class is found from `folders`."""

    name: str
    span: Span | None
    packed: bytes
    schema: pa.Schema
    columns: StructType
    folders: Sequence[str]
    is_shared = False  # NB: other hosts may not have the module

    @cached_property
    def _writer(self) -> Any:
        look_in(self.folders)
        return cloudpickle.loads(self.packed)

    def write(self, rows: pa.Table, batch: int, partition: int) -> Any:
        def ask() -> Any:
            given = _given(self._writer, rows.cast(self.schema), self.columns)
            with _task(batch, partition):
                return self._writer.write(given)

        return _call(self.name, self.span, f"write of batch {batch:,}", ask)


def _given(writer: Any, rows: pa.Table, columns: StructType) -> Any:
    """Give rows as a writer takes them."""
    table = rows.cast(_with_zones(rows.schema))
    return iter(
        table.to_batches() if isinstance(writer, _ARROW) else ArrowTableToRowsConversion.convert(table, columns)
    )


def _load(sink: SinkSpec, base: Path) -> type[DataSource]:
    """Import the class of a sink, which an option names, or a package brings."""
    if sink.format == PYTHON:
        name = next(value for option, value in sink.options.items() if option.lower() == "class")
        found = find_object("class", name, search_path(base), is_data_source, sink.place("class"))
        hint = "" if is_data_source(found) else suggest_object(name, is_data_source)
    else:
        name, found, hint = sink.format, load(SINKS, sink.format), "its package has to be mended"
    if not is_data_source(found):
        message = f"{name} is no class that derives from pyspark.sql.datasource.DataSource"
        raise SquallError("SQ7002", message, sink.place("class"), hint)
    made: type[DataSource] = found
    return made


def _with_zones(schema: pa.Schema) -> pa.Schema:
    """Give timestamps the zone UTC, as Spark's TIMESTAMP has one."""
    zoned = pa.timestamp("us", "UTC")
    return pa.schema([field.with_type(zoned) if pa.types.is_timestamp(field.type) else field for field in schema])


@contextmanager
def _task(batch: int, partition: int = 0) -> Iterator[None]:
    """Run as a task of a batch, for writers that ask which one they are."""
    before = TaskContext.get()
    TaskContext._setTaskContext(None)
    context = TaskContext._getOrCreate()
    context._partitionId, context._attemptNumber, context._stageId = partition, 0, 0
    context._taskAttemptId, context._localProperties = batch, {BATCH: str(batch)}
    try:
        yield
    finally:
        TaskContext._setTaskContext(before)
