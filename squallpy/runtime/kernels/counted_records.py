"""Rows added to a pool of counts, or of a count and an exact sum, by code in which widths are constants.

    (7,) → ⟨2, 30⟩   added to   {(7,): ⟨1, 15⟩}   →   {(7,): ⟨3, 45⟩}

Most views are such. What seldom happens ends it, and is done by the code for all layouts (`pool_records.py`): a record
whose payload comes to be 0, a key or a payload that narrow ones do not hold, a chunk without room.
"""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.hash_index import (
    HIGH,
    LOW,
    Shape,
    ask,
    ask_behind,
    crowding,
    insert,
    is_of,
    peek,
    seek,
    table_of,
)
from squallpy.runtime.kernels.hashing import hash_row
from squallpy.runtime.kernels.intrinsics import load, prefetch, store, store32
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.page_watch import mark_written
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.postings import has_room, link
from squallpy.runtime.kernels.primary_index import (
    has_keys_in_hashes,
    hash_in_order,
    hash_record,
    is_by_runs,
    keeps_order,
)
from squallpy.runtime.kernels.ring_arithmetic import exact_add, sign
from squallpy.runtime.kernels.run_index import ALLOWED, enter_newest, seek_in_runs
from squallpy.runtime.kernels.stored_keys import has_put_words
from squallpy.runtime.kernels.stored_payloads import NARROW_WORD, exceeds_count, is_narrow, narrow_count, narrow_sum

_ANY: Final = 0  # columns of a key, as many as the pool has
_OTHER, _COUNTS, _COUNT_AND_SUM = 0, 1, 2  # payloads
_SUM_WORDS: Final = 3  # of a count and a sum
_ASKED, _PEEKED = 24, 12  # rows before one is added, its entry's lines are asked for, and then looked at
_SLOTS: Final = at.CHUNK - 1

_link = called(link.py_func)  # type: ignore[attr-defined]


@inlined
def scratch_of(frame: Vector) -> int:
    """Return the address of a pool's scratch."""
    return address(frame) + 8 * frame[at.SCRATCH]


@inlined
def _kind_of(frame: Vector) -> int:
    """Tell which payloads a pool has."""
    if frame[at.LANES] == 2 and frame[at.RINGS] == 0 and frame[at.RINGS + 1] == 1:
        return _COUNT_AND_SUM
    for lane in range(frame[at.LANES]):
        if frame[at.RINGS + lane] != 0:
            return _OTHER
    return _COUNTS


@inlined
def _has_added_narrow(target: int, source: int, kind: int, words: int) -> bool:
    """Add a payload to a narrow one; False, and nothing is changed, if nothing would be left, or it would not fit."""
    if kind == _COUNT_AND_SUM:
        n, there = narrow_count(target, 0) + load(source, 0), narrow_sum(target, 1)
        lo, hi = exact_add(there, sign(there), load(source, 1), load(source, 2))
        if n | lo | hi == 0 or exceeds_count(n) | (hi ^ sign(lo)) != 0:
            return False
        store32(target, 0, n)
        store(target + NARROW_WORD, 0, lo)
        return True
    left, unfit = 0, 0
    for i in range(words):
        n = narrow_count(target, i) + load(source, i)
        left |= n
        unfit |= exceeds_count(n)
    is_done = left != 0 and unfit == 0
    for i in range(words if is_done else 0):
        store32(target, i, narrow_count(target, i) + load(source, i))
    return is_done


@inlined
def _has_put_narrow(target: int, source: int, kind: int, words: int) -> bool:
    """Put a payload where a narrow one stands; False if it does not fit."""
    if kind == _COUNT_AND_SUM:
        n, lo = load(source, 0), load(source, 1)
        store32(target, 0, n)
        store(target + NARROW_WORD, 0, lo)
        return exceeds_count(n) | (load(source, 2) ^ sign(lo)) == 0
    unfit = 0
    for i in range(words):
        unfit |= exceeds_count(load(source, i))
        store32(target, i, load(source, i))
    return unfit == 0


@inlined
def _has_added(target: int, source: int, kind: int, words: int) -> bool:
    """Add a payload to another; False, and nothing is changed, if nothing would be left."""
    if kind == _COUNT_AND_SUM:
        n = load(target, 0) + load(source, 0)
        lo, hi = exact_add(load(target, 1), load(target, 2), load(source, 1), load(source, 2))
        if n | lo | hi == 0:
            return False
        store(target, 0, n)
        store(target, 1, lo)
        store(target, 2, hi)
        return True
    left = 0
    for i in range(words):
        left |= load(target, i) + load(source, i)
    for i in range(words if left != 0 else 0):
        store(target, i, load(target, i) + load(source, i))
    return left != 0


@inlined
def _is_nothing(source: int, words: int) -> bool:
    """True if all words of a payload are 0."""
    some = 0
    for i in range(words):
        some |= load(source, i)
    return some == 0


@inlined
def _hash(frame: Vector, row: int, columns: int, in_order: bool) -> int:
    """Hash of a row's key."""
    if columns != 1:
        return hash_record(frame, row)
    return hash_in_order(load(row, 0)) if in_order else hash_row(row, 1)


@inlined
def _ask(
    frame: Vector, table: int, shape: Shape, key: int, scratch: int, row: int, columns: int, in_order: bool
) -> None:
    """Note the hash of a row's key and its home, and ask for the lines in which its entry would stand."""
    h = _hash(frame, key, columns, in_order)
    store(scratch, row & _SLOTS, h)
    store(scratch, at.CHUNK + (row & _SLOTS), ask(table, shape, h))


