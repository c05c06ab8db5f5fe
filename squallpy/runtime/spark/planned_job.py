"""Stages of bytes that Spark is told of once, and runs batch after batch.

    rows = staged(stage, exchanged(staged(first, anchors), tasks=2))
    planned = Planned(rows)
    planned.collect()      →  its rows; what it exchanges is exchanged anew each time
    planned.drop()            the files of its exchanges

To describe what was described for the batch before takes Spark longer than a small batch does, and more if it is SQL,
of which each task is sent a plan. But an exchange whose files are there is not done again: so they are forgotten before
each batch. They stay on disk until the plan is dropped, and who asks late, for a batch that is done, is given those of
another: so each row says of which batch it is (tasks.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark import RDD, SparkContext
from pyspark.serializers import NoOpSerializer, SpecialLengths, read_int
from pyspark.util import _load_from_socket

_WORN = 64  # batches of which the files of exchanges are kept at most
_EXCHANGE = "org.apache.spark.ShuffleDependency"

NOTHING = b""  # a row that says nothing

Stage = Callable[[Iterable[bytes]], Iterable[bytes]]
"""What a task makes of its rows; if they are to be exchanged, before each the number of the task that it is for."""


class Whole(NoOpSerializer):
    """Rows as they come, all of them. Where Spark cannot read what was sent it closes the stream, which PySpark's own
    serializers take for the end: a stage would apply a part of a batch, and be told only then that it has failed."""

    def load_stream(self, stream: Any) -> Iterator[bytes]:
        """The rows of a stream; an error if it is cut: EOFError, in a length struct.error."""
        while (length := read_int(stream)) != SpecialLengths.END_OF_DATA_SECTION:  # type: ignore[no-untyped-call]
            row = stream.read(length)
            if len(row) < length:
                raise EOFError(f"a row of {length} bytes ends after {len(row)}")
            yield row


class Planned:
    """The rows of an RDD, and how often they were asked for."""

    def __init__(self, rows: "RDD[bytes]") -> None:
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

    def collect(self) -> list[bytes]:
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


def staged(stage: Stage, rows: "RDD[bytes]") -> "RDD[bytes]":
    """The stage on rows, task by task."""
    made = rows.mapPartitions(stage)
    made._bypass_serializer = True  # type: ignore[attr-defined]
    return made


def exchanged(sent: "RDD[bytes]", tasks: int) -> "RDD[bytes]":
    """What a stage has sent, each row at the task that it is for."""
    jvm = sent.ctx._jvm
    assert jvm is not None
    pairs = jvm.PairwiseRDD(sent._jrdd.rdd()).asJavaPairRDD()
    return of_bytes(sent.ctx, jvm.PythonRDD.valueOfPair(pairs.partitionBy(jvm.PythonPartitioner(tasks, 0))))


def of_bytes(context: SparkContext, rows: Any) -> "RDD[bytes]":
    """Java's rows as ours."""
    return RDD(rows, context, Whole())


def anchors(context: SparkContext, hosts: Sequence[str]) -> "RDD[bytes]":
    """A row that says nothing for each task, which would rather be on a host; "": it does not matter."""
    jvm = context._jvm
    assert jvm is not None
    rows = [jvm.scala.Tuple2(NOTHING, jvm.PythonUtils.toSeq([host] if host else [])) for host in hosts]
    made = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(rows), jvm.scala.reflect.ClassTag.AnyRef())
    return of_bytes(context, made.toJavaRDD())


def together(rows: "RDD[bytes]", others: "RDD[bytes]", tasks: int) -> "RDD[bytes]":
    """The rows of each task with the others of it, on the hosts where either would be."""
    context, jvm = rows.ctx, rows.ctx._jvm
    assert jvm is not None
    both = jvm.PythonUtils.toSeq([rows._jrdd.rdd(), others._jrdd.rdd()])
    zipped = jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD  # zips partitions, likes hosts that any likes
    made = zipped(context._jsc.sc(), both, tasks, jvm.scala.reflect.ClassTag.AnyRef())
    return of_bytes(context, made.toJavaRDD())


def _exchanges(gateway: Any, rows: Any) -> Iterator[int]:
    """The numbers of all exchanges behind an RDD."""
    behind = rows.dependencies()
    for i in range(behind.size()):
        dependency = behind.apply(i)
        if is_instance_of(gateway, dependency, _EXCHANGE):
            yield dependency.shuffleId()
        yield from _exchanges(gateway, dependency.rdd())
