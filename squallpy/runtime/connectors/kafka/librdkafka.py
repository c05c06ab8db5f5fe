"""Clients of librdkafka, called by its functions of C; consumers, whose batches of messages are Arrow columns at once.

consumer = NativeConsumer({"bootstrap.servers": "h:9092", "group.id": "g"})
consumer.assign("orders", 0, 42)
consumer.receive(10_000, 0.2)      →   a table of SCHEMA, and errors with their offsets

confluent_kafka makes an object of each message, which costs more than parsing it.
"""

import ctypes
import os
import weakref
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, cimpl

from squallpy.base.errors import SquallError
from squallpy.runtime.connectors.kafka.message_kernel import GOOD, KEY_BYTES, VALUE_BYTES, measure, release, take

KEY, VALUE, PARTITION, OFFSET, TIME = COLUMNS = ("key", "value", "partition", "offset", "timestamp")
SCHEMA = pa.schema(
    [
        (KEY, pa.binary()),
        (VALUE, pa.binary()),
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (TIME, pa.timestamp("ms")),
    ]
)
UNORDERED = {b"squall.unordered": b"true"}
"""Metadata of messages beside which there are others of the same table, no one knows which first."""
CONSUMER = 1  # NB: RD_KAFKA_CONSUMER
NOT_CLOSED = 8  # NB: RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE: there is no group to leave
_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "rd_kafka_conf_new": (c_void_p,),
    "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "rd_kafka_conf_set_log_cb": (None, c_void_p, c_void_p),
    "rd_kafka_conf_destroy": (None, c_void_p),
    "rd_kafka_new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
    "rd_kafka_poll_set_consumer": (c_int, c_void_p),
    "rd_kafka_queue_get_consumer": (c_void_p, c_void_p),
    "rd_kafka_queue_destroy": (None, c_void_p),
    "rd_kafka_destroy_flags": (None, c_void_p, c_int),
    "rd_kafka_topic_partition_list_new": (c_void_p, c_int),
    "rd_kafka_topic_partition_list_add": (c_void_p, c_void_p, c_char_p, c_int32),
    "rd_kafka_topic_partition_list_set_offset": (c_int, c_void_p, c_char_p, c_int32, c_int64),
    "rd_kafka_topic_partition_list_destroy": (None, c_void_p),
    "rd_kafka_assign": (c_int, c_void_p, c_void_p),
    "rd_kafka_consume_batch_queue": (c_int64, c_void_p, c_int, c_void_p, c_size_t),
    "rd_kafka_message_destroy": (None, c_void_p),
    "rd_kafka_message_timestamp": (c_int64, c_void_p, c_void_p),
    "rd_kafka_conf_set_dr_msg_cb": (None, c_void_p, c_void_p),
    "rd_kafka_destroy": (None, c_void_p),
    "rd_kafka_topic_new": (c_void_p, c_void_p, c_char_p, c_void_p),
    "rd_kafka_topic_destroy": (None, c_void_p),
    "rd_kafka_produce_batch": (c_int, c_void_p, c_int32, c_int, c_void_p, c_int),
    "rd_kafka_produceva": (c_void_p, c_void_p, c_void_p, c_size_t),
    "rd_kafka_outq_len": (c_int, c_void_p),
    "rd_kafka_poll": (c_int, c_void_p, c_int),
    "rd_kafka_init_transactions": (c_void_p, c_void_p, c_int),
    "rd_kafka_begin_transaction": (c_void_p, c_void_p),
    "rd_kafka_send_offsets_to_transaction": (c_void_p, c_void_p, c_void_p, c_void_p, c_int),
    "rd_kafka_commit_transaction": (c_void_p, c_void_p, c_int),
    "rd_kafka_consumer_group_metadata_new": (c_void_p, c_char_p),
    "rd_kafka_consumer_group_metadata_destroy": (None, c_void_p),
    "rd_kafka_error_code": (c_int, c_void_p),
    "rd_kafka_error_string": (c_char_p, c_void_p),
    "rd_kafka_error_is_fatal": (c_int, c_void_p),
    "rd_kafka_error_is_retriable": (c_int, c_void_p),
    "rd_kafka_error_txn_requires_abort": (c_int, c_void_p),
    "rd_kafka_error_destroy": (None, c_void_p),
}


@cache
def library() -> Any:
    """Find the functions of librdkafka that confluent_kafka itself calls; SQ8009 if they cannot be called."""
    found = ctypes.CDLL(cimpl.__file__)  # NB: what it depends on is searched, too, wherever that is
    try:
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError:
        message = "confluent_kafka hides the functions of its librdkafka"
        raise SquallError("SQ8009", message, hint="install a wheel of it: pip install confluent-kafka") from None
    return found


