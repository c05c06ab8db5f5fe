"""Lookups for many rows of a delta at once: cache lines are asked for together, so that the waits overlap."""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.buddy_allocator import block_at
from squallpy.runtime.kernels.c_functions import CFunction, c_function
from squallpy.runtime.kernels.hash_index import LOW, ask, is_of, peek, seek, table_of
from squallpy.runtime.kernels.hashing import hash_picked, hash_row
from squallpy.runtime.kernels.intrinsics import load, load32, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, inlined
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.postings import ALONE, entry_of
from squallpy.runtime.kernels.primary_index import (
    has_keys_in_hashes,
    hash_in_order,
    indexed_columns,
    is_by_runs,
    keeps_order,
)
from squallpy.runtime.kernels.run_index import seek_record
from squallpy.runtime.kernels.slice_lookup import entries_of
from squallpy.runtime.kernels.trigger_steps import call, frame_at

ENTRIES: Final = 10  # addresses in the table
FIND: Final = 18
_CACHED: Final = 1 << 12  # records that are in the cache anyway
_POSTING: Final = 4  # records of a posting that are asked for
_KEYS_ALONE: Final = 1 << 60  # of the columns of a key: payloads are not asked for
_FOUND: Final = 2 * at.CHUNK  # of the scratch: records or entries that are found,
_SOUGHT: Final = 3 * at.CHUNK  # and the rows that have a key to look for


@inlined
def find_rows(frame: Vector, keys: int, width: int, columns: int, rows: int, before: int, steps: int) -> None:
    """Find the records of the next rows of a delta, 64 at most, in a pool, by its key.

    Args:
        keys: The address of the first row's keys, of so many words each.
        columns: Four bits for each key of the pool, from the lowest: the key of the delta that it equals.
        before: Where an earlier lookup has its records (`records_found`), without one of which a row needs none; 0: all
            rows do.
    """
    call(load(steps, FIND), address(frame), keys, width, columns, rows, before)


@inlined
def find_keys(frame: Vector, keys: int, width: int, columns: int, rows: int, before: int, steps: int) -> None:
    """Find records as `find_rows` does, whose payloads somebody else asks for."""
    call(load(steps, FIND), address(frame), keys, width, columns | _KEYS_ALONE, rows, before)


@inlined
def records_found(frame: Vector) -> int:
    """Return the address of the records that `find_rows` has found, a word for each row."""
    return address(frame) + 8 * (frame[at.SCRATCH] + _FOUND)


@inlined
def found_at(frame: Vector, row: int) -> int:
    """Return the record or the entry that was found for a row, −1 if there is none."""
    return frame[frame[at.SCRATCH] + _FOUND + (row & (at.CHUNK - 1))]


@inlined
def _put_key(frame: Vector, key: int, columns: int) -> int:
    """Put a key of the pool together of that of a delta, unless it is a word of it, and return its address."""
    if frame[at.KEY] == 1:
        return key + 8 * (columns & 15)
    room = address(frame) + 8 * (frame[at.SCRATCH] + 6 * at.CHUNK)
    for i in range(frame[at.KEY]):
        store(room, i, load(key, (columns >> (4 * i)) & 15))
    return room


