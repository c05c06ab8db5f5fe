"""Contents of grouped rows: which nodes a node derives, and all rows with their numbers.

change_steps     +(7, 9)          →   node 7 derives node 9, in all groups; the level of 9 is above that of 7
add_rows         (3, 7, 1): 1     →   as a snapshot has it
"""

from typing import Final

import numpy as np

from squallpy.runtime.kernels.arena_tables import (
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
    CHOSEN,
    ENTRIES,
    GROUPS,
    INLINE,
    LAST,
    LEVELS,
    LOW,
    NEVER,
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
    steps_of,
    table_of,
    targets_of,
    word_at,
)
from squallpy.runtime.kernels.grouped_tasks import DEEPEST
from squallpy.runtime.kernels.intrinsics import load, load32, store, store32
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    MATRIX,
    VECTOR,
    Vector,
    address,
    inlined,
    kernel,
    making,
)
from squallpy.runtime.kernels.line_addresses import KEY, LANES, LINE, halves_eight, numbers_eight
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words

_LOOKED_AT: Final = 64  # steps of a node that say on which level it may be


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, {VECTOR}, int64)")
def change_steps(frame: Vector, edges: Vector, raised: Vector, start: int) -> int:
    """Let nodes derive others, or no longer: rows of node, node, and 1 or −1.

    Returns the first step for which there was no room, or how many there are.

    Args:
        raised: Room for nodes whose level rises; the first word is how many steps were looked at, no more than words.
    """
    arena, state, n = frame[STEPS], frame[HEAD] + 8 * STEPS_STATE, edges.shape[0]
    for i in range(start, n):
        node, target = steps_of(frame, edges[i, 0]), edges[i, 1]
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
        _raise_levels(frame, edges[i, 0], target, raised)
    return n


@inlined
def _raise_levels(frame: Vector, source: int, target: int, raised: Vector) -> None:
    """Raise a node above the level of one that derives it, and what is behind it likewise; in a cycle to the last."""
    levels, top = frame[LEVELS], 1
    if load(levels, target) > load(levels, source) or load(levels, source) == DEEPEST:
        return
    store(levels, target, load(levels, source) + 1)
    raised[1] = target
    while top > 0:
        node = raised[top]
        head, level = steps_of(frame, node), load(levels, node) + 1
        targets, steps = targets_of(head, frame[STEPS]), load32(head, 0) >> 1
        raised[0] += steps + 1
        if level > DEEPEST or raised[0] + 1 >= len(raised):
            return
        top -= 1
        for j in range(steps):
            other = load32(targets, j)
            if load(levels, other) < level:
                store(levels, other, level)
                top += 1
                raised[top] = other


@kernel(f"void({VECTOR}, {GIVEN_MATRIX})")
def raise_sources(frame: Vector, edges: Vector) -> None:
    """Let nodes be on the level before that of all that they derive, if theirs is lower; the highest come first.

    Args:
        edges: The steps that have changed, with the nodes in their first column.
    """
    levels, n = frame[LEVELS], edges.shape[0]
    ends, numbers = np.zeros(DEEPEST + 2, np.int64), np.empty(n, np.int64)
    for i in range(n):
        ends[DEEPEST - load(levels, edges[i, 0]) + 1] += 1
    for level in range(DEEPEST):
        ends[level + 1] += ends[level]
    for i in range(n):
        level = DEEPEST - load(levels, edges[i, 0])
        numbers[ends[level]] = edges[i, 0]
        ends[level] += 1
    for i in range(n):
        head, above = steps_of(frame, numbers[i]), DEEPEST + 1
        targets, steps = targets_of(head, frame[STEPS]), min(load32(head, 0) >> 1, _LOOKED_AT)
        for j in range(steps):
            above = min(above, load(levels, load32(targets, j)))
        if steps > 0:
            store(levels, numbers[i], max(load(levels, numbers[i]), above - 1))


@kernel(f"{VECTOR}({GIVEN_VECTOR}, {VECTOR}, int64, int64, int64)")
def numbers_without(numbers: Vector, words: Vector, stride: int, place: int, bits: int) -> Words:
    """List the numbers whose words have none of some bits, each once.

    Args:
        words: Those of a number are from `stride` times this on, and the one looked at has a place among them.
    """
    out, found = np.empty(len(numbers), np.int64), 0
    for i in range(len(numbers)):
        at = stride * numbers[i] + place
        if words[at] & bits == 0:
            words[at] |= bits  # NB: until the end, so that it is not found again
            out[found] = numbers[i]
            found += 1
    for i in range(found):
        words[stride * out[i] + place] &= ~bits
    return out[:found]