@inlined
def _peek(
    table: int, shape: Shape, scratch: int, row: int, keys: int, stride: int, payloads: int, broad: int, is_told: bool
) -> None:
    """Note where the hash of a row is peeked, and ask for the lines of its record, or for those behind.

    Args:
        is_told: An entry tells the key of its record, which is not looked at.
    """
    h, home = load(scratch, row & _SLOTS), load(scratch, at.CHUNK + (row & _SLOTS))
    position = peek(table, shape, home, h)
    store(scratch, at.CHUNK + (row & _SLOTS), position)
    entry = load(table, position)
    if is_of(entry, h):
        record = (entry & LOW) - 1
        if not is_told:
            prefetch(keys + record * stride)
        prefetch(payloads + record * broad)
        prefetch(payloads + (record + 1) * broad - 8)  # its end is perhaps in the next line
    else:
        ask_behind(table, position)


@inlined
def _add(
    frame: Vector,
    base: int,
    given: int,
    start: int,
    stop: int,
    asked: int,
    columns: int,
    kind: int,
    words: int,
    by_runs: bool,
) -> int:
    """Add rows; return the first that is not added, or `stop`.

    Args:
        asked: As `add_counted` has it.
        columns: 1, or `_ANY`.
        words: Those of a payload.
        by_runs: The index is by runs.
    """
    head, places, scratch = frame[HEAD], frame[at.PLACES], asked if asked != 0 else scratch_of(frame)
    (table, shape), keys, payloads = table_of(frame[places]), frame[places + at.KEYS], frame[places + at.WORDS]
    width, unit, count = columns if columns != _ANY else frame[at.KEY], frame[at.UNIT], load(head, at.COUNT)
    broad, narrow = frame[at.BROAD], is_narrow(frame)
    in_order, is_told = keeps_order(frame), has_keys_in_hashes(frame)
    is_watched, has_slices, last = frame[at.WATCHED] > 0, frame[at.SLICES] > 0, stop if asked == 0 else start
    for row in range(start, min(start + _ASKED, last)):
        _ask(frame, table, shape, base + 8 * width * row, scratch, row, columns, in_order)
    for row in range(start, min(start + _PEEKED, last)):
        _peek(table, shape, scratch, row, keys, unit * width, payloads, broad, is_told)
    for chunk in range(start, stop, at.CHUNK):
        here, linked, passed = min(at.CHUNK, stop - chunk), count, 0
        if not has_room(frame, count):
            store(head, at.COUNT, count)
            return chunk
        for j in range(chunk, chunk + here):
            if j + _ASKED < last:
                _ask(frame, table, shape, base + 8 * width * (j + _ASKED), scratch, j + _ASKED, columns, in_order)
            if j + _PEEKED < last:
                _peek(table, shape, scratch, j + _PEEKED, keys, unit * width, payloads, broad, is_told)
            h, peeked = load(scratch, j & _SLOTS), load(scratch, at.CHUNK + (j & _SLOTS))
            row, source = base + 8 * width * j, given + 8 * words * j
            if by_runs:
                position, more = seek_in_runs(frame, count, table, shape, peeked, h, row)
                record, passed = position, passed + more
            else:
                position = seek(table, shape, peeked, h, row, width, keys, unit)
                record = (load(table, position) & LOW) - 1 if position >= 0 else -1
            is_done = True
            if record >= 0:
                if narrow:
                    is_done = _has_added_narrow(payloads + broad * record, source, kind, words)
                else:
                    is_done = _has_added(payloads + 8 * words * record, source, kind, words)
                if is_watched:
                    mark_written(frame, record)
            elif not _is_nothing(source, words):
                if narrow:
                    is_done = _has_put_narrow(payloads + broad * count, source, kind, words)
                else:
                    copy(payloads + 8 * words * count, source, words)
                is_done = is_done and has_put_words(frame, keys + unit * width * count, row, width, unit)
                if is_done:
                    if by_runs:
                        end = enter_newest(frame, table, shape, ~position, h, count, row)
                    else:
                        end = insert(table, shape, ~position, (h & HIGH) | (count + 1))
                    if in_order:
                        passed += crowding(shape, h, ~position, end)
                    if is_watched:
                        mark_written(frame, count)
                    count += 1
            if not is_done:
                if has_slices:
                    _link(frame, linked, count)
                store(head, at.COUNT, count)
                return j
        if has_slices:
            _link(frame, linked, count)
        if by_runs or in_order:
            store(head, at.PASSED, max(0, load(head, at.PASSED) + passed - ALLOWED * here))
    store(head, at.COUNT, count)
    return stop


@called
def add_counted(frame: Vector, base: int, given: int, start: int, stop: int, asked: int) -> int:
    """Add rows whose keys and payloads stand at addresses; return the first that is not added, which may be `start`.

    Args:
        asked: Where the hashes of at most a chunk of rows stand, and where they were peeked; 0: nowhere.
    """
    kind, words, is_single = _kind_of(frame), frame[at.PAYLOAD], frame[at.KEY] == 1
    if kind == _COUNT_AND_SUM:
        if is_by_runs(frame):
            return _add(frame, base, given, start, stop, asked, _ANY, _COUNT_AND_SUM, _SUM_WORDS, True)
        if is_single:
            return _add(frame, base, given, start, stop, asked, 1, _COUNT_AND_SUM, _SUM_WORDS, False)
        return _add(frame, base, given, start, stop, asked, _ANY, _COUNT_AND_SUM, _SUM_WORDS, False)
    if is_by_runs(frame) or kind == _OTHER:
        return start
    if words > 1:
        return _add(frame, base, given, start, stop, asked, _ANY, _COUNTS, words, False)
    if is_single:
        return _add(frame, base, given, start, stop, asked, 1, _COUNTS, 1, False)
    return _add(frame, base, given, start, stop, asked, _ANY, _COUNTS, 1, False)
