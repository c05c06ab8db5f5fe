"""The two Python stages of a micro-batch, as they run in Spark's workers.

    feed(batch, split)  →  (target, order, payload) rows  ─ exchange by target →  apply(batch, partition, payloads)

Between the stages and to the driver travel few, large, opaque rows; the JVM never looks into them (DESIGN §6). The
order in which a partition sees its payloads is (split, position in the split), whatever the exchange did to it, so
that a batch that is tried again is the same batch.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import NamedTuple

import pyarrow as pa
from pyspark import Broadcast, TaskContext, cloudpickle
from pyspark.sql.types import BinaryType, BooleanType, DoubleType, IntegerType, LongType, StructType

from squallpy.base.errors import SquallError

Feed = Callable[[int, int], Iterable[tuple[int, bytes]]]
"""(batch, split) → messages (target partition, payload): reads a split of a batch and routes it."""
Apply = Callable[[int, int, list[bytes]], bytes]
"""(batch, partition, its messages) → the partition's output: applies a batch to a partition of state."""

ROW = StructType().add("target", IntegerType()).add("order", LongType()).add("payload", BinaryType())
ROW_ARROW = pa.schema([("target", pa.int32()), ("order", pa.int64()), ("payload", pa.binary())])
OUTPUT = (
    StructType()
    .add("partition", IntegerType())
    .add("failed", BooleanType())
    .add("feed", DoubleType())
    .add("apply", DoubleType())
    .add("payload", BinaryType())
)
OUTPUT_ARROW = pa.schema(
    [
        ("partition", pa.int32()),
        ("failed", pa.bool_()),
        ("feed", pa.float64()),
        ("apply", pa.float64()),
        ("payload", pa.binary()),
    ]
)

_SPLIT_BITS = 40  # order = split, then position: a split may send 2⁴⁰ messages
_FLUSH = 4 << 20  # bytes of messages that leave together


@dataclass(frozen=True, slots=True)
class Shipment:
    """Feed and apply, pickled once by the driver and unpickled once by each worker process that sees `token`."""

    token: str
    packed: "Broadcast[bytes]"

    def open(self) -> tuple[Feed, Apply]:
        """The callables, with whatever they keep between batches in this worker."""
        return _unpacked(self)

    def __hash__(self) -> int:
        return hash(self.token)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shipment) and other.token == self.token


@lru_cache(maxsize=4)  # a worker outlives a query, and a query's callables hold memory
def _unpacked(shipment: Shipment) -> tuple[Feed, Apply]:
    feed, apply = cloudpickle.loads(shipment.packed.value)
    return feed, apply


class Note(NamedTuple):
    """What a split tells beside its messages: how long it took, and the user's mistake that ended it, if any.

    A mistake is told to every partition, so that none applies a part of a batch.
    """

    seconds: float
    error: SquallError | None = None


@dataclass(frozen=True, slots=True)
class FeedStage:
    """Stage 1, of one batch: the split's number is the task's."""

    shipment: Shipment
    batch: int
    partitions: int

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in rows:  # the clock's tick
            pass
        split, start = _task(), perf_counter()
        note, told = Note(0.0), [0]
        feed, _ = self.shipment.open()
        pending: list[tuple[int, int, bytes]] = []
        size, order = 0, split << _SPLIT_BITS
        try:
            for target, payload in feed(self.batch, split):
                assert 0 <= target < self.partitions, f"no partition {target}"
                pending.append((target, order, payload))
                order, size = order + 1, size + len(payload)
                if size >= _FLUSH:
                    yield _rows(pending, ROW_ARROW)
                    pending, size = [], 0
        except SquallError as error:
            note, told = Note(0.0, error), list(range(self.partitions))
        packed = pickle.dumps(note._replace(seconds=perf_counter() - start))
        yield _rows([*pending, *((target, -1 - split, packed) for target in told)], ROW_ARROW)


@dataclass(frozen=True, slots=True)
class ApplyStage:
    """Stage 2, of one batch: one call and one row per partition, also where nothing arrived."""

    shipment: Shipment
    batch: int

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = _task()
        messages, notes = _sorted_out(rows)
        errors = [note.error for note in notes if note.error]
        start = perf_counter()
        output, failed = b"", bool(errors)
        try:
            if errors:
                raise errors[0]
            _, apply = self.shipment.open()
            output = apply(self.batch, partition, messages)
        except SquallError as error:
            output, failed = pickle.dumps(error), True
        seconds = perf_counter() - start
        yield _rows([(partition, failed, max((n.seconds for n in notes), default=0.0), seconds, output)], OUTPUT_ARROW)


def _sorted_out(rows: Iterator[pa.RecordBatch]) -> tuple[list[bytes], list[Note]]:
    """Payloads by (split, position), and what the splits noted, by split."""
    arrived: list[tuple[int, bytes]] = []
    for batch in rows:
        arrived += zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True)
    arrived.sort(key=lambda row: row[0])
    notes = [pickle.loads(payload) for order, payload in reversed(arrived) if order < 0]
    return [payload for order, payload in arrived if order >= 0], notes


def _rows(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _task() -> int:
    context = TaskContext.get()
    assert context is not None, "runs only inside a Spark task"
    return context.partitionId()
