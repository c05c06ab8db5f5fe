"""Lookups by the key columns that a pool's own hash index is by: all of them, or its group.

    Pool(2, payload, group=(0,))    records that agree on column 0 have one hash, and stand one behind the other

So a lookup that finds one record at most needs no secondary index. It is chosen for declared keys; where data break
one, a group has several records, which are found, too, by a pass over them.
"""

from typing import Final

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import HIGH, LOW, after, ask, home, is_behind, is_of, peek, seek, table_of
from squallpy.runtime.kernels.hashing import hash_picked
from squallpy.runtime.kernels.intrinsics import load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.postings import ALONE

MANY: Final = 1 << 62
"""Entries of several records from here on: how many, and the position of the first."""
_COUNT: Final = 32  # bits of a position below the count
_MOST: Final = (1 << 30) - 1


@inlined
def _columns(frame: Vector) -> int:
    """Return the word of the frame at which the columns begin: how many, then which."""
    return frame[at.BOUNDS] - frame[at.KEY] - 1


@inlined
def hash_record(frame: Vector, key: int) -> int:
    """Hash of the key at an address, by which the pool's index has it."""
    columns = _columns(frame)
    return hash_picked(key, address(frame) + 8 * (columns + 1), frame[columns])


@inlined
def find_record(frame: Vector, key: int) -> int:
    """Find the record of a pool whose key is at an address, −1 if there is none."""
    places, width = frame[at.PLACES], frame[at.KEY]
    table, shape = table_of(frame[places])
    h = hash_record(frame, key)
    position = seek(table, shape, home(h, shape), h, key, width, frame[places + at.KEYS], 8 * width)
    return (load(table, position) & LOW) - 1 if position >= 0 else -1


@inlined
def _agree(frame: Vector, record: int, key: int) -> bool:
    """True if a record agrees on the columns with the key at an address."""
    columns, own = _columns(frame), frame[frame[at.PLACES] + at.KEYS] + 8 * record * frame[at.KEY]
    for i in range(columns + 1, columns + 1 + frame[columns]):  # noqa: SIM110
        if load(own, frame[i]) != load(key, frame[i]):
            return False
    return True


@inlined
def group_of(frame: Vector, key: int, h: int) -> int:
    """Find the records that agree with the key at an address, of this hash: one (`ALONE`), several, or −1."""
    table, shape = table_of(frame[frame[at.PLACES]])
    position = home(h, shape)
    first, count, record, entry = 0, 0, 0, load(table, position)
    while not is_behind(entry, h, position, shape):
        if (entry ^ h) & HIGH == 0 and _agree(frame, (entry & LOW) - 1, key):
            if count == 0:
                first, record = position, (entry & LOW) - 1
            count += 1
        position = after(position, shape)
        entry = load(table, position)
    return -1 if count == 0 else ALONE + record if count == 1 else MANY | count << _COUNT | first


@inlined
def group_length(group: int) -> int:
    """Return how many records a group has."""
    return 0 if group < 0 else (group >> _COUNT) & _MOST if group >= MANY else 1


@inlined
def group_record(frame: Vector, group: int, i: int) -> int:
    """Return record number `i` of a group."""
    if group < MANY:
        return group - ALONE
    table, shape = table_of(frame[frame[at.PLACES]])
    position, keys, wide = group & LOW, frame[frame[at.PLACES] + at.KEYS], 8 * frame[at.KEY]
    head = load(table, position)
    first = keys + ((head & LOW) - 1) * wide
    while i > 0:
        position = after(position, shape)
        entry = load(table, position)
        if is_of(entry, head) and _agree(frame, (entry & LOW) - 1, first):
            i -= 1
    return (load(table, position) & LOW) - 1


@making
def grouped(frame: Vector, bound: Vector) -> tuple[Words, Words]:
    """List all (row of `bound`, record) that agree on the columns of the index, ascending."""
    columns, width, n = _columns(frame), bound.shape[1], bound.shape[0]
    (table, shape), base = table_of(frame[frame[at.PLACES]]), address(bound)
    picks, keys, wide = address(frame) + 8 * (columns + 1), frame[frame[at.PLACES] + at.KEYS], 8 * frame[at.KEY]
    key = address(frame) + 8 * (frame[at.SCRATCH] + 6 * at.CHUNK)
    hashes, found = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(n):
        for i in range(width):
            store(key, load(picks, i), load(base, row * width + i))
        hashes[row] = hash_picked(key, picks, width)
    total = 0
    for row in range(n):
        if row + at.CHUNK < n:
            ask(table, shape, hashes[row + at.CHUNK])
        ahead = row + at.CHUNK // 2
        if ahead < n:
            entry = load(table, peek(table, shape, home(hashes[ahead], shape), hashes[ahead]))
            if is_of(entry, hashes[ahead]):
                prefetch(keys + ((entry & LOW) - 1) * wide)
        for i in range(width):
            store(key, load(picks, i), load(base, row * width + i))
        found[row] = group_of(frame, key, hashes[row])
        total += group_length(found[row])
    rows, records, end = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for row in range(n):
        start = end
        for i in range(group_length(found[row])):
            record, place = group_record(frame, found[row], i), end
            while place > start and records[place - 1] > record:
                records[place] = records[place - 1]
                place -= 1
            rows[end], records[place] = row, record
            end += 1
    return rows, records


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_MATRIX})")
def group_records(frame: Vector, bound: Vector) -> tuple[Words, Words]:
    """Do what `grouped` does, as an entry point."""
    return grouped(frame, bound)
