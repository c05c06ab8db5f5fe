"""Brokers of Kafka: settings of clients with secrets, errors in one line.

brokers = Brokers.of({"kafka.bootstrap.servers": "h:9092", "kafka.sasl.password": "${env:PW}"})
consumer = brokers.consumer()      one that reads committed messages only, and no offsets of groups
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.catalog.connector_options import BROKERS
from squallpy.runtime.connectors.kafka.librdkafka import NativeConsumer
from squallpy.runtime.connectors.kafka.native_producer import NativeProducer

Client = TypeVar("Client")
T = TypeVar("T")
PATIENCE = 30.0  # seconds for brokers that are away when a run begins
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between attempts; the last is repeated
GROUP = "squallpy"  # NB: the client asks for one; no offset is committed to it
_SILENT = logging.Logger("librdkafka")  # NB: it has no handler, and no parent: what it says is told by errors, too
_SILENT.addHandler(logging.NullHandler())
_QUIET = {"log_level": "0", "logger": _SILENT}
_READS = {
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "queued.max.messages.kbytes": "16384",
    "fetch.message.max.bytes": "4194304",  # NB: of a partition at once: with a quarter of it, a fifth fewer come
    "fetch.wait.max.ms": "100",  # NB: for so long the end of a partition is not known, if a transaction ends there
    "fetch.queue.backoff.ms": "5",  # NB: usually a second, in which a reader that is quicker has nothing to read
}
_WRITES: Mapping[str, str] = {
    "linger.ms": "5",
    "retry.backoff.ms": "10",  # NB: a transaction begins with a retry, while brokers end the one before
    "partitioner": "murmur2_random",
    "transaction.timeout.ms": "60000",
}
"""Settings of producers, with the partitions that clients in Java choose for keys."""


@dataclass(frozen=True)
class Brokers:
    """Brokers as options name them. Secrets are looked up where a client is made."""

    settings: tuple[tuple[str, str], ...]
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Brokers":
        """Read the options of a connector."""
        settings = ((name.removeprefix(BROKERS), each) for name, each in options.items() if name.startswith(BROKERS))
        return cls(tuple(sorted(settings)), parse_interval(options.get("connect_timeout", "")) or PATIENCE)

    def __str__(self) -> str:
        return dict(self.settings)["bootstrap.servers"]

    @property
    def group(self) -> str:
        """The group that options name, whose offsets follow the run."""
        return dict(self.settings).get("group.id", GROUP)

    @property
    def timeout(self) -> float:
        """The seconds after which brokers give a transaction up."""
        return float(dict(self.settings).get("transaction.timeout.ms", _WRITES["transaction.timeout.ms"])) / 1000

    def consumer(self, group: str = GROUP) -> Consumer:
        """Make a consumer; SQ7002 for a setting that the client does not know."""
        settings = self._settings({"isolation.level": "read_committed"}, _READS | {"group.id": group})
        return _made(lambda: Consumer({**settings, **_QUIET}))

    def reader(self) -> NativeConsumer:
        """Make a consumer whose messages are columns."""
        ours = _READS | {"group.id": GROUP, "log_level": "0"}
        return NativeConsumer(self._settings({"isolation.level": "read_committed"}, ours))

    def producer(self, transactional: str, topic: str) -> NativeProducer:
        """Make a producer of transactions in a topic; SQ7002 for a setting that the client does not know."""
        ours = {"transactional.id": transactional, "log_level": "0"}
        return _made(lambda: NativeProducer(self._settings(_WRITES, ours), topic))

    def admin(self) -> "Admin":
        """Make a client that describes and makes topics."""
        heard = list[KafkaError]()
        settings = {**self._settings({}, {"error_cb": heard.append}), **_QUIET}
        return Admin(_made(lambda: AdminClient(settings)), heard)

    def marks(self, consumer: Consumer, topic: str, partition: int, patience: float) -> tuple[int, int]:
        """Return the first offset of a partition, and that behind the last message that is committed."""
        found = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=patience)
        if found is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        low, high = found
        return low, high

    def patiently(self, attempt: Callable[[], T], admin: "Admin") -> T:
        """Call a function, again as long as brokers are away; SQ8010 if they stay away, or say no."""
        until, tries = time.monotonic() + self.patience, 0
        while True:
            try:
                return attempt()
            except KafkaException as error:
                reason = admin.reason(error)
                if not is_passing(reason) or time.monotonic() >= until:
                    raise self.fault(reason) from None
            time.sleep(pause(tries))
            tries += 1

    def fault(self, error: KafkaException | KafkaError) -> SquallError:
        """Describe in one line what the brokers say, or that they say nothing."""
        reason = kafka_error(error)
        if is_passing(reason):
            hint = "it may pass: run the same command again when they are there"
            return SquallError("SQ8010", f"Kafka at {self} cannot be reached: {said(reason)}", hint=hint)
        hint = "a retry does not help before that is mended"
        return SquallError("SQ8010", f"Kafka at {self} says: {said(reason)}", hint=hint)

    def _settings(self, usual: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
        """Join usual settings, those of options, and ours, which options do not change."""
        return {**usual, **{name: resolve(value) for name, value in self.settings}, **ours}


@dataclass(frozen=True)
class Admin:
    """A client that describes and makes topics, with what it has heard of its connections."""

    client: AdminClient
    _heard: list[KafkaError]

    def reason(self, error: KafkaException) -> KafkaError:
        """Return why there is no answer: what is wrong with connections, rather than that time is up."""
        self.client.poll(0)
        told = [each for each in self._heard if each.code() != KafkaError._ALL_BROKERS_DOWN]
        self._heard.clear()
        if not is_passing(found := kafka_error(error)):
            return found
        return next((each for each in told if not is_passing(each)), told[-1] if told else found)


def _made(make: Callable[[], Client]) -> Client:
    """Make a client; SQ7002 for settings that it refuses."""
    try:
        return make()
    except KafkaException as error:
        hint = "write kafka.sasl.mechanism 'PLAIN' or 'SCRAM-SHA-256'" if "GSSAPI" in said(error) else ""
        raise SquallError("SQ7002", f"the client of Kafka refuses its settings: {said(error)}", hint=hint) from None


def kafka_error(error: KafkaException | KafkaError) -> KafkaError:
    """Return what an exception tells."""
    inner = error if isinstance(error, KafkaError) else error.args[0] if error.args else None
    return inner if isinstance(inner, KafkaError) else KafkaError(KafkaError.UNKNOWN, said(error))


def is_passing(error: KafkaError) -> bool:
    """True if the same may succeed later: brokers are away, or a transaction was given up."""
    return bool(error.retriable() or error.txn_requires_abort() or error.code() in _PASSING)


def pause(tries: int) -> float:
    """Return the seconds to wait after a number of failed attempts."""
    return PAUSES[min(tries, len(PAUSES) - 1)]


_PASSING = (
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE, KafkaError._STATE,
    KafkaError._RESOLVE, KafkaError._FENCED, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION,
    KafkaError._WAIT_COORD, KafkaError._WAIT_CACHE, KafkaError._RETRY, KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_TXN_STATE, KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_CONTROLLER, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.PREFERRED_LEADER_NOT_AVAILABLE, KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.BROKER_NOT_AVAILABLE, KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION,
    KafkaError.KAFKA_STORAGE_ERROR, KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError.INCONSISTENT_TOPIC_ID,
)  # fmt: skip
"""Errors that the protocol calls retriable, and those of a client whose brokers are away.

NB: a broker that has just started may not know its topics yet, so one that was there a moment ago is not gone.
"""


def said(error: KafkaException | KafkaError) -> str:
    """Return what an error says, in one line."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return " ".join(str(inner.str() if isinstance(inner, KafkaError) else inner).split())
