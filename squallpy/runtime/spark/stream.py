"""The micro-batch loop: Structured Streaming keeps the offsets, `foreachBatch` runs one Spark job per batch.

    run(session, StreamJob(batches=10, splits=2, partitions=2, feed, apply, checkpoint), on_batch)   →  9

Spark's `rate-micro-batch` source is the clock: it ticks once per batch, and the batch's number in the checkpoint is
the offset, of which everything else is a pure function. (A Python source says the same with two more processes, a
second Python hop and 0.01 s more per batch.) A batch is committed when `on_batch` has returned, and is run again after
a crash before that. (A query counts its batches in its own checkpoint, on any file system, and starts the clock anew:
so for it many batches go to a tick, and what Spark does between ticks, a third of a small batch, is done once.)
"""

import json
import pickle
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from time import perf_counter, time
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from squallpy.base.errors import SquallError
from squallpy.base.trace import SILENT, Trace
from squallpy.runtime.spark.placement import Placement
from squallpy.runtime.spark.planned_job import Planned, Stage, exchanged, staged
from squallpy.runtime.spark.tasks import (
    BATCH,
    COURSE,
    Apply,
    BetweenStage,
    Feed,
    FeedStage,
    LastStage,
    Note,
    Output,
    Shipment,
    Told,
    Work,
    merged,
    payloads,
)

_LOOK = 0.5  # seconds between looks at whether Spark's loop still runs


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A bounded replay: micro-batches 0 … batches−1, each of `splits` tasks that read and, in each of `stages`,
    `partitions` that apply. Without stages what is read is the output.

    `feed` and `apply` are pickled once; what they keep on themselves stays in a worker from batch to batch, but is
    lost with it, and no partition is tied to one worker. A SquallError raised by either ends the run as itself.
    """

    batches: int
    splits: int
    partitions: int
    feed: Feed
    apply: Apply
    checkpoint: str
    stages: int = 1
    first: int = 0
    """The batch of the first tick, where nothing in the checkpoint says more."""
    course: Callable[[], tuple[int, str]] | None = None
    """How many of the stages the next batch has, and what its tasks are to know of it; else all, and nothing."""
    trace: Trace = SILENT  # the one that feed and apply write, if they do
    before: Callable[[int], None] | None = None
    """What the driver does before a batch; it is done again where a batch is."""
    together: int = 1
    """How many batches go to a tick. Of several, the caller keeps count: a tick that is not done comes again whole."""
    skips_feed: bool = False
    """Tasks of the first stage read all for themselves, where they need not be sent it: no stage feeds them."""

    def __post_init__(self) -> None:
        assert self.batches >= 0 and self.stages >= 0 and min(self.splits, self.partitions, self.together) > 0


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """Seconds that a batch took, and where."""

    batch: int
    job: float
    """The Spark job, from its planning to its rows on the driver."""
    feed: float
    """The slowest split."""
    apply: float
    """The slowest partition."""
    between: float
    """From the end of the batch before to the start of this: at a tick, Spark's commit and next offset. 0 for the first
    batch."""
    spark: dict[str, Any]
    """Spark's own progress report of the tick before, `durationMs` among it; empty for the first, and within a tick."""
    told: Told = ()
    """What its tasks had to tell."""
    began: float = 0.0
    """When the job was started, by the clock; its end is `job` later."""
    built: float = 0.0
    """Of the job: until Spark had been told of it."""
    works: tuple[Work, ...] = ()
    """What its tasks did, if anybody asks."""

    @property
    def fixed(self) -> float:
        """What the batch would have cost without anything in it."""
        return self.job - self.feed - self.apply + self.between

    def metrics(self) -> dict[str, Any]:
        """As a plain dictionary, for `--metrics`."""
        return asdict(self) | {"fixed": self.fixed}


OnBatch = Callable[[int, list[bytes], BatchTimes], bool]
"""(batch, outputs by partition, times) → whether to go on. Called again for a batch that was not committed."""


