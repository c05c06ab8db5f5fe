"""What Spark plans once, and runs batch after batch.

    planned = Planned(frame.rdd)
    planned.collect()      →  its rows; what it exchanges is exchanged anew each time
    planned.drop()            the files of its exchanges

To analyse, optimise, plan and describe what was planned for the batch before takes Spark longer than a small batch
does. But an exchange whose files are there is not done again: so they are forgotten before each batch. They stay on
disk until the plan is dropped, and who asks late, for a batch that is done, is given those of another: so each row says
of which batch it is (tasks.py).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.util import _load_from_socket

_WORN = 64  # batches of which the files of exchanges are kept at most
_EXCHANGE = "org.apache.spark.ShuffleDependency"


class Planned:
    """The rows of an RDD, and how often they were asked for."""

    def __init__(self, rows: "RDD[Any]") -> None:
        context = rows.ctx
        assert context._jvm is not None
        self._context = context._jsc.sc()
        self._rows, self._reader = rows._jrdd, rows._jrdd_deserializer
        self._exchanges = [*_exchanges(context._gateway, self._rows.rdd())]
        self._tracker = self._context.taskScheduler().mapOutputTracker()
        self._scala = context._jvm.scala.jdk.javaapi.CollectionConverters
        self._serve = context._jvm.PythonRDD.serveIterator
        self.used = 0

    @property
    def is_worn(self) -> bool:
        """Has it left the files of many exchanges?"""
        return bool(self._exchanges) and self.used >= _WORN

    def collect(self) -> list[Any]:
        """The rows now."""
        self.used += 1
        for exchange in self._exchanges:
            if self._tracker.containsShuffle(exchange):
                self._tracker.unregisterAllMapAndMergeOutput(exchange)
        # NB: before a job Spark reads classes that its functions are of, to see whether these can be sent: 400 KB for
        # RDD.collect, 250 KB for PythonRDD.runJob (2 ms), 26 KB for this
        found = self._scala.asScala(self._rows.collectAsync().get()).iterator()
        served = _load_from_socket(self._serve(found, "rows of a batch"), self._reader)
        with served if isinstance(served, AbstractContextManager) else nullcontext(served) as rows:
            return list(rows)

    def drop(self) -> None:
        """It will not be run again."""
        cleaner = self._context.cleaner()
        for exchange in self._exchanges if cleaner.isDefined() else ():
            cleaner.get().doCleanupShuffle(exchange, False)


def framed(session: SparkSession, rows: Any, columns: StructType) -> DataFrame:
    """Rows of Spark's own as a frame."""
    schema = session._jsparkSession.parseDataType(columns.json())
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, schema, False), session)


def _exchanges(gateway: Any, rows: Any) -> Iterator[int]:
    """The numbers of all exchanges behind an RDD."""
    behind = rows.dependencies()
    for i in range(behind.size()):
        dependency = behind.apply(i)
        if is_instance_of(gateway, dependency, _EXCHANGE):
            yield dependency.shuffleId()
        yield from _exchanges(gateway, dependency.rdd())
