"""The records of a pool: find, add, drop.

Records are dense: dropping one moves the last into its place, so a scan is a run of memory and nothing needs a free
list. Rows are taken in chunks, whose cache lines are asked for together: on pools larger than the cache the waits
overlap, which makes an upsert several times as fast.
"""

from typing import Final

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.cofactor_lifting import lift_payload
from squallpy.runtime.kernels.counted_records import add_counted
from squallpy.runtime.kernels.hash_index import (
    HIGH,
    LOW,
    after,
    ask,
    ask_behind,
    crowding,
    forget_order,
    go_on_growing,
    home,
    insert,
    is_of,
    peek,
    remove,
    seek,
    seek_number,
    settle,
    table_of,
    wipe,
    wipe_all,
)
from squallpy.runtime.kernels.intrinsics import load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    MATRIX,
    VECTOR,
    Vector,
    address,
    called,
    inlined,
    kernel,
    making,
)
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.page_watch import mark_written
from squallpy.runtime.kernels.payload_arithmetic import is_zero
from squallpy.runtime.kernels.postings import ask_unlink, has_room, link, link_between, renumber, unlink, unlink_all
from squallpy.runtime.kernels.primary_index import first_slice, has_keys_in_hashes, hash_record, is_by_runs, keeps_order
from squallpy.runtime.kernels.run_index import ALLOWED, drop_from_run, enter_newest, seek_in_runs, seek_record
from squallpy.runtime.kernels.stored_keys import has_put, key_of_record, move_key
from squallpy.runtime.kernels.stored_payloads import (
    add_to_record,
    has_put_payload,
    move_payload,
    read_payload,
    word_of_payload,
)

_WIDE: Final = 128  # bytes of a payload whose lines are asked for a few rows ahead, besides its first and last
_AHEAD: Final = 3


@inlined
def drop(frame: Vector, position: int, record: int, count: int) -> None:
    """Take a record, whose entry is at `position`, out of a pool of `count`."""
    table, shape = table_of(frame[frame[at.PLACES]])
    remove(table, shape, position)
    unlink(frame, record)
    if record != count - 1:
        move_record(frame, count - 1, record)


@inlined
def move_record(frame: Vector, old: int, new: int) -> None:
    """Give a record another number, that of a record which is in no index."""
    table, shape = table_of(frame[frame[at.PLACES]])
    entry = seek_number(table, shape, hash_record(frame, key_of_record(frame, old)), old)
    store(table, entry, (load(table, entry) & HIGH) | (new + 1))
    move_key(frame, old, new)
    move_payload(frame, old, new)
    renumber(frame, old, new)
    mark_written(frame, new)


@inlined
def ask_records(frame: Vector, base: int, row: int, rows: int, keys_alone: bool = False) -> None:
    """Note the hashes of `rows` keys from `row` on and where their entries are, and ask for their records' lines.

    Args:
        keys_alone: Payloads are not asked for.
    """
    places, key, broad = frame[at.PLACES], frame[at.KEY], frame[at.BROAD]
    (table, shape), keys, words = table_of(frame[places]), frame[places + at.KEYS], frame[places + at.WORDS]
    scratch, wide, is_told = frame[at.SCRATCH], frame[at.STRIDE], has_keys_in_hashes(frame)
    for j in range(rows):
        h = hash_record(frame, base + (row + j) * 8 * key)
        frame[scratch + j] = h
        frame[scratch + at.CHUNK + j] = ask(table, shape, h)
    for j in range(rows):
        position = peek(table, shape, frame[scratch + at.CHUNK + j], frame[scratch + j])
        frame[scratch + at.CHUNK + j] = position
        entry = load(table, position)
        if is_of(entry, frame[scratch + j]):
            record = (entry & LOW) - 1
            if not is_told:
                prefetch(keys + record * wide)
            if not keys_alone:
                prefetch(words + record * broad)
                prefetch(words + (record + 1) * broad - 8)  # its end is perhaps in the next line
        elif not keys_alone:
            ask_behind(table, position)


