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
    KEY,
    KEYS,
    OWNED,
    UNIT,
    WORDS,
    block_of,
    class_for,
    drop,
    is_full,
    length_of,
    matches,
    places_of,
    resize,
)
from squallpy.runtime.kernels.arena_tables import ROOM as ROOM_TO_GROW
from squallpy.runtime.kernels.grouped_batch import (
    APPLY,
    CHANGED,
    CHECK,
    CLEAN,
    COMES,
    DATES,
    DONE,
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
    report,
    settle,
    tell,
)
from squallpy.runtime.kernels.grouped_blocks import (
    APART,
    FINAL,
    GROWTH,
    LESS,
    MORE,
    NOTE,
    NOTES,
    ROOM,
    SIZE,
    START,
    gather,
    line_at,
    list_apart,
    mark_of,
    words_of,
)
from squallpy.runtime.kernels.grouped_changes import (
    SINGLE,
    enter_rows,
    enter_words,
    find_free,
    find_single,
    free_place_again,
    place_in_line,
    take_out,
)
from squallpy.runtime.kernels.grouped_entries import (
    CHOSEN,
    COUNT,
    ENTRIES,
    LAST,
    LISTED,
    LOW,
    MOST,
    ONLY,
    ROWS,
    ROWS_STATE,
    SHORT,
    STEPS,
    TAG,
    add_derivations,
    count_at,
    iteration_of,
    kind_of,
    mark,
    place_of,
    steps_of,
    table_of,
    targets_of,
    word_at,
)
from squallpy.runtime.kernels.grouped_tasks import (
    BEHIND,
    LIST,
    ONE,
    QUEUED,
    RECORD,
    item_of,
    items_of,
    iteration_at,
    key_of,
    kind_of_record,
    write_record,
)
from squallpy.runtime.kernels.intrinsics import load, load32, move, prefetch, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.memory_area import HEAD

