"""Streams of Spark's own: USING spark OPTIONS (format 'rate', …) is whatever `readStream` has.

    readStream → foreachBatch: mapInArrow writes a batch's rows into the spool → our batches read them by row number

The stream runs as a query of its own beside the one that keeps the answer fresh. Its offsets are in a checkpoint of
Spark's inside ours. A batch of Spark's counts when its record is in the spool, which names the files of its rows: one
that is tried again after that is skipped, and one before it is written anew. So both agree after any kill, and a batch
of ours that is tried again reads the same rows.

    spark/           Spark's checkpoint
    batch-7          {"first": 600, "rows": [40, 60], "sums": […], "token": "5c…"}     rows 600 … 699
    rows-7-5c…/0     the first 40 of them
"""

import json
import threading
import uuid
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import join_path
from squallpy.base.records import dataclass
from squallpy.catalog.format_options import passed_options
from squallpy.catalog.relation import Relation
from squallpy.runtime.checkpoint.checksummed_record import damaged_error, read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.sources.foreign_source import ArrowPart, ForeignSource, SourceFault, check_rows
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.protocol import BatchLimit, Offset
from squallpy.runtime.sources.python_rows import arrow_schema
from squallpy.runtime.sources.python_source import find_data_source
from squallpy.runtime.sources.source import RowSource, fields_read
from squallpy.runtime.sources.spark_schema import declared_schema
from squallpy.runtime.spark.micro_batch_loop import use_plain_file_manager

AHEAD = 2  # batches of Spark's that are spooled, and not read yet
_LOOK = 0.05  # seconds between looks whether they are


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows of a batch of Spark's: how many each file has, with their checksums."""

    batch: int
    first: int
    rows: tuple[int, ...]
    sums: tuple[int, ...]
    token: str

    @property
    def stop(self) -> int:
        return self.first + sum(self.rows)

    @property
    def folder(self) -> str:
        return f"rows-{self.batch}-{self.token}"


