"""Payloads as a pool's records hold them: counts of 32 bits and exact sums of 64 while these hold all, twice that then.

    ⟨3, −250⟩   →   3 | −250      12 bytes instead of 24

Payloads that are added or read have words of 64 bits in either case: a lane that begins with word `i` of these stands
`i` words of 32 bits behind the beginning of the record's. There is no room for one that does not fit until the pool has
widened all its payloads (`Pool.make_room`), which it does once. Sums of doubles and blocks are not narrowed.
"""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, load32, store, store32
from squallpy.runtime.kernels.kernel_compiler import Vector, address, inlined
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.payload_arithmetic import add, copy
from squallpy.runtime.kernels.ring_arithmetic import sign
from squallpy.runtime.kernels.stored_keys import region_at

NARROW_WORD: Final = 4
"""Bytes that stand for a word of a narrow payload."""
UNFIT_PAYLOAD: Final = 2
"""Note in a pool's head that a payload is to be added which narrow ones do not hold."""
TAG: Final = 1
"""Added to the address of a narrow payload among those that may be either."""


@inlined
def is_narrow(frame: Vector) -> bool:
    """True if the payloads of a pool's records are narrow."""
    return frame[at.BROAD] < 8 * frame[at.PAYLOAD]


@inlined
def payload_at(frame: Vector, record: int) -> int:
    """Return the address of a record's payload as it is held."""
    return region_at(frame, at.WORDS) + frame[at.BROAD] * record


@inlined
def narrow_count(own: int, i: int) -> int:
    """Return the count that stands for word `i` of a narrow payload."""
    return (load32(own, i) << 32) >> 32


@inlined
def narrow_sum(own: int, i: int) -> int:
    """Return the sum that stands for words `i` and `i` + 1 of a narrow payload."""
    return load(own + NARROW_WORD * i, 0)


@inlined
def exceeds_count(n: int) -> int:
    """Return a word that is not 0 if a count has no room in 32 bits."""
    return n ^ ((n << 32) >> 32)


@inlined
def _widen_lane(own: int, target: int, i: int, is_count: bool) -> int:
    """Copy the lane that stands for word `i` of a narrow payload into words of 64 bits; return the next word."""
    if is_count:
        store(target, i, narrow_count(own, i))
        return i + 1
    lo = narrow_sum(own, i)
    store(target, i, lo)
    store(target, i + 1, sign(lo))
    return i + 2


@inlined
def _widen(frame: Vector, own: int, target: int) -> None:
    """Copy a narrow payload into words of 64 bits."""
    i = 0
    for lane in range(frame[at.LANES]):
        i = _widen_lane(own, target, i, frame[at.RINGS + lane] == 0)


@inlined
def read_payload(frame: Vector, record: int, target: int) -> None:
    """Copy the payload of a record to an address, in words of 64 bits."""
    if is_narrow(frame):
        _widen(frame, payload_at(frame, record), target)
    else:
        copy(target, payload_at(frame, record), frame[at.PAYLOAD])


@inlined
def room_at(frame: Vector, room: int) -> int:
    """Return the address of one of the `ROOMS` for payloads that are read."""
    return address(frame) + 8 * (frame[at.PAYLOAD_ROOMS] + room * frame[at.PAYLOAD])


@inlined
def payload_of(frame: Vector, record: int, lanes: int, exact: int, room: int) -> int:
    """Return the address of a record's payload in words of 64 bits, until the next call for this frame and room.

    Args:
        lanes: How many counts and exact sums it has.
        exact: A bit for each lane, from the lowest: 1 if it is a sum.
    """
    own = payload_at(frame, record)
    if not is_narrow(frame):
        return own
    target, i = room_at(frame, room), 0
    for lane in range(lanes):
        i = _widen_lane(own, target, i, (exact >> lane) & 1 == 0)
    return target


@inlined
def tagged_payload(frame: Vector, record: int) -> int:
    """Return the address of a record's payload as it is held, plus `TAG` if it is narrow."""
    return payload_at(frame, record) + (TAG if is_narrow(frame) else 0)


@inlined
def tagged_word(frame: Vector, place: int, word: int) -> int:
    """Return a word of the payload at an address that may be tagged."""
    if place & TAG == 0:
        return load(place, word)
    own, i = place - TAG, 0
    for lane in range(frame[at.LANES]):
        if frame[at.RINGS + lane] == 0:
            if i == word:
                return narrow_count(own, i)
            i += 1
        else:
            if i == word:
                return narrow_sum(own, i)
            if i + 1 == word:
                return sign(narrow_sum(own, i))
            i += 2
    return 0


@inlined
def tagged_lane(place: int, offset: int, is_count: bool, room: int) -> int:
    """Return the address of the lane that begins with a word of the payload at an address that may be tagged.

    Args:
        is_count: Whether it is a count, not a sum.
        room: The address of two words in which it is put if it is narrow.
    """
    if place & TAG == 0:
        return place + 8 * offset
    own = place - TAG
    lo = narrow_count(own, offset) if is_count else narrow_sum(own, offset)
    store(room, 0, lo)
    store(room, 1, sign(lo))
    return room


@inlined
def word_of_payload(frame: Vector, record: int, word: int) -> int:
    """Return a word of a record's payload."""
    return tagged_word(frame, tagged_payload(frame, record), word)


@inlined
def has_put_payload(frame: Vector, record: int, source: int) -> bool:
    """Let a record have the payload at an address; False, which is noted, if narrow ones do not hold it."""
    own = payload_at(frame, record)
    if not is_narrow(frame):
        copy(own, source, frame[at.PAYLOAD])
        return True
    unfit, i = 0, 0
    for lane in range(frame[at.LANES]):
        if frame[at.RINGS + lane] == 0:
            unfit |= exceeds_count(load(source, i))
            i += 1
        else:
            unfit |= load(source, i + 1) ^ sign(load(source, i))
            i += 2
    if unfit != 0:
        store(frame[HEAD], at.UNFIT, UNFIT_PAYLOAD)
        return False
    i = 0
    for lane in range(frame[at.LANES]):
        if frame[at.RINGS + lane] == 0:
            store32(own, i, load(source, i))
            i += 1
        else:
            store(own + NARROW_WORD * i, 0, load(source, i))
            i += 2
    return True


@inlined
def add_to_record(frame: Vector, record: int, source: int) -> int:
    """Add the payload at an address to that of a record; 0 if nothing is left, −1, which is noted, if it does not fit.

    Nothing is changed then.
    """
    if not is_narrow(frame):
        return 1 if add(frame, payload_at(frame, record), source) else 0
    room = room_at(frame, 0)
    _widen(frame, payload_at(frame, record), room)
    if not add(frame, room, source):
        return 0
    return 1 if has_put_payload(frame, record, room) else -1


@inlined
def move_payload(frame: Vector, old: int, new: int) -> None:
    """Copy the payload of a record to another."""
    target, source = payload_at(frame, new), payload_at(frame, old)
    if not is_narrow(frame):
        copy(target, source, frame[at.PAYLOAD])
        return
    for i in range(frame[at.PAYLOAD]):
        store32(target, i, load32(source, i))
