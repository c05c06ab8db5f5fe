"""Texts whose order, by code points, is that of ARRAYs and STRUCTs.

NULL is 0 and anything else begins with 1; the parts of a STRUCT follow one another, each element of an ARRAY is behind
a 1 and its end a 0; so no text begins with another of its type, and what stands behind one does not change the order.

    [9, 10, null]  of code [n   →   1 | 1 1P019 | 1 1P0210 | 1 0 | 0
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from squallpy.runtime.evaluate.scalar.json import READER

OrderText = Callable[[Any], str]
END, VALUE = "\x01\x01", "\x01\x04"
"""What ends a text, and what stands before the value itself."""
_ESCAPED = str.maketrans({"\x00": "\x01\x02", "\x01": "\x01\x03"})
_OTHER_DIGITS = str.maketrans("0123456789", "9876543210")


def order_text(held: str, code: str) -> str:
    """Write a value that is held as JSON; its type has a code as `logical/nested_order.py` writes it."""
    return order_writer(code)(READER.decode(held))


def order_with_value(held: str, code: str) -> str:
    return order_text(held, code) + VALUE + held


def value_in_order(text: str) -> str:
    """Return the value of a text that order_with_value has made: JSON has no control characters."""
    return text.rpartition(VALUE)[2]


@lru_cache(256)
def order_writer(code: str) -> OrderText:
    """Return what writes decoded values of a type."""
    return _read_code(code, 0)[0]


def _read_code(code: str, at: int) -> tuple[OrderText, int]:
    """Make the writer of values whose type has its code at a place, and return the end of the code."""
    kind, at = code[at], at + 1
    if kind == "(":
        parts = list[OrderText]()
        while code[at] != ")":
            part, at = _read_code(code, at)
            parts.append(part)
        return _or_null(lambda value: "".join(w(x) for w, x in zip(parts, value.values(), strict=True))), at + 1
    if kind == "[":
        of, at = _read_code(code, at)
        return _or_null(lambda value: "".join(f"1{of(each)}" for each in value) + "0"), at
    return _or_null({"n": _exact, "d": _real, "t": _text}[kind]), at


def _or_null(write: OrderText) -> OrderText:
    return lambda value: "0" if value is None else f"1{write(value)}"


def _exact(value: Any) -> str:
    """Write a number of a fixed scale by its digits: 10  →  P0210, and −10  →  N9789, each digit taken from 9"""
    digits = str(value).replace(".", "")
    magnitude = digits.lstrip("-").lstrip("0") or "0"
    text = f"{len(magnitude):02}{magnitude}"
    return f"N{text.translate(_OTHER_DIGITS)}" if digits.startswith("-") and magnitude != "0" else f"P{text}"


def _real(value: Any) -> str:
    """Write a DOUBLE by its bits, NaN last, −0.0 as 0.0."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", float(value) + 0.0))
    return f"{bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63:016x}"


def _text(value: Any) -> str:
    return f"{int(value)}" if isinstance(value, bool) else value.translate(_ESCAPED) + END
