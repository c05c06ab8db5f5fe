"""Messages in the wire format of Protocol Buffers, as far as Flight SQL's need it: flat ones.

class Query(Message):  text: str = ""          Query("SELECT 1").encode()   →   b"\\n\\x08SELECT 1"

Source: https://protobuf.dev/programming-guides/encoding
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, ClassVar, Self

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass

_BYTES = 2  # the kind of field that has a length


@dataclass(frozen=True, slots=True)
class Message:
    """A message whose fields are numbered from 1 on, in their order; each has a default, as in proto3."""

    converters: ClassVar[dict[Any, Callable[[list[int | bytes]], Any]]] = {
        str: lambda found: _text(found[-1]),
        str | None: lambda found: _text(found[-1]),
        bytes: lambda found: _bytes(found[-1]),
        bool: lambda found: bool(found[-1]),
        tuple[str, ...]: lambda found: tuple(map(_text, found)),
        tuple[int, ...]: lambda found: tuple(number for each in found for number in _numbers(each)),
    }

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a message; unknown fields are skipped. SQ3001 if it is none."""
        found = dict[int, list[int | bytes]]()
        for number, value in _fields(data):
            found.setdefault(number, []).append(value)
        known = enumerate(fields(cls), 1)
        return cls(**{each.name: cls.converters[each.type](found[number]) for number, each in known if number in found})

    def encode(self) -> bytes:
        """Write the fields that are not their defaults; texts and bytes only."""
        written = b""
        for number, each in enumerate(fields(self), 1):
            value = getattr(self, each.name)
            if value != each.default:
                data = value.encode() if isinstance(value, str) else bytes(value)
                written += _varint(number << 3 | _BYTES) + _varint(len(data)) + data
        return written


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Split a message into the numbers and values of its fields."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        match tag & 7:
            case 0:
                value, at = _read_varint(data, at)
                yield tag >> 3, value
                continue
            case 1:
                length = 8
            case 2:
                length, at = _read_varint(data, at)
            case 5:
                length = 4
            case _:
                raise _broken()
        if at + length > len(data):
            raise _broken()
        yield tag >> 3, data[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of up to 64 bits, seven a byte; returned with the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    raise _broken()


def _varint(value: int) -> bytes:
    written = b""
    while value > 0x7F:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def _numbers(value: int | bytes) -> Iterator[int]:
    """Read one number, or those that are packed."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = _read_varint(value, at)
        yield number


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _broken()
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise _broken() from None


def _broken() -> SquallError:
    return SquallError("SQ3001", "this is no message of Flight SQL")
