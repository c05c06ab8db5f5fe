"""Steps of compiled triggers that compose texts: each appends to the texts that a row has composed so far.

'#' || LPAD(CAST(k AS VARCHAR), 3, '0') of k = 7, in room for 4,096 bytes:

    at = put_decimal(room, 0, 7, 0)                →   1      7
    at = put_padded(room, 1, room, 1, 3, …)        →   4      7007         reads its operand where that was put
    at = put_text(room, 4, …, 1)                   →   5      7007#
    at = put_text(room, 5, room + 1, 3)            →   8      7007#007     the last four bytes are the text

Each returns the place behind what it has put; or a place beyond the room, where there is too little, or a letter is not
of ASCII whose case is asked for. Then the generic evaluators do the batch.
"""

from typing import Final

from squallpy.runtime.kernels.dictionary import copy_bytes, same_bytes
from squallpy.runtime.kernels.intrinsics import load8, store8
from squallpy.runtime.kernels.kernel_compiler import called
from squallpy.runtime.kernels.text_steps import characters_of, leading

ROOM: Final = 4096
"""Bytes that the texts of a row may have together."""
_NONE: Final = ROOM + 1
_MINUS, _POINT, _ZERO = ord("-"), ord("."), ord("0")
_A, _Z, _CASE = ord("A"), ord("Z"), ord("a") - ord("A")
_MICROS, _MOST_DIGITS = 1_000_000, 19


@called
def put_text(room: int, at: int, start: int, length: int) -> int:
    """Append a text."""
    if at + length > ROOM:
        return _NONE
    copy_bytes(room + at, start, length)
    return at + length


@called
def put_digits(room: int, at: int, number: int, least: int) -> int:
    """Append a number that is not negative, with as many digits at least."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits, rest = digits + 1, rest // 10
    digits = max(digits, least)
    if at + digits > ROOM:
        return _NONE
    for i in range(at + digits - 1, at - 1, -1):
        store8(room, i, _ZERO + number % 10)
        number //= 10
    return at + digits


@called
def put_decimal(room: int, at: int, number: int, scale: int) -> int:
    """Append a decimal number, given without its point, before the last `scale` digits."""
    if at + _MOST_DIGITS + 3 + scale > ROOM or number == -(2**63):
        return _NONE
    if number < 0:
        store8(room, at, _MINUS)
        at, number = at + 1, -number
    unit = 1
    for _ in range(scale):
        unit *= 10
    at = put_digits(room, at, number // unit, 1)
    if scale == 0:
        return at
    store8(room, at, _POINT)
    return put_digits(room, at + 1, number % unit, scale)


@called
def put_date(room: int, at: int, year: int, month: int, day: int) -> int:
    """Append a date, as 2026-01-31."""
    if at + 10 > ROOM:
        return _NONE
    store8(room, at + 4, _MINUS)
    store8(room, at + 7, _MINUS)
    put_digits(room, at, year, 4)
    put_digits(room, at + 5, month, 2)
    return put_digits(room, at + 8, day, 2)


@called
def put_time(room: int, at: int, micros: int) -> int:
    """Append a blank and a time of the day, as 23:59:59, with the digits behind the point that it has."""
    if at + 16 > ROOM:
        return _NONE
    seconds, fraction = micros // _MICROS, micros % _MICROS
    store8(room, at, ord(" "))
    put_digits(room, at + 1, seconds // 3600, 2)
    store8(room, at + 3, ord(":"))
    put_digits(room, at + 4, seconds // 60 % 60, 2)
    store8(room, at + 6, ord(":"))
    at = put_digits(room, at + 7, seconds % 60, 2)
    if fraction > 0:
        store8(room, at, _POINT)
        at = put_digits(room, at + 1, fraction, 6)
        while load8(room, at - 1) == _ZERO:
            at -= 1
    return at


@called
def put_padding(room: int, at: int, lacking: int, start: int, length: int) -> int:
    """Append a text over and over, so many characters of it."""
    whole = characters_of(start, length)
    while lacking > 0 and length > 0 and at <= ROOM:
        at = put_text(room, at, start, leading(start, length, lacking))
        lacking -= whole
    return at


@called
def put_padded(room: int, at: int, start: int, length: int, width: int, fill: int, size: int, is_left: int) -> int:
    """Append the first `width` characters of a text, and what it lacks of them before or behind it."""
    cut, lacking = leading(start, length, width), width - characters_of(start, length)
    if is_left == 1:
        at = put_padding(room, at, lacking, fill, size)
    at = put_text(room, at, start, cut)
    return put_padding(room, at, lacking, fill, size) if is_left == 0 else at


@called
def put_in_case(room: int, at: int, start: int, length: int, is_upper: int) -> int:
    """Append a text of ASCII in upper or lower case."""
    if at + length > ROOM:
        return _NONE
    first = _A + _CASE if is_upper == 1 else _A
    for i in range(length):
        byte = load8(start, i)
        if byte > 127:
            return _NONE
        in_case = byte ^ _CASE if first <= byte <= first + _Z - _A else byte
        store8(room, at + i, in_case)
    return at + length


@called
def put_replaced(room: int, at: int, start: int, length: int, old: int, size: int, new: int, new_size: int) -> int:
    """Append a text in which another one, which is not empty, is replaced wherever it stands, from the left."""
    i = 0
    while i < length and at <= ROOM:
        if length - i >= size and same_bytes(start + i, old, size):
            at, i = put_text(room, at, new, new_size), i + size
        else:
            at, i = put_text(room, at, start + i, 1), i + 1
    return at