class SparkStream(RowSource):
    """A stream of Spark's, whose rows are numbered as its batches come."""

    def __init__(self, relation: Relation, base: Path) -> None:
        self._relation, self._base = relation, base
        self._folder, self._ends = "", False
        self._segments = list[Segment]()
        self._stop = self._asked = self._done = 0
        self._is_over = False
        self._query: StreamingQuery | None = None
        self._closing, self._lock = threading.Event(), threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder, "_segments": self._segments, "_stop": self._stop}

    @property
    def name(self) -> str:
        return f"spark {self._relation.options.get('format') or self._relation.options['class']}"

    @property
    def rows(self) -> int:
        return self._stop

    @property
    def is_bounded(self) -> bool:
        """True if Spark's stream has ended, and all of it was asked for."""
        return self._is_over

    @property
    def is_behind(self) -> bool:
        return self._ends and not self._is_over

    @property
    def needs_folder(self) -> bool:
        return True

    def begin(self, folder: str | None, ends: bool) -> None:
        assert folder is not None, "on Spark there is always a folder"
        self._folder, self._ends = join_path(folder, f"stream-{zlib.crc32(self._relation.name.encode()):08x}"), ends
        durable = open_durable(self._folder)
        batches = sorted(int(name.removeprefix("batch-")) for name in durable.list("") if name.startswith("batch-"))
        self._segments = [self._load(batch) for batch in batches]
        self._stop = self._segments[-1].stop if self._segments else 0

    def start(self, session: SparkSession, query: str) -> None:
        """Start Spark's stream where it was, as a query of this name; SQ4002, SQ4008."""
        try:
            rows = self._select(self._load_stream(session))
            checkpoint = join_path(self._folder, "spark")
            use_plain_file_manager(session, checkpoint)
            writer = rows.writeStream.foreachBatch(self._spool).queryName(f"{query}.{self._relation.name}")
            writer = writer.trigger(availableNow=True) if self._ends else writer
            self._query = writer.option("checkpointLocation", checkpoint).start()
        except (PySparkException, Py4JJavaError) as error:
            raise self._fault(error) from error

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        # NB: asked before rows are counted, so that none can come in between
        is_over = self._query is not None and not self._query.isActive
        if self._query and is_over and (error := self._query.exception()):
            raise self._fault(error)
        end = super().latest(start, limit)
        self._asked, self._is_over = end["row"], is_over and end["row"] == self._stop
        return end

    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        tables = list[pa.Table]()
        for segment in self._segments:
            if start < segment.stop and segment.first < stop:
                ends = accumulate(segment.rows, initial=segment.first)
                for part, (first, last) in enumerate(pairwise(ends)):
                    if max(start, first) < min(stop, last):
                        table = _read(self._folder, f"{segment.folder}/{part}", segment.sums[part])
                        tables.append(table.slice(max(0, start - first), min(stop, last) - max(start, first)))
        if sum(map(len, tables)) != stop - start:
            raise damaged_error(f"rows {start} … {stop}", self._folder)
        return concat_tables(tables)

    def commit(self, end: Offset) -> None:
        durable, self._done = open_durable(self._folder), end["row"]
        with self._lock:
            done = max(0, bisect_right([segment.stop for segment in self._segments[:-1]], end["row"]))
            gone, self._segments[:done] = self._segments[:done], []
        for segment in gone:
            durable.delete(f"batch-{segment.batch}")
            durable.drop(segment.folder)

    def close(self) -> None:
        self._closing.set()
        if self._query is not None:
            self._query.stop()
            self._query = None

    def read_to_end(self) -> bool:
        """Wait until Spark has read all that is there; True if all of that is committed."""
        if self._query is None:
            return False
        self._query.processAllAvailable()
        return self._done == self._stop and not self._closing.is_set()

    def _load_stream(self, session: SparkSession) -> DataFrame:
        """Load the stream, with the declared columns as its schema where it needs one."""
        options, format = passed_options("spark", self._relation.options), self._relation.options.get("format")
        if "class" in self._relation.options:
            source, _ = find_data_source(self._relation, self._base)
            session.dataSource.register(source)
            format = source.name()
        assert format is not None
        reader = session.readStream.format(format).options(**options)
        try:
            return reader.load()
        except PySparkException as error:
            if "schema" not in str(error).lower():
                raise
            declared = declared_schema([*fields_read(self._relation, ()), *self._relation.fields])
            return session.readStream.format(format).options(**options).schema(declared).load()

    def _select(self, stream: DataFrame) -> DataFrame:
        """Select the declared columns; SQ4002 if one is not there, or cannot become what is declared."""
        part = ArrowPart(self.name, arrow_schema(stream.schema).empty_table())
        check_rows(self._relation, part, [f.name for f in self._relation.fields])
        told = fields_read(self._relation, ())
        wanted = dict.fromkeys(f.path[0] for f in (*told, *self._relation.fields))
        lower = {column.lower(): column for column in stream.columns}
        return stream.select(*(f"`{lower[name.lower()]}`" for name in wanted if name.lower() in lower))

    def _spool(self, rows: DataFrame, batch: int) -> None:
        """Write the rows of a batch of Spark's, unless they are there."""
        if self._segments and batch <= self._segments[-1].batch:
            return
        token = uuid.uuid4().hex[:8]
        written = rows.mapInArrow(_PartWriter(self._folder, f"rows-{batch}-{token}"), _PartWriter.SCHEMA).collect()
        parts = {row["part"]: row for row in written}
        count = max(parts, default=-1) + 1
        found = [(int(parts[n]["rows"]), int(parts[n]["sum"])) if n in parts else (0, 0) for n in range(count)]
        segment = Segment(batch, self._stop, tuple(n for n, _ in found), tuple(sum for _, sum in found), token)
        write_record(open_durable(self._folder, "driver"), f"batch-{batch}", json.dumps(asdict(segment)))
        with self._lock:
            self._segments.append(segment)
        self._stop = segment.stop
        while not self._closing.is_set() and sum(s.stop > self._asked for s in list(self._segments)) > AHEAD:
            self._closing.wait(_LOOK)

    def _load(self, batch: int) -> Segment:
        text = read_record(open_durable(self._folder), f"batch-{batch}", self._folder)
        if text is None:
            raise damaged_error(f"batch-{batch}", self._folder)
        found = json.loads(text)
        return Segment(**found | {"rows": tuple(found["rows"]), "sums": tuple(found["sums"])})

    def _fault(self, error: Exception) -> SquallError:
        text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
        lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
        return SourceFault(self.name, f"fails on Spark: {lines[0].strip()}", span=self._relation.span)


@contextmanager
def started(input: Input, session: SparkSession, query: str) -> Iterator[None]:
    """Start the streams of Spark's in an input, beside the query of this name, and stop them in the end."""
    sources = [source.inner for source in input.sources.values() if isinstance(source, ForeignSource)]
    streams = [source for source in sources if isinstance(source, SparkStream)]
    try:
        for stream in streams:
            stream.start(session, query)
        yield
    finally:
        for stream in streams:
            stream.close()


@dataclass(frozen=True, slots=True)
class _PartWriter:
    """Writer of the rows of one task, which reports how many there are."""

    SCHEMA = "part INT, rows BIGINT, sum BIGINT"

    folder: str
    name: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context
        part, found = context.partitionId(), [batch for batch in batches if batch.num_rows]
        if not found:
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found[0].schema) as writer:
            for batch in found:
                writer.write_batch(batch)
        data = sink.getvalue()
        durable = open_durable(self.folder, f"{part}-{context.attemptNumber()}")
        durable.create(f"{self.name}/{part}", lambda file: file.write(data))
        told = [pa.array([part], pa.int32()), pa.array([sum(b.num_rows for b in found)]), pa.array([zlib.crc32(data)])]
        yield pa.record_batch(told, ["part", "rows", "sum"])


@lru_cache(maxsize=8)
def _read(folder: str, name: str, sum: int) -> pa.Table:
    """Read the rows of a task; SQ6005 if they are damaged."""
    data = open_durable(folder).read(name)
    if data is None or zlib.crc32(data) != sum:
        raise damaged_error(name, folder)
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        return reader.read_all()