@inlined
def _ask_record(frame: Vector, j: int) -> None:
    """Ask for all lines of the payload to which row `j` of a chunk is probably added."""
    place, broad = frame[at.PLACES], 8 * frame[at.PAYLOAD]
    (table, _), words, scratch = table_of(frame[place]), frame[place + at.WORDS], frame[at.SCRATCH]
    entry = load(table, frame[scratch + at.CHUNK + j])
    if is_of(entry, frame[scratch + j]):
        start = words + ((entry & LOW) - 1) * broad
        for byte in range(64, broad, 64):
            prefetch(start + byte)


@inlined
def _ask_leaving(frame: Vector, given: int, rows: int, count: int) -> None:
    """Ask for the cache lines by which records that probably leave will be unlinked, and those that fill their gaps."""
    scratch, broad = frame[at.SCRATCH], 8 * frame[at.PAYLOAD]
    table, shape = table_of(frame[frame[at.PLACES]])
    leaving, n, last = scratch + 2 * at.CHUNK, 0, count
    for j in range(rows):
        entry = load(table, frame[scratch + at.CHUNK + j])
        if is_of(entry, frame[scratch + j]):
            record = (entry & LOW) - 1
            if word_of_payload(frame, record, 0) + load(given + j * broad, 0) == 0:
                last = max(last - 1, 0)  # which will move into the gap
                frame[leaving + n], frame[leaving + n + 1] = record, last
                n += 2
    for i in range(1, n, 2):
        h = hash_record(frame, key_of_record(frame, frame[leaving + i]))
        ask(table, shape, h)
    if n > 0:
        ask_unlink(frame, leaving, n)


@called
def _upsert_runs(frame: Vector, base: int, given: int, start: int, stop: int) -> int:
    """Add rows as `upsert_records` does where the index is by runs; keys and payloads stand at addresses."""
    head, places, scratch = frame[HEAD], frame[at.PLACES], frame[at.SCRATCH]
    table, shape = table_of(frame[places])
    key, payload, count, in_order = frame[at.KEY], frame[at.PAYLOAD], load(head, at.COUNT), keeps_order(frame)
    for chunk in range(start, stop, at.CHUNK):
        here = min(at.CHUNK, stop - chunk)
        if not has_room(frame, count):
            store(head, at.COUNT, count)
            return chunk
        ask_records(frame, base, chunk, here)
        linked, removed, passed = count, False, load(head, at.PASSED) - ALLOWED * here
        for j in range(here):
            row, source = base + 8 * (chunk + j) * key, given + 8 * (chunk + j) * payload
            h = frame[scratch + j]
            guess = home(h, shape) if removed else frame[scratch + at.CHUNK + j]
            found, more = seek_in_runs(frame, count, table, shape, guess, h, row)
            passed += more
            if found >= 0:
                mark_written(frame, found)
                left = add_to_record(frame, found, source)
                if left < 0:
                    link(frame, linked, count)
                    store(head, at.COUNT, count)
                    return chunk + j
                if left == 0:
                    link(frame, linked, count)
                    drop_from_run(frame, found, count)
                    count -= 1
                    linked, removed = count, True
            elif not is_zero(frame, source):
                if not has_put(frame, count, row) or not has_put_payload(frame, count, source):
                    link(frame, linked, count)
                    store(head, at.COUNT, count)
                    return chunk + j
                end = enter_newest(frame, table, shape, ~found, h, count, row)
                if in_order:
                    passed += crowding(shape, h, ~found, end)
                mark_written(frame, count)
                count += 1
        link(frame, linked, count)
        store(head, at.PASSED, max(0, passed))
    store(head, at.COUNT, count)
    return stop


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {VECTOR}, int64, int64)")
def upsert_records(frame: Vector, rows: Vector, payloads: Vector, lifting: Vector, start: int, stop: int) -> int:
    """Add rows `start` … `stop` − 1. Returns the first row without room, or `stop`; −1: bad shapes.

    Payloads are made of what is given as `lifting` says; if it is empty, they are given.
    """
    key, payload, lifted = frame[at.KEY], frame[at.PAYLOAD], lifting.shape[0] > 0
    if rows.shape[1] != key or payloads.shape[0] != rows.shape[0] or (payloads.shape[1] != payload and not lifted):
        return -1
    base, given = address(rows), address(payloads)
    if not lifted:
        start = add_counted(frame, base, given, start, stop, 0)
    if is_by_runs(frame):
        return _upsert_runs(frame, base, given, start, stop)
    head, places, scratch = frame[HEAD], frame[at.PLACES], frame[at.SCRATCH]
    (table, shape), keys, words = table_of(frame[places]), frame[places + at.KEYS], frame[places + at.WORDS]
    wide, broad, stride, unit = 8 * key, 8 * payload, 8 * payloads.shape[1], frame[at.UNIT]
    count, in_order = load(head, at.COUNT), keeps_order(frame)
    for chunk in range(start, stop, at.CHUNK):
        here = min(at.CHUNK, stop - chunk)
        if not has_room(frame, count):
            store(head, at.COUNT, count)
            return chunk
        ask_records(frame, base, chunk, here)
        if frame[at.SLICES] > 0 and not lifted:
            _ask_leaving(frame, given + chunk * broad, here, count)
        linked, removed, passed = count, False, load(head, at.PASSED) - ALLOWED * here
        for j in range(here):
            if broad > _WIDE and j + _AHEAD < here:
                _ask_record(frame, j + _AHEAD)
            row = base + (chunk + j) * wide
            source = given + (chunk + j) * stride
            if lifted:  # to where the next record will be
                lift_payload(words + count * broad, source, lifting)
                source = words + count * broad
            h = frame[scratch + j]
            guess = home(h, shape) if removed else frame[scratch + at.CHUNK + j]
            position = seek(table, shape, guess, h, row, key, keys, unit)
            if position >= 0:
                record = (load(table, position) & LOW) - 1
                mark_written(frame, record)
                left = add_to_record(frame, record, source)
                if left < 0:
                    link(frame, linked, count)
                    store(head, at.COUNT, count)
                    return chunk + j
                if left == 0:
                    link(frame, linked, count)
                    drop(frame, position, record, count)
                    count -= 1
                    linked, removed = count, True
            elif not is_zero(frame, source):
                if not has_put(frame, count, row) or not (lifted or has_put_payload(frame, count, source)):
                    link(frame, linked, count)
                    store(head, at.COUNT, count)
                    return chunk + j
                end = insert(table, shape, ~position, (h & HIGH) | (count + 1))
                if in_order:
                    passed += crowding(shape, h, ~position, end)
                mark_written(frame, count)
                count += 1
        link(frame, linked, count)
        if in_order:
            store(head, at.PASSED, max(0, passed))
    store(head, at.COUNT, count)
    return stop


