"""Steps of compiled triggers: what the code that is printed for a query (`squallpy/codegen`) calls.

Pools are found by the addresses of their frames. What is long is called by its address, so that printed code is
compiled without it: the code is given a table of addresses (`STEPS`). The first is that of a Python function that lets
a pool grow where it has no room; then the code goes on.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.batch_expressions import part_of_date
from squallpy.runtime.kernels.buddy_allocator import block_at
from squallpy.runtime.kernels.c_functions import CFunction, c_function
from squallpy.runtime.kernels.dictionary import COUNT, NEEDED, copy_bytes, same_bytes
from squallpy.runtime.kernels.group_index import group_length
from squallpy.runtime.kernels.hash_index import HIGH, LOW, after, full, home, insert, is_behind, seek, table_of
from squallpy.runtime.kernels.hashing import hash_bytes
from squallpy.runtime.kernels.intrinsics import load, load8, load32, operation, pointer, product_overflows, store
from squallpy.runtime.kernels.kernel_compiler import Vector, address, called, inlined, making
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.page_watch import mark_written
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.pool_records import drop, upsert_records
from squallpy.runtime.kernels.postings import ALONE, entry_of, has_room, link
from squallpy.runtime.kernels.primary_index import hash_record, is_by_runs
from squallpy.runtime.kernels.ring_arithmetic import exact_add, exact_multiply, sign
from squallpy.runtime.kernels.run_index import ALLOWED, MANY, RUN, enter_newest, find_record, seek_in_runs
from squallpy.runtime.kernels.slice_lookup import entries_of, listed_record
from squallpy.runtime.kernels.stored_keys import fit, has_put, region_at, word_at

__all__ = [  # what printed code imports
    "add_fits", "add_rows", "bit", "count_of", "enter", "exact_add", "exact_multiply", "find", "first_of", "frame_at",
    "half", "has_null", "is_known", "key_of", "key_room", "key_word", "length_of", "load", "load8", "load32",
    "multiply_fits", "number_of", "part_of_date", "record_of", "remove", "room_of", "sign", "slice_of", "store",
    "subtract_fits", "values_at", "words_of",
]  # fmt: skip

_kernel: Any = upsert_records
_listed: Any = listed_record
_listed_record: Callable[..., int] = called(_listed.py_func)
_upsert_rows: Any = called(_kernel.py_func)  # NB: the kernel itself is compiled for the types of its signature alone

# Where `ArrowArray` of Arrow's C data interface has what, in words.
_NULLS, _OFFSET, _BUFFERS, _CHILDREN = 1, 2, 5, 6
_FAR = 1 << 40
_LEAST = -(2**63)
_SPREAD = -7046029254386353131  # 2⁶⁴ by the golden ratio
_SHORT = 8  # bytes of a text that a word holds


# A table of addresses: a function that lets the pool of a number grow (−1: the dictionary), those in STEPS, and room
# for rows that a statement adds together.
GROW, FIND, ENTER, REMOVE, SLICE, INTERN, ADD, OUTCOME = range(8)
_word = types.int64


@operation(_word(_word, _word, _word, _word, _word, _word, _word))
def call(builder: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Call the C function of up to six words at an address."""
    word = ir.IntType(64)
    kind = ir.FunctionType(word, [word] * 6).as_pointer()
    return builder.call(builder.inttoptr(function, kind), [a, b, c, d, e, f])


@making
def frame_at(where: int) -> Vector:
    """View the frame of a pool or a dictionary as an array."""
    there: Any = pointer(where)
    return carray(there, (_FAR,))


@inlined
def room_of(steps: int) -> int:
    """Return the address of the room for rows that a statement adds together."""
    return load(steps, OUTCOME)


@inlined
def values_at(batch: int, child: int, buffer: int) -> int:
    """Return the address of a buffer of a column, 0 if there is none."""
    return load(load(load(load(batch, _CHILDREN), child), _BUFFERS), buffer)


@inlined
def first_of(batch: int, child: int) -> int:
    """Return the number that a column's first row has in its buffers."""
    return load(load(load(batch, _CHILDREN), child), _OFFSET) + load(batch, _OFFSET)


@called
def has_null(batch: int, child: int, first: int, rows: int) -> bool:
    """True if one of the rows from `first` on is NULL."""
    if load(load(load(batch, _CHILDREN), child), _NULLS) == 0:
        return False
    valid = values_at(batch, child, 0)
    for i in range(first, first + rows if valid != 0 else first):  # noqa: SIM110
        if (load8(valid, i >> 3) >> (i & 7)) & 1 == 0:
            return True
    return False