@c_function(6)
def _find_rows(where: int, keys: int, width: int, columns: int, rows: int, before: int) -> int:
    """Ask for lines of the index, then for those of records, then compare keys."""
    frame = frame_at(where)
    places, scratch, own = frame[at.PLACES], where + 8 * frame[at.SCRATCH], frame[at.KEY]
    picks, count, by_runs = indexed_columns(frame), load(frame[HEAD], at.COUNT), is_by_runs(frame)
    in_order = keeps_order(frame)
    (table, shape), unit, broad = table_of(frame[places]), frame[at.UNIT], frame[at.BROAD]
    records, payloads, wide = frame[places + at.KEYS], frame[places + at.WORDS], unit * own
    is_told = has_keys_in_hashes(frame)
    found, sought, n, m = scratch + 8 * _FOUND, scratch + 8 * _SOUGHT, 0, 0
    for row in range(rows):
        store(found, row, -1)
        if before == 0 or load(before, row) >= 0:
            key = _put_key(frame, keys + 8 * row * width, columns)
            if in_order:
                h = hash_in_order(load(key, frame[picks + 1]))
            else:
                is_by_key = own == 1 and frame[picks] == 1  # NB: runs may agree on no columns
                h = hash_row(key, 1) if is_by_key else hash_picked(key, where + 8 * (picks + 1), frame[picks])
            store(sought, n, row)
            store(scratch, n, h)
            store(scratch, at.CHUNK + n, ask(table, shape, h))
            n += 1
    for i in range(n):  # without a jump: which rows find an entry of their hash nobody could predict
        h, row = load(scratch, i), load(sought, i)
        position = peek(table, shape, load(scratch, at.CHUNK + i), h)
        store(sought, m, row)
        store(scratch, m, h)
        store(scratch, at.CHUNK + m, position)
        m += is_of(load(table, position), h)
    for i in range(m if count >= _CACHED else 0):
        record = (load(table, load(scratch, at.CHUNK + i)) & LOW) - 1
        if not is_told:
            prefetch(records + record * wide)
        if columns & _KEYS_ALONE == 0:
            prefetch(payloads + record * broad)
    for i in range(m):
        row, h, start = load(sought, i), load(scratch, i), load(scratch, at.CHUNK + i)
        key = _put_key(frame, keys + 8 * row * width, columns)
        if by_runs:
            store(found, row, seek_record(frame, table, shape, start, h, key))
            continue
        if own == 1:
            position = seek(table, shape, start, h, key, 1, records, unit)
        else:
            position = seek(table, shape, start, h, key, own, records, unit)
        if position >= 0:
            store(found, row, (load(table, position) & LOW) - 1)
    return 0


@inlined
def find_entries(frame: Vector, s: int, keys: int, width: int, columns: int, rows: int, steps: int) -> None:
    """Find what slice `s` of a pool, −1: its group, has for the next rows of a delta, 64 at most; ask for the records.

    Args:
        keys: The address of the first row's keys, of so many words each.
        columns: Four bits for each key of the pool, from the lowest: the key of the delta that it equals.
    """
    call(load(steps, ENTRIES), address(frame), s, keys, width, columns, rows)


@c_function(6)
def _find_entries(where: int, s: int, keys: int, width: int, columns: int, rows: int) -> int:
    """Ask for lines of the index, then for those of records or postings, then compare keys."""
    frame = frame_at(where)
    places, scratch, own = frame[at.PLACES], where + 8 * frame[at.SCRATCH], frame[at.KEY]
    picks, is_primary = frame[at.BOUNDS] + s * (own + 1), s < 0 or (s == 0 and is_by_runs(frame))
    place = places if is_primary else places + at.SLICE + s * at.SLICE_STRIDE
    (table, shape), wide, broad = table_of(frame[place]), frame[at.STRIDE], frame[at.BROAD]
    records, payloads, arena = frame[places + at.KEYS], frame[places + at.WORDS], frame[place + at.ARENA]
    found, is_large = scratch + 8 * _FOUND, load(frame[HEAD], at.COUNT) >= _CACHED
    in_order = is_primary and keeps_order(frame)
    for row in range(rows):
        key = _put_key(frame, keys + 8 * row * width, columns)
        if in_order:
            h = hash_in_order(load(key, frame[picks + 1]))
        else:
            h = hash_picked(key, where + 8 * (picks + 1), frame[picks])
        store(scratch, row, h)
        store(scratch, at.CHUNK + row, ask(table, shape, h))
    for row in range(rows):
        h = load(scratch, row)
        position = peek(table, shape, load(scratch, at.CHUNK + row), h)
        store(scratch, at.CHUNK + row, position)
        entry = load(table, position)
        number = (entry & LOW) - 1 if is_of(entry, h) else -1
        store(found, row, number)
        if number >= 0 and is_large:
            if is_primary or number >= ALONE:
                record = number if is_primary else number - ALONE
                prefetch(records + record * wide)
                prefetch(payloads + record * broad)
            else:
                prefetch(block_at(arena, number))
    for row in range(rows):
        if load(found, row) >= 0:
            key, h = _put_key(frame, keys + 8 * row * width, columns), load(scratch, row)
            if is_primary:
                store(found, row, entries_of(frame, key, h))
                continue
            number = entry_of(frame, s, key, h, load(scratch, at.CHUNK + row))
            store(found, row, number)
            if is_large and 0 <= number < ALONE:
                posting = block_at(arena, number)
                for i in range(min(_POSTING, load32(posting, at.LENGTH))):
                    record = load32(posting, at.RECORDS + i)
                    prefetch(records + record * wide)
                    prefetch(payloads + record * broad)
    return 0


AHEAD_STEPS: tuple[CFunction, CFunction] = (_find_entries, _find_rows)
"""Functions whose addresses are in the table."""
