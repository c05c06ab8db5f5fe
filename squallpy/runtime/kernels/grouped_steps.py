"""Fixpoints of groups: semi-naive iteration over the rows of one group after the other, by differences by iteration.

    group 3   iteration 1: + node 7     →   (7, 1): 1 derivation, chosen: its row comes      →   3, +7
              iteration 2: + node 9 for the step 7 → 9                                       →   3, +9

All that a batch changes in a group is done while its table is in the cache; that of the next group comes meanwhile, of
which is known beforehand what will probably be read: the nodes behind those that change. Nearly all derivations are
those of the next iteration, an array that the next pass reads from begin to end; others wait in a calendar.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import (
    KEY,
    KEYS,
    OWNED,
    ROOM,
    UNIT,
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
    GROUPS,
    INLINE,
    LAST,
    LISTED,
    LOW,
    NEVER,
    NODES,
    NOTED,
    ONLY,
    ROWS,
    ROWS_STATE,
    STEPS,
    add_derivations,
    chosen_place,
    count_at,
    iteration_of,
    kind_of,
    mark,
    place_of,
    targets_of,
    word_at,
)
from squallpy.runtime.kernels.grouped_tasks import ask_table
from squallpy.runtime.kernels.intrinsics import load, load32, lowest, prefetch, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.memory_area import HEAD

# Words of the state of a batch.
ORDER: Final = 0  # the group that is worked at
PHASE: Final = 1
ITERATION: Final = 2
DATES: Final = 3  # derivations in the calendar: how many it ever had, the first free one + 1, how many wait
FREE: Final = 4
WAITING: Final = 5
HERE: Final = 6  # derivations of this iteration, those of them that are settled, and those of the next one
SETTLED: Final = 7
NEXT: Final = 8
IS_ODD: Final = 9  # 1 if this iteration's are in the second half of the array
GONE: Final = 10
OUT: Final = 11
BATCH_STATE: Final = 12

_BEGIN, _ITERATE, _SETTLE = 0, 1, 2

# Answers: what there has to be more of before the kernel is called again.
DONE: Final = 0
ENDLESS: Final = 1
UNKNOWN_STEPS: Final = 2
NEEDS_ROWS: Final = 3
NEEDS_DATES: Final = 4
NEEDS_DERIVATIONS: Final = 5
NEEDS_GONE: Final = 6
NEEDS_OUT: Final = 7
NEEDS_ITERATIONS: Final = 8


@inlined
def _put_off(iteration: int, key: int, amount: int, calendar: int, heads: int, bits: int, state: Vector) -> None:
    """Let derivations of a key wait for an iteration in the calendar."""
    date = state[FREE] - 1
    if date >= 0:
        state[FREE] = shift_right(load(calendar, 2 * date), 32)
    else:
        date = state[DATES]
        state[DATES] += 1
    first = load(heads, 2 * iteration)
    if first == 0:
        word = iteration >> 6
        store(bits, word, load(bits, word) | 1 << (iteration & 63))
    store(calendar, 2 * date, key | first << 32)
    store(calendar, 2 * date + 1, amount)
    store(heads, 2 * iteration, date + 1)
    store(heads, 2 * iteration + 1, load(heads, 2 * iteration + 1) + 1)
    state[WAITING] += 1


@inlined
def _take_due(iteration: int, here: int, count: int, calendar: int, heads: int, bits: int, state: Vector) -> int:
    """Move what waits for an iteration behind the derivations that it has; returns how many it has then."""
    date = load(heads, 2 * iteration) - 1
    if date >= 0:
        while date >= 0:
            word = load(calendar, 2 * date)
            store(here, 2 * count, word & KEY)
            store(here, 2 * count + 1, load(calendar, 2 * date + 1))
            store(calendar, 2 * date, state[FREE] << 32)
            state[FREE] = date + 1
            date = shift_right(word, 32) - 1
            count += 1
        state[WAITING] -= load(heads, 2 * iteration + 1)
        store(heads, 2 * iteration, 0)
        store(heads, 2 * iteration + 1, 0)
        word = iteration >> 6
        store(bits, word, load(bits, word) & ~(1 << (iteration & 63)))
    return count


@inlined
def _next_iteration(bits: int, words: int, least: int) -> int:
    """Find the first iteration from `least` on for which derivations wait, or −1."""
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
def _follow(targets: int, steps: int, sign: int, following: int, count: int) -> int:
    """Add derivations by all steps of a node to those of the next iteration; returns how many it has then.

    INLINE of them are written whatever there are, as how many nobody can predict.
    """
    for j in range(INLINE):
        store(following, 2 * (count + j), load32(targets, j) + 1)
        store(following, 2 * (count + j) + 1, sign)
    for j in range(INLINE, steps):
        store(following, 2 * (count + j), load32(targets, j) + 1)
        store(following, 2 * (count + j) + 1, sign)
    return count + steps


@inlined
def _note(table: int, at: int, kind: int, word: int, flags: int, gone: int, state: Vector) -> None:
    """Note an entry that has perhaps to be dropped when the group is done."""
    if word & LISTED == 0:
        count = state[GONE]
        store(gone, 2 * count, (word & KEY) << 32 | iteration_of(word, kind))
        store(gone, 2 * count + 1, at)
        state[GONE] = count + 1
    mark(table, at, kind, (word | flags | LISTED) & ~CHOSEN)


@inlined
def _settle(
    at: int,
    iteration: int,
    table: int,
    places: int,
    kind: int,
    targets: int,
    steps: int,
    calendar: int,
    heads: int,
    bits: int,
    gone: int,
    following: int,
    count: int,
    rows: int,
    group: int,
    state: Vector,
) -> int:
    """Choose the entry of a key's least iteration, as that at a place, of this one, has changed; again is as well.

    Returns how many derivations the next iteration then has.
    """
    word, times = word_at(table, at, kind), count_at(table, at, kind)
    key = word & KEY
    if word & ONLY != 0:
        if times > 0:
            if word & CHOSEN != 0:
                return count
            mark(table, at, kind, word | CHOSEN)
            store(rows, state[OUT], group << 33 | 2 * (key - 1))
            state[OUT] += 1
            return _follow(targets, steps, 1, following, count)
        if word & CHOSEN == 0:
            _note(table, at, kind, word, 0, gone, state)
            return count
        _note(table, at, kind, word, NOTED, gone, state)
        return _follow(targets, steps, -1, following, count)
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
        _note(table, at, kind, word, 0, gone, state)
    if rank < iteration:
        return count
    if times > 0:
        if rank == iteration:
            return count
        if chosen >= 0:
            mark(table, chosen, kind, word_at(table, chosen, kind) & ~CHOSEN)
            for j in range(steps):
                _put_off(rank + 1, load32(targets, j) + 1, -1, calendar, heads, bits, state)
        elif not was_there:
            store(rows, state[OUT], group << 33 | 2 * (key - 1))
            state[OUT] += 1
        mark(table, at, kind, word | CHOSEN)
        return _follow(targets, steps, 1, following, count)
    if after < NEVER:
        _put_off(after, key, 0, calendar, heads, bits, state)
    if rank == iteration:
        _note(table, at, kind, word, NOTED, gone, state)
        return _follow(targets, steps, -1, following, count)
    return count


@kernel(
    f"int64({VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX},"
    f" {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, int64)"
)
def propagate(
    frame: Vector,
    order: Vector,
    starts: Vector,
    tasks: Vector,
    cone_of: Vector,
    cones: Vector,
    begins: Vector,
    sources: Vector,
    edges: Vector,
    waiting: Vector,
    heads_of: Vector,
    bits_of: Vector,
    derivations: Vector,
    went: Vector,
    out: Vector,
    state: Vector,
    most: int,
) -> int:
    """Do the tasks of all groups, until no derivations wait; `out` gets the rows that came and went.

    Returns DONE, or why it stopped; called again it goes on. A row of `out` is group, node, and 1 if it went, in 31, 32
    and 1 bits.
    """
    first, arena, rows_state, head_of_all = frame[GROUPS], frame[ROWS], frame[HEAD] + 8 * ROWS_STATE, frame[HEAD]
    calendar, heads, bits = address(waiting), address(heads_of), address(bits_of)
    gone, rows, dates, capacity = address(went), address(out), len(waiting) // 2, len(derivations) // 4
    iterations, size = len(heads_of) // 2, len(bits_of)
    nodes, arena_of_steps = frame[NODES], frame[STEPS]
    phase = state[PHASE]
    for k in range(state[ORDER], len(order)):
        state[ORDER] = k
        group = order[k]
        head = first + 16 * group
        if phase == _BEGIN:
            if k + 8 < len(order):
                prefetch(first + 16 * order[k + 8])
            if k + 2 < len(order):
                ask_table(
                    frame, order[k + 2], starts[k + 2], starts[k + 3], tasks, sources, edges, cone_of, cones, begins
                )
            if starts[k + 1] - starts[k] > dates:
                return NEEDS_DATES
            if load(head_of_all, LAST) + 3 > iterations:
                return NEEDS_ITERATIONS
            state[DATES], state[FREE], state[WAITING], state[GONE] = 0, 0, 0, 0
            state[HERE], state[SETTLED], state[NEXT], state[ITERATION] = 0, 0, 0, 0
            kind = kind_of(head)
            table, places = block_of(head, arena), places_of(head, kind)
            for task in range(starts[k], starts[k + 1]):
                number = tasks[task]
                if number >= 0:
                    at = chosen_place(table, places, edges[number, 0] + 1, kind)
                    rank = iteration_of(word_at(table, at, kind), kind)
                    _put_off(rank + 1, edges[number, 1] + 1, edges[number, 2], calendar, heads, bits, state)
                else:
                    _put_off(1, sources[~number, 1] + 1, sources[~number, 2], calendar, heads, bits, state)
            phase = _ITERATE
        while True:
            iteration = state[ITERATION]
            if phase == _ITERATE:
                state[PHASE] = _ITERATE
                iteration = iteration + 1 if state[NEXT] > 0 else _next_iteration(bits, size, iteration + 1)
                if iteration < 0:
                    break
                if iteration > most:
                    return ENDLESS
                if max(load(head_of_all, LAST), iteration) + 3 > iterations:
                    return NEEDS_ITERATIONS
                count = state[NEXT] + load(heads, 2 * iteration + 1)
                if count > capacity:
                    return NEEDS_DERIVATIONS
                if 2 * (state[GONE] + count) > len(went):
                    return NEEDS_GONE
                if state[OUT] + state[GONE] + 2 * count > len(out):
                    return NEEDS_OUT
                need = ROOM * (4 + places_of(head, KEYS) + 2 * count)
                if UNIT * (load(rows_state, 0) + need) > 8 * frame[ROWS + 1]:
                    return NEEDS_ROWS
                state[ITERATION], state[IS_ODD], state[HERE] = iteration, 1 - state[IS_ODD], count
                state[NEXT], state[SETTLED] = 0, 0
                here = address(derivations) + 16 * capacity * state[IS_ODD]
                due = load(heads, 2 * iteration + 1)
                if due > 0:
                    _take_due(iteration, here, count - due, calendar, heads, bits, state)
                if iteration > load(head_of_all, LAST):
                    store(head_of_all, LAST, iteration)
                before, moved = length_of(head), load(head, 0)
                for i in range(count):
                    key = load(here, 2 * i)
                    prefetch(nodes + 16 * (key - 1))
                    at = add_derivations(head, rows_state, arena, key, iteration, load(here, 2 * i + 1))
                    store(here, 2 * i + 1, at)
                if load(head, 0) != moved:
                    kind = kind_of(head)
                    table, places = block_of(head, arena), places_of(head, kind)
                    for i in range(count):
                        store(here, 2 * i + 1, place_of(table, places, load(here, 2 * i), iteration, kind))
                store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) + length_of(head) - before)
                state[PHASE] = phase = _SETTLE
            kind = kind_of(head)
            table, places = block_of(head, arena), places_of(head, kind)
            here = address(derivations) + 16 * capacity * state[IS_ODD]
            following, count = address(derivations) + 16 * capacity * (1 - state[IS_ODD]), state[NEXT]
            for i in range(state[SETTLED], state[HERE]):
                node = nodes + 16 * (load(here, 2 * i) - 1)
                shape, at = load32(node, 0), load(here, 2 * i + 1)
                steps = shape >> 1
                if at >= 0:
                    room = count + steps + INLINE
                    if shape & OWNED == 0 or room > capacity or state[WAITING] + steps + 1 > dates:
                        state[SETTLED], state[NEXT] = i, count
                        if shape & OWNED == 0:
                            return UNKNOWN_STEPS
                        return NEEDS_DERIVATIONS if room > capacity else NEEDS_DATES
                    count = _settle(
                        at,
                        iteration,
                        table,
                        places,
                        kind,
                        targets_of(node, arena_of_steps),
                        steps,
                        calendar,
                        heads,
                        bits,
                        gone,
                        following,
                        count,
                        rows,
                        group,
                        state,
                    )
            state[NEXT] = count
            phase = _ITERATE
        before = length_of(head)
        kind = kind_of(head)
        table, places = block_of(head, arena), places_of(head, kind)
        for i in range(state[GONE]):
            key, iteration, at = shift_right(load(gone, 2 * i), 32), load(gone, 2 * i) & LOW, load(gone, 2 * i + 1)
            word = word_at(table, at, kind)
            if word & KEY != key or iteration_of(word, kind) != iteration:
                at = place_of(table, places, key, iteration, kind)
                word = word_at(table, at, kind)
            if word & NOTED != 0 and (word & ONLY != 0 or chosen_place(table, places, key, kind) < 0):
                out[state[OUT]] = group << 33 | 2 * (key - 1) | 1
                state[OUT] += 1
            if count_at(table, at, kind) == 0:
                drop(head, arena, at, kind)
            else:
                mark(table, at, kind, word & ~(NOTED | LISTED))
        store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) + length_of(head) - before)
        if length_of(head) < before:
            shrink(head, rows_state, arena, kind)
        state[PHASE] = phase = _BEGIN
    state[ORDER] = len(order)
    return DONE