@inlined
def is_known(valid: int, i: int) -> int:
    """Return 1 if row `i` of a column with this validity is not NULL."""
    return 1 if valid == 0 else (load8(valid, i >> 3) >> (i & 7)) & 1


@inlined
def bit(values: int, i: int) -> int:
    """Return bit number `i`."""
    return (load8(values, i >> 3) >> (i & 7)) & 1


@inlined
def half(values: int, i: int) -> int:
    """Return the 32-bit word number `i`, with its sign."""
    return (load32(values, i) << 32) >> 32


@inlined
def add_fits(a: int, b: int) -> int:
    """Return 1 if a sum has room in 64 bits, and is not the least word."""
    s = a + b
    return 1 if ((a ^ s) & (b ^ s)) >= 0 and s != _LEAST else 0


@inlined
def subtract_fits(a: int, b: int) -> int:
    """Return 1 if a difference has room in 64 bits, and is not the least word."""
    s = a - b
    return 1 if ((a ^ b) & (a ^ s)) >= 0 and s != _LEAST else 0


@inlined
def multiply_fits(a: int, b: int) -> int:
    """Return 1 if a product has room in 64 bits, and is not the least word."""
    return (product_overflows(a, b) ^ 1) & (1 if a * b != _LEAST else 0)


@inlined
def find(frame: Vector, key: int, steps: int) -> int:
    """Find the record whose key is at an address, −1 if there is none."""
    return call(load(steps, FIND), address(frame), key, 0, 0, 0, 0)


@c_function(6)
def _find(where: int, key: int, _b: int, _c: int, _d: int, _e: int) -> int:
    """Find a record."""
    return find_record(frame_at(where), key)


@inlined
def enter(frame: Vector, key: int, steps: int, pool: int) -> int:
    """Find the record whose key is at an address to write it, or make one whose payload is 0; −1: no memory.

    Args:
        pool: The number of the pool for whoever lets it grow.
    """
    return call(load(steps, ENTER), address(frame), key, load(steps, GROW), pool, 0, 0)


@c_function(6)
def _enter(where: int, key: int, grow: int, pool: int, _d: int, _e: int) -> int:
    """Find a record, or make one and enter it in the slices."""
    frame = frame_at(where)
    head, places, broad = frame[HEAD], frame[at.PLACES], frame[at.PAYLOAD]
    count = load(head, at.COUNT)
    h, position, record = _place_of(frame, key, count)
    if record >= 0:
        mark_written(frame, record)
        return record
    if not has_room(frame, count) or not fit(frame, key, 1):
        if call(grow, pool, 0, 0, 0, 0, 0) == 0:
            return -1
        h, position, _ = _place_of(frame, key, count)
    table, shape = table_of(frame[places])
    words = frame[places + at.WORDS] + 8 * count * broad
    has_put(frame, count, key)
    for i in range(broad):
        store(words, i, 0)
    if is_by_runs(frame):
        enter_newest(frame, table, shape, position, h, count, key)
    else:
        insert(table, shape, position, (h & HIGH) | (count + 1))
    store(head, at.COUNT, count + 1)
    link(frame, count, count + 1)
    mark_written(frame, count)
    return count


@inlined
def _place_of(frame: Vector, key: int, count: int) -> tuple[int, int, int]:
    """Return the hash of a key, the position at which a record of it would be entered, and the one there is, or −1."""
    (table, shape), width = table_of(frame[frame[at.PLACES]]), frame[at.KEY]
    h = hash_record(frame, key)
    if is_by_runs(frame):
        found, more = seek_in_runs(frame, count, table, shape, home(h, shape), h, key)
        store(frame[HEAD], at.PASSED, max(0, load(frame[HEAD], at.PASSED) + more - ALLOWED))
        return h, ~found, max(found, -1)
    position = seek(table, shape, home(h, shape), h, key, width, frame[frame[at.PLACES] + at.KEYS], frame[at.UNIT])
    return h, ~position, (load(table, position) & LOW) - 1 if position >= 0 else -1


@inlined
def remove(frame: Vector, key: int, steps: int) -> None:
    """Drop the record whose key is at an address, whose payload is 0."""
    call(load(steps, REMOVE), address(frame), key, 0, 0, 0, 0)


