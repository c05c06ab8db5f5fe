"""Messages between a session and those attached to it: a line of JSON and Arrow tables, over a socket.

send(socket, {"call": "table", "name": "rev"})                       receive(socket)   →   the mapping and no tables
"""

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from squallpy.base.errors import Span, SquallError

_LENGTH = struct.Struct("!Q")
_LARGEST_HEADER = 64 << 20  # bytes: who claims more is no session
Message = Mapping[str, Any]


class Disconnected(Exception):
    """The other side has gone."""


def send(peer: socket.socket, message: Message, tables: Sequence[pa.Table] = ()) -> None:
    """Send a message with tables behind it."""
    bodies = [_encoded(table) for table in tables]
    head = json.dumps({**message, "tables": [len(body) for body in bodies]}).encode()
    try:
        peer.sendall(_LENGTH.pack(len(head)) + head)
        for body in bodies:
            peer.sendall(body)
    except OSError as error:
        raise Disconnected from error


def receive(peer: socket.socket) -> tuple[dict[str, Any], list[pa.Table]]:
    """Receive a message with its tables; raises Disconnected at its end."""
    (length,) = _LENGTH.unpack(_exactly(peer, _LENGTH.size))
    if length > _LARGEST_HEADER:
        raise Disconnected
    try:
        message = json.loads(bytes(_exactly(peer, length)))
        tables = [pa.ipc.open_stream(_exactly(peer, size)).read_all() for size in message.pop("tables")]
    except (ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        raise Disconnected from error
    return message, tables


def _encoded(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _exactly(peer: socket.socket, size: int) -> memoryview:
    found, done = bytearray(size), 0
    view = memoryview(found)
    while done < size:
        try:
            count = peer.recv_into(view[done:])
        except OSError as error:
            raise Disconnected from error
        if not count:
            raise Disconnected
        done += count
    return view


def encode_error(error: Exception) -> dict[str, Any]:
    """Write an error as a message: that of a user with its code and place, another as its text."""
    if not isinstance(error, SquallError):
        return {"internal": f"{type(error).__name__}: {error}"}
    place = asdict(error.span) if error.span else None
    return {"code": error.code, "message": error.message, "span": place, "hint": error.hint}


def decode_error(told: Mapping[str, Any]) -> Exception:
    """Read an error from a message."""
    if "internal" in told:
        return RuntimeError(told["internal"])
    span = Span(**told["span"]) if told["span"] else None
    return SquallError(told["code"], told["message"], span, told["hint"])
