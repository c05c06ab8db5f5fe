"""Fixpoints of groups: semi-naive iteration over the rows of one group after the other, by differences by iteration.

    group 3   iteration 1: + node 7     →   (7, 1): 1 derivation, chosen: its row comes      →   3, +7
              iteration 2: + node 9 for the step 7 → 9                                       →   3, +9

All that a batch changes in a group is done while its table is in the cache; that of the next group comes meanwhile, of
which is known beforehand what will probably be read: the nodes behind those that change.
"""

from typing import Final

import numpy as np

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
    line_of,
    matches,
    next_bucket,
    places_of,
    shrink,
)
from squallpy.runtime.kernels.grouped_entries import (
    CHOSEN,
    ENTRIES,
    GROUPS,
    LAST,
    LISTED,
    LISTS,
    LOW,
    MEMBERS,
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
from squallpy.runtime.kernels.intrinsics import load, load32, lowest, prefetch, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words

# Words of the state of a batch.
ORDER: Final = 0  # the group that is worked at
PHASE: Final = 1
ITERATION: Final = 2
EVENTS: Final = 3  # events ever used, the first free one + 1, how many wait
FREE: Final = 4
WAITING: Final = 5
EMITS: Final = 6
GONE: Final = 7
OUT: Final = 8
BATCH_STATE: Final = 9

_BEGIN, _ITERATE, _EMIT, _END = 0, 1, 2, 3

# Answers: what there has to be more of before the kernel is called again.
DONE: Final = 0
ENDLESS: Final = 1
UNKNOWN_STEPS: Final = 2
NEEDS_ROWS: Final = 3
NEEDS_EVENTS: Final = 4
NEEDS_EMITS: Final = 5
NEEDS_GONE: Final = 6
NEEDS_OUT: Final = 7
NEEDS_ITERATIONS: Final = 8

_CONE: Final = 256  # nodes behind one, for whose entries is asked in advance,
_CONES: Final = 4  # and of all tasks, for each


@kernel(
    f"Tuple(({VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {VECTOR},"
    f" {VECTOR}, {VECTOR})"
)
def list_tasks(
    frame: Vector, sources: Vector, edges: Vector, counts: Vector, cone_of: Vector, seen: Vector
) -> tuple[Words, Words, Words, Words, Words]:
    """List the groups that a batch changes, in the order in which that is found, and the tasks of each.

    Returned are the groups, where the tasks of each begin, the tasks, the nodes behind each edge, and where they begin.
    A task is the number of an edge, or the complement of that of a source.

    Args:
        sources: Group, node, and how many derivations come in iteration 1.
        edges: Node, node, and how many derivations come of it where the first is.
        counts: Zero for each group; and `seen` for each node.
    """
    n, m, lists, members = sources.shape[0], edges.shape[0], frame[LISTS], frame[MEMBERS]
    total = n
    for e in range(m):
        total += length_of(lists + 16 * edges[e, 0])
    order, tasks, found = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(2 * total, np.int64)
    count, task = 0, 0
    for e in range(m + n):
        if e < m:
            head = lists + 16 * edges[e, 0]
            table, places = block_of(head, members), places_of(head, KEYS)
        else:
            table, places = 0, 1
        for i in range(places):
            group = load32(table, i) - 1 if e < m else sources[e - m, 0]
            if group >= 0:
                if counts[group] == 0:
                    order[count] = group
                    count += 1
                counts[group] += 1
                found[2 * task], found[2 * task + 1] = group, e if e < m else ~(e - m)
                task += 1
    starts, end = np.empty(count + 1, np.int64), 0
    for k in range(count):
        group = order[k]
        starts[k] = end
        end, counts[group] = end + counts[group], end
    starts[count] = end
    for i in range(task):
        group = found[2 * i]
        tasks[counts[group]] = found[2 * i + 1]
        counts[group] += 1
    cones, begins, end = np.empty(_CONES * total + _CONE, np.int64), np.zeros(m + n + 1, np.int64), 0
    for e in range(m + n):
        begins[e] = start = end
        first = edges[e, 1] if e < m else sources[e - m, 1]
        if end < _CONES * total and cone_of[first] == 0:
            cone_of[first], cones[end], seen[first] = e + 1, first, e + 1
            end += 1
            done = start
            while done < end < start + _CONE:
                head = frame[NODES] + 16 * cones[done]
                targets = targets_of(head, frame[STEPS])
                for i in range(load32(head, 0) >> 1):
                    node = load32(targets, i)
                    if seen[node] != e + 1 and end < start + _CONE:
                        seen[node] = e + 1
                        cones[end] = node
                        end += 1
                done += 1
    begins[m + n] = end
    return order[:count], starts, tasks, cones[:end], begins


@inlined
def _push(iteration: int, key: int, amount: int, events: int, heads: int, bits: int, state: Vector) -> None:
    """Let derivations of a key wait for an iteration."""
    event = state[FREE] - 1
    if event >= 0:
        state[FREE] = shift_right(load(events, 2 * event), 32)
    else:
        event = state[EVENTS]
        state[EVENTS] += 1
    first = load(heads, 2 * iteration)
    if first == 0:
        word = iteration >> 6
        store(bits, word, load(bits, word) | 1 << (iteration & 63))
    store(events, 2 * event, key | first << 32)
    store(events, 2 * event + 1, amount)
    store(heads, 2 * iteration, event + 1)
    store(heads, 2 * iteration + 1, load(heads, 2 * iteration + 1) + 1)
    state[WAITING] += 1


@inlined
def _next_iteration(bits: int, words: int, least: int) -> int:
    """Find the first iteration from `least` on for which events wait, or −1."""
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
def _emit(emits: int, state: Vector, word: int, iteration: int) -> None:
    count = state[EMITS]
    store(emits, 2 * count, word)
    store(emits, 2 * count + 1, iteration)
    state[EMITS] = count + 1


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
    events: int,
    heads: int,
    bits: int,
    emits: int,
    gone: int,
    out: Vector,
    group: int,
    state: Vector,
) -> None:
    """Choose the entry of a key's least iteration, as that at a place, of this one, has changed; again is as well."""
    word, count = word_at(table, at, kind), count_at(table, at, kind)
    key = word & KEY
    if word & ONLY != 0:
        if count > 0:
            if word & CHOSEN == 0:
                mark(table, at, kind, word | CHOSEN)
                _emit(emits, state, 2 * key, iteration)
                out[state[OUT]] = group << 33 | 2 * (key - 1)
                state[OUT] += 1
        elif word & CHOSEN != 0:
            _note(table, at, kind, word, NOTED, gone, state)
            _emit(emits, state, 2 * key + 1, iteration)
        else:
            _note(table, at, kind, word, 0, gone, state)
        return
    chosen, rank, following, was_there = -1, NEVER, NEVER, False
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
            if iteration < its < following and count_at(table, there, kind) > 0:
                following = its
            same &= same - 1
        if matches(table, places, bucket, 0, kind) != 0:
            break
        bucket = next_bucket(bucket, places, kind)
        if bucket == start:
            break
    if count == 0 and rank != iteration:
        _note(table, at, kind, word, 0, gone, state)
    if rank < iteration:
        return
    if count > 0:
        if rank == iteration:
            return
        if chosen >= 0:
            mark(table, chosen, kind, word_at(table, chosen, kind) & ~CHOSEN)
            _emit(emits, state, 2 * key + 1, rank)
        elif not was_there:
            out[state[OUT]] = group << 33 | 2 * (key - 1)
            state[OUT] += 1
        mark(table, at, kind, word | CHOSEN)
        _emit(emits, state, 2 * key, iteration)
        return
    if rank == iteration:
        _note(table, at, kind, word, NOTED, gone, state)
        _emit(emits, state, 2 * key + 1, iteration)
    if following < NEVER:
        _push(following, key, 0, events, heads, bits, state)