def new_client(kind: int, settings: Mapping[str, str], on_delivery: Any = None) -> int:
    """Make a client; KafkaException for settings that it does not know.

    Args:
        on_delivery: A function of C, which is called for each message of a producer that is reported.
    """
    lib, said = library(), ctypes.create_string_buffer(512)
    conf, client = lib.rd_kafka_conf_new(), None
    lib.rd_kafka_conf_set_log_cb(conf, None)
    if on_delivery:
        lib.rd_kafka_conf_set_dr_msg_cb(conf, on_delivery)
    if not any(
        lib.rd_kafka_conf_set(conf, name.encode(), value.encode(), said, len(said)) for name, value in settings.items()
    ):
        client = lib.rd_kafka_new(kind, conf, said, len(said))
    if not client:
        lib.rd_kafka_conf_destroy(conf)
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, said.value.decode(errors="replace")))
    return int(client)


class NativeConsumer:
    """A consumer of one partition at a time; KafkaException for settings that it does not know."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._library = lib = library()
        self._client = new_client(CONSUMER, settings)
        lib.rd_kafka_poll_set_consumer(self._client)
        self._queue = lib.rd_kafka_queue_get_consumer(self._client)
        self._partition = -1
        weakref.finalize(self, _destroy, lib, self._client, self._queue, os.getpid()).atexit = False

    def assign(self, topic: str, partition: int, offset: int) -> None:
        """Read a partition from an offset on, and nothing else."""
        lib, name = self._library, topic.encode()
        places = lib.rd_kafka_topic_partition_list_new(1)
        lib.rd_kafka_topic_partition_list_add(places, name, partition)
        lib.rd_kafka_topic_partition_list_set_offset(places, name, partition, offset)
        code = lib.rd_kafka_assign(self._client, places)
        lib.rd_kafka_topic_partition_list_destroy(places)
        if code:
            raise KafkaException(KafkaError(code))
        self._partition = partition

    def receive(self, most: int, timeout: float) -> tuple[pa.Table, list[tuple[KafkaError, int]]]:
        """Receive messages that are there, or that come in so many seconds; errors come with their offsets."""
        lib, pointers = self._library, np.empty(most, np.int64)
        count = lib.rd_kafka_consume_batch_queue(self._queue, int(timeout * 1000), pointers.ctypes.data, most)
        if count <= 0:
            return SCHEMA.empty_table(), []
        sizes = np.empty(3, np.int64)
        try:
            errors = [*map(_error, pointers[:count].tolist())] if measure(pointers, count, sizes) else []
            return self._columns(pointers, count, sizes), [each for each in errors if each]
        finally:
            release(pointers, count, address_of(lib.rd_kafka_message_destroy))

    def _columns(self, pointers: npt.NDArray[np.int64], count: int, sizes: npt.NDArray[np.int64]) -> pa.Table:
        rows, lib = int(sizes[GOOD]), self._library
        offsets, times = np.empty(rows, np.int64), np.empty(rows, np.int64)
        value_ends, key_ends = np.empty(rows + 1, np.int32), np.empty(rows + 1, np.int32)
        values, keys = np.empty(sizes[VALUE_BYTES], np.uint8), np.empty(sizes[KEY_BYTES], np.uint8)
        are_values, are_keys = np.empty(rows, np.bool_), np.empty(rows, np.bool_)
        get = address_of(lib.rd_kafka_message_timestamp)
        take(pointers, count, get, offsets, times, value_ends, values, are_values, key_ends, keys, are_keys)
        columns = [_binary(are_keys, key_ends, keys), _binary(are_values, value_ends, values)]
        columns += [pa.repeat(pa.scalar(self._partition, pa.int32()), rows), pa.array(offsets)]
        return pa.table([*columns, pa.array(times, mask=times < 0).cast(pa.timestamp("ms"))], schema=SCHEMA)


class NativeMessage(ctypes.Structure):
    """A message as C declares it."""

    _fields_ = [
        ("code", c_int32), ("topic", c_void_p), ("partition", c_int32), ("value", c_void_p), ("size", c_size_t),
        ("key", c_void_p), ("key_size", c_size_t), ("offset", c_int64), ("own", c_void_p),
    ]  # fmt: skip


def _error(pointer: int) -> tuple[KafkaError, int] | None:
    """Return the error that stands in the place of a message, and its offset; None for a message."""
    message = NativeMessage.from_address(pointer)
    if not message.code:
        return None
    text = ctypes.string_at(message.value, message.size).decode(errors="replace") if message.value else None
    return KafkaError(message.code, text), message.offset


def _binary(are_there: npt.NDArray[np.bool_], ends: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.Array:
    """Make a column of bytes from where they end."""
    bitmap = None if are_there.all() else pa.array(are_there).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(are_there), [bitmap, pa.py_buffer(ends), pa.py_buffer(data)])


def spans(values: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return where values of a column of bytes begin, and where the last ends, and the bytes in which that is."""
    _, ends, data = values.buffers()
    there = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    return there, np.frombuffer(data or b"", np.uint8)


def address_of(function: Any) -> int:
    """Return where a function of C begins."""
    return ctypes.cast(function, c_void_p).value or 0


def _destroy(lib: Any, client: int, queue: int, process: int) -> None:
    """End a client; one that a forked process has a copy of has no threads there, and would be waited for."""
    if os.getpid() == process:
        lib.rd_kafka_queue_destroy(queue)
        lib.rd_kafka_destroy_flags(client, NOT_CLOSED)
