"""Fixpoints of groups: semi-naive iteration over the rows of all groups at once, by differences by iteration.

    node 7, time 2:   + group 3     →   (3, 1): 1 derivation, chosen: row (3, 7) comes     →   3 +7
    node 9, time 3:   + group 3, for the step 7 → 9                                        →   3 +9

What a batch changes in a node is done at once, for all groups that have changes of it at that time, while its table is
in the cache; and what changed in it is one list for all nodes that it derives. Groups never meet, so the time of an
iteration may be another one for each (`grouped_tasks.py`). Nearly all derivations are those of the next time; others
wait in a calendar.

A node's derivations are added first, then taken away, so that a number of 0 is final: most entries that come or go are
known to be their group's only one, and done with when they are found. Others are looked at when all are added.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import (
    GOLDEN,
    KEY,
    KEYS,
    LINE,
    OWNED,
    ROOM,
    UNIT,
    WORDS,
    block_of,
    bucket_of,
    class_for,
    is_full,
    length_of,
    matches,
    places_of,
    resize,
)
from squallpy.runtime.kernels.grouped_batch import (
    APPLY,
    CHANGED,
    CHECK,
    CLEAN,
    COMES,
    DATES,
    DONE_HERE,
    EMPTY,
    ENDLESS,
    FREE,
    GOES,
    GONE,
    HAS_LOST,
    HERE,
    IS_LISTED,
    IS_NEW,
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
    settle,
)
from squallpy.runtime.kernels.grouped_entries import (
    CHOSEN,
    COUNT,
    ENTRIES,
    LAST,
    LISTED,
    LOW,
    MOST,
    NODES,
    ONLY,
    ROWS,
    ROWS_STATE,
    SHORT,
    STEPS,
    TABLES,
    TAG,
    add_derivations,
    count_at,
    iteration_of,
    kind_of,
    mark,
    place_of,
    targets_of,
    word_at,
)
from squallpy.runtime.kernels.grouped_tasks import (
    BEHIND,
    LIST,
    ONE,
    RECORD,
    item_of,
    items_of,
    iteration_at,
    key_of,
    kind_of_record,
    write_record,
)
from squallpy.runtime.kernels.intrinsics import load, load32, lowest, multiply_high, prefetch, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.line_comparison import equal64
from squallpy.runtime.kernels.memory_area import HEAD

_BYTES: Final = 8 * RECORD
_ENTRY: Final = SHORT << TAG | KEY
_ASKED: Final = 64  # items for whose lines is asked in advance


@inlined
def _next_time(bits: int, words: int, least: int) -> int:
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
def _is_endless(first: int, count: int, tasks: int, before: int, time: int, most: int) -> bool:
    """True if some group has derivations after its last iteration."""
    for r in range(count):
        record = first + _BYTES * r
        items, length = items_of(record, tasks, before), load(record, 2)
        for i in range((length & LOW) + (length >> 32)):
            if iteration_at(time, load(items, i)) > most:
                return True
    return False


@inlined
def _ask(record: int, node: int, frame: Vector, tasks: int, before: int, first: int) -> int:
    """Ask for the cache lines of a node's table that its records need; returns how many items they have."""
    head = frame[TABLES] + 16 * node
    kind = kind_of(head)
    places, table, count = places_of(head, kind), block_of(head, frame[ROWS]), 0
    while record > 0:
        at = first + _BYTES * (record - 1)
        items, length = items_of(at, tasks, before), load(at, 2)
        for i in range((length & LOW) + (length >> 32)):
            prefetch(table + LINE * bucket_of(key_of(load(items, i)), places, kind))
        count += (length & LOW) + (length >> 32)
        record = shift_right(load(at, 0), 32)
    return count


