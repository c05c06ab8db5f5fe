"""Secondary indexes of a pool: from the values of some key columns to the records that have them.

    slice on column 0:   index → (7) group 1: start 64, length 3 → arena[64:67] = records 0, 5, 9 → where[5] = (1, 1)
                               → (8) record 4, which is alone

A record that is alone with its values stands in the index itself. The records of a group stand together in the arena,
so a slice reads memory in order; `where` tells each record's place, so unlinking takes constant time. A posting that a
deletion left out of order is sorted when it is next read: what a slice answers then depends on the records alone, not
on how they came to be.

Source: the multi-indexed record pools of `dbtoaster-batch-ivm` §5.2.1.
"""

import numpy as np

from squallpy.runtime.kernels import layout as at
from squallpy.runtime.kernels.area import HEAD
from squallpy.runtime.kernels.compiled import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.hashing import hash_picked
from squallpy.runtime.kernels.index import HIGH, LOW, full, home, peek, remove, seek_number, wipe
from squallpy.runtime.kernels.machine import load, load32, prefetch, shift_right, store, store32
from squallpy.runtime.kernels.storage import Words

ALONE = 1 << 31  # numbers from here on are no group's, but stand for record `number − ALONE`


@inlined
def _state(frame: Vector, s: int) -> int:
    return frame[HEAD] + 8 * (at.SLICE_STATE + s * at.STATE)


@inlined
def _place(frame: Vector, s: int) -> int:
    return frame[at.PLACES] + at.SLICE + s * at.SLICE_STRIDE


@inlined
def _columns(frame: Vector, s: int) -> int:
    """Where in the frame the slice's columns begin: how many, then which."""
    return frame[at.BOUNDS] + s * (frame[at.KEY] + 1)


@inlined
def _group_words(frame: Vector, s: int) -> int:
    return at.GROUP_KEY + frame[_columns(frame, s)]


@inlined
def _group(frame: Vector, s: int, number: int) -> int:
    """Address of a group."""
    return frame[_place(frame, s) + at.GROUPS] + 8 * number * _group_words(frame, s)


@inlined
def _key(frame: Vector, record: int) -> int:
    """Address of a record's key."""
    return frame[frame[at.PLACES] + at.KEYS] + 8 * record * frame[at.KEY]


@inlined
def _hash(frame: Vector, s: int, key: int) -> int:
    """Hash of the slice's columns in the key at `key`."""
    columns = _columns(frame, s)
    return hash_picked(key, address(frame) + 8 * (columns + 1), frame[columns])


@inlined
def _seek(
    table: int,
    size: int,
    start: int,
    h: int,
    key: int,
    picks: int,
    width: int,
    groups: int,
    stride: int,
    keys: int,
    wide: int,
) -> int:
    """Position of the entry that the key at `key` belongs to, or of the empty entry where it would stand.

    All is by address: groups are `stride` bytes apart, records' keys `wide`, and `width` columns, `picks`, tell. It is
    at `start`, where it was peeked, or behind.
    """
    position = start
    while True:
        entry = load(table, position)
        if entry == 0:
            return position
        if (entry ^ h) & HIGH == 0:
            number, i = (entry & LOW) - 1, 0
            if number >= ALONE:
                other = keys + (number - ALONE) * wide
                while i < width and load(other, load(picks, i)) == load(key, load(picks, i)):
                    i += 1
            else:
                group = groups + number * stride
                while i < width and load(group, at.GROUP_KEY + i) == load(key, load(picks, i)):
                    i += 1
            if i == width:
                return position
        position += 1
        if position == size:
            position = 0


