"""Lookups by the key columns that a pool's primary index is by: all of them, or its group.

    Pool(2, payload, group=(0,))    records that agree on column 0 have one hash, and stand one behind the other

So a lookup that finds one record at most needs no secondary index. It is chosen for declared keys; where data break
one, a group has several records, which are found, too, by a pass over them.
"""

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import HIGH, LOW, after, ask, home, is_behind, is_of, peek, table_of
from squallpy.runtime.kernels.hashing import hash_picked
from squallpy.runtime.kernels.intrinsics import load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, inlined, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.postings import ALONE
from squallpy.runtime.kernels.primary_index import agree
from squallpy.runtime.kernels.run_index import COUNTED, MANY, MOST


@inlined
def group_of(frame: Vector, key: int, h: int) -> int:
    """Find the records that agree with the key at an address, of this hash: one (`ALONE`), several, or −1."""
    table, shape = table_of(frame[frame[at.PLACES]])
    position = home(h, shape)
    first, count, record, entry = 0, 0, 0, load(table, position)
    while not is_behind(entry, h, position, shape):
        if (entry ^ h) & HIGH == 0 and agree(frame, (entry & LOW) - 1, key):
            if count == 0:
                first, record = position, (entry & LOW) - 1
            count += 1
        position = after(position, shape)
        entry = load(table, position)
    return -1 if count == 0 else ALONE + record if count == 1 else MANY | count << COUNTED | first


@inlined
def group_length(group: int) -> int:
    """Return how many records a group has."""
    return 0 if group < 0 else (group >> COUNTED) & MOST if group >= MANY else 1


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
        if is_of(entry, head) and agree(frame, (entry & LOW) - 1, first):
            i -= 1
    return (load(table, position) & LOW) - 1


@making
def grouped(frame: Vector, bound: Vector) -> tuple[Words, Words]:
    """List all (row of `bound`, record) that agree on the columns of the index, ascending."""
    columns, width, n = frame[at.BOUNDS] - frame[at.KEY] - 1, bound.shape[1], bound.shape[0]
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