_BYTES: Final = 8 * RECORD


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
        given: The items of tasks.
        dates: Records that wait for a time.
        heads_of: For each time the first record + 1; and in `bits_of` a bit.
        records_of: Room for those of this time and of the next one.
        items_of_all: Room for what changed at the time before and at this one, for places, what came late, and pairs.
        node_words: The first record + 1 and marks of each node, and how many rows of it came, less those that went; at
            first 0.
        queue: Room for all nodes with what came and went in each, QUEUED words; and `emptied` for nodes alone.
        window_of: Room for two blocks of items.
        out: Gets the rows that came and went: group, node, and 1 if it went, in 31, 32 and 1 bits.
        by_group: Gets how many rows of each group came, less those that went, as `count_rows` does; then `out` has
            those that are not counted yet. Or it is empty, and `out` has all.
    """
    arena, rows_state, head_of_all = frame[ROWS], frame[HEAD] + 8 * ROWS_STATE, frame[HEAD]
    calendar, heads, bits, tasks = address(dates), address(heads_of), address(bits_of), address(given)
    gone, arena_of_steps = address(went), frame[STEPS]
    room_of_records, room_of_items = len(records_of) // (2 * RECORD), len(items_of_all) // 6
    spots, late = address(items_of_all) + 16 * room_of_items, address(items_of_all) + 24 * room_of_items
    others, firsts, rows = address(items_of_all) + 32 * room_of_items, address(node_words), address(out)
    window, room = address(window_of), (len(window_of) - NOTES // 4) // ROOM
    while state[PHASE] != CLEAN:
        time = state[TIME]
        if state[PHASE] == SEEK:
            if max(load(head_of_all, LAST), time) + state[MOST_OFFSET] + 4 > len(heads_of):
                return NEEDS_TIMES
            time = time + 1 if state[NEXT] > 0 else next_time(bits, len(bits_of), time + 1)
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
                behind = load32(steps_of(frame, node), 0) >> 1 if kind_of_record(record) == BEHIND else 1
                if here + behind > room_of_records:
                    return NEEDS_RECORDS
                if kind_of_record(record) == BEHIND:
                    targets, item = targets_of(steps_of(frame, node), arena_of_steps), load(record, 1)
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
            length, items = enqueue(first, state[HERE], firsts, queue)
            state[NODES_HERE], state[ITEMS], state[PHASE] = length, items, CHECK
        if state[PHASE] == CHECK:
            if time > most and is_endless(first, state[HERE], tasks, before, time, most):
                return ENDLESS
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
        start, half, shift, answer = state[DONE_HERE], 0, time << TAG, DONE
        stop, count = gather(start, there, queue, firsts, frame, tasks, before, first, time, window, half, room)
        ahead = words_of(window, half, room) + 8 * room
        for i in range(count):
            prefetch(load(ahead, i))
        while start < there and answer == DONE:
            if stop == start:
                state[DONE_HERE], answer = start, NEEDS_WINDOW
                break
            behind, count = gather(
                stop, there, queue, firsts, frame, tasks, before, first, time, window, 1 - half, room
            )
            ahead = words_of(window, 1 - half, room) + 8 * room
            ahead_end = ahead + 8 * count
            for q in range(start, stop):
                node, note = queue[QUEUED * q], window + NOTES * half + NOTE * (q - start)
                head, record, marks = table_of(frame, node), load(firsts, 2 * node) & LOW, load(firsts, 2 * node) & ~LOW
                shape, next_record = load32(steps_of(frame, node), 0), state[NEXT]
                more, less, growth = load(note, MORE), load(note, LESS), load(note, GROWTH)
                used = ROOM_TO_GROW * (4 + places_of(head, KEYS) + 2 * load(note, SIZE))
                if UNIT * (load(rows_state, 0) + used) > 8 * frame[ROWS + 1]:
                    state[DONE_HERE], answer = q, NEEDS_ROWS
                    break
                if shape & OWNED == 0 or next_record + (shape >> 1) > room_of_records:
                    state[DONE_HERE], answer = q, UNKNOWN_STEPS if shape & OWNED == 0 else NEEDS_RECORDS
                    break
                words = words_of(window, half, room) + 8 * load(note, START)
                lines, kind, length, moved = words + 8 * room, kind_of(head), length_of(head), load(head, 0)
                entries -= length
                if growth > 0 and is_full(length + growth - 1, places_of(head, kind), kind):
                    resize(head, rows_state, arena, class_for(length + growth, kind), kind)
                table, places = block_of(head, arena), places_of(head, kind)
                if load(head, 0) != moved:
                    moved = load(head, 0)
                    for i in range(more + less):
                        store(lines, i, line_at(table, places >> 3, mark_of(places), load(words, i)))
                begun, end, filled, late_ones, went_here, rows_before = (
                    state[CHANGED],
                    state[CHANGED],
                    0,
                    0,
                    0,
                    count_out,
                )
                is_apart, is_final, is_short = (
                    load(note, APART) != 0,
                    load(note, FINAL) != 0,
                    kind == WORDS and time <= SHORT,
                )

                left, added, count = 0, 0, max(min(more, places - (places >> 3) - length), 0)
                rest = more - count
                find_free(words, lines, count, note + 8 * SIZE, ahead)
                ahead += 8 * more
                while count > 0:
                    if is_final:
                        taken, top = enter_rows(words, lines, count, shift, changed + 8 * end)
                        end += count - taken
                    else:
                        taken, top = enter_words(words, lines, count, table, spots + 8 * filled)
                        filled += count - taken
                    added, last, count = added + count - taken, max(last, top >> TAG), 0
                    for i in range(taken):
                        word = load(words, i)
                        line = line_at(table, places >> 3, mark_of(places), word)
                        place = free_place_again(word, line)
                        if place == 0:
                            store(others, 2 * left, word)
                            store(others, 2 * left + 1, line)
                            left += 1
                        else:
                            store(words, count, word)
                            store(lines, count, place)
                            count += 1
                for i in range(more - rest, more):
                    store(others, 2 * left, load(words, i))
                    store(others, 2 * left + 1, line_at(table, places >> 3, mark_of(places), load(words, i)))
                    left += 1
                store(head, 1, load(head, 1) + added)
                tried, left = left, 0
                for i in range(tried):
                    word, line = load(others, 2 * i), load(others, 2 * i + 1)
                    place = place_in_line(word, line)
                    its = load(place, 0) if place != 0 else MOST << COUNT
                    if its >> COUNT < MOST:
                        store(place, 0, its + (1 << COUNT))
                        if its & (ONLY | CHOSEN | LISTED) != ONLY | CHOSEN or its >> COUNT <= 0:
                            store(spots, filled, (place - table) >> 2)
                            filled += 1
                    else:
                        store(others, 2 * left, word)
                        store(others, 2 * left + 1, 1)
                        left += 1
                left = list_apart(record, True, is_apart, is_short, time, tasks, before, first, others, left)
                was_slow = left
                for i in range(left):
                    word = load(others, 2 * i)
                    spot = add_derivations(head, rows_state, arena, word & KEY, word >> TAG, load(others, 2 * i + 1))
                    last = max(last, word >> TAG)
                    store(spots, filled, spot << 1)
                    filled += 1
                came = arrived = end - begun

                left, gone_here = 0, 0
                words, lines = words + 8 * more, lines + 8 * more
                if load(head, 0) == moved:
                    find_single(words, lines, less, places < 16, ahead)
                    ahead += 8 * less
                    tried = take_out(words, lines, less, shift, changed + 8 * end)
                    gone_here = went_here = less - tried
                    end += went_here
                    for i in range(tried):
                        word = load(words, i)
                        place = place_in_line(word, line_at(table, places >> 3, mark_of(places), word))
                        its = load(place, 0) if place != 0 else -MOST << COUNT
                        if its == word | SINGLE and filled == 0:  # NB: those behind it may move
                            drop(head, arena, (place - table) >> 3, WORDS)
                            store(changed, end, word - shift)
                            end, went_here = end + 1, went_here + 1
                        elif its >> COUNT > -MOST:
                            store(place, 0, its - (1 << COUNT))
                            if its >> COUNT <= 1:
                                store(spots, filled, (place - table) >> 2)
                                filled += 1
                        else:
                            store(others, 2 * left, word)
                            store(others, 2 * left + 1, -1)
                            left += 1
                else:
                    for i in range(less):
                        store(others, 2 * i, load(words, i))
                        store(others, 2 * i + 1, -1)
                    left = less
                store(head, 1, load(head, 1) - gone_here)
                left = list_apart(record, False, is_apart, is_short, time, tasks, before, first, others, left)
                was_slow += left
                for i in range(left):
                    word = load(others, 2 * i)
                    spot = add_derivations(head, rows_state, arena, word & KEY, word >> TAG, load(others, 2 * i + 1))
                    last = max(last, word >> TAG)
                    store(spots, filled, spot << 1)
                    filled += 1
                certain = went_here
                entries += length_of(head)
                kind = kind_of(head)
                table, places = block_of(head, arena), places_of(head, kind)
                if load(head, 0) != moved:
                    filled, other = 0, record
                    while other > 0:
                        at = first + _BYTES * (other - 1)
                        items, size = items_of(at, tasks, before), (load(at, 2) & LOW) + (load(at, 2) >> 32)
                        other = shift_right(load(at, 0), 32)
                        for i in range(size):
                            item = load(items, i)
                            spot = place_of(table, places, key_of(item), iteration_at(time, item), kind)
                            store(spots, filled, spot << 1)
                            filled += 1
                dropped, dead = 0, 0
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
                                store(others, 2 * dead, (word & KEY) << 32 | iteration_of(word, kind))
                                store(others, 2 * dead + 1, spot)
                                dead += 1
                            if word & CHOSEN != 0:
                                store(changed, end, item_of(word & KEY, time - iteration_of(word, kind)))
                                count_out = report(rows, count_out, word, node, 1)
                                end, went_here = end + 1, went_here + 1
                    elif word != 0:
                        effect = settle(spot, time, table, places, kind, node, calendar, heads, bits, gone, state)
                        if effect & GOES != 0:
                            store(changed, end, item_of(word & KEY, time - iteration_of(word, kind)))
                            end += 1
                    if effect & COMES != 0:
                        store(late, late_ones, item_of(word & KEY, time - iteration_of(word, kind)))
                        late_ones += 1
                        if effect & IS_NEW != 0:
                            count_out = report(rows, count_out, word, node, 0)
                if late_ones > 0:
                    move(
                        changed + 8 * (begun + arrived + late_ones),
                        changed + 8 * (begun + arrived),
                        end - begun - arrived,
                    )
                    move(changed + 8 * (begun + arrived), late, late_ones)
                    arrived, end = arrived + late_ones, end + late_ones
                queue[QUEUED * q + 1], queue[QUEUED * q + 2] = begun << 32 | came, (begun + arrived) << 32 | certain
                rows_here = came + certain + count_out - rows_before
                store(firsts, 2 * node + 1, load(firsts, 2 * node + 1) + rows_here - 2 * went_here)
                if rows_here > went_here and marks & HAS_LOST != 0:
                    marks |= IS_TWICE
                    state[TWICE] += 1
                marks |= HAS_LOST if went_here > 0 else 0
                if went_here + dropped + dead > 0:
                    store(head, 1, load(head, 1) - dropped)
                    entries -= dropped + drop_entries(head, arena, rows_state, others, dead)
                    if length_of(head) == 0 and marks & IS_LISTED == 0:
                        marks |= IS_LISTED
                        emptied[state[EMPTY]] = node
                        state[EMPTY] += 1
                store(firsts, 2 * node, marks)
                state[CHANGED] = end
                if end > begun:
                    targets, went_on = targets_of(steps_of(frame, node), arena_of_steps), end - begun - arrived
                    for j in range(shape >> 1):
                        at = following + _BYTES * (next_record + j)
                        write_record(at, load32(targets, j), LIST, begun, went_on, arrived, 1)
                    state[NEXT] = next_record + (shape >> 1)
            for i in range((ahead_end - ahead) >> 3):
                prefetch(load(ahead, i))
            start, stop, half = stop, behind, 1 - half
        if answer == DONE:  # NB: while lists are in the cache
            count_out = tell(queue, there, changed, rows, count_out, by_group)
        state[OUT] = count_out
        store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) + entries)
        store(head_of_all, LAST, max(load(head_of_all, LAST), last))
        if answer != DONE:
            return answer
        state[PHASE] = SEEK
    return clean(frame, gone, rows, node_words, emptied, state)
