"""The Python stages of a micro-batch, as they run in Spark's workers.

    feed(batch, split)  →  (target, batch, order, payload) rows  ─ exchange by target →  apply(batch, partition, 0,
    payloads)  →  rows of that kind again  ─ exchange →  …  →  apply(batch, partition, last, payloads)  →  one row

Between the stages and to the driver travel few, large, opaque rows, as bytes; the JVM does not decode them, and sends
each to the task whose number precedes it. A partition gets its payloads in the order of (split, position in the split),
in whatever order the exchange delivers them, so that a repeated batch has the same output.

Where batches are small, exchanging them costs more than reading them in each task: there is no feed stage. A task
applies several partitions in turn: with 16 partitions on 2 cores, task 0 runs partitions 0, 2, …, 14, for starting a
task costs more than a small batch at a partition.
"""

import pickle
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from time import perf_counter, time
from typing import NamedTuple

from pyspark import Broadcast, TaskContext, cloudpickle

from squallpy import __version__
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.recursion import allow_depth
from squallpy.base.timing import Seconds, Trace
from squallpy.runtime.checkpoint.partition_report import PartitionReport
from squallpy.runtime.sinks.written_changes import WrittenPart

FeedTask = Callable[..., Iterable[tuple[int, bytes]]]
"""Callable (batch, split[, directive]) → messages (target partition, payload): reads a split of a batch and routes it.

Where each task reads the whole batch, `only` names the partitions that it makes messages for."""
Reports = tuple[PartitionReport | WrittenPart, ...]
"""Reports of partitions on a batch, and what they have written of it, beside its outputs."""
ApplyTask = Callable[..., tuple[Sequence[tuple[int, bytes]], Reports]]
"""Callable (batch, partition, stage, its messages[, directive]) → messages for the next stage (of the last, one, the
output), and reports."""


@dataclass(frozen=True, slots=True)
class Directives:
    """The number of stages of a batch, and the directives for tasks that feed and that apply; none by default."""

    stages: int
    feed: str = ""
    apply: str = ""


Output = tuple[int, bool, bytes, bytes]
"""A partition's answer to the driver: its number, whether it failed, a report, and the output or the error."""

BATCH = "squallpy.batch"  # the job property with its batch number
FEED_DIRECTIVE, APPLY_DIRECTIVE = "squallpy.feed", "squallpy.apply"  # job properties of a batch, if it has them
_HEAD = struct.Struct("<iqq")  # a row's target, batch and order, before its payload
_TASK = struct.Struct(">q")  # the number of the target task, as Spark reads it
_SPLIT_BITS = 40  # order = split, then position: a split may send 2⁴⁰ messages


@dataclass(frozen=True, slots=True)
class PickledStages:
    """Feed and apply, pickled once by the driver and unpickled once by each worker process that sees `token`."""

    token: str
    packed: "Broadcast[bytes]"
    version: str = __version__

    def open(self) -> tuple[FeedTask, ApplyTask, Trace]:
        """Unpickle the callables, with their state of earlier batches in this worker; SQ8005 for another squallpy
        version."""
        if self.version != __version__:
            here = f"the executor on {socket.gethostname()} is {__version__}"
            message = f"the driver is squallpy {self.version}, but {here}"
            raise SquallError("SQ8005", message, hint="give both the same")
        return _unpacked(self)

    def __hash__(self) -> int:
        return hash(self.token)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PickledStages) and other.token == self.token


@lru_cache(maxsize=4)  # NB: a worker outlives a query, whose callables hold memory
def _unpacked(pickled: PickledStages) -> tuple[FeedTask, ApplyTask, Trace]:
    allow_depth()
    feed, apply, trace = cloudpickle.loads(pickled.packed.value)
    return feed, apply, trace


class TaskProfile(NamedTuple):
    """The profile of a task: its start and end by its host's clock, and its seconds by phase."""

    stage: int  # 0 is the feed
    start: float
    end: float
    seconds: Seconds


class TaskReport(NamedTuple):
    """A task's report beside its messages: seconds of stages, the user error that ended it, reports of partitions,
    failed attempts.

    An error is sent to every partition, so that none applies a part of a batch.
    """

    feed: float = 0.0
    apply: float = 0.0
    error: SquallError | None = None
    reports: Reports = ()
    profiles: tuple[TaskProfile, ...] = ()
    retries: int = 0


