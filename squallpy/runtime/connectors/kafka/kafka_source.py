"""Topics of Kafka as sources.

open_source(relation, shared)    →   LineSource over a KafkaStream
stream.initial()                 →   {"offsets": {"0": 0, "1": 0}}       the first offset of each partition
stream.split(start, end, 2)      →   slices that tasks read, each with a consumer of its own

Only committed messages are read, unless kafka.isolation.level says otherwise. Offsets are in the checkpoint, not those
of a group. Messages without a value are left out.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, log_event
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.connectors.kafka.brokers import Brokers, is_passing, said
from squallpy.runtime.sources.protocol import Backlog, Limit, Offset, Slice, Source
from squallpy.runtime.sources.received_lines import LineSource, check_columns_of_lines, line_table
from squallpy.runtime.sources.source import cut

LOST = "SQ4009"
LOOK, PATIENCE = 10.0, 60.0  # seconds for an answer; for messages that are known to be there
RENEWED = 1.0  # seconds after which partitions are looked for again


def infer(relation: Relation) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """Refuse a relation that lists no columns: SQ4002, messages have no schema."""
    raise SquallError("SQ4002", "messages of Kafka tell no columns", hint="list the columns after the name")


def open_source(relation: Relation, shared: dict[Any, Any]) -> Source:
    """Open a topic; SQ8010 if there is no broker, SQ4001 if there is no topic."""
    if not relation.stream:
        raise SquallError("SQ7002", "a TABLE does not change and is not read from Kafka", hint="declare a STREAM")
    topic = relation.options.get("subscribe", relation.name)
    check_columns_of_lines(relation, f"the topic {topic}")
    stream = KafkaStream(Brokers.of(relation.options), topic, relation.options.get("startingoffsets", "earliest"))
    return LineSource(relation, f"kafka topic {topic}", stream)


class KafkaStream(Source):
    """The messages of a topic."""

    is_counted = False

    def __init__(self, brokers: Brokers, topic: str, begins: str) -> None:
        self._brokers, self._topic, self._begins, self._id = brokers, topic, begins, uuid4().hex
        self._consumer: Consumer = brokers.consumer()
        self._known, self._looked = list[int](), 0.0
        self._ends: dict[str, int] | None = None
        self._is_away = False
        self._partitions(brokers.patience)

    @property
    def waits_for(self) -> str:
        return f"Kafka at {self._brokers}" if self._is_away else ""

    def begin(self, folder: str | None, ends: bool) -> None:
        self._ends = {str(p): self._marks(p)[1] for p in self._known} if ends else None

    def initial(self) -> Offset:
        which = 0 if self._begins == "earliest" else 1
        return {"offsets": {str(p): self._marks(p)[which] for p in self._known}}

    def latest(self, start: Offset, limit: Limit) -> Offset:
        try:
            marks = {str(p): self._marks(p) for p in self._partitions(LOOK)}
        except KafkaException as error:
            if not self._is_away:
                log_event(SOURCES, WARNING, "server is away", server=str(self._brokers), reason=said(error))
            self._is_away = True
            return start
        if self._is_away:
            log_event(SOURCES, WARNING, "server is back", server=str(self._brokers))
        self._is_away = False
        first = {p: start["offsets"].get(p, low) for p, (low, _) in marks.items()}
        last = {p: high if self._ends is None else min(high, self._ends.get(p, 0)) for p, (_, high) in marks.items()}
        for p, at in first.items():
            low, high = marks[p]
            if at < low:
                raise self._lost(p, f"offsets {at:,} to {low - 1:,} are gone: the topic keeps them no longer")
            if at > high:
                raise self._lost(p, f"ends at offset {high:,}, before {at:,}, where it was: the topic is another one")
        return {"offsets": _within(first, last, limit.rows)}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        spans = [(p, start["offsets"].get(p, 0), stop) for p, stop in end["offsets"].items()]
        spans = [span for span in spans if span[1] < span[2]]
        ends = [*(cut(0, len(spans), number, tasks) for number in range(tasks)), len(spans)]
        return [KafkaSlice(self._brokers, self._topic, self._id, tuple(spans[a:b])) for a, b in pairwise(ends) if a < b]

    def backlog(self, end: Offset) -> Backlog | None:
        marks = [self._consumer.get_watermark_offsets(TopicPartition(self._topic, p), cached=True) for p in self._known]
        found = zip(self._known, marks, strict=True)
        return Backlog(sum(max(0, high - end["offsets"].get(str(p), high)) for p, (_, high) in found))

    def close(self) -> None:
        self._consumer.close()
        _reader.cache_clear()

    def _partitions(self, patience: float) -> list[int]:
        """List the partitions of the topic, anew from time to time."""
        if self._known and time.monotonic() < self._looked + RENEWED:
            return self._known
        try:
            topic = self._consumer.list_topics(self._topic, timeout=patience).topics[self._topic]
        except KafkaException as error:
            if self._known:
                raise
            raise self._brokers.fault(error) from None
        if topic.error is not None:
            if topic.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                raise SquallError("SQ4001", f'Kafka at {self._brokers} has no topic "{self._topic}"')
            raise KafkaException(topic.error)
        self._known, self._looked = sorted(topic.partitions), time.monotonic()
        return self._known

    def _marks(self, partition: int) -> tuple[int, int]:
        return self._brokers.marks(self._consumer, self._topic, partition, LOOK)

    def _lost(self, partition: str, what: str) -> SquallError:
        hint = "nothing is skipped: begin anew with another checkpoint"
        return SquallError(LOST, f"partition {partition} of the topic {self._topic} {what}", hint=hint)


@dataclass(frozen=True, slots=True)
class KafkaSlice:
    """Messages of some partitions, each from an offset to before another.

    Args:
        stream: The stream whose readers go on: those of another, also in this process, are at other places.
    """

    brokers: Brokers
    topic: str
    stream: str
    spans: tuple[tuple[str, int, int], ...]

    @property
    def rows(self) -> None:
        """No number: offsets have gaps, and messages may be of transactions that were aborted."""

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        lines = list[bytes]()
        for partition, start, stop in self.spans:
            lines += _reader(self.brokers, self.topic, int(partition), self.stream).read(start, stop)
        return line_table(lines)


class PartitionReader:
    """A reader of one partition, which goes on where it was: successive batches read what follows."""

    def __init__(self, brokers: Brokers, topic: str, partition: int) -> None:
        self._brokers, self._topic, self._partition = brokers, topic, partition
        self.consumer = brokers.consumer()
        self._at, self._rest = -1, list[tuple[int, bytes | None]]()

    def read(self, start: int, stop: int) -> list[bytes]:
        """Read the messages from an offset to before another; SQ4009 if they are gone, SQ8010 if none come."""
        if start != self._at:
            self._rest = []
            self.consumer.assign([TopicPartition(self._topic, self._partition, start)])
        self._at = -1  # NB: an error leaves messages that came unread
        found, until, reached = list[bytes](), time.monotonic() + PATIENCE, start
        while True:
            some, self._rest = self._rest, []
            for number, (at, value) in enumerate(some):
                if at >= stop:
                    self._rest = some[number:]
                    break
                reached = max(reached, at + 1)
                if value is not None:
                    found.append(value.replace(b"\n", b" ").replace(b"\r", b" "))
            if self._rest or reached >= stop:
                self._at = stop
                return found
            if time.monotonic() > until:
                raise self._brokers.fault(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            self._rest = [*self._receive()]

    def _receive(self) -> Iterator[tuple[int, bytes | None]]:
        """Receive what has come; where the partition ends counts as a message before that has no value.

        NB: transactions that do not count, and their marks, have offsets and bring nothing else.
        """
        for message in self.consumer.consume(10_000, timeout=0.2):
            error, at = message.error(), message.offset() or 0
            if error is None:
                yield at, message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                yield at - 1, None
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                text = f"offsets of partition {self._partition} of the topic {self._topic} are gone"
                raise SquallError(LOST, text, hint="nothing is skipped: begin anew with another checkpoint")
            elif not is_passing(error):
                raise KafkaException(error)


@lru_cache(maxsize=64)  # NB: those of a process; a consumer takes a tenth of a second to find its brokers
def _reader(brokers: Brokers, topic: str, partition: int, stream: str) -> PartitionReader:
    return PartitionReader(brokers, topic, partition)


def _within(first: Mapping[str, int], last: Mapping[str, int], rows: int | None) -> dict[str, int]:
    """Choose where a batch of so many messages ends in each partition; those with few leave their part to others."""
    ends = {p: max(first[p], last[p]) for p in first}
    if rows is None:
        return ends
    left, found = rows, dict[str, int]()
    waiting = sorted(first, key=lambda p: ends[p] - first[p])
    for number, p in enumerate(waiting):
        found[p] = min(ends[p], first[p] + -(-left // (len(waiting) - number)))
        left -= found[p] - first[p]
    return {p: found[p] for p in first}
