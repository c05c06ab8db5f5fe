"""Groups that a batch touches: a pool of their keys, with their payloads before it, which may be 0.

M_LINEITEM {7: 290} += {7: 20, 8: 5}   →   touched {7: 290, 8: 0}
"""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.c_functions import c_function
from squallpy.runtime.kernels.counted_records import add_counted, scratch_of
from squallpy.runtime.kernels.hash_index import (
    HIGH,
    LOW,
    ask,
    ask_behind,
    full,
    home,
    insert,
    is_of,
    peek,
    seek,
    table_of,
)
from squallpy.runtime.kernels.intrinsics import load, prefetch, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, called, inlined, kernel
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.primary_index import has_keys_in_hashes, hash_record, indexed_columns, keeps_order
from squallpy.runtime.kernels.run_index import seek_record
from squallpy.runtime.kernels.stored_keys import WIDE, key_at
from squallpy.runtime.kernels.stored_payloads import read_payload
from squallpy.runtime.kernels.trigger_steps import GROW, call, frame_at, may_repeat, upsert_rows

NOTE: Final = 9  # the address of `add_noted_rows` in the table of addresses
_BITS: Final = 31  # of a number of rows; behind them stand numbers of pools
_POOL_BITS: Final = 16


@inlined
def _ask(source: Vector, scratch: int, keys: int, rows: int) -> None:
    """Note the hashes of keys and where they are peeked in a view, and ask for the lines of these records."""
    places, width, broad = source[at.PLACES], source[at.KEY], source[at.BROAD]
    (table, shape), words, is_told = table_of(source[places]), source[places + at.WORDS], has_keys_in_hashes(source)
    for row in range(rows):
        h = hash_record(source, keys + 8 * row * width)
        store(scratch, row, h)
        store(scratch, at.CHUNK + row, ask(table, shape, h))
    for row in range(rows):
        h = load(scratch, row)
        position = peek(table, shape, load(scratch, at.CHUNK + row), h)
        store(scratch, at.CHUNK + row, position)
        entry = load(table, position)
        if is_of(entry, h):
            if not is_told:
                prefetch(key_at(source, (entry & LOW) - 1))
            prefetch(words + ((entry & LOW) - 1) * broad)
            prefetch(words + (entry & LOW) * broad - 8)  # its end is perhaps in the next line
        else:
            ask_behind(table, position)


@inlined
def _note(touched: Vector, source: Vector, keys: int, first: int, rows: int, columns: int) -> int:
    """Note the groups of rows that are not noted yet; return the first row for which there is no room, or `rows`.

    Args:
        columns: 1 if a key has one, and both are indexed by it, else 0.
    """
    head, places, width, broad = touched[HEAD], touched[at.PLACES], touched[at.KEY], touched[at.PAYLOAD]
    there, scratch = source[at.PLACES], address(touched) + 8 * touched[at.SCRATCH]
    (table, shape), (other, form) = table_of(touched[places]), table_of(source[there])
    own, words, count = touched[places + at.KEYS], touched[places + at.WORDS], load(head, at.COUNT)
    alike = columns == 1 and not keeps_order(source)  # the hashes of both
    for chunk in range(first, rows, at.CHUNK):
        if (
            full(count + at.CHUNK, shape)
            or (count + at.CHUNK) * width > touched[places + at.KEYS + 1]
            or (count + at.CHUNK) * broad > touched[places + at.WORDS + 1]
        ):
            store(head, at.COUNT, count)
            return chunk
        here = min(at.CHUNK, rows - chunk)
        _ask(source, scratch, keys + 8 * chunk * width, here)
        for i in range(here):
            key, start = keys + 8 * (chunk + i) * width, load(scratch, at.CHUNK + i)
            h = load(scratch, i) if alike else hash_record(touched, key)
            position = seek(table, shape, home(h, shape), h, key, columns if columns == 1 else width, own, WIDE)
            if position >= 0:
                continue
            insert(table, shape, ~position, (h & HIGH) | (count + 1))
            copy(own + 8 * count * width, key, columns if columns == 1 else width)
            h = load(scratch, i)
            found = seek_record(source, other, form, start, h, key)
            if found >= 0:
                read_payload(source, found, words + 8 * count * broad)
            else:
                for word in range(broad):
                    store(words + 8 * count * broad, word, 0)
            count += 1
    store(head, at.COUNT, count)
    return rows


@called
def _note_rows(touched: Vector, source: Vector, keys: int, first: int, rows: int) -> int:
    """Note the groups of rows as `_note` does."""
    if touched[at.KEY] == 1 and source[indexed_columns(source)] == 1:  # NB: runs may agree on no columns
        return _note(touched, source, keys, first, rows, 1)
    return _note(touched, source, keys, first, rows, 0)


@kernel(f"int64({VECTOR}, {VECTOR}, {GIVEN_MATRIX}, int64)")
def note_groups(touched: Vector, source: Vector, keys: Vector, first: int) -> int:
    """Note the groups of keys from row `first` on; return the first for which there was no room, or how many there
    are."""
    return _note_rows(touched, source, address(keys), first, keys.shape[0])


@inlined
def add_noted_rows(
    touched: Vector, source: Vector, keys: int, words: int, rows: int, steps: int, noting: int, pool: int
) -> int:
    """Add rows to a view as `add_rows` does, and note their groups before; each is looked up once for both.

    Args:
        noting: The number of the pool of groups for whoever lets it grow.
        pool: That of the view.
    """
    numbers = (noting << _POOL_BITS | pool) << _BITS | rows
    return call(load(steps, NOTE), address(touched), address(source), keys, words, numbers, load(steps, GROW))


@c_function(6)
def _add_noted_rows(touched: int, source: int, keys: int, words: int, numbers: int, grow: int) -> int:
    """Note and add rows a chunk at a time, whatever room that takes."""
    rows, pools = numbers & ((1 << _BITS) - 1), numbers >> _BITS
    pool, noting = pools & ((1 << _POOL_BITS) - 1), pools >> _POOL_BITS
    groups, view, start = frame_at(touched), frame_at(source), 0
    wide, broad, before = 8 * view[at.KEY], 8 * view[at.PAYLOAD], load(view[HEAD], at.COUNT)
    while start < rows:
        stop, done = min(start + at.CHUNK, rows), start
        while True:
            asked = scratch_of(groups) if done == start else 0  # else of the last rows alone
            done = _note_rows(groups, view, keys, done, stop)
            if done >= stop:
                break
            if call(grow, noting, 0, 0, 0, 0, 0) == 0:
                return -2
        done = start
        if asked != 0:
            done += add_counted(view, keys + wide * start, words + broad * start, 0, stop - start, asked)
        while done < stop:
            done = upsert_rows(view, keys, words, done, stop)
            if done < stop and call(grow, pool, 0, 0, 0, 0, 0) == 0:
                return -2
        start = stop
    return may_repeat(view, before, words, rows)


ADD_NOTED = _add_noted_rows
"""The function whose address is in the table."""
