"""Secondary indexes of a pool: from the values of some key columns to the records that have them.

    slice on column 0:   index → posting in block 7: length 3, its shape, records 0, 5, 9    (where[5] = 1)
                               → record 4, which is alone

A record that is alone with its values stands in the index itself. The records that share theirs, a posting, stand
together in a block of the arena, so a slice reads memory in order; the key of the first tells the values. A record that
goes is looked for in its posting, until that has taken as long as to note where each record stands: from then on
`where` tells it, so unlinking takes constant time, and pools that only grow do without. A posting that a deletion left
out of order is sorted when it is next read: what a slice answers then depends on the records alone, not on how they
came to be.

Source: the multi-indexed record pools of `dbtoaster-batch-ivm` §5.2.1.
"""

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.buddy_allocator import allocate, block_at, halve, release
from squallpy.runtime.kernels.hash_index import (
    HIGH,
    LOW,
    Shape,
    after,
    ask,
    ask_behind,
    full,
    home,
    insert,
    is_behind,
    is_of,
    peek,
    remove,
    settle,
    table_of,
    wipe,
    wipe_all,
)
from squallpy.runtime.kernels.hashing import hash_picked
from squallpy.runtime.kernels.intrinsics import load, load32, prefetch, store, store32
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, inlined, kernel, making
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_arithmetic import copy
from squallpy.runtime.kernels.primary_index import first_slice, is_by_runs, put_picked
from squallpy.runtime.kernels.stored_keys import key_at, key_of_record, word_at

ALONE = 1 << 31  # numbers from here on are no block's, but stand for record `number − ALONE`


@inlined
def _state(frame: Vector, s: int) -> int:
    return frame[HEAD] + 8 * (at.SLICE_STATE + s * at.STATE)


@inlined
def _place(frame: Vector, s: int) -> int:
    return frame[at.PLACES] + at.SLICE + s * at.SLICE_STRIDE


@inlined
def _where(frame: Vector, s: int) -> int:
    """Return the address of a slice's back references, 0 if it has none."""
    return frame[_place(frame, s) + at.WHERE] if load(_state(frame, s), at.REFERENCED) != 0 else 0


@inlined
def _refer(where: int, record: int, spot: int) -> None:
    """Note the place of a record in its posting, if anybody does."""
    if where != 0:
        store32(where, record, spot)


@inlined
def _spot(state: int, posting: int, where: int, record: int) -> int:
    """Return the place of a record in its posting."""
    if where != 0:
        return load32(where, record)
    spot = 0
    while load32(posting, at.RECORDS + spot) != record:
        spot += 1
    store(state, at.SEARCHED, load(state, at.SEARCHED) + spot)
    return spot


@inlined
def _columns(frame: Vector, s: int) -> int:
    """Return the word of the frame at which the slice's columns begin: how many, then which."""
    return frame[at.BOUNDS] + s * (frame[at.KEY] + 1)


@inlined
def _hash(frame: Vector, s: int, key: int) -> int:
    """Hash of the slice's columns in the key at `key`."""
    columns = _columns(frame, s)
    return hash_picked(key, address(frame) + 8 * (columns + 1), frame[columns])


@inlined
def _seek(
    frame: Vector, table: int, shape: Shape, start: int, h: int, key: int, picks: int, width: int, arena: int
) -> int:
    """Find the position of the entry of the key at `key`; if there is none, that where it should be, as ~position.

    All is given by address; `picks` are the slice's `width` columns. The search begins at `start`, where the hash was
    peeked.
    """
    position, unit = start, frame[at.UNIT]
    while True:
        entry = load(table, position)
        if is_behind(entry, h, position, shape):
            return ~position
        if (entry ^ h) & HIGH == 0:
            other, i = key_at(frame, _first((entry & LOW) - 1, arena)), 0
            while i < width and word_at(other, load(picks, i), unit) == load(key, load(picks, i)):
                i += 1
            if i == width:
                return position
        position = after(position, shape)


@inlined
def _first(number: int, arena: int) -> int:
    """Return the first record of an entry."""
    return number - ALONE if number >= ALONE else load32(block_at(arena, number), at.RECORDS)


