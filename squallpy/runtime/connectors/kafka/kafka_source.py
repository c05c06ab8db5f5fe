"""Topics of Kafka as sources.

open_source(relation, shared)    →   MessageSource over a KafkaStream
stream.initial()                 →   {"offsets": {"0": 0, "1": 0}, "topic": "9b7a…"}    the first of each partition
stream.split(start, end, 2)      →   slices that tasks read, each with a consumer of its own

Only committed messages are read, unless kafka.isolation.level says otherwise. Offsets are in the checkpoint, and those
of a group follow them. Messages without a value are left out where they delete nothing.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, log_event
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.catalog.topic_offsets import EARLIEST, ENDING, LATEST, STARTING, Offsets, parse_offsets
from squallpy.runtime.connectors.kafka.brokers import GROUP, Brokers, is_passing, kafka_error, pause, said
from squallpy.runtime.connectors.kafka.librdkafka import OFFSET, SCHEMA, UNORDERED, VALUE
from squallpy.runtime.connectors.kafka.messages import MessageSource, avro_of, topic_of
from squallpy.runtime.sources.protocol import Backlog, BatchLimit, Offset, Slice, Source
from squallpy.runtime.sources.source import cut

LOST = "SQ4009"
LOOK, PATIENCE = 10.0, 60.0  # seconds for an answer; for messages that are known to be there
RECEIVED = 10_000  # messages at once
RENEWED = 1.0  # seconds after which partitions are looked for again
STARTING_UP = 1.5  # seconds in which a broker that has just started may not know its topics yet


def open_source(relation: Relation, shared: dict[Any, Any]) -> Source:
    """Open a topic; SQ8010 if there is no broker, SQ4001 if there is no topic."""
    if not relation.stream:
        raise SquallError("SQ7002", "a TABLE does not change and is not read from Kafka", hint="declare a STREAM")
    topic = topic_of(relation)
    avro_of(relation)
    stream = KafkaStream(Brokers.of(relation.options), topic, relation)
    return MessageSource(relation, f"kafka topic {topic}", stream)


class KafkaStream(Source):
    """The messages of a topic."""

    is_counted = False

    def __init__(self, brokers: Brokers, topic: str, relation: Relation) -> None:
        self._brokers, self._topic, self._id = brokers, topic, uuid4().hex
        self._starts = parse_offsets(STARTING, relation.options.get("startingoffsets", "earliest"), topic)
        self._stops = parse_offsets(ENDING, relation.options.get("endingoffsets", "latest"), topic)
        self._has_tombstones = relation.tombstone is not None
        self._consumer: Consumer = brokers.consumer(brokers.group)
        self._admin = brokers.admin()
        self._topic_id = ""
        self._known, self._looked, self._missing = list[int](), 0.0, 0.0
        self._ends: dict[str, int] | None = None
        self._is_away = False
        while not self._known:
            self._partitions(brokers.patience)

    @property
    def waits_for(self) -> str:
        return f"Kafka at {self._brokers}" if self._is_away else ""

    def begin(self, folder: str | None, ends: bool) -> None:
        named = self._named(self._stops)
        self._ends = {p: self._first_marks(int(p))[1] for p in named} if ends else None

    def initial(self) -> Offset:
        return self._offset({p: self._start(p, *self._first_marks(int(p))) for p in self._named(self._starts)})

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        try:
            marks = {str(p): self._marks(p) for p in self._partitions(LOOK)}
        except KafkaException as error:
            reason = self._admin.reason(error)
            if not self._is_away:
                log_event(SOURCES, WARNING, "server is away", server=str(self._brokers), reason=said(reason))
            self._is_away = True
            return start
        if self._is_away:
            log_event(SOURCES, WARNING, "server is back", server=str(self._brokers))
        self._is_away = False
        if start.get("topic", self._topic_id) != self._topic_id:
            raise self._lost("another topic of this name was made since: the messages are gone")
        first = {p: start["offsets"].get(p, low) for p, (low, _) in marks.items()}
        last = {p: high if self._ends is None else min(high, self._ends.get(p, 0)) for p, (_, high) in marks.items()}
        if isinstance(self._stops, Mapping):
            last = {
                p: at if (stop := self._stops.get(p, LATEST)) == LATEST else min(at, stop) for p, at in last.items()
            }
        for p, at in first.items():
            low, high = marks[p]
            if at < low:
                raise self._lost(
                    f"partition {p}: offsets {at:,} to {low - 1:,} are gone: the topic keeps them no longer"
                )
            if at > high:
                raise self._lost(
                    f"partition {p} ends at offset {high:,}, before {at:,}, where it was: it is another one"
                )
        return self._offset(_within(first, last, limit.rows))

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        is_ordered = len(end["offsets"]) == 1
        spans = [(p, start["offsets"].get(p, 0), stop) for p, stop in end["offsets"].items()]
        spans = [span for span in spans if span[1] < span[2]]
        ends = [*(cut(0, len(spans), number, tasks) for number in range(tasks)), len(spans)]
        return [
            KafkaSlice(self._brokers, self._topic, self._id, tuple(spans[a:b]), self._has_tombstones, is_ordered)
            for a, b in pairwise(ends)
            if a < b
        ]

    def backlog(self, end: Offset) -> Backlog | None:
        marks = [self._consumer.get_watermark_offsets(TopicPartition(self._topic, p), cached=True) for p in self._known]
        found = zip(self._known, marks, strict=True)
        return Backlog(sum(max(0, high - end["offsets"].get(str(p), high)) for p, (_, high) in found))

    def commit(self, end: Offset) -> None:
        """Tell the group how far the run is, which tools show; without one, nobody."""
        if self._brokers.group != GROUP:
            places = [TopicPartition(self._topic, int(p), at) for p, at in end["offsets"].items()]
            self._consumer.commit(offsets=places, asynchronous=True)

    def close(self) -> None:
        self._consumer.close()
        _reader.cache_clear()

    def _offset(self, offsets: Mapping[str, int]) -> Offset:
        return {"offsets": offsets, "topic": self._topic_id}

    def _partitions(self, patience: float) -> list[int]:
        """List the partitions of the topic, anew from time to time; none if brokers do not know it yet."""
        if self._known and time.monotonic() < self._looked + RENEWED:
            return self._known
        asked = self._admin.client.describe_topics(TopicCollection([self._topic]), request_timeout=patience)
        try:
            topic = asked[self._topic].result()
        except KafkaException as error:
            if kafka_error(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                self._miss()
                if not self._known:
                    return []
            if self._known:
                raise
            raise self._brokers.fault(self._admin.reason(error)) from None
        self._missing = 0.0
        self._known, self._looked = sorted(each.id for each in topic.partitions), time.monotonic()
        self._topic_id = str(topic.topic_id)
        return self._known

    def _miss(self) -> None:
        """Wait a moment for a topic that brokers do not know; SQ4001 if they still do not."""
        now = time.monotonic()
        self._missing = self._missing or now
        if now >= self._missing + (self._brokers.patience if self._known else STARTING_UP):
            raise SquallError("SQ4001", f'Kafka at {self._brokers} has no topic "{self._topic}"')
        time.sleep(pause(0))

    def _named(self, offsets: Offsets) -> list[str]:
        """List the partitions; SQ7002 if offsets that options have are not those of all of them."""
        known = [*map(str, self._known)]
        if isinstance(offsets, Mapping) and {*offsets} != {*known}:
            option, which = (STARTING, "-1 or -2") if offsets is self._starts else (ENDING, "-1")
            message = f'option "{option}" has offsets of the partitions {", ".join(sorted(offsets, key=int))}'
            hint = f"write an offset of each, {which} where you do not care"
            raise SquallError("SQ7002", f"{message}, and {self._topic} has {', '.join(known)}", hint=hint)
        return known

    def _start(self, partition: str, low: int, high: int) -> int:
        """Choose where a run begins in a partition; SQ4009 for an offset that is not there."""
        at = self._starts[partition] if isinstance(self._starts, Mapping) else self._starts
        if at in (EARLIEST, LATEST):
            return low if at == EARLIEST else high
        if not low <= at <= high:
            message = f'partition {partition} has no offset {at:,}, which option "{STARTING}" has'
            raise self._lost(f"{message}: it has {low:,} to {high:,}", "write one of these, -1 or -2")
        return at

    def _first_marks(self, partition: int) -> tuple[int, int]:
        """Return the marks of a partition as a run begins; SQ8010 if brokers stay away."""
        return self._brokers.patiently(lambda: self._marks(partition), self._admin)

    def _marks(self, partition: int) -> tuple[int, int]:
        return self._brokers.marks(self._consumer, self._topic, partition, LOOK)

    def _lost(self, what: str, hint: str = "nothing is skipped: begin anew with another checkpoint") -> SquallError:
        return SquallError(LOST, f"the topic {self._topic}, {what}", hint=hint)


@dataclass(frozen=True, slots=True)
class KafkaSlice:
    """Messages of some partitions, each from an offset to before another.

    Args:
        stream: The stream whose readers go on: those of another, also in this process, are at other places; so are
            those of another thread, in which a view is filled.
        is_ordered: The topic has no other partition.
    """

    brokers: Brokers
    topic: str
    stream: str
    spans: tuple[tuple[str, int, int], ...]
    has_tombstones: bool
    is_ordered: bool

    @property
    def rows(self) -> None:
        """No number: offsets have gaps, and messages may be of transactions that were aborted."""

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        thread = threading.get_ident()
        readers = [_reader(self.brokers, self.topic, int(p), self.stream, thread) for p, _, _ in self.spans]
        for reader, (_, start, _) in zip(readers, self.spans, strict=True):
            reader.seek(start)  # NB: all of them, before one is waited for
        tables = [reader.read(stop) for reader, (_, _, stop) in zip(readers, self.spans, strict=True)]
        table = pa.concat_tables([SCHEMA.empty_table(), *tables])
        values = table.column(VALUE)
        if not self.has_tombstones and values.null_count:
            table = table.filter(values.is_valid())
        return table if self.is_ordered else table.replace_schema_metadata(UNORDERED)


class PartitionReader:
    """A reader of one partition, which goes on where it was: successive batches read what follows."""

    def __init__(self, brokers: Brokers, topic: str, partition: int) -> None:
        self._brokers, self._topic, self._partition = brokers, topic, partition
        self._consumer = brokers.reader()
        self._at, self._rest = -1, SCHEMA.empty_table()
        self._end = 0  # where the partition ended when the client last reached that

    def seek(self, start: int) -> None:
        """Go to an offset, from which messages come while others are read."""
        if start != self._at:
            self._at, self._end, self._rest = start, 0, SCHEMA.empty_table()
            self._consumer.assign(self._topic, self._partition, start)

    def read(self, stop: int) -> pa.Table:
        """Read the messages up to an offset; SQ4009 if they are gone, SQ8010 if none come."""
        found, until, reached = list[pa.Table](), time.monotonic() + PATIENCE, self._at
        some = self._rest
        self._at = -1  # NB: an error leaves messages that came unread
        while True:
            offsets = some.column(OFFSET).to_numpy()
            cut = int(np.searchsorted(offsets, stop))
            found.append(some.slice(0, cut))
            self._rest = some.slice(cut)
            reached = max(reached, self._end, int(offsets[-1]) + 1 if len(offsets) else 0)
            if reached >= stop:
                self._at = stop
                return pa.concat_tables(found)
            if time.monotonic() > until:
                raise self._brokers.fault(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            some = self._receive(min(RECEIVED, stop - reached))

    def _receive(self, most: int) -> pa.Table:
        """Receive messages, and take note of where the partition ends, if that is reached.

        NB: the client waits for as many as it is asked for. Transactions that do not count, and their marks, have
        offsets and bring nothing else.
        """
        came, errors = self._consumer.receive(most, 0.2)
        for error, offset in errors:
            if error.code() == KafkaError._PARTITION_EOF:
                self._end = offset
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                text = f"the topic {self._topic}, partition {self._partition}: offsets are gone"
                raise SquallError(LOST, text, hint="nothing is skipped: begin anew with another checkpoint")
            elif not is_passing(error):
                raise self._brokers.fault(error)
        return came


@lru_cache(maxsize=64)  # NB: those of a process; a consumer takes a tenth of a second to find its brokers
def _reader(brokers: Brokers, topic: str, partition: int, stream: str, thread: int) -> PartitionReader:
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