def run(session: SparkSession, job: StreamJob, on_batch: OnBatch, stop: threading.Event | None = None) -> int:
    """Runs the job from where its checkpoint stands; returns the last batch done, −1 if none ever was.

    Ends after the last batch, or after the one in work when `on_batch` returns False, `stop` is set or Ctrl-C is
    pressed (then with KeyboardInterrupt; a second one does not wait). Raises what `on_batch` raised and any SquallError
    of `feed` and `apply`; that batch is not committed, and comes again in the next run.
    """
    loop = _Loop(session, job, on_batch, stop or threading.Event())
    query = loop.start()
    # NB: what is neither an Exception nor KeyboardInterrupt ends the run at once: the JVM is asked nothing then,
    # for a call to it may have been cut short
    try:
        try:
            loop.wait(query)
        except KeyboardInterrupt:
            loop.stop.set()
            loop.wait(query)
            raise
    except (Exception, KeyboardInterrupt):
        loop.end(query)
        raise
    loop.end(query)
    if loop.error:
        raise loop.error
    return loop.last


class _Loop:
    """What the callback and the caller's thread share. Only the callback's thread writes, until `ended`."""

    def __init__(self, session: SparkSession, job: StreamJob, on_batch: OnBatch, stop: threading.Event) -> None:
        self.session, self.job, self.on_batch, self.stop = session, job, on_batch, stop
        packed = session.sparkContext.broadcast(cloudpickle.dumps((job.feed, job.apply, job.trace)))  # type: ignore[no-untyped-call]
        self.shipment = Shipment(uuid.uuid4().hex, packed)
        self.placement = Placement(session, job.partitions)
        self.tasks = self.placement.tasks
        self.reads = job.skips_feed and job.stages > 0 and self.placement.is_here
        self.readers = self.tasks if self.reads else job.splits
        self.stages = lru_cache(self._stages)
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self.last = -1
        self._until: float | None = None  # when the batch before was done
        self._query: StreamingQuery | None = None
        self._plans: dict[
            int, tuple[RDD[bytes], Planned]
        ] = {}  # by how many stages there are; and what they start from

    def start(self) -> StreamingQuery:
        """Starts Spark's loop at the first batch that the checkpoint does not call committed."""
        clock = self.session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        _write_plainly(self.session, self.job.checkpoint)
        writer = clock.writeStream.foreachBatch(self._tick)
        self._query = writer.option("checkpointLocation", self.job.checkpoint).start()
        return self._query

    def wait(self, query: StreamingQuery) -> None:
        """Until the callback has ended the run, or Spark has without it."""
        while not self.ended.wait(_LOOK):
            if not query.isActive and not self.ended.is_set():
                self.error = query.exception() or RuntimeError("Spark ended the stream by itself")
                return

    def end(self, query: StreamingQuery) -> None:
        """Stop Spark's loop and drop what it had: no batch comes any more."""
        with suppress(Py4JError, OSError):  # the JVM may be gone
            query.stop()
            self.placement.close()
            for _, plan in self._plans.values():
                plan.drop()
            self.shipment.packed.destroy()

    def _tick(self, _: DataFrame, tick: int) -> None:
        first = self.job.first + tick * self.job.together
        self.last = max(self.last, min(first, self.job.batches) - 1)
        try:
            for batch in range(first, first + self.job.together):
                if batch >= self.job.batches or self.stop.is_set():
                    break
                self._run(batch, begins=batch == first)
            else:
                return
        except Py4JJavaError as error:
            self.error = _failure(str(error))  # NB: it asks the JVM for its words, which is gone when they are read
        except BaseException as error:
            self.error = error
        self.ended.set()
        # NB: returning would commit a batch that was not run. And what is raised must be short: Spark looks through
        # its text with a regular expression that overflows the stack on a long one.
        raise _End from None

    def _run(self, batch: int, begins: bool) -> None:
        """A batch; perhaps it begins its tick."""
        start, began = perf_counter(), time()
        self.placement.look()
        if self.job.before:
            self.job.before(batch)
        count, course = self.job.course() if self.job.course else (self.job.stages, "")
        self.session.sparkContext.setLocalProperty(BATCH, str(batch))
        self.session.sparkContext.setLocalProperty(COURSE, course or None)  # type: ignore[arg-type]
        sent = self._planned(count)
        built = perf_counter()
        outputs, note = self._applied(sent) if count else self._read(sent)
        end = perf_counter()
        self.placement.took(end - start)
        times = BatchTimes(
            batch,
            job=end - start,
            feed=note.feed,
            apply=note.apply,
            between=start - self._until if self._until else 0.0,
            spark=self._progress() if begins else {},
            told=note.told,
            began=began,
            built=built - start,
            works=note.works,
        )
        if not self.on_batch(batch, outputs, times):
            self.stop.set()
        self._until, self.last = perf_counter(), batch

    def _planned(self, count: int) -> Planned:
        """What the last of so many stages sends: planned once, as long as tasks stay where they are."""
        ticks = self.placement.reading(self.readers)
        known, plan = self._plans.get(count, (None, None))
        if plan and (known is not ticks or plan.is_worn):
            plan.drop()
            plan = None
        if plan is None:
            plan = Planned(self._staged(ticks, count))
            self._plans[count] = ticks, plan
        return plan

    def _staged(self, ticks: "RDD[bytes]", count: int) -> "RDD[bytes]":
        """So many stages, and exchanges between them."""
        first, *others = self.stages(count)
        sent = staged(first, ticks)
        for stage in others:
            sent = staged(stage, self.placement.anchored(exchanged(sent, self.tasks)))
        return sent

    def _stages(self, count: int) -> list[Stage]:
        """The stages of a batch that has so many behind the one that reads, if one does."""
        shape, last = (self.job.partitions, self.tasks), count - 1
        stages: list[Stage] = [] if self.reads else [FeedStage(self.shipment, *shape)]
        for number in range(count):
            made = LastStage if number == last else BetweenStage
            stages.append(made(self.shipment, number, *shape, self.job.splits if self.reads and number == 0 else 0))
        return stages

    def _applied(self, done: Planned) -> tuple[list[bytes], Note]:
        """The outputs of the last stage by partition, and what was noted."""
        rows: list[Output] = sorted((pickle.loads(row) for row in done.collect()), key=lambda row: row[0])
        for _, failed, _, payload in rows:
            if failed:
                raise pickle.loads(payload)
        assert [partition for partition, *_ in rows] == list(range(self.job.partitions))
        return [output for *_, output in rows], merged(pickle.loads(note) for _, _, note, _ in rows if note)

    def _read(self, sent: Planned) -> tuple[list[bytes], Note]:
        """The same where nothing is applied: what readers have found."""
        outputs, note = payloads(sent.collect()[1::2])  # NB: before each is for whom it would be
        if note.error:
            raise note.error
        return outputs, note

    def _progress(self) -> dict[str, Any]:
        # NB: Spark's own text; PySpark's object for it takes ten times as long to build
        progress = self._query and self._query._jsq.lastProgress()
        return dict(json.loads(progress.json())) if progress else {}


