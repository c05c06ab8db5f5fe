"""Streaming DataFrames as sources: rows that a program has made of streams of Spark's."""

from pathlib import Path

from pyspark.sql import DataFrame as DataFrame
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery as StreamingQuery

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import Relation
from squallpy.runtime.spark.stream_source import SparkStream


class FrameStream(SparkStream):
    """A streaming DataFrame as a source."""

    def __init__(self, relation: Relation, frame: DataFrame) -> None:
        super().__init__(relation, Path())
        self._frame = frame

    def _load_stream(self, session: object) -> DataFrame:
        return self._frame


def check_frame(frame: DataFrame) -> None:
    """Raise SQ2005 for a DataFrame that does not stream, SQ3001 for one of Spark Connect."""
    session: object = frame.sparkSession
    if not isinstance(session, SparkSession):
        hint = "call it in the program that drives Spark"
        raise SquallError("SQ3001", "fresh over a DataFrame of Spark Connect is not supported", hint=hint)
    if not frame.isStreaming:
        hint = "spark.readStream makes one; the functions of squallpy.register answer once"
        raise SquallError("SQ2005", "fresh takes a streaming DataFrame, and this one does not stream", hint=hint)


def declare_columns(frame: DataFrame) -> str:
    """Write the columns of a DataFrame as a declaration has them: `a` double, `b` int."""
    return ", ".join(f"{quote(f.name)} {f.dataType.simpleString()}" for f in frame.schema.fields)


def quote(name: str) -> str:
    """Write a name as it is."""
    return "`" + name.replace("`", "``") + "`"


def find_query(frame: DataFrame, name: str) -> StreamingQuery | None:
    """Find an active query of the session by its name."""
    return next((query for query in frame.sparkSession.streams.active if query.name == name), None)
