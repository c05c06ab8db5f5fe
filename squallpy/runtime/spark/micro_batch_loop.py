"""The micro-batch loop: Structured Streaming keeps the offsets, `foreachBatch` runs one Spark job per batch.

    run(session, StreamJob(batches=10, splits=2, partitions=2, feed, apply, checkpoint), on_batch)   →  9

Spark's `rate-micro-batch` source is the clock: it ticks once per batch, and the batch's number in the checkpoint is
the offset, of which everything else is a pure function. (A Python source would do the same with two more processes and
0.01 s more per batch.) A batch is committed when `on_batch` has returned, and is run again after a crash before that.
(A query counts its batches in its own checkpoint, on any file system, and starts a new clock: so it runs many batches
per tick, and Spark's work between ticks, a third of a small batch, is done once.)
"""

import json
import pickle
import threading
import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from time import perf_counter, time
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from squallpy.base.errors import SquallError
from squallpy.base.events import INFO, SPARK, first_line, log_event
from squallpy.base.records import dataclass
from squallpy.base.timing import SILENT, Trace
from squallpy.runtime.sources.input import Input
from squallpy.runtime.spark.planned_job import PlannedJob, RowFetcher, StageFunction, exchange, map_stage
from squallpy.runtime.spark.preferred_locations import PreferredLocations
from squallpy.runtime.spark.worker_tasks import (
    APPLY_DIRECTIVE,
    BATCH,
    FEED_DIRECTIVE,
    ApplyTask,
    BetweenStage,
    Directives,
    FeedStage,
    FeedTask,
    LastStage,
    Output,
    PickledStages,
    Reports,
    TaskProfile,
    TaskReport,
    feed_outputs,
    merge_reports,
)

_LOOK = 0.5  # seconds between polls of Spark's loop
_POLL = 0.05  # seconds between polls of the input, while there is nothing to read
_TICK = 0.9  # seconds after which a tick ends, for Spark reports progress by ticks
_CALL_SITE, _DESCRIPTION, _GROUP = "callSite.short", "spark.job.description", "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A run of micro-batches, numbered from 0, each of `splits` tasks that read and, in each of `stages`, `partitions`
    that apply. Without stages what is read is the output.

    `feed` and `apply` are pickled once; what they keep on themselves stays in a worker from batch to batch, but is
    lost with it, and no partition is tied to one worker. A SquallError raised by either ends the run as itself.
    """

    batches: int | None
    """Their number; None: without end."""
    splits: int
    partitions: int
    feed: FeedTask
    apply: ApplyTask
    checkpoint: str
    stages: int = 1
    first: int = 0
    """The batch of the first tick, unless the checkpoint is further."""
    directives: Callable[[], Directives] | None = None
    """The directives for the next batch; by default all stages, without any."""
    trace: Trace = SILENT  # shared with feed and apply
    prepare: Callable[[int], None] | None = None
    """The driver's preparation of a batch, repeated where the batch is."""
    batches_per_tick: int = 1
    """Batches per tick. The caller counts them: an unfinished tick is repeated as a whole."""
    input: Input | None = None
    """The input whose batches are waited for, and end where it does; by default there are `batches`, at once."""
    name: str = ""
    """The name of the query among `spark.streams.active`."""
    titles: Sequence[str] = ()
    """Names of the stages in Spark's pages: the one that reads, then the others."""
    skips_feed: bool = False
    """True if each task of the first stage may read the whole batch, without a feed stage and an exchange."""

    def __post_init__(self) -> None:
        assert self.batches is None or self.batches >= 0
        assert self.stages >= 0 and min(self.splits, self.partitions, self.batches_per_tick) > 0


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """Seconds of a batch by phase."""

    batch: int
    job: float
    """The Spark job, from its planning to its rows on the driver."""
    feed: float
    """The slowest split."""
    apply: float
    """The slowest partition."""
    between: float
    """Seconds from the end of the batch before, at a tick Spark's commit and next offset; 0 for the first batch."""
    spark: dict[str, Any]
    """Spark's own progress report of the tick before, `durationMs` among it; empty for the first, and within a tick."""
    reports: Reports = ()
    """Reports of its partitions."""
    retries: int = 0
    """Attempts at its tasks that have failed."""
    began: float = 0.0
    """Wall-clock time of the job's start; it ends `job` later."""
    built: float = 0.0
    """Seconds of the job until Spark has its description."""
    profiles: tuple[TaskProfile, ...] = ()
    """Profiles of its tasks, if tracing is on."""

    @property
    def fixed(self) -> float:
        """Seconds that the batch would have cost without any input."""
        return self.job - self.feed - self.apply + self.between


