"""State of a batch of grouped rows, and its effect on an entry: which is chosen, which are dropped, what follows later.

    (3, 1): 1, chosen → 0; (3, 4): 1      →   row (3, 7) has rank 4: −1 for what it derived at 2, +1 at 5

A row whose only entry ends goes at once. Where it has others it is known at the end only whether it has gone, so these
are noted until then.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import (
    UNIT,
    WORDS,
    block_of,
    bucket_of,
    drop,
    first_of,
    length_of,
    matches,
    next_bucket,
    places_of,
    shrink,
)
from squallpy.runtime.kernels.grouped_entries import (
    CHOSEN,
    ENTRIES,
    LISTED,
    LOW,
    NEVER,
    NOTED,
    ONLY,
    ROWS,
    ROWS_STATE,
    chosen_place,
    count_at,
    iteration_of,
    kind_of,
    mark,
    place_of,
    row_of,
    table_of,
    word_at,
)
from squallpy.runtime.kernels.grouped_tasks import (
    BEHIND,
    ONE,
    QUEUED,
    RECORD,
    item_of,
    items_of,
    iteration_at,
    schedule,
    write_record,
)
from squallpy.runtime.kernels.intrinsics import load, load32, lowest, prefetch, shift_right, store, store32
from squallpy.runtime.kernels.kernel_compiler import Vector, address, inlined
from squallpy.runtime.kernels.line_addresses import KEY, LINE, count_eight
from squallpy.runtime.kernels.memory_area import HEAD

_BYTES: Final = 8 * RECORD
_NEAR: Final = 16  # records for whose nodes' marks is asked in advance

# Words of the state of a batch.
PHASE: Final = 0
TIME: Final = 1
WAITING: Final = 2  # the first record + 1 of this time in the calendar that is still to be moved
DATES: Final = 3  # records in the calendar: how many it ever had, and the first free one + 1
FREE: Final = 4
HERE: Final = 5  # records of this time, and of the next one
NEXT: Final = 6
CHANGED: Final = 7  # items of the list of this time
IS_ODD: Final = 8  # 1 if this time's records and the list before are in the second halves
NODES_HERE: Final = 9  # nodes that have records of this time, and how many of them are done
DONE_HERE: Final = 10
ITEMS: Final = 11  # items of this time
GONE: Final = 12
OUT: Final = 13
MOST_OFFSET: Final = 14
CLEANED: Final = 15  # entries noted that are looked at again
EMPTY: Final = 16  # nodes that have lost their last group
TWICE: Final = 17  # rows that came to nodes from which some went before
BATCH_STATE: Final = 18

# A node in a batch has two words of 32 bits: its first record + 1, below marks, and how many rows came, less those that
# went. The marks are: rows went; then, at another time, some came; it had no rows once.
FIRST: Final = (1 << 29) - 1
HAS_LOST: Final = 1 << 29
IS_TWICE: Final = 1 << 30
IS_LISTED: Final = 1 << 31

# Phases: of a time, what waits for it is found, then moved, then counted, then done; at last entries are dropped.
SEEK: Final = 0
OPEN: Final = 1
CHECK: Final = 2
APPLY: Final = 3
CLEAN: Final = 4

# Answers: what there has to be more of before the kernel is called again.
DONE: Final = 0
ENDLESS: Final = 1
UNKNOWN_STEPS: Final = 2
NEEDS_ROWS: Final = 3
NEEDS_DATES: Final = 4
NEEDS_RECORDS: Final = 5
NEEDS_ITEMS: Final = 6
NEEDS_GONE: Final = 7
NEEDS_OUT: Final = 8
NEEDS_TIMES: Final = 9
NEEDS_WINDOW: Final = 10

# What happens to a row: bits.
COMES: Final = 1  # derivations follow from it
GOES: Final = 2
IS_NEW: Final = 4  # it was not there before the batch


@inlined
def next_time(bits: int, words: int, least: int) -> int:
    """Find the first time from `least` on for which records wait, or −1."""
    word = least >> 6
    if word >= words:
        return -1
    found = load(bits, word) & (-1 << (least & 63))
    while found == 0:
        word += 1
        if word >= words:
            return -1
        found = load(bits, word)
    return 64 * word + lowest(found)


@inlined
def is_endless(first: int, count: int, tasks: int, before: int, time: int, most: int) -> bool:
    """True if some group has derivations after its last iteration."""
    for r in range(count):
        record = first + _BYTES * r
        items, length = items_of(record, tasks, before), load(record, 2)
        for i in range((length & LOW) + (length >> 32)):
            if iteration_at(time, load(items, i)) > most:
                return True
    return False


@inlined
def report(rows: int, count: int, key: int, node: int, goes: int) -> int:
    """Append a row that comes, or goes (1), to those of the batch; returns how many there are now."""
    store(rows, count, row_of(key, node, goes))
    return count + 1


@inlined
def _count_items(items: int, count: int, amount: int, by_group: int) -> None:
    """Add to the numbers of the groups of a list, in which each is once."""
    for i in range(0, count, 8):
        count_eight(items + 8 * i, count - i, by_group, amount)


@inlined
def _report_items(items: int, count: int, node: int, goes: int, rows: int, reported: int) -> int:
    """Append the rows of a list of a node to those of the batch like `report`."""
    for i in range(count):
        store(rows, reported + i, row_of(load(items, i), node, goes))
    return reported + count


@inlined
def tell(queue: Vector, nodes: int, changed: int, rows: int, reported: int, by_group: Vector) -> int:
    """Count what came and went at a time by group; or, if nobody asks for numbers alone, append the rows.

    Returns how many rows there are now. Those that came by another way than the queue's lists are there before.
    """
    counts = address(by_group) + LINE
    for q in range(nodes):
        node, came, went = queue[QUEUED * q], queue[QUEUED * q + 1], queue[QUEUED * q + 2]
        come, go = changed + 8 * (came >> 32), changed + 8 * (went >> 32)
        if len(by_group) > 0:
            _count_items(come, came & LOW, 1, counts)
            _count_items(go, went & LOW, -1, counts)
        else:
            reported = _report_items(come, came & LOW, node, 0, rows, reported)
            reported = _report_items(go, went & LOW, node, 1, rows, reported)
    return reported


@inlined
def enqueue(first: int, records: int, firsts: int, queue: Vector) -> tuple[int, int]:
    """List the nodes that have records, and the records of each; returns how many nodes there are, and items."""
    items, nodes = 0, 0
    for r in range(records):
        record = first + _BYTES * r
        prefetch(firsts + 8 * load(first + _BYTES * min(r + _NEAR, records - 1), 0))
        node = load(record, 0)
        other = load32(firsts, 2 * node)
        if other & FIRST == 0:
            queue[QUEUED * nodes] = node
            nodes += 1
        store(record, 0, node | (other & FIRST) << 32)
        store32(firsts, 2 * node, other & ~FIRST | (r + 1))
        items += (load(record, 2) & LOW) + (load(record, 2) >> 32)
    return nodes, items


@inlined
def put_off(kind: int, node: int, item: int, time: int, calendar: int, heads: int, bits: int, state: Vector) -> None:
    """Let a group wait in the calendar: to be looked at again, or (BEHIND) to be taken from what a node derives."""
    date = state[FREE] - 1
    if date >= 0:
        state[FREE] = load(calendar + _BYTES * date, 0)
    else:
        date = state[DATES]
        state[DATES] += 1
    record, minus = calendar + _BYTES * date, 1 if kind == BEHIND else 0
    write_record(record, node, kind, item, minus, 1 - minus, minus)
    schedule(record, date, time, heads, bits)


@inlined
def _note(table: int, at: int, kind: int, word: int, flags: int, node: int, gone: int, state: Vector) -> None:
    """Note an entry that has perhaps to be dropped when the batch is done."""
    if word & LISTED == 0:
        count = state[GONE]
        store(gone, 2 * count, (word & KEY) << 32 | iteration_of(word, kind))
        store(gone, 2 * count + 1, node << 32 | at)
        state[GONE] = count + 1
    mark(table, at, kind, (word | flags | LISTED) & ~CHOSEN)


@inlined
def settle(
    at: int,
    time: int,
    table: int,
    places: int,
    kind: int,
    node: int,
    calendar: int,
    heads: int,
    bits: int,
    gone: int,
    state: Vector,
) -> int:
    """Choose the entry of a group's least iteration, as that at a place, of this time, has changed; again is as well.

    Returns what happens to the row.
    """
    word, times = word_at(table, at, kind), count_at(table, at, kind)
    key, iteration = word & KEY, iteration_of(word, kind)
    chosen, rank, after, was_there = -1, NEVER, NEVER, False
    bucket = start = bucket_of(key, places, kind)
    while True:
        same = matches(table, places, bucket, key, kind)
        while same != 0:
            there = first_of(same, bucket, kind)
            other = word_at(table, there, kind)
            was_there |= other & NOTED != 0
            its = iteration_of(other, kind)
            if other & CHOSEN != 0:
                chosen, rank = there, its
            if iteration < its < after and count_at(table, there, kind) > 0:
                after = its
            same &= same - 1
        if matches(table, places, bucket, 0, kind) != 0:
            break
        bucket = next_bucket(bucket, places, kind)
        if bucket == start:
            break
    if times == 0 and rank != iteration:
        _note(table, at, kind, word, 0, node, gone, state)
    if rank < iteration or (times > 0 and rank == iteration):
        return 0
    item = item_of(key, time - iteration)
    if times > 0:
        mark(table, at, kind, word | CHOSEN)
        if chosen >= 0:
            mark(table, chosen, kind, word_at(table, chosen, kind) & ~CHOSEN)
            put_off(BEHIND, node, item, time + rank - iteration + 1, calendar, heads, bits, state)
            return COMES
        return COMES if was_there else COMES | IS_NEW
    if after < NEVER:
        put_off(ONE, node, item, time + after - iteration, calendar, heads, bits, state)
    if rank == iteration:
        _note(table, at, kind, word, NOTED, node, gone, state)
        return GOES
    return 0


@inlined
def drop_entries(head: int, arena: int, rows_state: int, ended: int, count: int) -> int:
    """Drop entries of a node, given by key, iteration, and the place where each stood; returns how many there were."""
    kind = kind_of(head)
    table, places, length = block_of(head, arena), places_of(head, kind), length_of(head)
    for i in range(count):
        at = load(ended, 2 * i + 1)
        word, key, iteration = word_at(table, at, kind), shift_right(load(ended, 2 * i), 32), load(ended, 2 * i) & LOW
        if word & KEY != key or iteration_of(word, kind) != iteration:
            at = place_of(table, places, key, iteration, kind)
        if kind == WORDS and (places < 16 or matches(table, places, at >> 3, 0, WORDS) != 0):
            store(table, at, 0)
            store(head, 1, load(head, 1) - 1)
        else:
            drop(head, arena, at, kind)
    shrink(head, rows_state, arena, kind)
    return length - length_of(head)


@inlined
def clean(frame: Vector, gone: int, rows: int, notes: int, emptied: Vector, state: Vector) -> int:
    """Drop entries without derivations, and tell which rows went, and how many of each node."""
    arena, rows_state, head_of_all, dropped = frame[ROWS], frame[HEAD] + 8 * ROWS_STATE, frame[HEAD], 0
    for i in range(state[CLEANED], state[GONE]):
        if i + 16 < state[GONE]:
            prefetch(table_of(frame, shift_right(load(gone, 2 * i + 33), 32)))
        if i + 8 < state[GONE]:
            ahead = load(gone, 2 * i + 17)
            head = table_of(frame, shift_right(ahead, 32))
            prefetch(block_of(head, arena) + 4 * ((ahead & LOW) << kind_of(head)))
        key, iteration = shift_right(load(gone, 2 * i), 32), load(gone, 2 * i) & LOW
        node, at = shift_right(load(gone, 2 * i + 1), 32), load(gone, 2 * i + 1) & LOW
        head = table_of(frame, node)
        kind = kind_of(head)
        table, places, before = block_of(head, arena), places_of(head, kind), length_of(head)
        if UNIT * (load(rows_state, 0) + 4 + places) > 8 * frame[ROWS + 1]:
            state[CLEANED] = i
            store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) - dropped)
            return NEEDS_ROWS
        word = word_at(table, at, kind) if at < places else 0
        if word & KEY != key or iteration_of(word, kind) != iteration:
            at = place_of(table, places, key, iteration, kind)
            word = word_at(table, at, kind)
        if word & NOTED != 0 and (word & ONLY != 0 or chosen_place(table, places, key, kind) < 0):
            state[OUT] = report(rows, state[OUT], key, node, 1)
            store32(notes, 2 * node + 1, load32(notes, 2 * node + 1) - 1)
        if count_at(table, at, kind) == 0:
            drop(head, arena, at, kind)
            dropped += before - length_of(head)
            shrink(head, rows_state, arena, kind)
            if length_of(head) == 0 and load32(notes, 2 * node) & IS_LISTED == 0:
                store32(notes, 2 * node, load32(notes, 2 * node) | IS_LISTED)
                emptied[state[EMPTY]] = node
                state[EMPTY] += 1
        else:
            mark(table, at, kind, word & ~(NOTED | LISTED))
    store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) - dropped)
    state[CLEANED] = state[GONE]
    return DONE
