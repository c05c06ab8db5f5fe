"""Lookups by a slice, whatever it is kept in: postings, runs of records, or a group of the primary index."""

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.group_index import group_length, group_of, group_record
from squallpy.runtime.kernels.hash_index import LOW, ask, home, is_of, peek, table_of
from squallpy.runtime.kernels.intrinsics import load, prefetch
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.postings import sliced
from squallpy.runtime.kernels.primary_index import hash_record, indexed_columns, is_by_runs, put_picked
from squallpy.runtime.kernels.run_index import MANY, RUN, record_in_runs, runs_of
from squallpy.runtime.kernels.stored_keys import key_at


@inlined
def entries_of(frame: Vector, key: int, h: int) -> int:
    """Find the records that agree with the key at an address, of this hash, on the columns of the primary index.

    One (`postings.ALONE`), a run (`run_index.RUN`), several entries (`run_index.MANY`), or −1.
    """
    return runs_of(frame, key, h) if is_by_runs(frame) else group_of(frame, key, h)


@inlined
def listed_record(frame: Vector, group: int, i: int) -> int:
    """Return record number `i` of those that `entries_of` found."""
    if group >= MANY and is_by_runs(frame):
        return record_in_runs(frame, group, i)
    return (group & LOW) + i if RUN <= group < MANY else group_record(frame, group, i)


@making
def _sliced_by_primary_index(frame: Vector, bound: Vector) -> tuple[Words, Words]:
    """List all (row of `bound`, record) that agree on the columns of the primary index, ascending."""
    columns, width, n = indexed_columns(frame), bound.shape[1], bound.shape[0]
    (table, shape), base = table_of(frame[frame[at.PLACES]]), address(bound)
    picks = address(frame) + 8 * (columns + 1)
    key = address(frame) + 8 * (frame[at.SCRATCH] + 6 * at.CHUNK)
    hashes, found = np.empty(n, np.int64), np.empty(n, np.int64)
    for row in range(n):
        put_picked(key, picks, base + 8 * row * width, width)
        hashes[row] = hash_record(frame, key)
    total = 0
    for row in range(n):
        if row + at.CHUNK < n:
            ask(table, shape, hashes[row + at.CHUNK])
        ahead = row + at.CHUNK // 2
        if ahead < n:
            entry = load(table, peek(table, shape, home(hashes[ahead], shape), hashes[ahead]))
            if is_of(entry, hashes[ahead]):
                prefetch(key_at(frame, (entry & LOW) - 1))
        put_picked(key, picks, base + 8 * row * width, width)
        found[row] = entries_of(frame, key, hashes[row])
        total += group_length(found[row])
    rows, records, end = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for row in range(n):
        start = end
        for i in range(group_length(found[row])):
            record, place = listed_record(frame, found[row], i), end
            while place > start and records[place - 1] > record:
                records[place] = records[place - 1]
                place -= 1
            rows[end], records[place] = row, record
            end += 1
    return rows, records


@making
def sliced_records(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """List all (row of `bound`, record) that agree on the columns of slice `s`, of the group if −1, ascending."""
    if s < 0 or (s == 0 and is_by_runs(frame)):
        return _sliced_by_primary_index(frame, bound)
    return sliced(frame, s, bound)


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, int64, {GIVEN_MATRIX})")
def slice_records(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """Do what `sliced_records` does, as an entry point."""
    return sliced_records(frame, s, bound)