@inlined
def _peeked(table: int, position: int, h: int) -> int:
    """Return the number of the entry that a hash most probably has, −1 if none; it was peeked."""
    entry = load(table, position)
    return (entry & LOW) - 1 if is_of(entry, h) else -1


@inlined
def _position(frame: Vector, s: int, h: int, record: int) -> int:
    """Find the position of the entry in the index to which a linked record belongs."""
    place, columns = _place(frame, s), _columns(frame, s)
    (table, shape), key = table_of(frame[place]), key_of_record(frame, record)
    picks = address(frame) + 8 * (columns + 1)
    return _seek(frame, table, shape, home(h, shape), h, key, picks, frame[columns], frame[place + at.ARENA])


@inlined
def ask_unlink(frame: Vector, start: int, count: int) -> None:
    """Ask for the cache lines that unlinking records will need: two chunks at most, which stand in the frame.

    In passes: of their places, then of the index, then of who stands there, then the posting's end and the key that
    tells its values.
    """
    keys, wide, notes = frame[frame[at.PLACES] + at.KEYS], frame[at.STRIDE], frame[at.SCRATCH] + at.LISTED
    for s in range(first_slice(frame), frame[at.SLICES]):
        place = _place(frame, s)
        (table, shape), arena, where = table_of(frame[place]), frame[place + at.ARENA], _where(frame, s)
        for i in range(count):
            if where != 0:
                prefetch(where + 4 * frame[start + i])
            h = _hash(frame, s, key_of_record(frame, frame[start + i]))
            frame[notes + i] = h
            ask(table, shape, h)
        for i in range(count):
            h = frame[notes + i]
            number = _peeked(table, peek(table, shape, home(h, shape), h), h)
            frame[notes + i] = number
            if 0 <= number < ALONE:
                prefetch(block_at(arena, number))
        for i in range(count):
            if 0 <= frame[notes + i] < ALONE:
                posting = block_at(arena, frame[notes + i])
                prefetch(keys + load32(posting, at.RECORDS) * wide)
                prefetch(posting + 4 * (at.RECORDS + load32(posting, at.LENGTH)))


@inlined
def _entries(frame: Vector, count: int) -> int:
    """Count the entries that the primary index of a pool of `count` may have after a chunk of records.

    By runs, a record that goes may leave two runs, and the last that comes into its place be one. Where too much is
    passed, there is no room.
    """
    head = frame[HEAD]
    if load(head, at.PASSED) >= at.MOST_PASSED:
        return 1 << 40
    return load(head, at.ENTRIES) + 2 * at.CHUNK if is_by_runs(frame) else count + at.CHUNK


