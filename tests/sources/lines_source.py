"""Data sources for PySpark over the lines of a file, `key,value`, which may be appended to at any time."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

Rows = Iterator[Any]


@dataclass
class Range(InputPartition):
    """Lines from one number to another."""

    start: int
    stop: int


def lines(options: Any, start: int = 0, stop: int | None = None) -> list[tuple[int, str]]:
    """The whole lines of the file, from one number to another."""
    text = Path(options["file"]).read_text().rpartition("\n")[0]
    found = (line.split(",") for line in text.splitlines()[start:stop])
    return [(int(key), value) for key, value in found]


class StreamReader(DataSourceStreamReader):
    """The form of Spark before 4.2, without limits; two lines to a partition."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def initialOffset(self) -> dict:
        return {"line": 0}

    def latestOffset(self) -> dict:  # type: ignore[override]
        return {"line": len(lines(self.options))}

    def partitions(self, start: dict, end: dict) -> list[InputPartition]:
        starts = range(start["line"], end["line"], 2)
        return [Range(each, min(each + 2, end["line"])) for each in starts]

    def read(self, partition: Any) -> Rows:
        yield from lines(self.options, partition.start, partition.stop)

    def commit(self, end: dict) -> None:
        Path(self.options["file"]).with_suffix(".done").write_text(str(end["line"]))


class LimitedReader(StreamReader):
    """The form with limits, rows by name."""

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(4)

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:  # type: ignore[override]
        there = len(lines(self.options))
        if isinstance(limit, ReadAllAvailable):
            return {"line": there}
        assert isinstance(limit, ReadMaxRows)
        return {"line": min(there, start["line"] + limit.max_rows)}

    def read(self, partition: Any) -> Rows:
        return (Row(value=value, key=key) for key, value in lines(self.options, partition.start, partition.stop))


class ArrowReader(LimitedReader):
    """Record batches, one a partition."""

    def read(self, partition: Any) -> Rows:
        keys, values = zip(*lines(self.options, partition.start, partition.stop), strict=True)
        yield pa.record_batch({"key": pa.array(keys, pa.int32()), "value": pa.array(values)})


class SimpleReader(SimpleDataSourceStreamReader):
    """Three lines at a time, read on the driver."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def initialOffset(self) -> dict:
        return {"line": 0}

    def read(self, start: dict) -> tuple[Rows, dict]:
        found = lines(self.options, start["line"], start["line"] + 3)
        return iter(found), {"line": start["line"] + len(found)}

    def readBetweenOffsets(self, start: dict, end: dict) -> Rows:
        return iter(lines(self.options, start["line"], end["line"]))

    def commit(self, end: dict) -> None:
        Path(self.options["file"]).with_suffix(".done").write_text(str(end["line"]))


class TableReader(DataSourceReader):
    """All lines, one to a partition."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        return [Range(number, number + 1) for number in range(len(lines(self.options)))]

    def read(self, partition: Any) -> Rows:
        yield from lines(self.options, partition.start, partition.stop)


class Lines(DataSource):
    """Lines as a stream."""

    def schema(self) -> str:
        return "key INT, value STRING"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self.options)


class LimitedLines(Lines):
    """Lines as a stream with limits."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LimitedReader(self.options)


class ArrowLines(Lines):
    """Lines as a stream of record batches."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ArrowReader(self.options)


class SimpleLines(DataSource):
    """Lines as a simple stream."""

    def schema(self) -> str:
        return "key INT, value STRING"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return SimpleReader(self.options)


class ForgetfulReader(SimpleReader):
    """A reader that cannot read a batch again."""

    readBetweenOffsets = SimpleDataSourceStreamReader.readBetweenOffsets


class ForgetfulLines(SimpleLines):
    """Lines that are read once."""

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return ForgetfulReader(self.options)


def generated(options: Any, start: int) -> Rows:
    """Yield the lines behind those that are safe."""
    yield from lines(options, start)


def failing(options: Any) -> Rows:
    """Yield two rows, then raise."""
    yield from [(1, "a"), (1, "b")]
    raise RuntimeError("the feed is gone")


class TableLines(DataSource):
    """Lines as a table."""

    def schema(self) -> str:
        return "key INT, value STRING"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(self.options)