@kernel(
    f"int64({VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR},"
    f" {VECTOR}, {VECTOR}, {VECTOR}, int64)"
)
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
    out: Vector,
    state: Vector,
    most: int,
) -> int:
    """Follow the steps of nodes from the tasks of a batch until nothing waits; `out` gets the rows that came and went.

    Returns DONE, or why it stopped; called again it goes on. A row of `out` is group, node, and 1 if it went, in 31, 32
    and 1 bits.

    Args:
        given: The items of tasks.
        dates: Records that wait for a time.
        heads_of: For each time the first record + 1; and in `bits_of` a bit.
        records_of: Room for those of this time and of the next one.
        items_of_all: Room for what changed at the time before and at this one, for places, what came, and what ended.
        node_words: The first record + 1 and marks of each node, at first 0.
        queue: Room for all nodes; and `emptied`.
    """
    tables, arena, rows_state, head_of_all = frame[TABLES], frame[ROWS], frame[HEAD] + 8 * ROWS_STATE, frame[HEAD]
    calendar, heads, bits, tasks = address(dates), address(heads_of), address(bits_of), address(given)
    gone, nodes, arena_of_steps = address(went), frame[NODES], frame[STEPS]
    room_of_records, room_of_items = len(records_of) // (2 * RECORD), len(items_of_all) // 6
    spots, came = address(items_of_all) + 16 * room_of_items, address(items_of_all) + 24 * room_of_items
    ended, firsts, rows = address(items_of_all) + 32 * room_of_items, address(node_words), address(out)
    while state[PHASE] != CLEAN:
        time = state[TIME]
        if state[PHASE] == SEEK:
            if max(load(head_of_all, LAST), time) + state[MOST_OFFSET] + 4 > len(heads_of):
                return NEEDS_TIMES
            time = time + 1 if state[NEXT] > 0 else _next_time(bits, len(bits_of), time + 1)
            if time < 0:
                state[PHASE] = CLEAN
                break
            state[TIME], state[IS_ODD], state[HERE] = time, 1 - state[IS_ODD], state[NEXT]
            state[NEXT], state[CHANGED], state[ITEMS], state[NODES_HERE], state[DONE_HERE] = 0, 0, 0, 0, 0
            state[WAITING] = load(heads, time)
            store(heads, time, 0)
            store(bits, time >> 6, load(bits, time >> 6) & ~(1 << (time & 63)))
            state[PHASE] = OPEN
        odd = state[IS_ODD]
        first = address(records_of) + 8 * (len(records_of) >> 1) * odd
        following = address(records_of) + 8 * (len(records_of) >> 1) * (1 - odd)
        before = address(items_of_all) + 8 * room_of_items * odd
        changed = address(items_of_all) + 8 * room_of_items * (1 - odd)
        if state[PHASE] == OPEN:
            while state[WAITING] > 0:
                date, here = state[WAITING] - 1, state[HERE]
                record = calendar + _BYTES * date
                node, rest = load(record, 0) & LOW, shift_right(load(record, 0), 32)
                behind = load32(nodes + 16 * node, 0) >> 1 if kind_of_record(record) == BEHIND else 1
                if here + behind > room_of_records:
                    return NEEDS_RECORDS
                if kind_of_record(record) == BEHIND:
                    targets, item = targets_of(nodes + 16 * node, arena_of_steps), load(record, 1)
                    for j in range(behind):
                        write_record(first + _BYTES * (here + j), load32(targets, j), ONE, item, 1, 0, 1)
                else:
                    to = first + _BYTES * here
                    store(to, 0, node)
                    for j in range(1, RECORD):
                        store(to, j, load(record, j))
                state[HERE] = here + behind
                store(record, 0, state[FREE])
                state[FREE], state[WAITING] = date + 1, rest
            items, length = 0, 0
            for r in range(state[HERE]):
                record = first + _BYTES * r
                node = load(record, 0)
                other = load(firsts, node)
                if other & LOW == 0:
                    queue[length] = node
                    length += 1
                store(record, 0, node | other << 32)
                store(firsts, node, other & ~LOW | (r + 1))
                items += (load(record, 2) & LOW) + (load(record, 2) >> 32)
            state[NODES_HERE], state[ITEMS], state[PHASE] = length, items, CHECK
        if state[PHASE] == CHECK:
            steps, known = 0, OWNED
            for q in range(state[NODES_HERE]):
                if q + 16 < state[NODES_HERE]:
                    prefetch(nodes + 16 * queue[q + 16])
                shape = load32(nodes + 16 * queue[q], 0)
                steps, known = steps + (shape >> 1), known & shape
            if known == 0:
                return UNKNOWN_STEPS
            if time > most and _is_endless(first, state[HERE], tasks, before, time, most):
                return ENDLESS
            if steps > room_of_records:
                return NEEDS_RECORDS
            if state[ITEMS] > room_of_items:
                return NEEDS_ITEMS
            if RECORD * (state[DATES] + state[ITEMS]) > len(dates):
                return NEEDS_DATES
            if 2 * (state[GONE] + state[ITEMS]) > len(went):
                return NEEDS_GONE
            if state[OUT] + state[GONE] + 2 * state[ITEMS] > len(out):
                return NEEDS_OUT
            state[PHASE] = APPLY
        last, entries, there, count_out = 0, 0, state[NODES_HERE], state[OUT]
        asked, asked_items = state[DONE_HERE], 0
        for q in range(state[DONE_HERE], there):
            node, record, items = queue[q], load(firsts, queue[q]) & LOW, 0
            head = tables + 16 * node
            while asked < there and asked_items < _ASKED:
                if asked + 16 < there:
                    prefetch(tables + 16 * queue[asked + 16])
                    prefetch(nodes + 16 * queue[asked + 16])
                    prefetch(firsts + 8 * queue[asked + 16])
                prefetch(targets_of(nodes + 16 * queue[asked], arena_of_steps))
                asked_items += _ask(load(firsts, queue[asked]) & LOW, queue[asked], frame, tasks, before, first)
                asked += 1
            other = record
            while other > 0:
                at = first + _BYTES * (other - 1)
                items += (load(at, 2) & LOW) + (load(at, 2) >> 32)
                other = shift_right(load(at, 0), 32)
            if UNIT * (load(rows_state, 0) + ROOM * (4 + places_of(head, KEYS) + 2 * items)) > 8 * frame[ROWS + 1]:
                state[DONE_HERE], state[OUT] = q, count_out
                store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) + entries)
                store(head_of_all, LAST, max(load(head_of_all, LAST), last))
                return NEEDS_ROWS
            marks = load(firsts, node) & ~LOW
            asked_items -= items
            kind, minus, plus = kind_of(head), 0, 0
            other, is_final = record, True
            while other > 0:  # NB: only a task is taken back at once, where its edge is new and the node before it goes
                at = first + _BYTES * (other - 1)
                minus, plus = minus + (load(at, 2) & LOW), plus + (load(at, 2) >> 32)
                other, is_final = shift_right(load(at, 0), 32), is_final and kind_of_record(at) == LIST
            is_final |= load(first + _BYTES * (record - 1), 0) >> 32 == 0
            length = length_of(head)
            entries -= length
            if plus > minus and is_full(length + plus - minus - 1, places_of(head, kind), kind):
                resize(head, rows_state, arena, class_for(length + plus - minus, kind), kind)
            moved, table, places = load(head, 0), block_of(head, arena), places_of(head, kind)
            buckets, valid, limit = places >> 3, 255 if places >= 8 else (1 << places) - 1, places - (places >> 3)
            begun, end, arrived, dead, dropped, lost = state[CHANGED], state[CHANGED], 0, 0, 0, 0
            filled, left, other, is_short = 0, 0, record, kind == WORDS and time <= SHORT
            while other > 0:
                at = first + _BYTES * (other - 1)
                given_items, minus, plus = items_of(at, tasks, before), load(at, 2) & LOW, load(at, 2) >> 32
                amount, other = load(at, 3), shift_right(load(at, 0), 32)
                is_fast, flags = is_short and 0 < amount <= MOST, ONLY | CHOSEN if is_final else ONLY
                for i in range(minus, minus + plus if is_fast else 0):
                    word = load(given_items, i) + (time << TAG)
                    bucket = multiply_high((word & KEY) * GOLDEN, buckets)
                    line = table + LINE * bucket
                    same, vacant = equal64(line, word & KEY, KEY) & valid, equal64(line, 0, KEY) & valid
                    if same == 0 and vacant != 0 and length < limit:
                        spot = 8 * bucket + lowest(vacant)
                        store(table, spot, amount << COUNT | flags | word)
                        length, last = length + 1, max(last, word >> TAG)
                        if is_final:
                            store(came, arrived, load(given_items, i))
                            store(rows, count_out, ((word & KEY) - 1) << 33 | 2 * node)
                            arrived, count_out = arrived + 1, count_out + 1
                        else:
                            store(spots, filled, spot << 1 | 1)
                            filled += 1
                    else:
                        store(ended, 2 * left, word)
                        store(ended, 2 * left + 1, amount)
                        left += 1
                for i in range(minus, minus if is_fast else minus + plus):
                    store(ended, 2 * left, load(given_items, i) + (time << TAG))
                    store(ended, 2 * left + 1, amount)
                    left += 1
            if arrived > 0 and marks & HAS_LOST != 0:
                marks |= IS_TWICE
                state[TWICE] += 1
            store(head, 1, load(head, 1) & ~LOW | length)
            was_slow = left
            for i in range(left):
                word = load(ended, 2 * i)
                spot = add_derivations(head, rows_state, arena, word & KEY, word >> TAG, load(ended, 2 * i + 1))
                last = max(last, word >> TAG)
                store(spots, filled, spot << 1)
                filled += 1
            kind = kind_of(head)
            table, places = block_of(head, arena), places_of(head, kind)
            buckets, valid = places >> 3, 255 if places >= 8 else (1 << places) - 1
            left, other, is_short = 0, record, kind == WORDS and time <= SHORT
            while other > 0:
                at = first + _BYTES * (other - 1)
                given_items, minus = items_of(at, tasks, before), load(at, 2) & LOW
                amount, other = load(at, 3), shift_right(load(at, 0), 32)
                is_fast = is_short and 0 < amount <= MOST
                for i in range(minus if is_fast else 0):
                    word = load(given_items, i) + (time << TAG)
                    bucket = multiply_high((word & KEY) * GOLDEN, buckets)
                    line = table + LINE * bucket
                    same, spare = equal64(line, word, _ENTRY) & valid, equal64(line, 0, KEY)
                    spot = 8 * bucket + lowest(same)
                    its = load(table, spot) if same != 0 else 0
                    times = (its >> COUNT) - amount
                    if its & (ONLY | CHOSEN) == ONLY | CHOSEN and times == 0 and (spare != 0 or buckets < 2):
                        store(table, spot, 0)
                        store(changed, end, load(given_items, i))
                        store(rows, count_out, ((word & KEY) - 1) << 33 | 2 * node | 1)
                        end, count_out, dropped = end + 1, count_out + 1, dropped + 1
                    elif times > 0:
                        store(table, spot, its - (amount << COUNT))
                    else:
                        store(ended, 2 * left, word)
                        store(ended, 2 * left + 1, -amount)
                        left += 1
                for i in range(0 if is_fast else minus):
                    store(ended, 2 * left, load(given_items, i) + (time << TAG))
                    store(ended, 2 * left + 1, -amount)
                    left += 1
            if dropped > 0:
                lost = HAS_LOST
                store(head, 1, load(head, 1) - dropped)
            was_slow += left
            for i in range(left):
                word = load(ended, 2 * i)
                spot = add_derivations(head, rows_state, arena, word & KEY, word >> TAG, load(ended, 2 * i + 1))
                last = max(last, word >> TAG)
                store(spots, filled, spot << 1)
                filled += 1
            entries += length_of(head)
            if load(head, 0) != moved:
                kind = kind_of(head)
                table, places, filled, other = block_of(head, arena), places_of(head, kind), 0, record
                while other > 0:
                    at = first + _BYTES * (other - 1)
                    given_items, size = items_of(at, tasks, before), (load(at, 2) & LOW) + (load(at, 2) >> 32)
                    other = shift_right(load(at, 0), 32)
                    for i in range(size):
                        item = load(given_items, i)
                        spot = place_of(table, places, key_of(item), iteration_at(time, item), kind)
                        store(spots, filled, spot << 1)
                        filled += 1
            was_dropped, dropped = dropped, 0
            for i in range(filled):
                spot, has_room = load(spots, i) >> 1, load(spots, i) & 1 != 0
                if spot < 0:
                    continue
                word, effect = word_at(table, spot, kind), 0
                if word & ONLY != 0:
                    if count_at(table, spot, kind) > 0:
                        effect = COMES | IS_NEW if word & CHOSEN == 0 else 0
                        mark(table, spot, kind, word | CHOSEN)
                    elif word & LISTED == 0:
                        if was_slow > 0 and kind == WORDS:
                            has_room = places < 16 or matches(table, places, spot >> 3, 0, WORDS) != 0
                        if has_room:
                            store(table, spot, 0)
                            dropped += 1
                        else:
                            mark(table, spot, kind, (word | LISTED) & ~CHOSEN)
                            store(ended, 2 * dead, (word & KEY) << 32 | iteration_of(word, kind))
                            store(ended, 2 * dead + 1, spot)
                            dead += 1
                        if word & CHOSEN != 0:
                            lost = HAS_LOST
                            store(changed, end, item_of(word & KEY, time - iteration_of(word, kind)))
                            store(rows, count_out, ((word & KEY) - 1) << 33 | 2 * node | 1)
                            end, count_out = end + 1, count_out + 1
                elif word != 0:
                    effect = settle(spot, time, table, places, kind, node, calendar, heads, bits, gone, state)
                    if effect & GOES != 0:
                        store(changed, end, item_of(word & KEY, time - iteration_of(word, kind)))
                        end += 1
                if effect & COMES != 0:
                    store(came, arrived, item_of(word & KEY, time - iteration_of(word, kind)))
                    arrived += 1
                    if effect & IS_NEW != 0:
                        store(rows, count_out, ((word & KEY) - 1) << 33 | 2 * node)
                        count_out += 1
                        if marks & HAS_LOST != 0:
                            marks |= IS_TWICE
                            state[TWICE] += 1
            marks |= lost
            if was_dropped + dropped + dead > 0:
                store(head, 1, load(head, 1) - dropped)
                entries -= dropped + drop_entries(head, arena, rows_state, ended, dead)
                if length_of(head) == 0 and marks & IS_LISTED == 0:
                    marks |= IS_LISTED
                    emptied[state[EMPTY]] = node
                    state[EMPTY] += 1
            store(firsts, node, marks)
            minus = end - begun
            for i in range(arrived):
                store(changed, end + i, load(came, i))
            state[CHANGED] = end + arrived
            if minus + arrived > 0:
                next_record, shape = state[NEXT], load32(nodes + 16 * node, 0)
                targets = targets_of(nodes + 16 * node, arena_of_steps)
                for j in range(shape >> 1):
                    write_record(
                        following + _BYTES * (next_record + j), load32(targets, j), LIST, begun, minus, arrived, 1
                    )
                state[NEXT] = next_record + (shape >> 1)
        state[OUT] = count_out
        store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) + entries)
        store(head_of_all, LAST, max(load(head_of_all, LAST), last))
        state[PHASE] = SEEK
    return clean(frame, gone, out, node_words, emptied, state)
