"""Contents of grouped rows: which groups have a node, which nodes a node derives, and all rows with their numbers.

update_members   +(3, 7)          →   group 3 is a member of node 7
change_steps     +(7, 9)          →   node 7 derives node 9, in all groups
add_rows         (3, 7, 1): 1     →   as a snapshot has it
"""

import numpy as np

from squallpy.runtime.kernels.arena_tables import (
    KEY,
    KEYS,
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
    take_block,
    units_of,
)
from squallpy.runtime.kernels.grouped_entries import (
    AHEAD,
    CHOSEN,
    ENTRIES,
    GROUPS,
    INLINE,
    LAST,
    LISTS,
    LOW,
    MEMBERS,
    MEMBERS_STATE,
    NEVER,
    NODES,
    ROWS,
    ROWS_STATE,
    STEPS,
    STEPS_STATE,
    add_derivations,
    chosen_place,
    count_at,
    iteration_of,
    kind_of,
    mark,
    targets_of,
    word_at,
)
from squallpy.runtime.kernels.grouped_members import append, end_of, members_of, units_for
from squallpy.runtime.kernels.intrinsics import load, load32, prefetch, store, store32
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, GIVEN_VECTOR, MATRIX, VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words


@kernel(f"int64({VECTOR}, {GIVEN_VECTOR}, {VECTOR}, {VECTOR}, int64)")
def update_members(frame: Vector, out: Vector, marks: Vector, empty: Vector, start: int) -> int:
    """Let nodes have the groups whose rows came, and no longer those whose rows went.

    Returns the first row for which there was no room, or how many there are.

    Args:
        marks: A word for each group, at first 0.
        empty: Gets how many nodes have lost their last group, and then these, some of which may have one again.
    """
    lists, arena, state, n = frame[LISTS], frame[MEMBERS], frame[HEAD] + 8 * MEMBERS_STATE, len(out)
    for i in range(start, n):
        if i + 4 * AHEAD < n:
            prefetch(lists + 16 * (out[i + 4 * AHEAD] >> 1 & KEY))
        if i + 2 * AHEAD < n:
            prefetch(end_of(lists + 16 * (out[i + 2 * AHEAD] >> 1 & KEY), arena))
        row = out[i]
        head, gone = lists + 16 * (row >> 1 & KEY), row & 1
        if UNIT * (load(state, 0) + units_for(head)) > 8 * frame[MEMBERS + 1]:
            return i
        append(head, state, arena, row >> 33, gone, marks, i + 1)
        if gone != 0 and members_of(head) == 0:
            empty[0] += 1
            empty[empty[0]] = row >> 1 & KEY
    return n


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, int64)")
def change_steps(frame: Vector, edges: Vector, start: int) -> int:
    """Let nodes derive others, or no longer: rows of node, node, and 1 or −1.

    Returns the first step for which there was no room, or how many there are.
    """
    arena, state, n = frame[STEPS], frame[HEAD] + 8 * STEPS_STATE, edges.shape[0]
    for i in range(start, n):
        node, target = frame[NODES] + 16 * edges[i, 0], edges[i, 1]
        count, flag = load32(node, 0) >> 1, load32(node, 0) & 1
        targets, size_class = targets_of(node, arena), load32(node, 2) if count > INLINE else -1
        if edges[i, 2] < 0:
            at = 0
            while load32(targets, at) != target:
                at += 1
            last = load32(targets, count - 1)
            store32(targets, at, last)
            if count == INLINE + 1:
                block = load32(node, 1)
                for j in range(INLINE):
                    store32(node, j + 1, load32(targets, j))
                store(targets, 0, load(state, 1 + size_class))
                store(state, 1 + size_class, block + 1)
            store32(node, 0, (count - 1) << 1 | flag)
            continue
        if count == INLINE or (count > INLINE and count == 4 * units_of(size_class)):
            wider = size_class + 1 if count > INLINE else 1
            if UNIT * (load(state, 0) + units_of(wider)) > 8 * frame[STEPS + 1]:
                return i
            block = take_block(state, arena, wider)
            moved = arena + UNIT * block
            for j in range(count):
                store32(moved, j, load32(targets, j))
            if count > INLINE:
                store(targets, 0, load(state, 1 + size_class))
                store(state, 1 + size_class, load32(node, 1) + 1)
            store32(node, 1, block)
            store32(node, 2, wider)
            targets = moved
        store32(targets, count, target)
        store32(node, 0, (count + 1) << 1 | flag)
    return n