@kernel(f"void({VECTOR})")
def grow_on(frame: Vector) -> None:
    """Let tables that grow do so as far as is due with the entries that they have."""
    place, head = frame[at.PLACES], frame[HEAD]
    growing = go_on_growing(frame[place], load(head, at.ENTRIES if is_by_runs(frame) else at.COUNT))
    for s in range(first_slice(frame), frame[at.SLICES]):
        live = load(head, at.SLICE_STATE + s * at.STATE + at.LIVE)
        growing |= go_on_growing(frame[place + at.SLICE + s * at.SLICE_STRIDE], live)
    store(head, at.GROWING, 1 if growing else 0)


@making
def probed(frame: Vector, rows: Vector, keys_alone: bool = False) -> Words:
    """Find the record of each key, −1 where there is none.

    Args:
        keys_alone: Somebody else asks for the lines of payloads.
    """
    n, key, places, scratch = rows.shape[0], frame[at.KEY], frame[at.PLACES], frame[at.SCRATCH]
    (table, shape), base, wide = table_of(frame[places]), address(rows), 8 * key
    found = np.empty(n, np.int64)
    for chunk in range(0, n, at.CHUNK):
        here = min(at.CHUNK, n - chunk)
        ask_records(frame, base, chunk, here, keys_alone)
        for j in range(here):
            h, position = frame[scratch + j], frame[scratch + at.CHUNK + j]
            found[chunk + j] = seek_record(frame, table, shape, position, h, base + (chunk + j) * wide)
    return found


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_MATRIX})")
def probe_records(frame: Vector, rows: Vector) -> Words:
    """Do what `probed` does, as an entry point."""
    return probed(frame, rows)


