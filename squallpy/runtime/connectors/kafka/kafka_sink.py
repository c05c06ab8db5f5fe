"""Results and changes in a topic of Kafka, each batch one transaction: exactly once for readers of what is committed.

    group squall-totals, partition 0 of the topic   {"batch": 41, "query": "3f0c91…", "run": "77ab…"}

The number of a batch is the metadata of an offset that its transaction commits, and no record of the topic. After any
fault a new producer of the same transactional.id ends what the one before had begun, and the metadata say what counts.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, log_event
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.catalog.sink_spec import APPEND, UPSERT, SinkSpec
from squallpy.runtime.connectors.kafka.brokers import Brokers, is_passing, kafka_error, pause, said
from squallpy.runtime.connectors.kafka.encoding import RowEncoding
from squallpy.runtime.connectors.kafka.librdkafka import KEY, VALUE
from squallpy.runtime.connectors.kafka.native_producer import Header, Messages, NativeProducer
from squallpy.runtime.connectors.table_writer import NONE, TableWriter, existing_error, fenced_error
from squallpy.runtime.sinks.protocol import SinkWriter

LOOK = 10.0  # seconds for an answer
_NOTHING = Messages(pa.array([], pa.binary()), pa.array([], pa.binary()))
_GRACE = 5.0  # seconds more for a call that should have ended
COMPACTED = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic that has the last message of each key: nothing goes by age, and records can be deleted."""


def open_sink(spec: SinkSpec, identity: str, resumed: bool) -> "KafkaSink":
    """Take the topic of a sink; SQ7005 if it has records that are not of this run."""
    sink = KafkaSink(spec, Brokers.of(spec.options), identity, resumed)
    sink.begin()
    return sink


def open_dead_letters(relation: Relation, resumed: bool) -> "DeadLetterTopic":
    """Take the topic of messages that cannot be read."""
    options = {"topic": relation.options["dead_letter"], "existing": "keep"}
    spec = SinkSpec(f"{relation.name}-dead-letters", relation.format, options, APPEND, span=relation.span)
    sink = KafkaSink(spec, Brokers.of(relation.options), "", resumed)
    sink.begin()
    return DeadLetterTopic(sink)


@dataclass(frozen=True, slots=True)
class Commit:
    """The last batch of a topic, with the query and the run that have written it."""

    batch: int
    query: str
    run: str


