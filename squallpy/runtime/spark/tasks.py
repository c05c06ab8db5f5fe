"""The Python stages of a micro-batch, as they run in Spark's workers.

    feed(batch, split)  →  (target, batch, order, payload) rows  ─ exchange by target →  apply(batch, partition, 0,
    payloads)  →  rows of that kind again  ─ exchange →  …  →  apply(batch, partition, last, payloads)  →  one row

Between the stages and to the driver travel few, large, opaque rows, as bytes; the JVM never looks into them (DESIGN
§6), and sends each to the task whose number stands before it. The order in which a partition sees its payloads is
(split, position in the split), whatever the exchange did to it, so that a batch that is tried again is the same batch.

Where batches are small, exchanging what was read costs more than reading it in each task: there is no stage that reads.
A task applies some partitions, one after the other: of 16 on 2 cores the first has 0, 2, …, 14, for to begin a task
costs more than a small batch at a partition.
"""

import pickle
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter, time
from typing import Any, NamedTuple

from pyspark import Broadcast, TaskContext, cloudpickle

from squallpy import __version__
from squallpy.base.errors import SquallError
from squallpy.base.recursion import allow_depth
from squallpy.base.trace import Seconds, Trace

Feed = Callable[..., Iterable[tuple[int, bytes]]]
"""(batch, split[, course]) → messages (target partition, payload): reads a split of a batch and routes it. `course` is
what the driver has said of the batch, if it has. Where each task reads all, it is also told that there is nothing to be
made but for some partitions, `only`."""
Told = tuple[Mapping[str, Any], ...]
"""What is worth to be told of a batch beside its outputs, each by names."""
Apply = Callable[..., tuple[Sequence[tuple[int, bytes]], Told]]
"""(batch, partition, stage, its messages[, course]) → messages for the next stage; of the last, one, which is the
output. And what there is to tell."""

Output = tuple[int, bool, bytes, bytes]
"""What a partition answers to the driver: its number, whether it failed, what is noted, the output or the mistake."""

BATCH = "squallpy.batch"  # the property of a job that says which batch it is of
COURSE = "squallpy.course"  # and how that goes, if batches differ
_HEAD = struct.Struct("<iqq")  # of a row: target, batch, order; the payload is behind it
_TASK = struct.Struct(">q")  # for which it is, as Spark reads it
_SPLIT_BITS = 40  # order = split, then position: a split may send 2⁴⁰ messages


@dataclass(frozen=True, slots=True)
class Shipment:
    """Feed and apply, pickled once by the driver and unpickled once by each worker process that sees `token`."""

    token: str
    packed: "Broadcast[bytes]"
    version: str = __version__

    def open(self) -> tuple[Feed, Apply, Trace]:
        """The callables, with whatever they keep between batches in this worker, and the trace that they write; SQ8005
        where squallpy is another."""
        if self.version != __version__:
            told = f"the driver is squallpy {self.version}, but the executor on {socket.gethostname()} is {__version__}"
            raise SquallError("SQ8005", told, hint="give both the same")
        return _unpacked(self)

    def __hash__(self) -> int:
        return hash(self.token)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shipment) and other.token == self.token


@lru_cache(maxsize=4)  # a worker outlives a query, and a query's callables hold memory
def _unpacked(shipment: Shipment) -> tuple[Feed, Apply, Trace]:
    allow_depth()
    feed, apply, trace = cloudpickle.loads(shipment.packed.value)
    return feed, apply, trace


class Work(NamedTuple):
    """What a task has done, for a profile: when, by its host's clock, and where its time went."""

    stage: int  # 0 reads
    start: float
    end: float
    seconds: Seconds