OnBatch = Callable[[int, list[bytes], BatchTimes], bool]
"""(batch, outputs by partition, times) → whether to go on. Called again for a batch that was not committed."""


def run(session: SparkSession, job: StreamJob, on_batch: OnBatch, stop: threading.Event | None = None) -> int:
    """Run the job from where its checkpoint stands, and return the last batch done, −1 if none ever was.

    Ends after the last batch, or after the running one when `on_batch` returns False, `stop` is set or Ctrl-C is
    pressed (then with KeyboardInterrupt; a second one does not wait). Raises what `on_batch` raised and any SquallError
    of `feed` and `apply`; that batch is not committed, and is repeated by the next run.
    """
    loop = _Loop(session, job, on_batch, stop or threading.Event())
    query = loop.start()
    # NB: another BaseException ends the run at once, without a call to the JVM: an earlier one may have been cut
    # short
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
    """State shared by the callback and the caller's thread. Only the callback's thread writes, until `ended`."""

    def __init__(self, session: SparkSession, job: StreamJob, on_batch: OnBatch, stop: threading.Event) -> None:
        self.session, self.job, self.on_batch, self.stop = session, job, on_batch, stop
        packed = session.sparkContext.broadcast(cloudpickle.dumps((job.feed, job.apply, job.trace)))  # type: ignore[no-untyped-call]
        self.pickled = PickledStages(uuid.uuid4().hex, packed)
        self.preferred = PreferredLocations(session, job.partitions)
        self.tasks = self.preferred.tasks
        self.reads = job.skips_feed and job.stages > 0 and self.preferred.is_here
        self.readers = self.tasks if self.reads else job.splits
        self.stages = lru_cache(self._create_stages)
        self.ended, self._is_ended = threading.Event(), False  # the latter by `on_batch`, of this run alone
        self._ticking = threading.Lock()  # held while batches run
        self._properties: dict[str, str] = {}  # what Spark was told in this tick, for the jobs that begin next
        self.error: BaseException | None = None
        self.last, self.next = -1, job.first
        self._batch_end: float | None = None  # when the previous batch was done
        self._query: StreamingQuery | None = None
        self._fetcher = RowFetcher(session.sparkContext._jvm)
        self._plans: dict[int, tuple[RDD[bytes], PlannedJob]] = {}  # by number of stages, with their initial rows

    def start(self) -> StreamingQuery:
        """Start Spark's loop at the first batch that is not committed."""
        clock = self.session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        use_plain_file_manager(self.session, self.job.checkpoint)
        writer = clock.writeStream.foreachBatch(self._tick)
        writer = writer.queryName(_free_name(self.session, self.job.name)) if self.job.name else writer
        self._query = writer.option("checkpointLocation", self.job.checkpoint).start()
        return self._query

    def wait(self, query: StreamingQuery) -> None:
        """Wait until the callback has ended the run, or Spark has without it."""
        while not self.ended.wait(_LOOK):
            if not query.isActive:
                self.stop.set()  # NB: somebody has stopped the query; a batch that runs is ended first
                with self._ticking:
                    self.error = self.error if self.ended.is_set() else query.exception()
                return

    def end(self, query: StreamingQuery) -> None:
        """Stop Spark's loop and release its resources."""
        try:
            query.stop()
            self.preferred.close()
            for _, plan in self._plans.values():
                plan.drop()
            self.pickled.packed.destroy()
        except (Py4JError, OSError) as error:  # NB: the JVM may have ended
            log_event(SPARK, INFO, "query not stopped", error=first_line(error))

    def _tick(self, _: DataFrame, tick: int) -> None:
        self._properties.clear()  # NB: Spark describes a tick itself
        self._tell(
            _GROUP, f"squallpy {self.pickled.token}"
        )  # NB: a query that is stopped cancels the jobs of its group
        with self._ticking:
            self._run_tick(tick)

    def _run_tick(self, tick: int) -> None:
        """Run batches until the tick ends."""
        if self.job.batches_per_tick == 1:
            self.next = self.job.first + tick
        self.last = max(self.last, min(self.next, self.job.batches or self.next) - 1)
        until = perf_counter() + _TICK
        try:
            for number in range(self.job.batches_per_tick):
                while not self._is_over and self.job.input and not self.job.input.is_ready(self.next):
                    if perf_counter() > until:
                        return
                    if not self._is_over:
                        self.stop.wait(_POLL)
                if self._is_over:
                    break
                self._run(self.next, begins=number == 0)
                self.next += 1
                if perf_counter() > until:
                    return
            else:
                return
        except Py4JJavaError as error:
            self.error = _translate_failure(str(error))  # NB: str calls the JVM, which may have ended later
        except BaseException as error:
            self.error = error
        self.ended.set()
        # NB: returning would commit a batch that was not run. The error's text must be short: Spark searches it with a
        # regular expression that overflows the stack on a long one.
        raise _End from None

    @property
    def _is_over(self) -> bool:
        """True if there is no other batch, or none wanted."""
        has_next = self.job.input.has(self.next) if self.job.input else self.next < (self.job.batches or 0)
        return self._is_ended or self.stop.is_set() or not has_next

    def _run(self, batch: int, begins: bool) -> None:
        """Run a batch; `begins`: it is the first of its tick."""
        start, began = perf_counter(), time()
        self.preferred.refresh()
        if self.job.prepare:
            self.job.prepare(batch)
        told = self.job.directives() if self.job.directives else Directives(self.job.stages)
        described = f"{self.job.name or 'squallpy'}: batch {batch}"
        properties = {
            BATCH: str(batch), FEED_DIRECTIVE: told.feed, APPLY_DIRECTIVE: told.apply, _DESCRIPTION: described
        }  # fmt: skip
        for name, value in properties.items():
            self._tell(name, value)
        sent = self._plan_job(told.stages)
        self._call(self._title(told.stages))
        built = perf_counter()
        outputs, report = self._collect_applied(sent) if told.stages else self._collect_feed(sent)
        end = perf_counter()
        self.preferred.record_time(end - start)
        times = BatchTimes(
            batch,
            job=end - start,
            feed=report.feed,
            apply=report.apply,
            between=start - self._batch_end if self._batch_end else 0.0,
            spark=self._progress() if begins else {},
            reports=report.reports,
            retries=report.retries,
            began=began,
            built=built - start,
            profiles=report.profiles,
        )
        if not self.on_batch(batch, outputs, times):
            self._is_ended = True
        self._batch_end, self.last = perf_counter(), batch

    def _plan_job(self, count: int) -> PlannedJob:
        """Plan the last stage's output once, as long as tasks stay where they are."""
        ticks = self.preferred.feed_source(self.readers)
        known, plan = self._plans.get(count, (None, None))
        if plan and (known is not ticks or plan.is_exhausted):
            plan.drop()
            plan = None
        if plan is None:
            plan = PlannedJob(self._chain_stages(ticks, count), self._fetcher)
            self._plans[count] = ticks, plan
        return plan

    def _chain_stages(self, ticks: "RDD[bytes]", count: int) -> "RDD[bytes]":
        """Chain this many stages, with exchanges between them."""
        first, *others = self.stages(count)
        sent = map_stage(first, ticks)
        for number, stage in enumerate(others, 1 if self.reads else 0):
            self._call(self._title(number))
            sent = map_stage(stage, self.preferred.prefer_state_hosts(exchange(sent, self.tasks)))
        return sent

    def _call(self, title: str) -> None:
        """Give the stage that is described next its name in Spark's pages."""
        self._tell(_CALL_SITE, title)

    def _tell(self, name: str, value: str) -> None:
        """Set a property of the jobs that begin next, unless it is; an empty one is none. A call takes 0.2 ms."""
        if self._properties.get(name) != value:
            self.session.sparkContext.setLocalProperty(name, value or None)  # type: ignore[arg-type]
            self._properties[name] = value

    def _title(self, stage: int) -> str:
        """Return what a stage is called: the one that reads is number 0, and part of the next if tasks read."""
        named = self.job.titles[stage] if stage < len(self.job.titles) else f"stage {stage}"
        return f"{self.job.titles[0]}; {named}" if self.reads and stage == 1 and self.job.titles else named

    def _create_stages(self, count: int) -> list[StageFunction]:
        """Create the stages of a batch: the feed stage, if there is one, then `count` others."""
        shape, last = (self.job.partitions, self.tasks), count - 1
        stages: list[StageFunction] = [] if self.reads else [FeedStage(self.pickled, *shape)]
        for number in range(count):
            made = LastStage if number == last else BetweenStage
            stages.append(made(self.pickled, number, *shape, self.job.splits if self.reads and number == 0 else 0))
        return stages

    def _collect_applied(self, done: PlannedJob) -> tuple[list[bytes], TaskReport]:
        """Collect the outputs of the last stage by partition, and the merged report."""
        rows: list[Output] = sorted((pickle.loads(row) for row in done.collect(self.stop.set)), key=lambda row: row[0])
        for _, failed, _, payload in rows:
            if failed:
                raise pickle.loads(payload)
        assert [partition for partition, *_ in rows] == list(range(self.job.partitions))
        return [output for *_, output in rows], merge_reports(
            pickle.loads(report) for _, _, report, _ in rows if report
        )

    def _collect_feed(self, sent: PlannedJob) -> tuple[list[bytes], TaskReport]:
        """Collect the output of the feed stage, where nothing is applied."""
        outputs, report = feed_outputs(sent.collect(self.stop.set)[1::2])  # NB: each follows the number of its target
        if report.error:
            raise report.error
        return outputs, report

    def _progress(self) -> dict[str, Any]:
        # NB: parsed from JSON, as PySpark's object takes ten times as long to build
        progress = self._query and self._query._jsq.lastProgress()
        return dict(json.loads(progress.json())) if progress else {}