class KafkaSink:
    """A topic to which a query writes.

    Args:
        identity: That of the query, which its commits have.
        resumed: The run goes on where another stopped.
    """

    def __init__(self, spec: SinkSpec, brokers: Brokers, identity: str, resumed: bool) -> None:
        assert spec.mode
        self.spec, self.mode, self.resumed, self._brokers = spec, spec.mode, resumed, brokers
        self.topic = spec.options.get("topic", spec.name)
        self.committed = Commit(NONE, identity[:32], uuid4().hex)
        self.is_known = True  # what the topic has is known
        self._existing = spec.options.get("existing")
        self._group = f"squall-{spec.name}"
        self._consumer: Consumer = brokers.consumer(self._group)
        self._admin = brokers.admin()
        self._producer: NativeProducer | None = None

    def __str__(self) -> str:
        return f"the topic {self.topic} of Kafka at {self._brokers}"

    @property
    def known(self) -> int:
        """The number of the last batch that is there."""
        return self.committed.batch

    @known.setter
    def known(self, batch: int) -> None:
        self.committed = replace(self.committed, batch=batch)

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        return KafkaWriter(self, RowEncoding.of(self.spec, self.topic, schema, added))

    def finish(self) -> None:
        """End the run: all batches are committed."""

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()

    def begin(self) -> None:
        """Make a topic that is not there, compare what is there with what this run knows, and fence those before."""
        self._brokers.patiently(self._begin, self._admin)

    def _begin(self) -> None:
        has_records = self._has_records()
        if not self.resumed:
            self._check(has_records, self._last())
        self._take_over()
        if not self.resumed and not self._existing:  # NB: another run may have written since; one that is refused now
            self._check(self._has_records(), self._last())  # leaves it its topic, which it takes again
        if not self.resumed and has_records and self._existing == "replace":
            self._clear()
        self._transaction(_NOTHING, self.committed)

    def store(self, messages: Messages, batch: int) -> None:
        """Write a batch and its number in one transaction, again as long as brokers are away; SQ7006 for what a retry
        does not help."""
        commit, tries, is_away = replace(self.committed, batch=batch), 0, False
        while self.committed.batch < batch:
            try:
                if self._producer is None:
                    self._go_on()
                    continue
                self._transaction(messages, commit)
                self.committed = commit
            except KafkaException as error:
                refused = self._producer.refused if self._producer else None
                self._producer, reason = None, refused or kafka_error(error)
                if not is_passing(reason):
                    message = f"batch {batch:,} cannot be written to {self}: {said(reason)}"
                    raise SquallError("SQ7006", message, self.spec.span, "the batch before is whole") from None
                if not is_away:
                    log_event(SOURCES, WARNING, "server is away", server=str(self._brokers), reason=said(reason))
                is_away = True
                time.sleep(pause(tries))
                tries += 1
        if is_away:
            log_event(SOURCES, WARNING, "server is back", server=str(self._brokers), sink=self.spec.name)

    def _has_records(self) -> bool:
        """True if the topic has records; it is made if it is not there."""
        topic = self._admin.client.list_topics(self.topic, timeout=LOOK).topics[self.topic]
        if topic.error is not None and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            made = NewTopic(self.topic, -1, -1, config=COMPACTED if self.mode == UPSERT else {})
            try:
                self._admin.client.create_topics([made])[self.topic].result(LOOK)
            except KafkaException as error:
                if kafka_error(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                raise KafkaException(topic.error) from None  # NB: the broker has just started, or somebody made it
            return False
        if topic.error is not None:
            raise KafkaException(topic.error)
        self._spans = {p: self._marks(p) for p in topic.partitions}
        return any(low < high for low, high in self._spans.values())

    def _marks(self, partition: int) -> tuple[int, int]:
        return self._brokers.marks(self._consumer, self.topic, partition, LOOK)

    def _check(self, has_records: bool, last: Commit | None) -> None:
        """Raise SQ7005 for what is there, unless `existing` says what to do."""
        known = last.batch if last else NONE
        if not self._existing and (has_records or known != NONE):
            raise existing_error(self, known, "records")

    def _take_over(self) -> None:
        """End producers before this one with their transactions, and take note of what they have committed."""
        self._producer = self._made()
        last = self._last()
        if not self.resumed:
            return
        if last is not None and last.query != self.committed.query:
            message = f"another query has written to {self} since"
            raise SquallError("SQ7005", message, self.spec.place("topic"), "begin anew with another checkpoint")
        self.is_known = last is not None or self._existing == "keep"
        self.committed = replace(self.committed, batch=NONE if last is None else last.batch)

    def _go_on(self) -> None:
        """Go on after a fault; SQ7005 if another run has taken over, which is left alone."""
        self._check_run(self._last())
        producer = self._made()
        self.committed = self._check_run(self._last())
        self._producer = producer

    def _check_run(self, last: Commit | None) -> Commit:
        """Raise SQ7005 if the last batch is not of this run."""
        if last is None:
            raise SquallError("SQ7005", f"{self} has lost its batches: it was made anew", self.spec.place("topic"))
        if last.run != self.committed.run:
            raise fenced_error(self)
        return last

    def _made(self) -> NativeProducer:
        """Make a producer, which fences those before."""
        producer = self._brokers.producer(f"{self._group}-{self.topic}", self.topic)
        _within(LOOK, producer.init_transactions)
        return producer

    def _last(self) -> Commit | None:
        """Read the last batch that is committed; None if nothing is known of it."""
        (found,) = self._consumer.committed([TopicPartition(self.topic, 0)], timeout=LOOK)
        if found.error:
            raise KafkaException(found.error)
        try:
            return Commit(**json.loads(found.metadata)) if found.metadata else None
        except (ValueError, TypeError):
            message = f"the group {self._group} has offsets of {self} that are not of a sink"
            raise SquallError("SQ7005", message, self.spec.place("topic"), "rename the sink") from None

    def _clear(self) -> None:
        """Delete the records of the topic."""
        ends = [TopicPartition(self.topic, p, high) for p, (low, high) in self._spans.items() if low < high]
        for future in self._admin.client.delete_records(ends).values():
            try:
                future.result(LOOK)
            except KafkaException as error:
                if kafka_error(error).code() != KafkaError.POLICY_VIOLATION:
                    raise
                message = f"the records of {self} cannot be deleted, for its cleanup.policy is compact alone"
                hint = "set compact,delete with retention.ms -1, or delete the topic"
                raise SquallError("SQ7005", message, self.spec.place("existing"), hint) from None

    def _transaction(self, messages: Messages, commit: Commit) -> None:
        """Write messages and what makes them count, all or nothing."""
        producer, about = self._producer, json.dumps(asdict(commit))
        assert producer
        producer.begin_transaction()
        producer.produce(messages)
        _within(LOOK, producer.send_offset, self._group, commit.batch + 1, about)
        _within(self._brokers.timeout, producer.commit_transaction)


def _within(seconds: float, call: Callable[..., object], *given: object) -> None:
    """Make a call of a producer that ends after so many seconds; KafkaException if it does not.

    NB: send_offsets_to_transaction may wait for ever for a broker that was killed, whatever its timeout. Who is left
    waiting is fenced by the next producer.
    """
    answer = Future[object]()

    def run() -> None:
        try:
            answer.set_result(call(*given, seconds))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="squallpy transaction", daemon=True).start()
    try:
        answer.result(seconds + _GRACE)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


class KafkaWriter(TableWriter[KafkaSink]):
    """The writer of a topic."""

    def __init__(self, sink: KafkaSink, encoding: RowEncoding) -> None:
        super().__init__(sink, encoding.schema)
        self._encoding = encoding

    def store(self, rows: pa.Table, batch: int) -> None:
        sink = self._sink
        if not sink.is_known and batch > 0:
            message = f"{sink} has no batches, and the checkpoint has given {batch:,}"
            hint = "begin anew with both, or write existing 'keep' if it is whole"
            raise SquallError("SQ7005", message, sink.spec.place("topic"), hint)
        if len(rows):
            sink.store(self._encoding.messages(rows, batch), batch)


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    """The topic of messages that cannot be read, as they were, with their place and what is wrong as headers."""

    sink: KafkaSink

    def write(self, batch: int, letters: Sequence[Mapping[str, Any]]) -> None:
        """Write the letters of a batch, unless they are there."""
        keys, values = (pa.array([_bytes(letter[name]) for letter in letters], pa.binary()) for name in (KEY, VALUE))
        self.sink.store(Messages(keys, values, [[*_headers(letter)] for letter in letters]), batch)

    def close(self) -> None:
        """Leave the brokers."""
        self.sink.close()


def _bytes(told: str | None) -> bytes | None:
    return base64.b64decode(told) if told is not None else None


def _headers(letter: Mapping[str, Any]) -> Iterator[Header]:
    """Write what is known of a letter."""
    for name, text in letter.items():
        if name not in (KEY, VALUE):
            yield f"squall.{name}", str(text).encode()