@kernel(f"void({VECTOR}, {GIVEN_VECTOR})")
def forget_steps(frame: Vector, numbers: Vector) -> None:
    """Let it be unknown what nodes derive."""
    arena, state = frame[STEPS], frame[HEAD] + 8 * STEPS_STATE
    for i in range(len(numbers)):
        node = frame[NODES] + 16 * numbers[i]
        if load32(node, 0) >> 1 > INLINE:
            targets, size_class = targets_of(node, arena), load32(node, 2)
            store(targets, 0, load(state, 1 + size_class))
            store(state, 1 + size_class, load32(node, 1) + 1)
        store(node, 0, 0)
        store(node, 1, 0)


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, {VECTOR}, int64)")
def add_rows(frame: Vector, entries: Vector, marks: Vector, start: int) -> int:
    """Add entries, rows of group, node, iteration, and how many derivations, as they were.

    Returns the first entry for which there was no room, or how many there are.

    Args:
        marks: A word for each group, at first 0.
    """
    arena, state, lists, n = frame[ROWS], frame[HEAD] + 8 * ROWS_STATE, frame[LISTS], entries.shape[0]
    members, members_state, scalars = frame[MEMBERS], frame[HEAD] + 8 * MEMBERS_STATE, frame[HEAD]
    for i in range(start, n):
        group, key, iteration = entries[i, 0], entries[i, 1] + 1, entries[i, 2]
        head, its = frame[GROUPS] + 16 * group, lists + 16 * (key - 1)
        if (
            UNIT * (load(state, 0) + ROOM * (4 + places_of(head, KEYS))) > 8 * frame[ROWS + 1]
            or UNIT * (load(members_state, 0) + units_for(its)) > 8 * frame[MEMBERS + 1]
        ):
            return i
        before = length_of(head)
        at = add_derivations(head, state, arena, key, iteration, entries[i, 3])
        kind = kind_of(head)
        table, places = block_of(head, arena), places_of(head, kind)
        if count_at(table, at, kind) == 0:
            drop(head, arena, at, kind)
        store(scalars, ENTRIES, load(scalars, ENTRIES) + length_of(head) - before)
        store(scalars, LAST, max(load(scalars, LAST), iteration))
        chosen, least, best = chosen_place(table, places, key, kind), NEVER, -1
        if chosen >= 0:
            mark(table, chosen, kind, word_at(table, chosen, kind) & ~CHOSEN)
        bucket = first = bucket_of(key, places, kind)
        while True:
            found = matches(table, places, bucket, key, kind)
            while found != 0:
                at = first_of(found, bucket, kind)
                rank = iteration_of(word_at(table, at, kind), kind)
                if count_at(table, at, kind) > 0 and rank < least:
                    least, best = rank, at
                found &= found - 1
            if matches(table, places, bucket, 0, kind) != 0:
                break
            bucket = next_bucket(bucket, places, kind)
            if bucket == first:
                break
        if best >= 0:
            mark(table, best, kind, word_at(table, best, kind) | CHOSEN)
        shrink(head, state, arena, kind)
        if (best >= 0) != (chosen >= 0):
            append(its, members_state, members, group, 1 if best < 0 else 0, marks, i + 1)
    return n


@kernel(f"{MATRIX}({VECTOR}, int64)")
def list_rows(frame: Vector, groups: int) -> Words:
    """List the entries of all groups: group, node, iteration, and how many derivations."""
    arena, out, count = frame[ROWS], np.empty((load(frame[HEAD], ENTRIES), 4), np.int64), 0
    for group in range(groups):
        head = frame[GROUPS] + 16 * group
        kind = kind_of(head)
        table = block_of(head, arena)
        for at in range(places_of(head, kind)):
            word = word_at(table, at, kind)
            if word & KEY != 0:
                out[count, 0], out[count, 1] = group, (word & KEY) - 1
                out[count, 2], out[count, 3] = iteration_of(word, kind), count_at(table, at, kind)
                count += 1
    return out


@kernel(f"Tuple(({MATRIX}, {VECTOR}))({GIVEN_VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_VECTOR})")
def columns_of(out: Vector, groups: Vector, nodes: Vector, picks: Vector) -> tuple[Words, Words]:
    """Make columns of the rows that came and went, and how often they came.

    Args:
        groups: Keys by the number of a group; and `nodes` by that of a node.
        picks: For each column of the rows one of a group, or the complement of one of a node.
    """
    n, width, wide, broad = len(out), len(picks), groups.shape[1], nodes.shape[1]
    columns, times = np.empty((width, n), np.int64), np.empty(n, np.int64)
    target, first, second = address(columns), address(groups), address(nodes)
    for i in range(n):
        if i + 2 * AHEAD < n:
            prefetch(second + 8 * broad * (out[i + 2 * AHEAD] >> 1 & LOW))
        group, node = first + 8 * wide * (out[i] >> 33), second + 8 * broad * (out[i] >> 1 & LOW)
        for j in range(width):
            pick = picks[j]
            store(target, j * n + i, load(group, pick) if pick >= 0 else load(node, ~pick))
        times[i] = 1 - 2 * (out[i] & 1)
    return columns, times