@inlined
def ask_unlink(frame: Vector, record: int, depth: int) -> None:
    """Ask for the cache lines that unlinking a record will need: of its place and key, then the group, or the index if
    it is alone, then the posting."""
    for s in range(frame[at.SLICES]):
        place = _place(frame, s)
        if depth == 0:
            prefetch(frame[place + at.WHERE] + 8 * record)
            prefetch(_key(frame, record))
            continue
        spot = load(frame[place + at.WHERE], record)
        if spot < 0:
            if depth == 1:
                prefetch(frame[place] + 8 * home(_hash(frame, s, _key(frame, record)), frame[place + 1]))
            continue
        group = _group(frame, s, shift_right(spot, 32))
        line = group
        if depth == 2:
            line = frame[place + at.ARENA] + 4 * (load(group, at.START) + (spot & LOW))
        prefetch(line)


@inlined
def _allocate(state: int, arena: int, size_class: int) -> int:
    block = load(state, at.ARENA_FREE + size_class)
    if block != 0:
        store(state, at.ARENA_FREE + size_class, load(arena + 4 * (block - 1), 0))
        return block - 1
    top = load(state, at.ARENA_TOP)
    store(state, at.ARENA_TOP, top + (1 << size_class))
    return top


@inlined
def _release(state: int, arena: int, start: int, size_class: int) -> None:
    store(arena + 4 * start, 0, load(state, at.ARENA_FREE + size_class))
    store(state, at.ARENA_FREE + size_class, start + 1)