@dataclass(frozen=True, slots=True)
class FeedStage:
    """The first stage of each batch: a task reads the split of its own number."""

    pickled: PickledStages
    partitions: int
    tasks: int

    def __call__(self, rows: Iterable[bytes]) -> Iterator[bytes]:
        for _ in rows:  # the empty row of each task
            pass
        split, start, began, report = _task(), perf_counter(), time(), TaskReport()
        outbox = _Outbox(split, self.partitions, self.tasks)
        try:
            feed, _, trace = self.pickled.open()
            yield from outbox.put(split, feed(_batch(), split, *_directive(FEED_DIRECTIVE)))
            report = _with_profile(report, 0, began, trace)
        except SquallError as error:
            outbox.error = error
        yield from outbox.last(report._replace(feed=perf_counter() - start, retries=_retries()))


@dataclass(frozen=True, slots=True)
class BetweenStage:
    """A stage of each batch with others after it."""

    pickled: PickledStages
    stage: int
    partitions: int
    tasks: int
    splits: int = 0
    """Splits that its tasks read themselves; 0 if their messages arrive by an exchange."""

    def __call__(self, rows: Iterable[bytes]) -> Iterator[bytes]:
        task, began = _task(), time()
        own_partitions = range(task, self.partitions, self.tasks)
        messages, report = (
            _read_inputs(rows, self.pickled, self.splits, own_partitions) if self.splits else _receive(rows)
        )
        arrived, start = time(), perf_counter()
        outbox = _Outbox(task, self.partitions, self.tasks)
        outbox.error = report.error
        try:
            if report.error is None:
                _, apply, trace = self.pickled.open()
                for partition in own_partitions:
                    own = messages.get(partition, [])
                    sent, reports = apply(_batch(), partition, self.stage, own, *_directive(APPLY_DIRECTIVE))
                    report = report._replace(reports=report.reports + reports)
                    yield from outbox.put(partition, sent)
                report = _with_profile(report, 1 + self.stage, began, trace, arrived)
        except SquallError as error:
            outbox.error = error
        retries, seconds = report.retries + _retries(), report.apply + perf_counter() - start
        yield from outbox.last(report._replace(apply=seconds, retries=retries))


@dataclass(frozen=True, slots=True)
class LastStage:
    """The last stage of each batch: one call and one row per partition, also where nothing arrived.

    An error is one row. The first row of a task has its report.
    """

    pickled: PickledStages
    stage: int
    partitions: int
    tasks: int
    splits: int = 0
    """Splits that its tasks read themselves; 0 if their messages arrive by an exchange."""

    def __call__(self, rows: Iterable[bytes]) -> list[bytes]:
        task, began = _task(), time()
        own_partitions = range(task, self.partitions, self.tasks)
        messages, report = (
            _read_inputs(rows, self.pickled, self.splits, own_partitions) if self.splits else _receive(rows)
        )
        arrived, start = time(), perf_counter()
        outputs: list[tuple[int, bool, bytes]] = []
        try:
            if report.error is not None:
                raise report.error
            _, apply, trace = self.pickled.open()
            for partition in own_partitions:
                own = messages.get(partition, [])
                ((_, output),), reports = apply(_batch(), partition, self.stage, own, *_directive(APPLY_DIRECTIVE))
                report = report._replace(reports=report.reports + reports)
                outputs.append((partition, False, output))
            report = _with_profile(report, 1 + self.stage, began, trace, arrived)
        except SquallError as error:
            outputs = [(task, True, pickle.dumps(error))]
        retries, seconds = report.retries + _retries(), report.apply + perf_counter() - start
        report = report._replace(apply=seconds, error=None, retries=retries)
        first = pickle.dumps(report)
        return [
            pickle.dumps((partition, failed, b"" if at else first, out))
            for at, (partition, failed, out) in enumerate(outputs)
        ]


