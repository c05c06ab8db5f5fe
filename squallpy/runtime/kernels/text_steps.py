"""Steps of compiled triggers over texts: where one begins and how many bytes it has, prefixes, searches.

Texts are UTF-8; characters are counted without the bytes that continue one.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.dictionary import COUNT, same_bytes
from squallpy.runtime.kernels.hash_index import ask, table_of
from squallpy.runtime.kernels.hashing import hash_bytes
from squallpy.runtime.kernels.intrinsics import load, load8, load32
from squallpy.runtime.kernels.kernel_compiler import called, inlined
from squallpy.runtime.kernels.trigger_steps import GROW, INTERN, call

NAMES: Final = 8  # in the table of addresses, behind room for rows: the frame of the dictionary
_ANY_TEXT: Final = ord("%")
_ANY_CHARACTER: Final = ord("_")
_FEW: Final = 1 << 14  # texts of a dictionary that stays in the cache
_SHORT: Final = 8  # bytes of texts that are mostly known without it (`number_of`)


def text_bytes(text: str) -> npt.NDArray[np.uint8]:
    """Return the bytes of a constant, which printed code finds by their address."""
    return np.frombuffer(text.encode() or b"\0", np.uint8)


@inlined
def texts_at(steps: int) -> int:
    """Return the address of the dictionary's texts, until one is added."""
    return load(load(steps, NAMES), 5)


@inlined
def offset_of(steps: int, number: int) -> int:
    """Return how far behind `texts_at` the text of a number begins; any for NULL."""
    return load(load(load(steps, NAMES), 3), max(number, 0))


@inlined
def size_of(steps: int, number: int) -> int:
    """Return how many bytes the text of a number in the dictionary has; 0 for NULL."""
    ends = load(load(steps, NAMES), 3)
    return load(ends, number + 1) - load(ends, number) if number >= 0 else 0


@inlined
def intern(steps: int, start: int, length: int) -> int:
    """Return the number of a text in the dictionary; −2 if there is no memory."""
    return call(load(steps, INTERN), load(steps, NAMES), start, length, load(steps, GROW), 0, 0)


@called
def ask_texts(dictionary: int, offsets: int, texts: int, rows: int) -> None:
    """Ask for the cache lines by which rows' texts will be looked up in a large dictionary, unless most are short."""
    if load(load(dictionary, 0), COUNT) < _FEW or load32(offsets, rows) - load32(offsets, 0) <= _SHORT * rows:
        return
    table, shape = table_of(load(dictionary, 1))
    for row in range(rows):
        start = load32(offsets, row)
        ask(table, shape, hash_bytes(texts + start, load32(offsets, row + 1) - start))


@called
def leading(start: int, length: int, characters: int) -> int:
    """Count the bytes of the first characters of a text, or of all of it if it has fewer."""
    at = 0
    while characters > 0 and at < length:
        at += 1
        while at < length and load8(start, at) & 0xC0 == 0x80:
            at += 1
        characters -= 1
    return at


@called
def characters_of(start: int, length: int) -> int:
    """Count the characters of a text."""
    count = 0
    for i in range(length):
        count += 1 if load8(start, i) & 0xC0 != 0x80 else 0
    return count


@called
def compare_texts(start: int, length: int, other: int, size: int) -> int:
    """Compare texts by code point: below 0 if the first comes first, 0 if they are the same, above 0 else."""
    for i in range(min(length, size)):
        if load8(start, i) != load8(other, i):
            return load8(start, i) - load8(other, i)
    return length - size


@called
def skip_letters(start: int, length: int, letters: int, count: int) -> int:
    """Count the bytes at the beginning of a text that are among some letters of ASCII."""
    at = 0
    while at < length and is_among(load8(start, at), letters, count):
        at += 1
    return at


@called
def without_letters(start: int, length: int, letters: int, count: int) -> int:
    """Count the bytes of a text before those at its end that are among some letters of ASCII."""
    while length > 0 and is_among(load8(start, length - 1), letters, count):
        length -= 1
    return length


@inlined
def is_among(byte: int, letters: int, count: int) -> bool:
    """True if a byte is one of some letters of ASCII."""
    for i in range(count):  # noqa: SIM110
        if load8(letters, i) == byte:
            return True
    return False


@called
def same_text(start: int, length: int, other: int, size: int) -> bool:
    """True if two texts have the same bytes."""
    return length == size and same_bytes(start, other, size)


@called
def begins_with(start: int, length: int, other: int, size: int) -> bool:
    """True if a text begins with another."""
    return length >= size and same_bytes(start, other, size)


@called
def search(start: int, length: int, first: int, other: int, size: int) -> int:
    """Search a text from byte `first` on; return where what was found ends, −1 if it is not there or `first` is."""
    if first < 0:
        return -1
    head = load8(other, 0)
    for at in range(first, length - size + 1):
        if load8(start, at) == head and same_bytes(start + at, other, size):
            return at + size
    return -1


@called
def part_before(start: int, length: int, separator: int, size: int, number: int) -> int:
    """Count the bytes of a text before its part of a number, from 1; −1 if it has fewer parts."""
    at = 0
    for _ in range(number - 1):
        at = search(start, length, at, separator, size)
    return at


@called
def part_length(start: int, length: int, first: int, separator: int, size: int) -> int:
    """Count the bytes from one up to a separator, or to the end; 0 from −1 on."""
    behind = search(start, length, first, separator, size)
    return behind - size - first if behind >= 0 else max(length - first, 0) if first >= 0 else 0


@called
def place_of(start: int, length: int, other: int, size: int) -> int:
    """Return the first character, from 1, from which on a text has another one; 0 if it is not there."""
    behind = search(start, length, 0, other, size) if size > 0 else 0
    return characters_of(start, behind - size) + 1 if behind >= 0 else 0


@called
def is_like(start: int, length: int, pattern: int, size: int) -> bool:
    """True if a text has a pattern, in which % is any text and _ any character."""
    at = place = 0
    behind, retried = -1, 0  # the place behind the last %, and where the text that it takes ends so far
    while at < length:
        sign = load8(pattern, place) if place < size else -1
        if sign == _ANY_TEXT:
            place += 1
            behind, retried = place, at
        elif sign == _ANY_CHARACTER:
            at, place = at + leading(start + at, length - at, 1), place + 1
        elif sign == load8(start, at):
            at, place = at + 1, place + 1
        elif behind >= 0:
            retried += leading(start + retried, length - retried, 1)
            at, place = retried, behind
        else:
            return False
    while place < size and load8(pattern, place) == _ANY_TEXT:
        place += 1
    return place == size
