"""Secondary indexes of a pool: from the values of some key columns to the records that have them.

    slice on column 0:   index → group (7 | start 64, length 3) → arena[64:67] = records 0, 5, 9 → where[5] = (group, 1)

Each group's records stand together in the arena, so a slice reads memory in order; `where` tells each record's place in
its posting, so unlinking takes constant time. A posting that a deletion left out of order is sorted when it is next
read: what a slice answers then depends on the records alone, not on how they came to be.

Source: the multi-indexed record pools of `dbtoaster-batch-ivm` §5.2.1.
"""

import numpy as np

from squallpy.runtime.kernels import layout as at
from squallpy.runtime.kernels.area import HEAD
from squallpy.runtime.kernels.compiled import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.hashing import hash_row
from squallpy.runtime.kernels.index import LOW, full, home, remove, seek, seek_number, wipe
from squallpy.runtime.kernels.machine import load, prefetch, shift_right, store
from squallpy.runtime.kernels.storage import Words


@inlined
def _state(frame: Vector, s: int) -> int:
    return frame[HEAD] + 8 * (at.SLICE_STATE + s * at.STATE)


@inlined
def _place(frame: Vector, s: int) -> int:
    return frame[at.PLACES] + at.SLICE + s * at.SLICE_STRIDE


@inlined
def _group(frame: Vector, s: int, number: int) -> int:
    """Address of a group."""
    return frame[_place(frame, s) + at.GROUPS] + 8 * number * _group_words(frame, s)


@inlined
def _group_words(frame: Vector, s: int) -> int:
    return at.GROUP_KEY + frame[frame[at.BOUNDS] + s * (frame[at.KEY] + 1)]


@inlined
def _seek_group(frame: Vector, s: int, h: int, bound: int, width: int) -> int:
    place, size = _place(frame, s), at.GROUP_KEY + width
    groups = frame[place + at.GROUPS] + 8 * at.GROUP_KEY
    return seek(frame[place], frame[place + 1], h, bound, width, groups, 8 * size)


@inlined
def _bound(frame: Vector, s: int, key: int) -> tuple[int, int]:
    """The columns of slice `s` in the key at `key`: (address in the scratch, how many)."""
    bound, columns = address(frame) + 8 * (frame[at.SCRATCH] + at.CHUNK), frame[at.BOUNDS] + s * (frame[at.KEY] + 1)
    width = frame[columns]
    for c in range(width):
        store(bound, c, load(key, frame[columns + 1 + c]))
    return bound, width


@inlined
def ask_link(frame: Vector, key: int, depth: int) -> None:
    """Ask for the cache lines that linking a key will need: of the index, then the group, then the posting's end."""
    for s in range(frame[at.SLICES]):
        place = _place(frame, s)
        bound, width = _bound(frame, s, key)
        position = frame[place] + 8 * home(hash_row(bound, width), frame[place + 1])
        if depth == 0:
            prefetch(position)
            continue
        entry = load(position, 0)
        if entry != 0:
            group = _group(frame, s, (entry & LOW) - 1)
            line = group
            if depth == 2:
                line = frame[place + at.ARENA] + 8 * (load(group, at.START) + load(group, at.LENGTH))
            prefetch(line)


@inlined
def ask_unlink(frame: Vector, record: int, depth: int) -> None:
    """Ask for the cache lines that unlinking a record will need: of its place, then the group, then the posting."""
    for s in range(frame[at.SLICES]):
        place = _place(frame, s)
        if depth == 0:
            prefetch(frame[place + at.WHERE] + 8 * record)
            continue
        spot = load(frame[place + at.WHERE], record)
        group = _group(frame, s, shift_right(spot, 32))
        line = group
        if depth == 2:
            line = frame[place + at.ARENA] + 8 * (load(group, at.START) + (spot & LOW))
        prefetch(line)


@inlined
def _allocate(state: int, arena: int, size_class: int) -> int:
    block = load(state, at.ARENA_FREE + size_class)
    if block != 0:
        store(state, at.ARENA_FREE + size_class, load(arena, block - 1))
        return block - 1
    top = load(state, at.ARENA_TOP)
    store(state, at.ARENA_TOP, top + (1 << size_class))
    return top


@inlined
def _release(state: int, arena: int, start: int, size_class: int) -> None:
    store(arena, start, load(state, at.ARENA_FREE + size_class))
    store(state, at.ARENA_FREE + size_class, start + 1)