@kernel(f"{MATRIX}({VECTOR}, {GIVEN_VECTOR})")
def forget_steps(frame: Vector, numbers: Vector) -> Words:
    """Let it be unknown what nodes derive; returns what they did, rows of node and node."""
    arena, state, count = frame[STEPS], frame[HEAD] + 8 * STEPS_STATE, 0
    for i in range(len(numbers)):
        count += load32(steps_of(frame, numbers[i]), 0) >> 1
    steps, found = np.empty((count, 2), np.int64), 0
    for i in range(len(numbers)):
        node = steps_of(frame, numbers[i])
        targets, count, size_class = targets_of(node, arena), load32(node, 0) >> 1, load32(node, 2)
        for j in range(count):
            steps[found, 0], steps[found, 1] = numbers[i], load32(targets, j)
            found += 1
        store(frame[LEVELS], numbers[i], 0)
        if count > INLINE:
            store(targets, 0, load(state, 1 + size_class))
            store(state, 1 + size_class, load32(node, 1) + 1)
        store(node, 0, 0)
        store(node, 1, 0)
    return steps


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, int64)")
def add_rows(frame: Vector, entries: Vector, start: int) -> int:
    """Add entries, rows of group, node, iteration, and how many derivations, as they were.

    Returns the first entry for which there was no room, or how many there are.
    """
    arena, state, scalars, n = frame[ROWS], frame[HEAD] + 8 * ROWS_STATE, frame[HEAD], entries.shape[0]
    for i in range(start, n):
        group, head, iteration = entries[i, 0], table_of(frame, entries[i, 1]), entries[i, 2]
        if UNIT * (load(state, 0) + ROOM * (4 + places_of(head, KEYS))) > 8 * frame[ROWS + 1]:
            return i
        if iteration == 1:
            store(frame[GROUPS], group, load(frame[GROUPS], group) + entries[i, 3])
        key = group + 1
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
    return n


@kernel(f"{MATRIX}({VECTOR}, int64)")
def list_rows(frame: Vector, nodes: int) -> Words:
    """List the entries of all nodes: group, node, iteration, and how many derivations."""
    arena, out, count = frame[ROWS], np.empty((load(frame[HEAD], ENTRIES), 4), np.int64), 0
    for node in range(nodes):
        head = table_of(frame, node)
        kind = kind_of(head)
        table = block_of(head, arena)
        for at in range(places_of(head, kind)):
            word = word_at(table, at, kind)
            if word & KEY != 0:
                out[count, 0], out[count, 1] = (word & KEY) - 1, node
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
    rows = address(out)
    for j in range(width):
        pick, target = picks[j], address(columns) + 8 * j * n
        if pick >= 0:
            keys = address(groups) + 8 * pick
            for i in range(n):
                store(target, i, load(keys, wide * (load(rows, i) >> 33)))
        else:
            keys = address(nodes) + 8 * ~pick
            for i in range(n):
                store(target, i, load(keys, broad * (load(rows, i) >> 1 & LOW)))
    for i in range(n):
        times[i] = 1 - 2 * (out[i] & 1)
    return columns, times


@kernel(f"void({VECTOR}, {VECTOR})")
def count_rows(out: Vector, by_group: Vector) -> None:
    """Count for each group how many rows came, less those that went, modulo 2³²: two numbers in a word.

    Args:
        by_group: The numbers, behind a line without meaning.
    """
    groups, rows = address(by_group) + LINE, address(out)
    for i in range(len(out)):
        row = load(rows, i)
        store32(groups, row >> 33, load32(groups, row >> 33) + 1 - 2 * (row & 1))


@kernel(f"Tuple(({MATRIX}, {VECTOR}))({VECTOR}, {GIVEN_MATRIX})")
def counted_keys(counts: Vector, keys: Vector) -> tuple[Words, Words]:
    """Return the keys whose number is not 0, and these numbers, as `count_rows` has left them in whole lines."""
    base, found, room = address(counts) + LINE, 0, keys.shape[0] + LANES
    places, numbers = np.empty(room, np.int64), np.empty(room, np.int64)
    listed, to = address(places), address(numbers)
    for first in range(0, 2 * len(counts) - LINE // 4, LANES):
        found += numbers_eight(base + 4 * first, first, listed + 8 * found, to + 8 * found)
    return _chosen(places[:found], keys), numbers[:found]


@kernel(f"Tuple(({MATRIX}, {VECTOR}))({VECTOR}, {GIVEN_MATRIX})")
def counted_nodes(words: Vector, keys: Vector) -> tuple[Words, Words]:
    """Return the keys of nodes whose number of rows has changed, and by how many, as `propagate` has left them."""
    base, found, room = address(words), 0, keys.shape[0] + LANES
    places, numbers = np.empty(room, np.int64), np.empty(room, np.int64)
    listed, to = address(places), address(numbers)
    for first in range(0, len(words), LANES):
        found += halves_eight(base + 8 * first, len(words) - first, first, listed + 8 * found, to + 8 * found)
    return _chosen(places[:found], keys), numbers[:found]


@making
def _chosen(places: Vector, keys: Vector) -> Words:
    """Copy the keys at places."""
    n, width = len(places), keys.shape[1]
    chosen = np.empty((n, width), np.int64)
    source, target = address(keys), address(chosen)
    if width == 1:
        for i in range(n):
            store(target, i, load(source, places[i]))
        return chosen
    for i in range(n):
        for j in range(width):
            store(target, i * width + j, load(source, places[i] * width + j))
    return chosen


@kernel(f"int64({VECTOR}, {VECTOR}, int64)")
def part_rows(out: Vector, words: Vector, bit: int) -> int:
    """Move the rows of nodes whose mark has a bit behind all others; returns how many others there are."""
    left, right, marks = 0, len(out), address(words)
    while left < right:
        row = out[left]
        if load32(marks, 2 * (row >> 1 & LOW)) & bit == 0:
            left += 1
        else:
            right -= 1
            out[left], out[right] = out[right], row
    return left
