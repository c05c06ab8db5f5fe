"""Producers of librdkafka, called by its functions of C: columns of keys and values are messages at once.

producer = NativeProducer({"bootstrap.servers": "h:9092", "transactional.id": "a"}, "totals")
producer.init_transactions(10.0)
producer.begin_transaction()
producer.produce(Messages(keys, values))
producer.send_offset("group", 42, "metadata", 10.0)
producer.commit_transaction(60.0)

confluent_kafka calls Python for each message that is delivered, which costs more than sending it.
"""

import ctypes
import os
import weakref
from collections.abc import Mapping, Sequence
from ctypes import c_char_p, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from squallpy.base.records import dataclass
from squallpy.runtime.connectors.kafka.librdkafka import NativeMessage, library, new_client, spans
from squallpy.runtime.connectors.kafka.message_kernel import KEY, KEY_SIZE, VALUE, VALUE_SIZE

PRODUCER, COPIED, ANY_PARTITION = 0, 2, -1  # NB: RD_KAFKA_PRODUCER, RD_KAFKA_MSG_F_COPY, RD_KAFKA_PARTITION_UA
SLICE, QUEUED = 10_000, 50_000  # messages handed over at once, and that may wait for the brokers
_WORDS = ctypes.sizeof(NativeMessage) // 8
_EMPTY = ctypes.create_string_buffer(1)  # NB: what is empty has a place, NULL has none
_DELIVERY = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
_TOPIC, _VALUE, _KEY, _FLAGS, _HEADER = 1, 4, 5, 7, 9  # NB: RD_KAFKA_VTYPE_…
Header = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages as columns of bytes, in their order.

    Args:
        keys: Those of messages; NULL where one has none.
        values: Those of messages; NULL for a tombstone.
        headers: Those of each message, if any has some.
    """

    keys: pa.Array | pa.ChunkedArray
    values: pa.Array | pa.ChunkedArray
    headers: Sequence[Sequence[Header]] = ()


class NativeProducer:
    """A producer of transactions in one topic; KafkaException for settings that it does not know, and all else."""

    def __init__(self, settings: Mapping[str, str], topic: str) -> None:
        self._library = lib = library()
        self._topic, self._refused = topic, (refused := list[KafkaError]())

        def note(client: int, message: int, own: int) -> None:
            code = NativeMessage.from_address(message).code
            if code and not refused and code != KafkaError._PURGE_QUEUE:
                refused.append(KafkaError(code))

        called = _DELIVERY(note)
        self._client = new_client(PRODUCER, {**settings, "delivery.report.only.error": "true"}, called)
        self._place = lib.rd_kafka_topic_new(self._client, topic.encode(), None)
        weakref.finalize(self, _destroy, lib, self._client, self._place, called, os.getpid()).atexit = False

    @property
    def refused(self) -> KafkaError | None:
        """The reason for which a message was refused first: of its transaction, librdkafka says less."""
        return self._refused[0] if self._refused else None

    def init_transactions(self, timeout: float) -> None:
        """End the transaction of those before of the same transactional.id, and fence them."""
        self._call("init_transactions", int(timeout * 1000))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._call("begin_transaction")

    def send_offset(self, group: str, offset: int, metadata: str, timeout: float) -> None:
        """Commit an offset of the first partition, and what is told with it, with the transaction."""
        lib, data, name = self._library, ctypes.create_string_buffer(metadata.encode()), self._topic.encode()
        places = lib.rd_kafka_topic_partition_list_new(1)
        about = lib.rd_kafka_consumer_group_metadata_new(group.encode())
        place = _Place.from_address(lib.rd_kafka_topic_partition_list_add(places, name, 0))
        place.offset, place.metadata = offset, ctypes.addressof(data)
        place.size = len(data)  # NB: with the zero at the end, without which confluent_kafka reads on behind it
        try:
            self._call("send_offsets_to_transaction", places, about, int(timeout * 1000))
        finally:
            place.metadata = None  # NB: the list would free it
            lib.rd_kafka_topic_partition_list_destroy(places)
            lib.rd_kafka_consumer_group_metadata_destroy(about)

    def commit_transaction(self, timeout: float) -> None:
        """Send what waits, and let all of it count."""
        self._call("commit_transaction", int(timeout * 1000))

    def produce(self, messages: Messages) -> None:
        """Hand messages over, in their order, which are sent meanwhile."""
        lib = self._library
        for number, headers in enumerate(messages.headers):
            self._produce_one(messages.keys[number].as_py(), messages.values[number].as_py(), headers)
        columns = [] if messages.headers else [messages.keys, messages.values]
        for part in pa.table(columns, ["key", "value"][: len(columns)]).to_batches(max_chunksize=SLICE):
            while lib.rd_kafka_outq_len(self._client) > QUEUED:
                lib.rd_kafka_poll(self._client, 100)
            self._produce_some(*part.columns)
            lib.rd_kafka_poll(self._client, 0)

    def _produce_some(self, keys: pa.Array, values: pa.Array) -> None:
        waiting = np.zeros((len(values), _WORDS), np.int64)
        waiting[:, KEY], waiting[:, KEY_SIZE] = _places(keys)
        waiting[:, VALUE], waiting[:, VALUE_SIZE] = _places(values)
        while len(waiting):
            place = waiting.ctypes.data
            self._library.rd_kafka_produce_batch(self._place, ANY_PARTITION, COPIED, place, len(waiting))
            codes = waiting[:, 0].astype(np.int32)
            for code in np.unique(codes[codes != 0]).tolist():
                if code != KafkaError._QUEUE_FULL:
                    raise KafkaException(KafkaError(code))
            waiting = waiting[codes != 0]
            if len(waiting):
                self._library.rd_kafka_poll(self._client, 100)

    def _produce_one(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> None:
        parts = [_Part.of(_TOPIC, self._topic.encode()), _Part.of(_FLAGS, COPIED)]
        parts += [_Part.of(_KEY, key, len(key or b"")), _Part.of(_VALUE, value, len(value or b""))]
        parts += [_Part.of(_HEADER, name.encode(), data, len(data)) for name, data in headers]
        self._raise(self._library.rd_kafka_produceva(self._client, (_Part * len(parts))(*parts), len(parts)))

    def _call(self, name: str, *given: Any) -> None:
        """Call a function of transactions; KafkaException if it fails."""
        self._raise(getattr(self._library, f"rd_kafka_{name}")(self._client, *given))

    def _raise(self, error: int | None) -> None:
        """Raise an error of C, and give it back."""
        if not error:
            return
        lib = self._library
        text = lib.rd_kafka_error_string(error).decode(errors="replace")
        flags = [bool(flag(error)) for flag in (
            lib.rd_kafka_error_is_fatal, lib.rd_kafka_error_is_retriable, lib.rd_kafka_error_txn_requires_abort
        )]  # fmt: skip
        raised = KafkaError(lib.rd_kafka_error_code(error), text, *flags)
        lib.rd_kafka_error_destroy(error)
        raise KafkaException(raised)


class _Place(ctypes.Structure):
    """A place in a topic as C declares it."""

    _fields_ = [
        ("topic", c_void_p), ("partition", c_int32), ("offset", c_int64), ("metadata", c_void_p), ("size", c_size_t),
    ]  # fmt: skip


class _Part(ctypes.Structure):
    """A part of a message as C declares it: a type, and up to three words, in room for eight."""

    _fields_ = [("type", c_int32), ("words", c_void_p * 8)]
    held: tuple[Any, ...]

    @classmethod
    def of(cls, type: int, *words: int | bytes | None) -> "_Part":
        """Make a part that refers to bytes, which it holds."""
        given = [ctypes.cast(c_char_p(word), c_void_p).value if isinstance(word, bytes) else word for word in words]
        part = cls(type, (c_void_p * 8)(*given))
        part.held = words
        return part


def _places(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where each value of a column of bytes is, 0 for NULL, and its size."""
    ends, data = spans(column)
    places = ends[:-1] + np.int64(data.ctypes.data if len(data) else ctypes.addressof(_EMPTY))
    return np.where(np.asarray(column.is_valid()), places, 0), np.diff(ends)


def _destroy(lib: Any, client: int, topic: int, called: object, process: int) -> None:
    """End a client; one that a forked process has a copy of has no threads there, and would be waited for.

    Args:
        called: What C calls until then, which only Python keeps.
    """
    if os.getpid() == process:
        lib.rd_kafka_topic_destroy(topic)
        lib.rd_kafka_destroy(client)
