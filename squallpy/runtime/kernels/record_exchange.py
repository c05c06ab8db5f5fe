"""Exchange of a pool's records: some go, others come into their places, so that none has to move into a gap.

    records 0 1 2 3 4, of which 1 and 3 go, and x comes     →     0 x 2 4

Dropping a record moves the last one, whose index entries are as far from the cache as those of the one that goes; where
about as many come as go this saves half of the work.
"""

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import HIGH, ask, home, insert, remove, seek, seek_number, table_of
from squallpy.runtime.kernels.intrinsics import load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, GIVEN_VECTOR, VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.page_watch import mark_written
from squallpy.runtime.kernels.pool_records import ask_records, move_record
from squallpy.runtime.kernels.postings import ask_unlink, has_room, link_listed, unlink
from squallpy.runtime.kernels.primary_index import hash_record
from squallpy.runtime.kernels.stored_keys import fit, has_put, key_at, key_of_record
from squallpy.runtime.kernels.stored_payloads import has_put_payload, payload_at


@kernel(f"void({VECTOR}, {GIVEN_VECTOR})")
def detach_records(frame: Vector, gone: Vector) -> None:
    """Take records out of all indexes; they still have their numbers and keys."""
    (table, shape), scratch = table_of(frame[frame[at.PLACES]]), frame[at.SCRATCH]
    leaving = scratch + 2 * at.CHUNK
    for chunk in range(0, len(gone), at.CHUNK):
        here = min(at.CHUNK, len(gone) - chunk)
        for j in range(here):
            frame[leaving + j] = gone[chunk + j]
            prefetch(key_at(frame, gone[chunk + j]))
        for j in range(here):
            frame[scratch + j] = hash_record(frame, key_of_record(frame, frame[leaving + j]))
            ask(table, shape, frame[scratch + j])
        ask_unlink(frame, leaving, here)
        for j in range(here):
            remove(table, shape, seek_number(table, shape, frame[scratch + j], frame[leaving + j]))
            unlink(frame, frame[leaving + j])


@kernel(f"int64({VECTOR}, {GIVEN_VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, int64, int64)")
def attach_records(frame: Vector, gaps: Vector, rows: Vector, payloads: Vector, start: int, stop: int) -> int:
    """Add rows `start` … `stop` − 1, which are not there, in gaps as far as there are some, then behind all records.

    Returns the first row of a chunk without room, or `stop`; −1: bad shapes, or a row that is there.
    """
    key, payload = frame[at.KEY], frame[at.PAYLOAD]
    if rows.shape[1] != key or payloads.shape[1] != payload or payloads.shape[0] != rows.shape[0]:
        return -1
    head, places, scratch, listed = frame[HEAD], frame[at.PLACES], frame[at.SCRATCH], frame[at.SCRATCH] + at.LISTED
    (table, shape), keys = table_of(frame[places]), frame[places + at.KEYS]
    base, given, count, unit = address(rows), address(payloads), load(head, at.COUNT), frame[at.UNIT]
    for chunk in range(start, stop, at.CHUNK):
        here = min(at.CHUNK, stop - chunk)
        if not has_room(frame, count) or not fit(frame, base + 8 * chunk * key, here):
            store(head, at.COUNT, count)
            return chunk
        ask_records(frame, base, chunk, here)
        for j in range(here):
            record = count
            if chunk + j < len(gaps):
                record = gaps[chunk + j]
            else:
                count += 1
            frame[listed + j] = record
            prefetch(key_at(frame, record))
            prefetch(payload_at(frame, record))
        for j in range(here):
            row, record, h = base + (chunk + j) * 8 * key, frame[listed + j], frame[scratch + j]
            position = seek(table, shape, home(h, shape), h, row, key, keys, unit)
            if position >= 0:
                return -1
            insert(table, shape, ~position, (h & HIGH) | (record + 1))
            has_put(frame, record, row)
            has_put_payload(frame, record, given + (chunk + j) * 8 * payload)
            mark_written(frame, record)
        link_listed(frame, here)
    store(head, at.COUNT, count)
    return stop


@kernel(f"void({VECTOR}, {GIVEN_VECTOR})")
def close_gaps(frame: Vector, gaps: Vector) -> None:
    """Move the last records into gaps, which descend."""
    head, scratch, (table, shape) = frame[HEAD], frame[at.SCRATCH], table_of(frame[frame[at.PLACES]])
    last, moving = load(head, at.COUNT) - 1, scratch + 2 * at.CHUNK
    for chunk in range(0, len(gaps), at.CHUNK):
        here = min(at.CHUNK, len(gaps) - chunk)
        for j in range(here):
            frame[moving + j] = last - j
            ask(table, shape, hash_record(frame, key_of_record(frame, last - j)))
        ask_unlink(frame, moving, here)
        for j in range(here):
            if gaps[chunk + j] != last:
                move_record(frame, last, gaps[chunk + j])
            last -= 1
    store(head, at.COUNT, last + 1)
