"""Fixpoints of groups: semi-naive iteration over the rows of all groups at once, by differences by iteration.

    node 7, time 2:   + group 3     →   (3, 1): 1 derivation, chosen: row (3, 7) comes     →   3 +7
    node 9, time 3:   + group 3, for the step 7 → 9                                        →   3 +9

What a batch changes in a node is done at once, for all groups that have changes of it at that time, while its table is
in the cache (`grouped_nodes.py`); and what changed in it is one list for all nodes that it derives. Groups never meet,
so the time of an iteration may be another one for each (`grouped_tasks.py`). Nearly all derivations are those of the
next time; others wait in a calendar.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import KEYS, OWNED, ROOM, UNIT, length_of, places_of
from squallpy.runtime.kernels.grouped_batch import (
    APPLY,
    CHANGED,
    CHECK,
    CLEAN,
    DATES,
    DONE,
    DONE_HERE,
    EMPTY,
    ENDLESS,
    FIRST,
    FREE,
    GONE,
    HAS_LOST,
    HERE,
    IS_LISTED,
    IS_ODD,
    IS_TWICE,
    ITEMS,
    MOST_OFFSET,
    NEEDS_DATES,
    NEEDS_GONE,
    NEEDS_ITEMS,
    NEEDS_OUT,
    NEEDS_RECORDS,
    NEEDS_ROWS,
    NEEDS_TIMES,
    NEEDS_WINDOW,
    NEXT,
    NODES_HERE,
    OPEN,
    OUT,
    PHASE,
    SEEK,
    TIME,
    TWICE,
    UNKNOWN_STEPS,
    WAITING,
    clean,
    drop_entries,
    enqueue,
    is_endless,
    next_time,
    tell,
)  # fmt: skip
from squallpy.runtime.kernels.grouped_blocks import LESS, MORE, NOTE, NOTES, SIZE, START, gather, words_of
from squallpy.runtime.kernels.grouped_blocks import ROOM as WORDS_OF_ITEM
from squallpy.runtime.kernels.grouped_entries import (
    ENTRIES,
    LAST,
    LOW,
    ROWS,
    ROWS_STATE,
    STEPS,
    steps_of,
    table_of,
    targets_of,
)
from squallpy.runtime.kernels.grouped_nodes import (
    Memory,
    add_words,
    find_spots,
    insert_late,
    make_room,
    open_node,
    settle_spots,
    take_words,
)
from squallpy.runtime.kernels.grouped_tasks import BEHIND, LIST, ONE, QUEUED, RECORD, kind_of_record, write_record
from squallpy.runtime.kernels.intrinsics import load, load32, prefetch, shift_right, store, store32
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.memory_area import HEAD

_BYTES: Final = 8 * RECORD


@inlined
def _seek(frame: Vector, heads_of: Vector, bits_of: Vector, state: Vector) -> int:
    """Go on to the next time at which something changes, or to the end; returns DONE, or NEEDS_TIMES."""
    time, heads, bits = state[TIME], address(heads_of), address(bits_of)
    if max(load(frame[HEAD], LAST), time) + state[MOST_OFFSET] + 4 > len(heads_of):
        return NEEDS_TIMES
    time = time + 1 if state[NEXT] > 0 else next_time(bits, len(bits_of), time + 1)
    if time < 0:
        state[PHASE] = CLEAN
        return DONE
    state[TIME], state[IS_ODD], state[HERE] = time, 1 - state[IS_ODD], state[NEXT]
    state[NEXT], state[CHANGED], state[ITEMS], state[NODES_HERE], state[DONE_HERE] = 0, 0, 0, 0, 0
    state[WAITING] = load(heads, time)
    store(heads, time, 0)
    store(bits, time >> 6, load(bits, time >> 6) & ~(1 << (time & 63)))
    state[PHASE] = OPEN
    return DONE


@inlined
def _open(frame: Vector, memory: Memory, firsts: int, queue: Vector, room_of_records: int, state: Vector) -> int:
    """Take the records that wait for this time out of the calendar, and list the nodes that have any.

    Returns DONE, or NEEDS_RECORDS.
    """
    while state[WAITING] > 0:
        date, here = state[WAITING] - 1, state[HERE]
        record = memory.calendar + _BYTES * date
        node, rest = load(record, 0) & LOW, shift_right(load(record, 0), 32)
        behind = load32(steps_of(frame, node), 0) >> 1 if kind_of_record(record) == BEHIND else 1
        if here + behind > room_of_records:
            return NEEDS_RECORDS
        to = memory.records + _BYTES * here
        if kind_of_record(record) == BEHIND:
            targets, item = targets_of(steps_of(frame, node), frame[STEPS]), load(record, 1)
            for j in range(behind):
                write_record(to + _BYTES * j, load32(targets, j), ONE, item, 1, 0, 1)
        else:
            store(to, 0, node)
            for j in range(1, RECORD):
                store(to, j, load(record, j))
        state[HERE] = here + behind
        store(record, 0, state[FREE])
        state[FREE], state[WAITING] = date + 1, rest
    state[NODES_HERE], state[ITEMS] = enqueue(memory.records, state[HERE], firsts, queue)
    state[PHASE] = CHECK
    return DONE


@inlined
def _check(
    memory: Memory, room_of_items: int, dates: Vector, went: Vector, out: Vector, most: int, state: Vector
) -> int:
    """Check that there is room for what may change at this time; returns DONE, or why it cannot be done."""
    items = state[ITEMS]
    if memory.time > most:
        records, tasks, before = memory.records, memory.tasks, memory.before
        if is_endless(records, state[HERE], tasks, before, memory.time, most):
            return ENDLESS
    if items > room_of_items:
        return NEEDS_ITEMS
    if RECORD * (state[DATES] + items) > len(dates):
        return NEEDS_DATES
    if 2 * (state[GONE] + items) > len(went):
        return NEEDS_GONE
    if state[OUT] + state[GONE] + 2 * items > len(out):
        return NEEDS_OUT
    state[PHASE] = APPLY
    return DONE


@inlined
def _lacks(frame: Vector, memory: Memory, number: int, note: int, next_record: int, room_of_records: int) -> int:
    """Return what is missing to change a node, or DONE."""
    head, shape = table_of(frame, number), load32(steps_of(frame, number), 0)
    used = ROOM * (4 + places_of(head, KEYS) + 2 * load(note, SIZE))
    if UNIT * (load(memory.rows_state, 0) + used) > 8 * frame[ROWS + 1]:
        return NEEDS_ROWS
    if shape & OWNED == 0:
        return UNKNOWN_STEPS
    return NEEDS_RECORDS if next_record + (shape >> 1) > room_of_records else DONE


@inlined
def _change(
    frame: Vector,
    memory: Memory,
    queue: Vector,
    q: int,
    note: int,
    words: int,
    lines: int,
    ahead: int,
    firsts: int,
    following: int,
    emptied: Vector,
    state: Vector,
) -> tuple[int, int]:
    """Change the table of node number `q` of the queue, and write the records of nodes that it derives.

    Returns how many entries there are more, and the last iteration.
    """
    number, more, less, begun, reported = (
        queue[QUEUED * q],
        load(note, MORE),
        load(note, LESS),
        state[CHANGED],
        state[OUT],
    )
    head, marks = table_of(frame, number), load32(firsts, 2 * number)
    record, marks = marks & FIRST, marks & ~FIRST
    entries = -length_of(head)
    make_room(head, memory, note, words, lines, more + less)
    moved, node = load(head, 0), open_node(frame, memory, number, record, note)
    end, filled, added, last = add_words(node, memory, words, lines, more, note, ahead, begun)
    came = end - begun
    words, lines, ahead, is_moved = words + 8 * more, lines + 8 * more, ahead + 8 * more, load(head, 0) != moved
    end, filled, taken, later = take_words(node, memory, words, lines, less, is_moved, ahead, end, filled)
    went = end - begun - came
    entries += length_of(head)
    node = open_node(frame, memory, number, record, note)
    if load(head, 0) != moved:
        filled = find_spots(node, memory)
    end, late, lost, dropped, dead, state[OUT] = settle_spots(
        node, memory, filled, added + taken > 0, end, reported, state
    )
    insert_late(memory, begun + came, end, late)
    arrived, end = came + late, end + late
    queue[QUEUED * q + 1], queue[QUEUED * q + 2] = begun << 32 | came, (begun + arrived) << 32 | went
    rows_here = came + went + state[OUT] - reported
    lost += went
    store32(firsts, 2 * number + 1, load32(firsts, 2 * number + 1) + rows_here - 2 * lost)
    if rows_here > lost and marks & HAS_LOST != 0:
        marks |= IS_TWICE
        state[TWICE] += 1
    marks |= HAS_LOST if lost > 0 else 0
    if lost + dropped + dead > 0:
        store(head, 1, load(head, 1) - dropped)
        entries -= dropped + drop_entries(head, memory.arena, memory.rows_state, memory.others, dead)
        if length_of(head) == 0 and marks & IS_LISTED == 0:
            marks |= IS_LISTED
            emptied[state[EMPTY]] = number
            state[EMPTY] += 1
    store32(firsts, 2 * number, marks)
    state[CHANGED] = end
    if end > begun:
        steps, to = steps_of(frame, number), following + _BYTES * state[NEXT]
        targets, count = targets_of(steps, frame[STEPS]), load32(steps, 0) >> 1
        for j in range(count):
            write_record(to + _BYTES * j, load32(targets, j), LIST, begun, end - begun - arrived, arrived, 1)
        state[NEXT] += count
    return entries, max(last, later)


@inlined
def _apply(
    frame: Vector,
    memory: Memory,
    queue: Vector,
    firsts: int,
    following: int,
    window_of: Vector,
    room_of_records: int,
    emptied: Vector,
    by_group: Vector,
    state: Vector,
) -> int:
    """Change the nodes of this time, a block after the other, and count what came and went; DONE, or what it needs."""
    window, room = address(window_of), (len(window_of) - NOTES // 4) // WORDS_OF_ITEM
    tasks, before, first, time = memory.tasks, memory.before, memory.records, memory.time
    start, there, half, last, entries, answer = state[DONE_HERE], state[NODES_HERE], 0, 0, 0, DONE
    stop, count = gather(start, there, queue, firsts, frame, tasks, before, first, time, window, half, room)
    ahead = words_of(window, half, room) + 8 * room
    for i in range(count):
        prefetch(load(ahead, i))
    while start < there and answer == DONE:
        if stop == start:
            state[DONE_HERE], answer = start, NEEDS_WINDOW
            break
        behind, count = gather(stop, there, queue, firsts, frame, tasks, before, first, time, window, 1 - half, room)
        ahead = words_of(window, 1 - half, room) + 8 * room
        ahead_end = ahead + 8 * count
        for q in range(start, stop):
            note = window + NOTES * half + NOTE * (q - start)
            answer = _lacks(frame, memory, queue[QUEUED * q], note, state[NEXT], room_of_records)
            if answer != DONE:
                state[DONE_HERE] = q
                break
            words = words_of(window, half, room) + 8 * load(note, START)
            lines = words + 8 * room
            more, final = _change(frame, memory, queue, q, note, words, lines, ahead, firsts, following, emptied, state)
            ahead += 8 * (load(note, MORE) + load(note, LESS))
            entries, last = entries + more, max(last, final)
        for i in range((ahead_end - ahead) >> 3):
            prefetch(load(ahead, i))
        start, stop, half = stop, behind, 1 - half
    if answer == DONE:  # NB: while lists are in the cache
        state[OUT] = tell(queue, there, memory.changed, memory.rows, state[OUT], by_group)
        state[PHASE] = SEEK
    store(frame[HEAD], ENTRIES, load(frame[HEAD], ENTRIES) + entries)
    store(frame[HEAD], LAST, max(load(frame[HEAD], LAST), last))
    return answer


@kernel(f"int64({', '.join([VECTOR] * 15)}, int64)")
def propagate(
    frame: Vector,
    given: Vector,
    dates: Vector,
    heads_of: Vector,
    bits_of: Vector,
    records_of: Vector,
    items_of_all: Vector,
    node_words: Vector,
    queue: Vector,
    emptied: Vector,
    went: Vector,
    window_of: Vector,
    out: Vector,
    by_group: Vector,
    state: Vector,
    most: int,
) -> int:
    """Follow the steps of nodes from the tasks of a batch until nothing waits.

    Returns DONE, or why it stopped; called again it goes on.

    Args:
        given: The items of tasks, and room to read more: LANES words, with them, for any of them.
        dates: Records that wait for a time.
        heads_of: For each time the first record + 1; and in `bits_of` a bit.
        records_of: Room for those of this time and of the next one.
        items_of_all: Room for what changed at the time before and at this one, for places, what came late, and pairs.
        node_words: The first record + 1 and marks of each node, and how many rows of it came, less those that went, 32
            bits each; at first 0.
        queue: Room for all nodes with what came and went in each, QUEUED words; and `emptied` for nodes alone.
        window_of: Room for two blocks of items.
        out: Gets the rows that came and went: group, node, and 1 if it went, in 31, 32 and 1 bits.
        by_group: Gets how many rows of each group came, less those that went, as `count_rows` does; then `out` has
            those that are not counted yet. Or it is empty, and `out` has all.
    """
    room_of_records, room_of_items = len(records_of) // (2 * RECORD), len(items_of_all) // 6
    items, firsts, rows = address(items_of_all), address(node_words), address(out)
    calendar, heads, bits, gone = address(dates), address(heads_of), address(bits_of), address(went)
    answer = DONE
    while state[PHASE] != CLEAN and answer == DONE:
        if state[PHASE] == SEEK:
            answer = _seek(frame, heads_of, bits_of, state)
            continue
        odd, half = state[IS_ODD], 8 * RECORD * room_of_records
        memory = Memory(
            state[TIME],
            frame[ROWS],
            frame[HEAD] + 8 * ROWS_STATE,
            address(given),
            items + 8 * room_of_items * odd,
            items + 8 * room_of_items * (1 - odd),
            address(records_of) + half * odd,
            items + 16 * room_of_items,
            items + 24 * room_of_items,
            items + 32 * room_of_items,
            rows,
            calendar,
            heads,
            bits,
            gone,
        )
        if state[PHASE] == OPEN:
            answer = _open(frame, memory, firsts, queue, room_of_records, state)
        if answer == DONE and state[PHASE] == CHECK:
            answer = _check(memory, room_of_items, dates, went, out, most, state)
        if answer == DONE and state[PHASE] == APPLY:
            following = address(records_of) + half * (1 - odd)
            answer = _apply(
                frame, memory, queue, firsts, following, window_of, room_of_records, emptied, by_group, state
            )
    return clean(frame, gone, rows, firsts, emptied, state) if answer == DONE else answer
