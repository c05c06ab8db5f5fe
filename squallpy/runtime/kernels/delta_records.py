"""Records of a delta that printed code finds or makes itself, where it would otherwise call what serves every pool.

    appended     the next record, where rows stand one behind the other
    recent       those entered last, by a few bits of their keys, where rows are added up by key

A record that is remembered is that of a key if it has this key: a pool of a delta has none twice.
"""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.stored_keys import region_at

APPENDS: Final = 19  # in the table of addresses: 1 if rows are not added up by key
RECENT: Final = 64  # records that are remembered
_SPREAD: Final = -7046029254386353131  # 2⁶⁴ by the golden ratio


@inlined
def does_append(steps: int) -> int:
    """Return 1 if rows are not added up by key."""
    return load(steps, APPENDS)


@inlined
def append_record(frame: Vector, width: int, broad: int) -> int:
    """Make a record behind all others, whose payload is 0 and whose key is to be written; −1 if there is no room.

    Args:
        width: Words of a key.
        broad: Words of a payload.
    """
    head = frame[HEAD]
    count = load(head, at.COUNT)
    if (count + 1) * width > region_at(frame, at.KEYS + 1) or (count + 1) * broad > region_at(frame, at.WORDS + 1):
        return -1
    for i in range(broad):
        store(region_at(frame, at.WORDS) + 8 * count * broad, i, 0)
    store(head, at.COUNT, count + 1)
    store(head, at.APPENDED, 1)
    return count


@inlined
def recent_at(recent: int, mixed: int) -> int:
    """Return the address of the record that is remembered for keys whose words are mixed to this one.

    Args:
        recent: The address of the first.
    """
    return recent + 8 * (((mixed * _SPREAD) >> 58) & (RECENT - 1))