def _free_name(session: SparkSession, name: str) -> str:
    """Return a name, with a number if a query of the session has it: q, q 2, q 3, …"""
    taken = {query.name for query in session.streams.active}
    return next(each for n in count(1) if (each := name if n == 1 else f"{name} {n}") not in taken)


def _translate_failure(message: str) -> Exception:
    """Translate Spark's message about a job that failed for good, where memory was short."""
    again = "the same command resumes from a --checkpoint, and starts over without"
    if "OutOfMemoryError" in message:
        hint = f"give it more: --conf spark.driver.memory=4g, on a cluster spark.executor.memory; {again}"
        return SquallError("SQ8007", "Spark ran out of memory", hint=hint)
    if "Python worker exited unexpectedly" in message:
        what = "Spark's Python workers were killed repeatedly, as the system does when memory is short"
        return SquallError("SQ8007", what, hint=f"free some, or take smaller batches with --batch-rows; {again}")
    return RuntimeError(message)


class _End(Exception):
    """The exception that ends Spark's loop without a commit."""


def use_plain_file_manager(session: SparkSession, checkpoint: str) -> None:
    """Let Spark write a local checkpoint through java.io: four processes fewer per file, 0.08 s fewer per batch.

    Its choice for local paths runs `readlink` and `chmod` for each file. Both rename, so both are atomic. Elsewhere
    (HDFS, object stores) Spark's choice stands.
    """
    key = "spark.sql.streaming.checkpointFileManagerClass"
    if urlsplit(checkpoint).scheme in ("", "file"):
        package = "org.apache.spark.sql.execution.streaming.checkpointing"
        session.conf.set(key, f"{package}.FileSystemBasedCheckpointFileManager")
    else:
        session.conf.unset(key)
