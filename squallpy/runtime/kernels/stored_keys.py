"""Keys as a pool's records hold them: words of 32 bits while these hold every key, of 64 bits from then on.

    (7, −1, NULL)   →   7, −1, −2³¹      12 bytes instead of 24

Numbers, dates, prices, and numbers of texts mostly fit. Keys that are looked up or added have words of 64 bits in
either case. There is no room for one that does not fit until the pool has widened all its keys (`Pool.make_room`),
which it does once.
"""

from typing import Final

from squallpy.base.keys import NULL
from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, load32, store, store32
from squallpy.runtime.kernels.kernel_compiler import Vector, address, inlined
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.narrow_words import LEAST, narrowed, needs_more
from squallpy.runtime.kernels.payload_arithmetic import copy

WIDE: Final = 8
"""Bytes of a word that holds any key."""
NARROW: Final = 4


@inlined
def same(a: int, b: int, width: int) -> bool:
    """True if the `width` words at two addresses are equal."""
    for i in range(width):  # noqa: SIM110
        if load(a, i) != load(b, i):
            return False
    return True


@inlined
def region_at(frame: Vector, region: int) -> int:
    """Return the address of a pool's region.

    NB: of an array, whose index Python may count from the end, it takes two instructions more.
    """
    return load(address(frame), frame[at.PLACES] + region)


@inlined
def key_at(frame: Vector, record: int) -> int:
    """Return the address of a record's key."""
    return region_at(frame, at.KEYS) + frame[at.STRIDE] * record


@inlined
def word_at(own: int, i: int, unit: int) -> int:
    """Return word number `i` of a record's key."""
    if unit == WIDE:
        return load(own, i)
    word = (load32(own, i) << 32) >> 32
    return NULL if word == LEAST else word


@inlined
def are_same(a: int, b: int, i: int, unit: int) -> bool:
    """True if word number `i` of the keys of two records is the same."""
    return load(a, i) == load(b, i) if unit == WIDE else load32(a, i) == load32(b, i)


@inlined
def is_key(own: int, key: int, width: int, unit: int) -> bool:
    """True if the key of a record equals one of `width` words of 64 bits."""
    if unit == WIDE:
        return same(own, key, width)
    for i in range(width):  # noqa: SIM110
        if word_at(own, i, NARROW) != load(key, i):
            return False
    return True


@inlined
def is_told_by_hash(key: int, width: int, unit: int) -> bool:
    """True if no other key of records of `width` words of `unit` bytes has the upper half of this one's hash."""
    return width == 1 and unit == NARROW and needs_more(load(key, 0)) == 0


@inlined
def has_put(frame: Vector, record: int, key: int) -> bool:
    """Let a record have a key; False, which is noted, if words of 32 bits do not hold it."""
    return has_put_words(frame, key_at(frame, record), key, frame[at.KEY], frame[at.UNIT])


@inlined
def has_put_words(frame: Vector, own: int, key: int, width: int, unit: int) -> bool:
    """Put a key where a record's stands; False, which is noted, if words of 32 bits do not hold it.

    Args:
        own: The address of the record's key, which has `width` words of `unit` bytes.
    """
    if unit == WIDE:
        copy(own, key, width)
        return True
    unfit = 0
    for i in range(width):
        word = load(key, i)
        unfit |= needs_more(word)
        store32(own, i, narrowed(word))
    if unfit != 0:
        store(frame[HEAD], at.UNFIT, 1)
    return unfit == 0


@inlined
def move_key(frame: Vector, old: int, new: int) -> None:
    """Copy the key of a record to another."""
    unit, target, source = frame[at.UNIT], key_at(frame, new), key_at(frame, old)
    for i in range(frame[at.KEY]):
        if unit == WIDE:
            store(target, i, load(source, i))
        else:
            store32(target, i, load32(source, i))


@inlined
def key_of_record(frame: Vector, record: int) -> int:
    """Return the address of a record's key in words of 64 bits, until the next call for this frame."""
    own, unit, width = key_at(frame, record), frame[at.UNIT], frame[at.KEY]
    if unit == WIDE:
        return own
    room = address(frame) + 8 * (frame[at.SCRATCH] + 6 * at.CHUNK + width)
    for i in range(width):
        store(room, i, word_at(own, i, unit))
    return room


@inlined
def fit(frame: Vector, keys: int, rows: int) -> bool:
    """True if records can hold the keys of rows at an address; else it is noted that they shall."""
    if frame[at.UNIT] == WIDE:
        return True
    unfit = 0
    for i in range(rows * frame[at.KEY]):  # without a jump: so many words are looked at together
        unfit |= needs_more(load(keys, i))
    if unfit != 0:
        store(frame[HEAD], at.UNFIT, 1)
    return unfit == 0