@inlined
def has_room(frame: Vector, count: int) -> bool:
    """Can one more record be linked whatever its key, in a pool of `count`?"""
    for s in range(frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        if (
            full(load(state, at.LIVE), frame[place + 1])
            or (load(state, at.TOP) + 1) * _group_words(frame, s) > frame[place + at.GROUPS + 1]
            or load(state, at.ARENA_TOP) + 2 * (count + 1) > frame[place + at.ARENA + 1]
            or count >= frame[place + at.WHERE + 1]
        ):
            return False
    return True


@inlined
def link(frame: Vector, record: int, key: int) -> None:
    """Enter a record, whose key is at `key`, in all slices; there is room."""
    for s in range(frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        bound, width = _bound(frame, s, key)
        h = hash_row(bound, width)
        position = _seek_group(frame, s, h, bound, width)
        entry, arena = load(frame[place], position), frame[place + at.ARENA]
        if entry == 0:
            number = load(state, at.FREE) - 1
            if number >= 0:
                store(state, at.FREE, load(_group(frame, s, number), at.START))
            else:
                number = load(state, at.TOP)
                store(state, at.TOP, number + 1)
            group = _group(frame, s, number)
            store(group, at.START, _allocate(state, arena, 1))
            store(group, at.LENGTH, 0)
            store(group, at.SHAPE, 1)
            for c in range(width):
                store(group, at.GROUP_KEY + c, load(bound, c))
            store(frame[place], position, (h & ~LOW) | (number + 1))
            store(state, at.LIVE, load(state, at.LIVE) + 1)
        else:
            number = (entry & LOW) - 1
            group = _group(frame, s, number)
        start, length, shape = load(group, at.START), load(group, at.LENGTH), load(group, at.SHAPE)
        size_class = shape & (at.DISORDER - 1)
        if length == 1 << size_class:
            wider = _allocate(state, arena, size_class + 1)
            for i in range(length):
                store(arena, wider + i, load(arena, start + i))
            _release(state, arena, start, size_class)
            store(group, at.START, wider)
            store(group, at.SHAPE, shape + 1)
            start = wider
        store(arena, start + length, record)
        store(group, at.LENGTH, length + 1)
        store(frame[place + at.WHERE], record, (number << 32) | length)


@inlined
def unlink(frame: Vector, record: int) -> None:
    """Take a record out of all slices."""
    for s in range(frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        arena, where = frame[place + at.ARENA], frame[place + at.WHERE]
        spot = load(where, record)
        number, position = shift_right(spot, 32), spot & LOW
        group = _group(frame, s, number)
        start, last = load(group, at.START), load(group, at.LENGTH) - 1
        store(group, at.LENGTH, last)
        if position != last:
            moved = load(arena, start + last)
            store(arena, start + position, moved)
            store(where, moved, spot)
            store(group, at.SHAPE, load(group, at.SHAPE) | at.DISORDER)
        elif last == 0:
            _release(state, arena, start, load(group, at.SHAPE) & (at.DISORDER - 1))
            width = _group_words(frame, s) - at.GROUP_KEY
            h = hash_row(group + 8 * at.GROUP_KEY, width)
            remove(frame[place], frame[place + 1], seek_number(frame[place], frame[place + 1], h, number))
            store(group, at.START, load(state, at.FREE))
            store(state, at.FREE, number + 1)
            store(state, at.LIVE, load(state, at.LIVE) - 1)


@inlined
def renumber(frame: Vector, old: int, new: int) -> None:
    """A record's number changes from `old` to `new`, which no other has."""
    for s in range(frame[at.SLICES]):
        place = _place(frame, s)
        spot = load(frame[place + at.WHERE], old)
        group = _group(frame, s, shift_right(spot, 32))
        store(frame[place + at.ARENA], load(group, at.START) + (spot & LOW), new)
        store(frame[place + at.WHERE], new, spot)
        if load(group, at.LENGTH) > 1:
            store(group, at.SHAPE, load(group, at.SHAPE) | at.DISORDER)


@inlined
def unlink_all(frame: Vector) -> None:
    """Empty all slices, at a cost in proportion to what they hold."""
    for s in range(frame[at.SLICES]):
        place, state = _place(frame, s), _state(frame, s)
        table, size, top = frame[place], frame[place + 1], load(state, at.TOP)
        width = _group_words(frame, s) - at.GROUP_KEY
        if top * 8 > size:
            for i in range(size):
                store(table, i, 0)
        else:  # groups that were freed have nothing in the table, and wiping for them too does no harm
            for number in range(top):
                wipe(table, size, hash_row(_group(frame, s, number) + 8 * at.GROUP_KEY, width))
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
            record, j = load(arena, start + i), i
            while j >= gap and load(arena, start + j - gap) > record:
                store(arena, start + j, load(arena, start + j - gap))
                j -= gap
            store(arena, start + j, record)
        gap = gap * 4 // 9
    for i in range(length):
        store(where, load(arena, start + i), (number << 32) | i)


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, int64, {GIVEN_MATRIX})")
def slice_records(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """All (row of `bound`, record) that agree on the columns of slice `s`, ascending."""
    place, width, n = _place(frame, s), bound.shape[1], bound.shape[0]
    table, size, base, wide = frame[place], frame[place + 1], address(bound), 8 * width
    arena, where = frame[place + at.ARENA], frame[place + at.WHERE]
    found = np.empty(n, np.int64)
    for row in range(n):
        found[row] = hash_row(base + row * wide, width)
    total = 0
    for row in range(n):
        h = found[row]
        if row + at.CHUNK < n:
            prefetch(table + 8 * home(found[row + at.CHUNK], size))
        if row + at.CHUNK // 2 < n:
            ahead = load(table, home(found[row + at.CHUNK // 2], size))
            if ahead != 0:
                prefetch(_group(frame, s, (ahead & LOW) - 1))
        entry = load(table, _seek_group(frame, s, h, base + row * wide, width))
        if entry == 0:
            found[row] = 0
            continue
        number = (entry & LOW) - 1
        group = _group(frame, s, number)
        length = load(group, at.LENGTH)
        if load(group, at.SHAPE) & at.DISORDER != 0:
            _sort(arena, load(group, at.START), length, where, number)
            store(group, at.SHAPE, load(group, at.SHAPE) & ~at.DISORDER)
        found[row] = group
        total += length
    rows, records, i = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for row in range(n):
        group = found[row]
        if row + at.CHUNK < n and found[row + at.CHUNK] != 0:
            prefetch(arena + 8 * load(found[row + at.CHUNK], at.START))
        if group != 0:
            start, length = load(group, at.START), load(group, at.LENGTH)
            for j in range(start, start + length):
                rows[i], records[i] = row, load(arena, j)
                i += 1
    return rows, records