@kernel(f"{MATRIX}({VECTOR}, {GIVEN_MATRIX})")
def get_records(frame: Vector, rows: Vector) -> Words:
    """Copy the payload of each key, zero where there is none."""
    slots, width = probed(frame, rows), frame[at.PAYLOAD]
    out = np.zeros((len(slots), width), np.int64)
    for i in range(len(slots)):
        if slots[i] >= 0:
            read_payload(frame, slots[i], address(out) + 8 * i * width)
    return out


@kernel(f"{VECTOR}({VECTOR}, int64, int64)")
def records_between(frame: Vector, low: int, high: int) -> Words:
    """List the records whose 32-bit hash is `low` or more and below `high`: one run of the index, which is in order."""
    head, places = frame[HEAD], frame[at.PLACES]
    table, shape = table_of(frame[places])
    out, n = np.empty(load(head, at.COUNT), np.int64), 0
    start = position = home(low << 32, shape)
    for _ in range(shape[0]):
        entry, round_the_end = load(table, position), position < start
        if entry == 0:
            if round_the_end or position >= home((high - 1) << 32, shape):
                break
        else:
            hashed, behind = (entry >> 32) & LOW, home(entry, shape) <= position
            if behind and (round_the_end or hashed >= high):
                break
            if low <= hashed < high:
                out[n] = (entry & LOW) - 1
                n += 1
        position = after(position, shape)
    return out[:n].copy()


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_MATRIX})")
def hashes_of(frame: Vector, rows: Vector) -> Words:
    """Compute the 32-bit hashes by which records with these keys are in order."""
    width = rows.shape[1]
    base, out = address(rows), np.empty(rows.shape[0], np.int64)
    for row in range(len(out)):
        out[row] = (hash_record(frame, base + row * 8 * width) >> 32) & LOW
    return out


@kernel(f"void({VECTOR})")
def clear_records(frame: Vector) -> None:
    """Drop all records, at a cost in proportion to their number."""
    head, places = frame[HEAD], frame[at.PLACES]
    if load(head, at.APPENDED) != 0:
        store(head, at.APPENDED, 0)
        store(head, at.COUNT, 0)
        return
    table, shape = table_of(frame[places])
    count = load(head, at.COUNT)
    if count * 64 > shape[0]:
        wipe_all(frame[places])
    else:
        hashes = address(frame) + 8 * frame[at.SCRATCH]
        for chunk in range(0, count, at.CHUNK):
            here = min(at.CHUNK, count - chunk)
            for i in range(here):
                h = hash_record(frame, key_of_record(frame, chunk + i))
                store(hashes, i, h)
                ask(table, shape, h)
            for i in range(here):
                wipe(table, shape, load(hashes, i))
        settle(frame[places])
    unlink_all(frame, count)
    store(head, at.COUNT, 0)
    store(head, at.ENTRIES, 0)


@kernel(f"void({VECTOR})")
def forget_runs(frame: Vector) -> None:
    """Empty an index by runs, which shall have an entry for each record."""
    head = frame[HEAD]
    forget_order(frame[frame[at.PLACES]])
    store(head, at.BY_RECORD, 1)
    store(head, at.ENTRIES, 0)
    store(head, at.PASSED, 0)


@kernel(f"int64({VECTOR}, int64)")
def index_records(frame: Vector, start: int) -> int:
    """Enter records, from `start` on, in the index that had runs, and in slice 0.

    Returns the first record of a chunk without room, or how many there are.
    """
    head, places, unit = frame[HEAD], frame[at.PLACES], frame[at.UNIT]
    (table, shape), keys, count = table_of(frame[places]), frame[places + at.KEYS], load(head, at.COUNT)
    for chunk in range(start, count, at.CHUNK):
        if not has_room(frame, count):
            return chunk
        here = min(at.CHUNK, count - chunk)
        for record in range(chunk, chunk + here):
            ask(table, shape, hash_record(frame, key_of_record(frame, record)))
        for record in range(chunk, chunk + here):
            key = key_of_record(frame, record)
            h = hash_record(frame, key)
            position = seek(table, shape, home(h, shape), h, key, frame[at.KEY], keys, unit)
            insert(table, shape, ~position, (h & HIGH) | (record + 1))
        link_between(frame, chunk, chunk + here, 0, 1)
    return count