@c_function(6)
def _remove(where: int, key: int, _b: int, _c: int, _d: int, _e: int) -> int:
    """Drop a record of a delta, whose index is not by runs."""
    frame = frame_at(where)
    head, places, width = frame[HEAD], frame[at.PLACES], frame[at.KEY]
    table, shape = table_of(frame[places])
    h, count = hash_record(frame, key), load(head, at.COUNT)
    position = seek(table, shape, home(h, shape), h, key, width, frame[places + at.KEYS], frame[at.UNIT])
    drop(frame, position, (load(table, position) & LOW) - 1, count)
    store(head, at.COUNT, count - 1)
    return 0


@c_function(6)
def _append(where: int, key: int, grow: int, pool: int, _d: int, _e: int) -> int:
    """Make a record whose payload is 0 behind all others, whatever keys these have, in place of `_enter`.

    The pool has no slices, and no record of it is looked up until it is cleared.
    """
    frame = frame_at(where)
    head, places, width, broad = frame[HEAD], frame[at.PLACES], frame[at.KEY], frame[at.PAYLOAD]
    count = load(head, at.COUNT)
    if not has_room(frame, count) and call(grow, pool, 0, 0, 0, 0, 0) == 0:
        return -1
    copy(frame[places + at.KEYS] + 8 * count * width, key, width)
    for i in range(broad):
        store(frame[places + at.WORDS] + 8 * count * broad, i, 0)
    store(head, at.COUNT, count + 1)
    store(head, at.APPENDED, 1)
    return count


@c_function(6)
def _take_back(where: int, _a: int, _b: int, _c: int, _d: int, _e: int) -> int:
    """Drop the record that was appended last, in place of `_remove`."""
    head = frame_at(where)[HEAD]
    count = load(head, at.COUNT) - 1
    store(head, at.COUNT, count)
    store(head, at.APPENDED, 1 if count > 0 else 0)  # an empty pool is not cleared
    return 0


@inlined
def words_of(frame: Vector, record: int, width: int) -> int:
    """Return the address of a record's payload."""
    return region_at(frame, at.WORDS) + 8 * record * width


@inlined
def key_of(frame: Vector, record: int, width: int) -> int:
    """Return the address of a record's key in a pool of deltas or groups, whose keys have words of 64 bits."""
    return region_at(frame, at.KEYS) + 8 * record * width


@inlined
def key_word(frame: Vector, record: int, width: int, i: int) -> int:
    """Return word number `i` of a record's key, of so many."""
    unit = frame[at.UNIT]
    return word_at(region_at(frame, at.KEYS) + unit * width * record, i, unit)


@inlined
def key_room(frame: Vector) -> int:
    """Return the address at which a key for the pool is put together."""
    return address(frame) + 8 * (frame[at.SCRATCH] + 6 * at.CHUNK)


@inlined
def count_of(frame: Vector) -> int:
    """Return how many records a pool has."""
    return load(frame[HEAD], at.COUNT)


@inlined
def slice_of(frame: Vector, s: int, key: int, steps: int) -> int:
    """Find the entry of the records that agree with the key at an address on the columns of a slice; −1 if none do.

    Args:
        s: The number of the slice; −1: the columns of the pool's own index.
    """
    return call(load(steps, SLICE), address(frame), s, key, 0, 0, 0)


@c_function(6)
def _slice_of(where: int, s: int, key: int, _c: int, _d: int, _e: int) -> int:
    """Find the entry of a slice."""
    frame = frame_at(where)
    if s < 0 or (s == 0 and is_by_runs(frame)):
        return entries_of(frame, key, hash_record(frame, key))
    return entry_of(frame, s, key)


@inlined
def length_of(frame: Vector, s: int, entry: int) -> int:
    """Return how many records an entry of a slice has."""
    if s < 0 or entry < 0 or entry >= ALONE:
        return group_length(entry)
    return load32(block_at(frame[frame[at.PLACES] + at.SLICE + s * at.SLICE_STRIDE + at.ARENA], entry), at.LENGTH)


@inlined
def record_of(frame: Vector, s: int, entry: int, i: int) -> int:
    """Return record number `i` of an entry of a slice."""
    if entry >= MANY:
        return _listed_record(frame, entry, i)
    if entry >= RUN:
        return (entry & LOW) + i
    if s < 0 or entry >= ALONE:
        return entry - ALONE
    arena = frame[frame[at.PLACES] + at.SLICE + s * at.SLICE_STRIDE + at.ARENA]
    return load32(block_at(arena, entry), at.RECORDS + i)


