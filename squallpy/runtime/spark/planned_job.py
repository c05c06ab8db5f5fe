"""Stages of bytes that Spark plans once and runs batch after batch.

    rows = map_stage(stage, exchange(map_stage(first, anchors), tasks=2))
    planned = PlannedJob(rows, RowFetcher(jvm))
    planned.collect()      →  its rows; its exchanges run each time
    planned.drop()            the files of its exchanges

Planning a job takes Spark longer than a small batch, and still longer for SQL, whose plan is sent to each task. But
Spark skips an exchange whose files exist: so they are unregistered before each batch. They stay on disk until the plan
is dropped, and an abandoned task that reads them late may find those of another batch: so each row carries its batch
number (worker_tasks.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext
from pyspark.serializers import NoOpSerializer, SpecialLengths, read_int
from pyspark.util import _load_from_socket

_MOST_RUNS = 64  # runs before a plan is replaced, as each leaves the files of its exchanges
_FEW_ROWS, _SMALL_ROW = 6, 3_000  # rows of a job, and bytes of each, that calls fetch sooner than a socket
_PATIENCE, _MOST_PATIENCE = 8, 1 << 10  # jobs with small rows before their rows are fetched by calls
_EXCHANGE = "org.apache.spark.ShuffleDependency"

NOTHING = b""  # an empty row

StageFunction = Callable[[Iterable[bytes]], Iterable[bytes]]
"""The work of a task on its rows; of rows to be exchanged, each follows the number of its target task."""


class CompleteRows(NoOpSerializer):
    """A serializer of rows as they come, all of them.

    Where Spark cannot read what was sent it closes the stream, which PySpark's own serializers take for the end: a
    stage would apply a part of a batch, and learn only then that it has failed.
    """

    def load_stream(self, stream: Any) -> Iterator[bytes]:
        """Yield the rows of a stream; a stream that is cut raises EOFError, or struct.error within a length."""
        while (length := read_int(stream)) != SpecialLengths.END_OF_DATA_SECTION:  # type: ignore[no-untyped-call]
            row = stream.read(length)
            if len(row) < length:
                raise EOFError(f"a row of {length} bytes ends after {len(row)}")
            yield row


class RowFetcher:
    """The way of the rows of finished jobs to Python: a few small ones come by a call each, others through a socket.

    Opening that socket takes a millisecond, ten times as long as a call. But an answer that is longer than 8 KB waits
    0.08 s for delayed acknowledgements (Nagle's algorithm), and how long a row is, is known when it has come. So calls
    are made where the rows of the jobs before were small, and after one that was not, for twice as many jobs as after
    the last of that kind they are not.
    """

    def __init__(self, jvm: Any) -> None:
        self._serve, self._scala = jvm.PythonRDD.serveIterator, jvm.scala.jdk.javaapi.CollectionConverters
        self._patience, self._small_jobs = _PATIENCE, 0

    def fetch(self, found: Any, reader: Any) -> list[bytes]:
        """Fetch rows from a list of the JVM's."""
        by_calls = self._small_jobs >= self._patience
        rows = [found.get(i) for i in range(found.size())] if by_calls else self._stream(found, reader)
        is_small = len(rows) <= _FEW_ROWS and all(len(row) <= _SMALL_ROW for row in rows)
        if by_calls and not is_small:
            self._patience = min(2 * self._patience, _MOST_PATIENCE)
        self._small_jobs = self._small_jobs + 1 if is_small else 0
        return rows

    def _stream(self, found: Any, reader: Any) -> list[bytes]:
        served = _load_from_socket(self._serve(self._scala.asScala(found).iterator(), "rows of a batch"), reader)
        with served if isinstance(served, AbstractContextManager) else nullcontext(served) as rows:
            return list(rows)


class PlannedJob:
    """An RDD that was planned once, with the number of its runs."""

    def __init__(self, rows: "RDD[bytes]", fetcher: RowFetcher) -> None:
        context = rows.ctx
        self._context = context._jsc.sc()
        self._rows, self._reader = rows._jrdd, rows._jrdd_deserializer
        self._exchanges = [*_exchanges(context._gateway, self._rows.rdd())]
        self._tracker = self._context.taskScheduler().mapOutputTracker()
        self._fetcher, self.used = fetcher, 0

    @property
    def is_exhausted(self) -> bool:
        """True if the files of many exchanges have accumulated."""
        return bool(self._exchanges) and self.used >= _MOST_RUNS

    def collect(self, interrupted: Callable[[], None] = lambda: None) -> list[bytes]:
        """Run the job and return its rows, also if the query is stopped meanwhile: then `interrupted` is called."""
        self.used += 1
        for exchange in self._exchanges:
            if self._tracker.containsShuffle(exchange):
                self._tracker.unregisterAllMapAndMergeOutput(exchange)
        # NB: before a job Spark reads the classes of its functions to check that they can be sent: 400 KB for
        # RDD.collect, 250 KB for PythonRDD.runJob (2 ms), 26 KB for this
        return self._fetcher.fetch(_wait(self._rows.collectAsync(), interrupted), self._reader)

    def drop(self) -> None:
        """Delete the files of its exchanges, as it will not run again."""
        cleaner = self._context.cleaner()
        for exchange in self._exchanges if cleaner.isDefined() else ():
            cleaner.get().doCleanupShuffle(exchange, False)


def _wait(future: Any, interrupted: Callable[[], None]) -> Any:
    """Wait for a job. Who stops a query interrupts its thread, which the job does not notice."""
    try:
        return future.get()
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.InterruptedException":
            raise
        interrupted()
        return future.get()


def map_stage(stage: StageFunction, rows: "RDD[bytes]") -> "RDD[bytes]":
    """Apply the stage to the rows of each task."""
    mapped = rows.mapPartitions(stage)
    mapped._bypass_serializer = True  # type: ignore[attr-defined]
    return mapped


def exchange(sent: "RDD[bytes]", tasks: int) -> "RDD[bytes]":
    """Exchange a stage's output, each row to its target task."""
    jvm = sent.ctx._jvm
    assert jvm is not None
    pairs = jvm.PairwiseRDD(sent._jrdd.rdd()).asJavaPairRDD()
    return rdd_of_bytes(sent.ctx, jvm.PythonRDD.valueOfPair(pairs.partitionBy(jvm.PythonPartitioner(tasks, 0))))


def rdd_of_bytes(context: SparkContext, rows: Any) -> "RDD[bytes]":
    """Wrap Java's rows as an RDD of bytes."""
    return RDD(rows, context, CompleteRows())


def preferred_hosts(context: SparkContext, hosts: Sequence[str]) -> "RDD[bytes]":
    """Create an empty row for each task, with its preferred host; "" for none."""
    jvm = context._jvm
    assert jvm is not None
    rows = [jvm.scala.Tuple2(NOTHING, jvm.PythonUtils.toSeq([host] if host else [])) for host in hosts]
    hinted = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(rows), jvm.scala.reflect.ClassTag.AnyRef())
    return rdd_of_bytes(context, hinted.toJavaRDD())


def zip_partitions(rows: "RDD[bytes]", others: "RDD[bytes]", tasks: int) -> "RDD[bytes]":
    """Append the rows of each task of `others`, preferring the hosts of both."""
    context, jvm = rows.ctx, rows.ctx._jvm
    assert jvm is not None
    both = jvm.PythonUtils.toSeq([rows._jrdd.rdd(), others._jrdd.rdd()])
    zipped = jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD  # zips partitions, with the preferred hosts of both
    united = zipped(context._jsc.sc(), both, tasks, jvm.scala.reflect.ClassTag.AnyRef())
    return rdd_of_bytes(context, united.toJavaRDD())


def _exchanges(gateway: Any, rows: Any) -> Iterator[int]:
    """List the numbers of all exchanges that an RDD depends on."""
    dependencies = rows.dependencies()
    for i in range(dependencies.size()):
        dependency = dependencies.apply(i)
        if is_instance_of(gateway, dependency, _EXCHANGE):
            yield dependency.shuffleId()
        yield from _exchanges(gateway, dependency.rdd())