def _failure(said: str) -> Exception:
    """What Spark says of a job that failed for good; in our words where they are those of too little memory."""
    again = "the same command goes on from a --checkpoint, and begins anew without"
    if "OutOfMemoryError" in said:
        hint = f"give it more: --conf spark.driver.memory=4g, on a cluster spark.executor.memory; {again}"
        return SquallError("SQ8007", "Spark ran out of memory", hint=hint)
    if "Python worker exited unexpectedly" in said:
        what = "Python workers of Spark were killed again and again, as the system does when memory is short"
        return SquallError("SQ8007", what, hint=f"free some, or take smaller batches with --batch-rows; {again}")
    return RuntimeError(said)


class _End(Exception):
    """Tells Spark's loop to end without a commit."""


def _write_plainly(session: SparkSession, checkpoint: str) -> None:
    """Lets Spark write a local checkpoint through java.io: four processes fewer per file, 0.08 s fewer per batch.

    Its choice for local paths runs `readlink` and `chmod` for each file. Both rename, so both are atomic. Elsewhere
    (HDFS, object stores) Spark's choice stands.
    """
    key = "spark.sql.streaming.checkpointFileManagerClass"
    if urlsplit(checkpoint).scheme in ("", "file"):
        package = "org.apache.spark.sql.execution.streaming.checkpointing"
        session.conf.set(key, f"{package}.FileSystemBasedCheckpointFileManager")
    else:
        session.conf.unset(key)
