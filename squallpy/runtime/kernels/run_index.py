"""A primary index with an entry for each run of neighbouring records that agree on the columns of slice 0.

    records   0 (7, 1)   1 (7, 4)   2 (7, 5)   3 (9, 1)   4 (7, 8)        slice 0 by the first column
    entries   0, 3 and 4: where a run begins

Rows that belong together mostly come together, as the lines of an order do: so one entry stands for several records,
and the slice needs no postings. A record is found by a pass over the runs that agree. Where that is long, as
it is where groups are large, an index of all keys finds it sooner: who adds rows counts what is passed, and where that
is more than `ALLOWED` a row, the pool's primary index has an entry for each record from then on (`Pool.index_records`).
"""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import (
    HIGH,
    LOW,
    Shape,
    after,
    home,
    insert,
    is_behind,
    is_of,
    remove,
    seek,
    seek_number,
    table_of,
)
from squallpy.runtime.kernels.intrinsics import load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, called, inlined
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.page_watch import mark_written
from squallpy.runtime.kernels.postings import ALONE, renumber, unlink
from squallpy.runtime.kernels.primary_index import agree, agree_records, hash_record, is_by_runs
from squallpy.runtime.kernels.stored_keys import is_key, key_at, key_of_record, move_key
from squallpy.runtime.kernels.stored_payloads import move_payload

ALLOWED: Final = 12
"""Entries and records that may be passed for each row that is added."""
MANY: Final = 1 << 62
"""Groups of several entries from here on: how many records, and the position of the first entry."""
RUN: Final = 1 << 61
"""Groups that are one run of several records from here on: how many, and the first."""
COUNTED: Final = 32  # bits of a position, or of a record, below the count
MOST: Final = (1 << 29) - 1


@inlined
def seek_in_runs(frame: Vector, count: int, table: int, shape: Shape, start: int, h: int, key: int) -> tuple[int, int]:
    """Find the record of `count` whose key is at an address, or, as ~position, where the entry of one would stand.

    The search begins at `start`: the home of its hash, or where this was peeked, if nothing was removed since. Returns,
    too, how many entries and records were passed.
    """
    width, unit, position, passed = frame[at.KEY], frame[at.UNIT], start, 0
    entry = load(table, position)
    while not is_behind(entry, h, position, shape):
        if (entry ^ h) & HIGH == 0:
            record = (entry & LOW) - 1
            passed += 1
            while record < count and agree(frame, record, key):
                if is_key(key_at(frame, record), key, width, unit):
                    return record, passed
                record += 1
                passed += 1
        position = after(position, shape)
        entry = load(table, position)
    return ~position, passed


@inlined
def seek_record(frame: Vector, table: int, shape: Shape, start: int, h: int, key: int) -> int:
    """Find the record whose key, of this hash, is at an address, −1 if there is none; from `start` on."""
    if is_by_runs(frame):
        record, _ = seek_in_runs(frame, load(frame[HEAD], at.COUNT), table, shape, start, h, key)
        return max(record, -1)
    keys = frame[frame[at.PLACES] + at.KEYS]
    position = seek(table, shape, start, h, key, frame[at.KEY], keys, frame[at.UNIT])
    return (load(table, position) & LOW) - 1 if position >= 0 else -1


@inlined
def find_record(frame: Vector, key: int) -> int:
    """Find the record whose key is at an address, −1 if there is none."""
    table, shape = table_of(frame[frame[at.PLACES]])
    h = hash_record(frame, key)
    return seek_record(frame, table, shape, home(h, shape), h, key)


@inlined
def begins_run(frame: Vector, record: int) -> bool:
    """True if a record does not agree with the one before it."""
    return record == 0 or not agree_records(frame, record - 1, record)


@inlined
def _end_of_run(frame: Vector, record: int, count: int, key: int) -> int:
    """Return the first record of `count`, behind one that agrees with the key at an address, that does not."""
    end = record + 1
    while end < count and agree(frame, end, key):
        end += 1
    return end


@inlined
def _count_entries(frame: Vector, more: int) -> None:
    store(frame[HEAD], at.ENTRIES, load(frame[HEAD], at.ENTRIES) + more)


@inlined
def enter_newest(frame: Vector, table: int, shape: Shape, position: int, h: int, record: int, key: int) -> int:
    """Enter the record behind all others, whose entry would stand at a position, unless it goes on with a run.

    Returns the last position that was written, or the one given.
    """
    last = position
    if record == 0 or not agree(frame, record - 1, key):
        last = insert(table, shape, position, (h & HIGH) | (record + 1))
        _count_entries(frame, 1)
    return last


@called
def _enter(frame: Vector, record: int) -> None:
    """Give a record an entry."""
    table, shape = table_of(frame[frame[at.PLACES]])
    h = hash_record(frame, key_of_record(frame, record))
    position = home(h, shape)
    while not is_behind(load(table, position), h, position, shape):
        position = after(position, shape)
    insert(table, shape, position, (h & HIGH) | (record + 1))
    _count_entries(frame, 1)


@called
def _leave(frame: Vector, record: int) -> None:
    """Take the entry of a record out."""
    table, shape = table_of(frame[frame[at.PLACES]])
    remove(table, shape, seek_number(table, shape, hash_record(frame, key_of_record(frame, record)), record))
    _count_entries(frame, -1)


@called
def drop_from_run(frame: Vector, record: int, count: int) -> None:
    """Take a record out of a pool of `count`, and move the last into its place."""
    last, follower = count - 1, record + 1
    unlink(frame, record)
    if begins_run(frame, record):
        _leave(frame, record)
    if follower < count and agree_records(frame, follower, record):
        _enter(frame, follower)
    if record == last:
        return
    if last == follower or begins_run(frame, last):
        _leave(frame, last)
    move_key(frame, last, record)
    move_payload(frame, last, record)
    renumber(frame, last, record)
    mark_written(frame, record)
    if begins_run(frame, record):
        _enter(frame, record)
    if follower < last and agree_records(frame, follower, record):
        _leave(frame, follower)


@inlined
def runs_of(frame: Vector, key: int, h: int) -> int:
    """Find the records that agree with the key at an address, of this hash: one (`ALONE`), a `RUN`, `MANY`, or −1."""
    count, (table, shape) = load(frame[HEAD], at.COUNT), table_of(frame[frame[at.PLACES]])
    position, place, first, runs, total = home(h, shape), 0, 0, 0, 0
    entry = load(table, position)
    while not is_behind(entry, h, position, shape):
        record = (entry & LOW) - 1
        if (entry ^ h) & HIGH == 0 and agree(frame, record, key):
            if runs == 0:
                place, first = position, record
            runs += 1
            end = _end_of_run(frame, record, count, key)
            total += end - record
        position = after(position, shape)
        entry = load(table, position)
    if total == 0:
        return -1
    if runs > 1:
        return MANY | total << COUNTED | place
    return ALONE + first if total == 1 else RUN | total << COUNTED | first


@called
def record_in_runs(frame: Vector, group: int, i: int) -> int:
    """Return record number `i` of a group of several entries."""
    count, (table, shape) = load(frame[HEAD], at.COUNT), table_of(frame[frame[at.PLACES]])
    position = group & LOW
    head = load(table, position)
    key = key_of_record(frame, (head & LOW) - 1)
    while True:
        entry = load(table, position)
        record = (entry & LOW) - 1
        if is_of(entry, head) and agree(frame, record, key):
            end = _end_of_run(frame, record, count, key)
            if i < end - record:
                return record + i
            i -= end - record
        position = after(position, shape)