@inlined
def _ask_table(
    frame: Vector,
    group: int,
    start: int,
    stop: int,
    tasks: Vector,
    sources: Vector,
    edges: Vector,
    cone_of: Vector,
    cones: Vector,
    begins: Vector,
) -> None:
    """Ask for the cache lines of a group's table that its tasks will probably need."""
    head = frame[GROUPS] + 16 * group
    kind = kind_of(head)
    places, table = places_of(head, kind), block_of(head, frame[ROWS])
    if places == 0:
        return
    for task in range(start, stop):
        edge = tasks[task]
        if edge >= 0:
            prefetch(line_of(table, places, edges[edge, 0] + 1, kind))
        cone = cone_of[edges[edge, 1] if edge >= 0 else sources[~edge, 1]] - 1
        if cone >= 0:
            for i in range(begins[cone], begins[cone + 1]):
                prefetch(line_of(table, places, cones[i] + 1, kind))


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
    emitted: Vector,
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
    events, heads, bits = address(waiting), address(heads_of), address(bits_of)
    emits, gone, capacity = address(emitted), address(went), len(waiting) // 2
    iterations, size = len(heads_of) // 2, len(bits_of)
    nodes, steps = frame[NODES], frame[STEPS]
    phase = state[PHASE]
    for k in range(state[ORDER], len(order)):
        state[ORDER] = k
        group = order[k]
        head = first + 16 * group
        if phase == _BEGIN:
            if k + 8 < len(order):
                prefetch(first + 16 * order[k + 8])
            if k + 2 < len(order):
                _ask_table(
                    frame, order[k + 2], starts[k + 2], starts[k + 3], tasks, sources, edges, cone_of, cones, begins
                )
            if starts[k + 1] - starts[k] > capacity:
                return NEEDS_EVENTS
            if load(head_of_all, LAST) + 3 > iterations:
                return NEEDS_ITERATIONS
            state[EVENTS], state[FREE], state[WAITING], state[GONE] = 0, 0, 0, 0
            kind = kind_of(head)
            table, places = block_of(head, arena), places_of(head, kind)
            for task in range(starts[k], starts[k + 1]):
                number = tasks[task]
                if number >= 0:
                    at = chosen_place(table, places, edges[number, 0] + 1, kind)
                    rank = iteration_of(word_at(table, at, kind), kind)
                    _push(rank + 1, edges[number, 1] + 1, edges[number, 2], events, heads, bits, state)
                else:
                    _push(1, sources[~number, 1] + 1, sources[~number, 2], events, heads, bits, state)
            state[ITERATION] = 0
            phase = _ITERATE
        while True:
            if phase == _ITERATE:
                iteration = _next_iteration(bits, size, state[ITERATION] + 1)
                if iteration < 0:
                    break
                if iteration > most:
                    return ENDLESS
                count = load(heads, 2 * iteration + 1)
                state[PHASE] = _ITERATE
                if max(load(head_of_all, LAST), iteration) + 3 > iterations:
                    return NEEDS_ITERATIONS
                if state[WAITING] + count > capacity:
                    return NEEDS_EVENTS
                if 4 * count > len(emitted):
                    return NEEDS_EMITS
                if 2 * (state[GONE] + count) > len(went):
                    return NEEDS_GONE
                if state[OUT] + count > len(out):
                    return NEEDS_OUT
                need = ROOM * (4 + places_of(head, KEYS) + 2 * count)
                if UNIT * (load(rows_state, 0) + need) > 8 * frame[ROWS + 1]:
                    return NEEDS_ROWS
                state[ITERATION], state[EMITS] = iteration, 0
                if iteration > load(head_of_all, LAST):
                    store(head_of_all, LAST, iteration)
                before = length_of(head)
                event = load(heads, 2 * iteration) - 1
                moved = load(head, 0)
                while event >= 0:
                    word = load(events, 2 * event)
                    at = add_derivations(head, rows_state, arena, word & KEY, iteration, load(events, 2 * event + 1))
                    store(events, 2 * event + 1, at)
                    event = shift_right(word, 32) - 1
                kind = kind_of(head)
                table, places = block_of(head, arena), places_of(head, kind)
                if load(head, 0) != moved:
                    event = load(heads, 2 * iteration) - 1
                    while event >= 0:
                        word = load(events, 2 * event)
                        store(events, 2 * event + 1, place_of(table, places, word & KEY, iteration, kind))
                        event = shift_right(word, 32) - 1
                event = load(heads, 2 * iteration) - 1
                store(heads, 2 * iteration, 0)
                store(heads, 2 * iteration + 1, 0)
                at = iteration >> 6
                store(bits, at, load(bits, at) & ~(1 << (iteration & 63)))
                state[WAITING] -= count
                while event >= 0:
                    word = load(events, 2 * event)
                    store(events, 2 * event, state[FREE] << 32)
                    state[FREE] = event + 1
                    at = load(events, 2 * event + 1)
                    if at >= 0:
                        _settle(at, iteration, table, places, kind, events, heads, bits, emits, gone, out, group, state)
                    event = shift_right(word, 32) - 1
                store(head_of_all, ENTRIES, load(head_of_all, ENTRIES) + length_of(head) - before)
                phase = _EMIT
            need, known = 0, True
            for i in range(state[EMITS]):
                node = nodes + 16 * ((load(emits, 2 * i) >> 1) - 1)
                known &= load32(node, 0) & OWNED != 0
                need += load32(node, 0) >> 1
            state[PHASE] = _EMIT
            if not known:
                return UNKNOWN_STEPS
            if state[WAITING] + need > capacity:
                return NEEDS_EVENTS
            for i in range(state[EMITS]):
                word, following = load(emits, 2 * i), load(emits, 2 * i + 1) + 1
                node = nodes + 16 * ((word >> 1) - 1)
                targets, sign = targets_of(node, steps), 1 - 2 * (word & 1)
                for j in range(load32(node, 0) >> 1):
                    _push(following, load32(targets, j) + 1, sign, events, heads, bits, state)
            phase = _ITERATE
        if state[OUT] + state[GONE] > len(out):
            state[PHASE] = _ITERATE
            return NEEDS_OUT
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
        phase = _BEGIN
        state[PHASE] = _BEGIN
    state[ORDER] = len(order)
    return DONE