class Note(NamedTuple):
    """What a task tells beside its messages: how long stages took, the user's mistake that ended it, what else it saw.

    A mistake is told to every partition, so that none applies a part of a batch.
    """

    feed: float = 0.0
    apply: float = 0.0
    error: SquallError | None = None
    told: Told = ()
    works: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedStage:
    """The first stage of each batch: the split's number is the task's."""

    shipment: Shipment
    partitions: int
    tasks: int

    def __call__(self, rows: Iterable[bytes]) -> Iterator[bytes]:
        for _ in rows:  # which say nothing
            pass
        split, start, began, note = _task(), perf_counter(), time(), Note()
        mail = _Mail(split, self.partitions, self.tasks)
        try:
            feed, _, trace = self.shipment.open()
            yield from mail.put(split, feed(_batch(), split, *_course()))
            note = _worked(note, 0, began, trace)
        except SquallError as error:
            mail.error = error
        yield from mail.last(note._replace(feed=perf_counter() - start))


@dataclass(frozen=True, slots=True)
class BetweenStage:
    """A stage of each batch behind which there are others, in so many tasks."""

    shipment: Shipment
    stage: int
    partitions: int
    tasks: int
    splits: int = 0
    """Which it reads itself; none if they were sent to it."""

    def __call__(self, rows: Iterable[bytes]) -> Iterator[bytes]:
        task, began = _task(), time()
        mine = range(task, self.partitions, self.tasks)
        messages, note = _read(rows, self.shipment, self.splits, mine) if self.splits else _arrived(rows)
        arrived, start = time(), perf_counter()
        mail = _Mail(task, self.partitions, self.tasks)
        mail.error = note.error
        try:
            if note.error is None:
                _, apply, trace = self.shipment.open()
                for partition in mine:
                    own = messages.get(partition, [])
                    sent, told = apply(_batch(), partition, self.stage, own, *_course())
                    note = note._replace(told=note.told + told)
                    yield from mail.put(partition, sent)
                note = _worked(note, 1 + self.stage, began, trace, arrived)
        except SquallError as error:
            mail.error = error
        yield from mail.last(note._replace(apply=note.apply + perf_counter() - start))


@dataclass(frozen=True, slots=True)
class LastStage:
    """The last stage of each batch: one call and one row per partition, also where nothing arrived; of a mistake one
    row. The first row of a task has its note."""

    shipment: Shipment
    stage: int
    partitions: int
    tasks: int
    splits: int = 0
    """Which it reads itself; none if they were sent to it."""

    def __call__(self, rows: Iterable[bytes]) -> list[bytes]:
        task, began = _task(), time()
        mine = range(task, self.partitions, self.tasks)
        messages, note = _read(rows, self.shipment, self.splits, mine) if self.splits else _arrived(rows)
        arrived, start = time(), perf_counter()
        outputs: list[tuple[int, bool, bytes]] = []
        try:
            if note.error is not None:
                raise note.error
            _, apply, trace = self.shipment.open()
            for partition in mine:
                own = messages.get(partition, [])
                ((_, output),), told = apply(_batch(), partition, self.stage, own, *_course())
                note = note._replace(told=note.told + told)
                outputs.append((partition, False, output))
            note = _worked(note, 1 + self.stage, began, trace, arrived)
        except SquallError as error:
            outputs = [(task, True, pickle.dumps(error))]
        note = note._replace(apply=note.apply + perf_counter() - start, error=None)
        first = pickle.dumps(note)
        return [
            pickle.dumps((partition, failed, b"" if at else first, out))
            for at, (partition, failed, out) in enumerate(outputs)
        ]