class _Outbox:
    """Outgoing rows of a task: messages in their order, then its report, each after the number of its target task."""

    def __init__(self, task: int, partitions: int, tasks: int) -> None:
        self._task, self._partitions, self._tasks, self._batch = task, partitions, tasks, _batch()
        self.error: SquallError | None = None

    def put(self, sender: int, messages: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        """Pack the messages of a split or a partition."""
        for order, (target, payload) in enumerate(messages, sender << _SPLIT_BITS):
            assert 0 <= target < self._partitions, f"no partition {target}"
            yield from self._row(target, order, payload)

    def last(self, report: TaskReport) -> Iterator[bytes]:
        """Pack the report: for the first partition, or for all if it has an error."""
        reports = pickle.dumps(report._replace(error=self.error))
        for target in range(self._partitions) if self.error else range(1):
            yield from self._row(target, -1 - self._task, reports)

    def _row(self, target: int, order: int, payload: bytes) -> tuple[bytes, bytes]:
        return _TASK.pack(target % self._tasks), pack_row(target, self._batch, order, payload)


def pack_row(target: int, batch: int, order: int, payload: bytes) -> bytes:
    """Pack a row as bytes."""
    return b"".join((_HEAD.pack(target, batch, order), payload))


def feed_outputs(rows: Iterable[bytes]) -> tuple[list[bytes], TaskReport]:
    """Sort the output of the feed stage, and merge the reports."""
    return sort_messages((_HEAD.unpack_from(row)[-1], row[_HEAD.size :]) for row in rows)


def _receive(rows: Iterable[bytes]) -> tuple[dict[int, list[bytes]], TaskReport]:
    """Unpack the received rows by partition."""
    sent: dict[int, list[tuple[int, bytes]]] = {}
    for row in filter(None, rows):
        target, batch, order = _HEAD.unpack_from(row)
        # NB: an abandoned task may find the files of a later batch (planned_job.py)
        if batch != _batch():
            raise RuntimeError(f"a task of batch {_batch()} was sent messages of batch {batch}")
        sent.setdefault(target, []).append((order, row[_HEAD.size :]))
    found = {target: sort_messages(some) for target, some in sent.items()}
    return {target: messages for target, (messages, _) in found.items()}, merge_reports(
        report for _, report in found.values()
    )


def _read_inputs(
    clock: Iterable[bytes], pickled: PickledStages, splits: int, own_partitions: range
) -> tuple[dict[int, list[bytes]], TaskReport]:
    """Read all splits in this task, and keep the messages for its own partitions."""
    for _ in clock:
        pass
    start, messages = perf_counter(), dict[int, list[bytes]]()
    try:
        feed, _, _ = pickled.open()
        for split in range(splits):
            for target, payload in feed(_batch(), split, *_directive(FEED_DIRECTIVE), only=own_partitions):
                messages.setdefault(target, []).append(payload)
    except SquallError as error:
        return {}, TaskReport(error=error)
    return messages, TaskReport(feed=perf_counter() - start)


def sort_messages(rows: Iterable[tuple[int, bytes]]) -> tuple[list[bytes], TaskReport]:
    """Sort payloads by (task, position), and merge the reports among them."""
    arrived = sorted(rows, key=lambda row: row[0])
    reports = [pickle.loads(payload) for order, payload in reversed(arrived) if order < 0]
    return [payload for order, payload in arrived if order >= 0], merge_reports(reports)


def merge_reports(reports: Iterable[TaskReport]) -> TaskReport:
    """Merge reports: the slowest of each stage, the first error, all others."""
    reports = [TaskReport(), *reports]
    return TaskReport(
        max(report.feed for report in reports),
        max(report.apply for report in reports),
        next((report.error for report in reports if report.error), None),
        tuple(reports for report in reports for reports in report.reports),
        tuple(work for report in reports for work in report.profiles),
        sum(report.retries for report in reports),
    )


def _with_profile(
    report: TaskReport, stage: int, began: float, trace: Trace, arrived: float | None = None
) -> TaskReport:
    """Add a task's profile to its report, if tracing is on."""
    if not trace.on:
        return report
    arrival = {("arrive",): arrived - began} if arrived else {}
    return report._replace(
        profiles=(*report.profiles, TaskProfile(stage, began, time(), arrival | trace.take_seconds()))
    )


def _task() -> int:
    return _context().partitionId()


def _retries() -> int:
    """Count the attempts at this task that have failed."""
    return _context().attemptNumber()


def _batch() -> int:
    """Read the batch number that the driver has set as a job property, so that stages need no new description."""
    number = _context().getLocalProperty(BATCH)
    assert number is not None, "a job of no batch"
    return int(number)


def _directive(name: str) -> tuple[str, ...]:
    """Read a directive that the driver has set for the batch."""
    directive = _context().getLocalProperty(name)
    return () if directive is None else (directive,)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "runs only inside a Spark task"
    return context