@inlined
def has_room(frame: Vector, count: int) -> bool:
    """Can a chunk of records be linked, whatever their keys, in a pool of `count`?"""
    for s in range(frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        if (
            full(load(state, at.LIVE) + at.CHUNK, frame[place + 1])
            or (load(state, at.TOP) + at.CHUNK) * _group_words(frame, s) > frame[place + at.GROUPS + 1]
            or load(state, at.ARENA_TOP) + at.ARENA_ROOM * (count + at.CHUNK) > 2 * frame[place + at.ARENA + 1]
            or count + at.CHUNK > frame[place + at.WHERE + 1]
        ):
            return False
    return True


@inlined
def link(frame: Vector, first: int, count: int) -> None:
    """Enter the newest records, from `first` on and a chunk at most, in all slices; there is room.

    Slice by slice, and in passes: each asks for the cache lines that the next will need, of the index, then who stands
    there, then the posting's end.
    """
    hashes, keys, wide = frame[at.SCRATCH] + 2 * at.CHUNK, frame[frame[at.PLACES] + at.KEYS], 8 * frame[at.KEY]
    for s in range(frame[at.SLICES]):
        place, columns = _place(frame, s), _columns(frame, s)
        table, size, groups = frame[place], frame[place + 1], frame[place + at.GROUPS]
        arena, where, live = frame[place + at.ARENA], frame[place + at.WHERE], _state(frame, s) + 8 * at.LIVE
        picks, width, stride = address(frame) + 8 * (columns + 1), frame[columns], 8 * _group_words(frame, s)
        for record in range(first, count):
            h = hash_picked(keys + record * wide, picks, width)
            frame[hashes + record - first] = h
            prefetch(table + 8 * home(h, size))
        for record in range(first, count):
            position = peek(table, size, frame[hashes + record - first])
            frame[hashes + at.CHUNK + record - first] = position
            number = (load(table, position) & LOW) - 1
            if number >= ALONE:
                prefetch(keys + (number - ALONE) * wide)
                prefetch(where + 8 * (number - ALONE))
            elif number >= 0:
                prefetch(groups + number * stride)
        for record in range(first, count):
            number = (load(table, frame[hashes + at.CHUNK + record - first]) & LOW) - 1
            if 0 <= number < ALONE:
                group = groups + number * stride
                prefetch(arena + 4 * (load(group, at.START) + load(group, at.LENGTH)))
        for record in range(first, count):
            h, position = frame[hashes + record - first], frame[hashes + at.CHUNK + record - first]
            position = _seek(table, size, position, h, keys + record * wide, picks, width, groups, stride, keys, wide)
            number = (load(table, position) & LOW) - 1
            if number < 0:
                store(table, position, (h & HIGH) | (ALONE + record + 1))
                store(where, record, (ALONE + record) << 32)
                store(live, 0, load(live, 0) + 1)
                continue
            if number >= ALONE:
                number = _company(frame, s, number - ALONE)
                store(table, position, (h & HIGH) | (number + 1))
            _append(frame, s, number, record)


@inlined
def _company(frame: Vector, s: int, record: int) -> int:
    """A new group, of a record that was alone; its number."""
    place, state = _place(frame, s), _state(frame, s)
    number = load(state, at.FREE) - 1
    if number >= 0:
        store(state, at.FREE, load(_group(frame, s, number), at.START))
    else:
        number = load(state, at.TOP)
        store(state, at.TOP, number + 1)
    group, columns, key = _group(frame, s, number), _columns(frame, s), _key(frame, record)
    start = _allocate(state, frame[place + at.ARENA], at.SMALLEST)
    store(group, at.START, start)
    store(group, at.LENGTH, 1)
    store(group, at.SHAPE, at.SMALLEST)
    for i in range(frame[columns]):
        store(group, at.GROUP_KEY + i, load(key, frame[columns + 1 + i]))
    store32(frame[place + at.ARENA], start, record)
    store(frame[place + at.WHERE], record, number << 32)
    return number


@inlined
def _append(frame: Vector, s: int, number: int, record: int) -> None:
    """Put a record, newer than all, at the end of a posting."""
    place, group = _place(frame, s), _group(frame, s, number)
    arena = frame[place + at.ARENA]
    start, length, shape = load(group, at.START), load(group, at.LENGTH), load(group, at.SHAPE)
    size_class = shape & (at.DISORDER - 1)
    if length == 1 << size_class:
        state = _state(frame, s)
        wider = _allocate(state, arena, size_class + 1)
        for i in range(length):
            store32(arena, wider + i, load32(arena, start + i))
        _release(state, arena, start, size_class)
        store(group, at.START, wider)
        store(group, at.SHAPE, shape + 1)
        start = wider
    store32(arena, start + length, record)
    store(group, at.LENGTH, length + 1)
    store(frame[place + at.WHERE], record, (number << 32) | length)


@inlined
def unlink(frame: Vector, record: int) -> None:
    """Take a record out of all slices; its key is still there."""
    for s in range(frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        table, size, arena, where = frame[place], frame[place + 1], frame[place + at.ARENA], frame[place + at.WHERE]
        spot = load(where, record)
        number, position, last = shift_right(spot, 32), spot & LOW, 0
        if number < ALONE:
            group = _group(frame, s, number)
            start, last = load(group, at.START), load(group, at.LENGTH) - 1
            store(group, at.LENGTH, last)
            if position != last:
                moved = load32(arena, start + last)
                store32(arena, start + position, moved)
                store(where, moved, spot)
                store(group, at.SHAPE, load(group, at.SHAPE) | at.DISORDER)
            elif last == 0:
                _release(state, arena, start, load(group, at.SHAPE) & (at.DISORDER - 1))
                store(group, at.START, load(state, at.FREE))
                store(state, at.FREE, number + 1)
        if last == 0:
            h = _hash(frame, s, _key(frame, record))
            remove(table, size, seek_number(table, size, h, number))
            store(state, at.LIVE, load(state, at.LIVE) - 1)


@inlined
def renumber(frame: Vector, old: int, new: int) -> None:
    """A record's number changes from `old` to `new`, which no other has; its key is still at `old`."""
    for s in range(frame[at.SLICES]):
        place = _place(frame, s)
        table, size, where = frame[place], frame[place + 1], frame[place + at.WHERE]
        spot = load(where, old)
        number = shift_right(spot, 32)
        if number >= ALONE:
            h = _hash(frame, s, _key(frame, old))
            store(table, seek_number(table, size, h, number), (h & HIGH) | (ALONE + new + 1))
            store(where, new, (ALONE + new) << 32)
            continue
        group = _group(frame, s, number)
        store32(frame[place + at.ARENA], load(group, at.START) + (spot & LOW), new)
        store(where, new, spot)
        if load(group, at.LENGTH) > 1:
            store(group, at.SHAPE, load(group, at.SHAPE) | at.DISORDER)


@inlined
def unlink_all(frame: Vector, count: int) -> None:
    """Empty all slices of a pool of `count`, at a cost in proportion to it; the keys are still there."""
    for s in range(frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        table, size = frame[place], frame[place + 1]
        if count * 64 > size:
            for i in range(size):
                store(table, i, 0)
        else:
            for record in range(count):
                wipe(table, size, _hash(frame, s, _key(frame, record)))
        for i in range(at.STATE):
            store(state, i, 0)


@inlined
def _sort(arena: int, start: int, length: int, where: int, number: int) -> None:
    """Make a posting ascend (Shell's sort: nearly sorted postings, the usual ones, take one easy pass)."""
    gap = 1
    while gap * 9 < length * 4:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(gap, length):
            record, j = load32(arena, start + i), i
            while j >= gap and load32(arena, start + j - gap) > record:
                store32(arena, start + j, load32(arena, start + j - gap))
                j -= gap
            store32(arena, start + j, record)
        gap = gap * 4 // 9
    for i in range(length):
        store(where, load32(arena, start + i), (number << 32) | i)


@inlined
def sliced(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """All (row of `bound`, record) that agree on the columns of slice `s`, ascending."""
    place, columns, width, n = _place(frame, s), _columns(frame, s), bound.shape[1], bound.shape[0]
    table, size, base, groups = frame[place], frame[place + 1], address(bound), frame[place + at.GROUPS]
    arena, where, stride = frame[place + at.ARENA], frame[place + at.WHERE], 8 * _group_words(frame, s)
    keys, wide, picks = frame[frame[at.PLACES] + at.KEYS], 8 * frame[at.KEY], address(frame) + 8 * (columns + 1)
    key = address(frame) + 8 * (frame[at.SCRATCH] + 4 * at.CHUNK)
    found = np.empty(n, np.int64)
    for row in range(n):
        for i in range(width):
            store(key, load(picks, i), load(base, row * width + i))
        found[row] = hash_picked(key, picks, width)
    total = 0
    for row in range(n):
        if row + at.CHUNK < n:
            prefetch(table + 8 * home(found[row + at.CHUNK], size))
        if row + at.CHUNK // 2 < n:
            ahead = (load(table, peek(table, size, found[row + at.CHUNK // 2])) & LOW) - 1
            if ahead >= 0:
                prefetch(keys + (ahead - ALONE) * wide if ahead >= ALONE else groups + ahead * stride)
        for i in range(width):
            store(key, load(picks, i), load(base, row * width + i))
        position = _seek(table, size, home(found[row], size), found[row], key, picks, width, groups, stride, keys, wide)
        number = (load(table, position) & LOW) - 1
        found[row] = number
        if number >= ALONE:
            total += 1
        elif number >= 0:
            group = _group(frame, s, number)
            length = load(group, at.LENGTH)
            if load(group, at.SHAPE) & at.DISORDER != 0:
                _sort(arena, load(group, at.START), length, where, number)
                store(group, at.SHAPE, load(group, at.SHAPE) & ~at.DISORDER)
            total += length
    rows, records, i = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for row in range(n):
        number = found[row]
        if row + at.CHUNK < n and 0 <= found[row + at.CHUNK] < ALONE:
            prefetch(arena + 4 * load(_group(frame, s, found[row + at.CHUNK]), at.START))
        if number >= ALONE:
            rows[i], records[i] = row, number - ALONE
            i += 1
        elif number >= 0:
            group = _group(frame, s, number)
            start, length = load(group, at.START), load(group, at.LENGTH)
            for j in range(start, start + length):
                record = load32(arena, j)
                prefetch(keys + record * wide)  # which the caller will read
                rows[i], records[i] = row, record
                i += 1
    return rows, records


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, int64, {GIVEN_MATRIX})")
def slice_records(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """`sliced`, on its own."""
    return sliced(frame, s, bound)