class _Mail:
    """What a task sends: messages, in their order, and its note; before each the number of the task that it is for."""

    def __init__(self, task: int, partitions: int, tasks: int) -> None:
        self._task, self._partitions, self._tasks, self._batch = task, partitions, tasks, _batch()
        self.error: SquallError | None = None

    def put(self, sender: int, messages: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        """The messages of a split, or of a partition."""
        for order, (target, payload) in enumerate(messages, sender << _SPLIT_BITS):
            assert 0 <= target < self._partitions, f"no partition {target}"
            yield from self._row(target, order, payload)

    def last(self, note: Note) -> Iterator[bytes]:
        """The note: for the first partition, or for all if it tells of a mistake."""
        told = pickle.dumps(note._replace(error=self.error))
        for target in range(self._partitions) if self.error else range(1):
            yield from self._row(target, -1 - self._task, told)

    def _row(self, target: int, order: int, payload: bytes) -> tuple[bytes, bytes]:
        return _TASK.pack(target % self._tasks), packed(target, self._batch, order, payload)


def packed(target: int, batch: int, order: int, payload: bytes) -> bytes:
    """A row as bytes."""
    return b"".join((_HEAD.pack(target, batch, order), payload))


def payloads(rows: Iterable[bytes]) -> tuple[list[bytes], Note]:
    """What readers have sent to nobody in particular, in its order, and what they noted."""
    return sorted_out((_HEAD.unpack_from(row)[-1], row[_HEAD.size :]) for row in rows)


def _arrived(rows: Iterable[bytes]) -> tuple[dict[int, list[bytes]], Note]:
    """What was sent to a task, by partition."""
    sent: dict[int, list[tuple[int, bytes]]] = {}
    for row in filter(None, rows):
        target, batch, order = _HEAD.unpack_from(row)
        # NB: a task that nobody waits for any more may find the files of a later batch (planned.py)
        if batch != _batch():
            raise RuntimeError(f"a task of batch {_batch()} was sent messages of batch {batch}")
        sent.setdefault(target, []).append((order, row[_HEAD.size :]))
    found = {target: sorted_out(some) for target, some in sent.items()}
    return {target: messages for target, (messages, _) in found.items()}, merged(note for _, note in found.values())


def _read(clock: Iterable[bytes], shipment: Shipment, splits: int, mine: range) -> tuple[dict[int, list[bytes]], Note]:
    """What readers would have sent to a task, had there been any: each task reads all, and makes what is for `mine`."""
    for _ in clock:
        pass
    start, messages = perf_counter(), dict[int, list[bytes]]()
    try:
        feed, _, _ = shipment.open()
        for split in range(splits):
            for target, payload in feed(_batch(), split, *_course(), only=mine):
                messages.setdefault(target, []).append(payload)
    except SquallError as error:
        return {}, Note(error=error)
    return messages, Note(feed=perf_counter() - start)


def sorted_out(rows: Iterable[tuple[int, bytes]]) -> tuple[list[bytes], Note]:
    """Payloads by (task, position), and what the tasks noted."""
    arrived = sorted(rows, key=lambda row: row[0])
    notes = [pickle.loads(payload) for order, payload in reversed(arrived) if order < 0]
    return [payload for order, payload in arrived if order >= 0], merged(notes)


def merged(notes: Iterable[Note]) -> Note:
    """Notes as one: the slowest of each stage, the first mistake, all that is told."""
    notes = [Note(), *notes]
    return Note(
        max(note.feed for note in notes),
        max(note.apply for note in notes),
        next((note.error for note in notes if note.error), None),
        tuple(told for note in notes for told in note.told),
        tuple(work for note in notes for work in note.works),
    )


def _worked(note: Note, stage: int, began: float, trace: Trace, arrived: float | None = None) -> Note:
    """A note that also says what the task has done, if anybody asks."""
    if not trace.on:
        return note
    arrival = {("arrive",): arrived - began} if arrived else {}
    return note._replace(works=(*note.works, Work(stage, began, time(), arrival | trace.taken())))


def _task() -> int:
    return _context().partitionId()


def _batch() -> int:
    """The batch that the driver has said its job is of, which it can say anew without describing a stage anew."""
    number = _context().getLocalProperty(BATCH)
    assert number is not None, "a job of no batch"
    return int(number)


def _course() -> tuple[str, ...]:
    """What the driver has said of the batch's course."""
    course = _context().getLocalProperty(COURSE)
    return () if course is None else (course,)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "runs only inside a Spark task"
    return context