@inlined
def short_text(start: int, length: int) -> int:
    """Return the bytes of a text of at most eight as a word."""
    word = load8(start, 0) if length > 0 else 0  # in the loop, the usual text of one byte takes twice as long
    for i in range(1, length):
        word |= load8(start, i) << (8 * i)
    return word


@inlined
def number_of(dictionary: int, known: int, start: int, length: int, steps: int) -> int:
    """Return the number of a text in a dictionary; −2 if there is no memory.

    Args:
        known: Numbers of short texts seen before: 64 of (text, length, number), by their bytes.
    """
    if length > _SHORT:
        return call(load(steps, INTERN), dictionary, start, length, load(steps, GROW), 0, 0)
    word = short_text(start, length)
    place = known + 24 * ((((word * _SPREAD) >> 58) ^ length) & 63)
    if load(place, 0) == word and load(place, 1) == length + 1:
        return load(place, 2)
    number = call(load(steps, INTERN), dictionary, start, length, load(steps, GROW), 0, 0)
    store(place, 0, word)
    store(place, 1, length + 1)
    store(place, 2, number)
    return number


@c_function(6)
def _intern(where: int, start: int, length: int, grow: int, _d: int, _e: int) -> int:
    """Find a text in a dictionary, or add it."""
    frame = frame_at(where)
    head, h = frame[HEAD], hash_bytes(start, length)
    while True:
        (table, shape), ends, data = table_of(frame[1]), frame[3], frame[5]
        position, count = home(h, shape), load(head, COUNT)
        entry = load(table, position)
        while not is_behind(entry, h, position, shape):
            number = (entry & LOW) - 1
            if (entry ^ h) & HIGH == 0:
                begin = load(ends, number)
                if load(ends, number + 1) - begin == length and same_bytes(data + begin, start, length):
                    return number
            position = after(position, shape)
            entry = load(table, position)
        begin = load(ends, count)
        if not full(count, shape) and count + 1 < frame[4] and begin + length <= 8 * frame[6]:
            copy_bytes(data + begin, start, length)
            store(ends, count + 1, begin + length)
            store(head, COUNT, count + 1)
            insert(table, shape, position, (h & HIGH) | (count + 1))
            return count
        store(head, NEEDED, begin + length)
        own = start - data if data <= start < data + 8 * frame[6] else -1  # a part of a text that is there: it moves
        if call(grow, -1, 0, 0, 0, 0, 0) == 0:
            return -2
        if own >= 0:
            start = frame[5] + own


@inlined
def add_rows(frame: Vector, keys: int, words: int, rows: int, steps: int, pool: int) -> int:
    """Add rows, whose keys and payloads stand at addresses, to a pool; −2 if there is no memory.

    1 if a count, the first word, may be more than 1 then; 0 otherwise.
    """
    return call(load(steps, ADD), address(frame), keys, words, rows, load(steps, GROW), pool)


@making
def upsert_rows(frame: Vector, keys: int, words: int, start: int, stop: int) -> int:
    """Add rows `start` … `stop` − 1 of those at addresses; return the first without room, or `stop`."""
    there: Any = pointer(keys)
    given: Any = pointer(words)
    added, payloads = carray(there, (stop, frame[at.KEY])), carray(given, (stop, frame[at.PAYLOAD]))
    done: int = _upsert_rows(frame, added, payloads, carray(there, (0,)), start, stop)
    return done


@inlined
def may_repeat(frame: Vector, before: int, words: int, rows: int) -> int:
    """Return 1 if a count, the first word, may be more than 1 after so many rows were added to `before` records."""
    if load(frame[HEAD], at.COUNT) - before != rows:
        return 1
    for row in range(rows):
        if load(words, row * frame[at.PAYLOAD]) > 1:
            return 1
    return 0


@c_function(6)
def _add_rows(where: int, keys: int, words: int, rows: int, grow: int, pool: int) -> int:
    """Add rows a chunk at a time, which asks for their cache lines together."""
    frame = frame_at(where)
    done, before = 0, load(frame[HEAD], at.COUNT)
    while True:
        done = upsert_rows(frame, keys, words, done, rows)
        if done >= rows:
            return may_repeat(frame, before, words, rows)
        if call(grow, pool, 0, 0, 0, 0, 0) == 0:
            return -2


STEPS: tuple[CFunction, ...] = (_find, _enter, _remove, _slice_of, _intern, _add_rows)
"""Functions whose addresses stand in a table, behind that of the one that grows."""
APPENDING: dict[int, CFunction] = {ENTER: _append, REMOVE: _take_back}
"""Functions that take the places of others in a table for rows that are not added up by key."""