@inlined
def has_room(frame: Vector, count: int) -> bool:
    """True if a chunk of records can be added, and linked, whatever their keys, to a pool of `count`."""
    places, then = frame[at.PLACES], count + at.CHUNK
    _, shape = table_of(frame[places])
    if (
        full(_entries(frame, count), shape)
        or then * frame[at.STRIDE] > 8 * frame[places + at.KEYS + 1]
        or then * frame[at.BROAD] > 8 * frame[places + at.WORDS + 1]
    ):
        return False
    for s in range(first_slice(frame), frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        _, shape = table_of(frame[place])
        if (
            full(load(state, at.LIVE) + at.CHUNK, shape)
            or at.PIECE * load(state, at.TOP) + at.ARENA_ROOM * count + at.ARENA_LEAST > 2 * frame[place + at.ARENA + 1]
            or _lacks_references(frame, s, count)
        ):
            return False
    return True


@inlined
def _lacks_references(frame: Vector, s: int, count: int) -> bool:
    """True if a slice of a pool of `count` shall have back references, and has none, or no room for a chunk's."""
    state = _state(frame, s)
    if load(state, at.REFERENCED) == 0:
        return load(state, at.SEARCHED) > count + at.MOST_SEARCHED
    return count + at.CHUNK > 2 * frame[_place(frame, s) + at.WHERE + 1]


@inlined
def link(frame: Vector, first: int, count: int) -> None:
    """Enter the newest records, from `first` on and a chunk at most, in all slices; there is room."""
    link_between(frame, first, count, first_slice(frame), frame[at.SLICES])


@inlined
def link_between(frame: Vector, first: int, count: int, start: int, stop: int) -> None:
    """Enter records from `first` to `count` − 1, a chunk at most, in slices `start` to `stop` − 1; there is room."""
    listed = frame[at.SCRATCH] + at.LISTED
    for record in range(first, count):
        frame[listed + record - first] = record
    _link(frame, count - first, start, stop)


@inlined
def link_listed(frame: Vector, count: int) -> None:
    """Enter the records that are listed in the scratch, a chunk at most, in all slices; there is room."""
    _link(frame, count, first_slice(frame), frame[at.SLICES])


@inlined
def _link(frame: Vector, count: int, start: int, stop: int) -> None:
    """Enter the records that are listed in the scratch in slices `start` to `stop` − 1.

    Slice by slice, and in passes: each asks for the cache lines that the next will need, of the index, then who stands
    there, then the posting's end and the key that tells its values.
    """
    hashes, keys, wide = frame[at.SCRATCH] + 2 * at.CHUNK, frame[frame[at.PLACES] + at.KEYS], frame[at.STRIDE]
    positions, listed = hashes + at.CHUNK, frame[at.SCRATCH] + at.LISTED
    for s in range(start, stop):
        place, columns, state = _place(frame, s), _columns(frame, s), _state(frame, s)
        (table, shape), arena, where = table_of(frame[place]), frame[place + at.ARENA], _where(frame, s)
        picks, width = address(frame) + 8 * (columns + 1), frame[columns]
        for i in range(count):
            h = hash_picked(key_of_record(frame, frame[listed + i]), picks, width)
            frame[hashes + i] = h
            frame[positions + i] = ask(table, shape, h)
        for i in range(count):
            position = peek(table, shape, frame[positions + i], frame[hashes + i])
            frame[positions + i] = position
            number = _peeked(table, position, frame[hashes + i])
            if number >= ALONE:
                prefetch(keys + (number - ALONE) * wide)
                if where != 0:
                    prefetch(where + 4 * (number - ALONE))
            elif number >= 0:
                prefetch(block_at(arena, number))
            else:
                ask_behind(table, position)
        for i in range(count):
            number = _peeked(table, frame[positions + i], frame[hashes + i])
            if 0 <= number < ALONE:
                posting = block_at(arena, number)
                prefetch(keys + load32(posting, at.RECORDS) * wide)
                prefetch(posting + 4 * (at.RECORDS + load32(posting, at.LENGTH)))
        for i in range(count):
            h, record = frame[hashes + i], frame[listed + i]
            key = key_of_record(frame, record)
            position = _seek(frame, table, shape, frame[positions + i], h, key, picks, width, arena)
            if position < 0:
                insert(table, shape, ~position, (h & HIGH) | (ALONE + record + 1))
                store(state, at.LIVE, load(state, at.LIVE) + 1)
            else:
                number = _append(state, arena, where, (load(table, position) & LOW) - 1, record)
                store(table, position, (h & HIGH) | (number + 1))


@inlined
def _append(state: int, arena: int, where: int, number: int, record: int) -> int:
    """Put a record at the end of a posting, or behind one that was alone; the posting's block."""
    if number >= ALONE:
        block, length = allocate(state, arena, at.SMALLEST), 1
        posting = block_at(arena, block)
        store32(posting, at.RECORDS, number - ALONE)
        _refer(where, number - ALONE, 0)
    else:
        block, posting = number, block_at(arena, number)
        length, size_class = load32(posting, at.LENGTH), load32(posting, at.SHAPE) & at.CLASS
        if at.RECORDS + length == at.PIECE << size_class:
            block, posting = _moved(state, arena, number, size_class)
    if load32(posting, at.RECORDS + length - 1) > record:  # which took the place of one that went
        store32(posting, at.SHAPE, load32(posting, at.SHAPE) | at.DISORDER)
    store32(posting, at.LENGTH, length + 1)
    store32(posting, at.RECORDS + length, record)
    _refer(where, record, length)
    return block


@inlined
def _moved(state: int, arena: int, number: int, size_class: int) -> tuple[int, int]:
    """Move a posting to a block of twice the size; return the block and its address."""
    block = allocate(state, arena, size_class + 1)
    old, new = block_at(arena, number), block_at(arena, block)
    copy(new, old, (at.PIECE << size_class) >> 1)
    store32(new, at.SHAPE, load32(old, at.SHAPE) + 1)
    release(state, arena, number, size_class)
    return block, new


@inlined
def unlink(frame: Vector, record: int) -> None:
    """Take a record out of all slices; its key is still there."""
    for s in range(first_slice(frame), frame[at.SLICES]):
        place, state, h = _place(frame, s), _state(frame, s), _hash(frame, s, key_of_record(frame, record))
        (table, shape), arena, where = table_of(frame[place]), frame[place + at.ARENA], _where(frame, s)
        position = _position(frame, s, h, record)
        number = (load(table, position) & LOW) - 1
        if number < ALONE:
            left = _without(state, arena, where, number, _spot(state, block_at(arena, number), where, record))
            store(table, position, (h & HIGH) | (left + 1))
        else:
            remove(table, shape, position)
            store(state, at.LIVE, load(state, at.LIVE) - 1)


@inlined
def _without(state: int, arena: int, where: int, block: int, gone: int) -> int:
    """Take what is at a place out of a posting, whose last takes that place; what its entry is then."""
    posting = block_at(arena, block)
    last, shape = load32(posting, at.LENGTH) - 1, load32(posting, at.SHAPE)
    size_class = shape & at.CLASS
    if last == 1:
        alone = ALONE + load32(posting, at.RECORDS + 1 - gone)
        release(state, arena, block, size_class)
        return alone
    store32(posting, at.LENGTH, last)
    if gone != last:
        moved = load32(posting, at.RECORDS + last)
        store32(posting, at.RECORDS + gone, moved)
        _refer(where, moved, gone)
        store32(posting, at.SHAPE, shape | at.DISORDER)
    if at.RECORDS + last <= (at.PIECE << size_class) >> 2:
        halve(state, arena, block, size_class)
    return block


@inlined
def renumber(frame: Vector, old: int, new: int) -> None:
    """Change a record's number from `old` to `new`, which no other has; its key is still at `old`."""
    for s in range(first_slice(frame), frame[at.SLICES]):
        place, h = _place(frame, s), _hash(frame, s, key_of_record(frame, old))
        (table, _), where = table_of(frame[place]), _where(frame, s)
        position = _position(frame, s, h, old)
        number = (load(table, position) & LOW) - 1
        if number >= ALONE:
            store(table, position, (h & HIGH) | (ALONE + new + 1))
            continue
        posting = block_at(frame[place + at.ARENA], number)
        spot = _spot(_state(frame, s), posting, where, old)
        store32(posting, at.RECORDS + spot, new)
        _refer(where, new, spot)
        store32(posting, at.SHAPE, load32(posting, at.SHAPE) | at.DISORDER)


@inlined
def unlink_all(frame: Vector, count: int) -> None:
    """Empty all slices of a pool of `count`, at a cost in proportion to it; the keys are still there."""
    for s in range(first_slice(frame), frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        table, shape = table_of(frame[place])
        if count * 64 > shape[0]:
            wipe_all(frame[place])
        else:
            for record in range(count):
                wipe(table, shape, _hash(frame, s, key_of_record(frame, record)))
            settle(frame[place])
        for i in range(at.REFERENCED):
            store(state, i, 0)


@inlined
def sort_posting(posting: int, where: int) -> None:
    """Make a posting ascend (Shell's sort: nearly sorted postings, the usual ones, take one easy pass)."""
    length, records, gap = load32(posting, at.LENGTH), posting + 4 * at.RECORDS, 1
    while gap * 9 < length * 4:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(gap, length):
            record, j = load32(records, i), i
            while j >= gap and load32(records, j - gap) > record:
                store32(records, j, load32(records, j - gap))
                j -= gap
            store32(records, j, record)
        gap = gap * 4 // 9
    for i in range(length):
        _refer(where, load32(records, i), i)
    store32(posting, at.SHAPE, load32(posting, at.SHAPE) & ~at.DISORDER)


@inlined
def _ask(number: int, arena: int, keys: int, wide: int, depth: int) -> None:
    """Ask for what tells an entry's values: the record's key, or the posting (depth 0), then its first record's."""
    if number >= ALONE:
        prefetch(keys + (number - ALONE) * wide)
    elif number >= 0:
        posting = block_at(arena, number)
        prefetch(posting if depth == 0 else keys + load32(posting, at.RECORDS) * wide)


@making
def sliced(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """List all (row of `bound`, record) that agree on the columns of slice `s`, ascending."""
    place, columns, width, n = _place(frame, s), _columns(frame, s), bound.shape[1], bound.shape[0]
    (table, shape), base = table_of(frame[place]), address(bound)
    arena, where, picks = frame[place + at.ARENA], _where(frame, s), address(frame) + 8 * (columns + 1)
    keys, wide = frame[frame[at.PLACES] + at.KEYS], frame[at.STRIDE]
    key = address(frame) + 8 * (frame[at.SCRATCH] + 6 * at.CHUNK)
    found = np.empty(n, np.int64)
    for row in range(n):
        put_picked(key, picks, base + 8 * row * width, width)
        found[row] = hash_picked(key, picks, width)
    total = 0
    for row in range(n):
        if row + at.CHUNK < n:
            ask(table, shape, found[row + at.CHUNK])
        for depth in range(2):
            ahead = row + at.CHUNK // (2 << depth)
            if ahead < n:
                number = _peeked(table, peek(table, shape, home(found[ahead], shape), found[ahead]), found[ahead])
                _ask(number, arena, keys, wide, depth)
        put_picked(key, picks, base + 8 * row * width, width)
        position = _seek(frame, table, shape, home(found[row], shape), found[row], key, picks, width, arena)
        number = (load(table, position) & LOW) - 1 if position >= 0 else -1
        found[row] = number
        if number >= ALONE:
            total += 1
        elif number >= 0:
            posting = block_at(arena, number)
            total += load32(posting, at.LENGTH)
            if load32(posting, at.SHAPE) & at.DISORDER != 0:
                sort_posting(posting, where)
    rows, records, i = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for row in range(n):
        number = found[row]
        if row + at.CHUNK < n and 0 <= found[row + at.CHUNK] < ALONE:
            prefetch(block_at(arena, found[row + at.CHUNK]))
        if number >= ALONE:
            rows[i], records[i] = row, number - ALONE
            i += 1
        elif number >= 0:
            posting = block_at(arena, number)
            for j in range(at.RECORDS, at.RECORDS + load32(posting, at.LENGTH)):
                record = load32(posting, j)
                prefetch(keys + record * wide)  # which the caller will read
                rows[i], records[i] = row, record
                i += 1
    return rows, records


@inlined
def entry_of(frame: Vector, s: int, key: int, hashed: int = 0, start: int = -1) -> int:
    """Find what the index has for the columns of slice `s` in the key at an address, −1 if nothing.

    A posting, which ascends then, or a record that is alone (`ALONE`). A hash may be given, and where it was peeked.
    """
    place, columns, h = _place(frame, s), _columns(frame, s), hashed if start >= 0 else _hash(frame, s, key)
    (table, shape), arena = table_of(frame[place]), frame[place + at.ARENA]
    picks, start = address(frame) + 8 * (columns + 1), start if start >= 0 else home(h, shape)
    position = _seek(frame, table, shape, start, h, key, picks, frame[columns], arena)
    if position < 0:
        return -1
    number = (load(table, position) & LOW) - 1
    if number < ALONE:
        posting = block_at(arena, number)
        if load32(posting, at.SHAPE) & at.DISORDER != 0:
            sort_posting(posting, _where(frame, s))
    return number


@kernel(f"void({VECTOR}, int64)")
def refer_back(frame: Vector, s: int) -> None:
    """Note the place of each record in its posting of a slice; there is room."""
    place, state = _place(frame, s), _state(frame, s)
    (table, shape), arena = table_of(frame[place]), frame[place + at.ARENA]
    store(state, at.REFERENCED, 1)
    for position in range(shape[0]):
        number = (load(table, position) & LOW) - 1
        if 0 <= number < ALONE:
            posting = block_at(arena, number)
            for i in range(load32(posting, at.LENGTH)):
                store32(frame[place + at.WHERE], load32(posting, at.RECORDS + i), i)
