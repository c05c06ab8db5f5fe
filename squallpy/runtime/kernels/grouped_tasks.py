"""Tasks of a batch: for each edge and source that changes, the groups that have it, and when they are done.

edge 7 → 9 goes; node 7 has group 3 at rank 1, 5 at rank 2      →   node 9: −1 for group 3 in iteration 2, for 5 in 3

All groups are followed at once, each at *times* of its own: an iteration's time is later by the group's *offset*, which
may be any. It is chosen so that a node has its changes, of all groups, at about the same time, that of its level.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import WORDS, block_of, length_of, places_of
from squallpy.runtime.kernels.grouped_entries import (
    CHOSEN,
    CHOSEN_BIT,
    GROUPS,
    LEVELS,
    LOW,
    ROWS,
    SHORT,
    TAG,
    iteration_of,
    kind_of,
    table_of,
    word_at,
)
from squallpy.runtime.kernels.intrinsics import load, load32, prefetch, store, store32
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.line_addresses import KEY, LINE, pick_eight

DEEPEST: Final = 255  # the last level; what is behind it is on that level, too
RECORD: Final = 4  # words of a record, so that none is in two cache lines
_AHEAD: Final = 2  # edges for whose tables is asked in advance,
_LINES: Final = 64  # so many lines of each
QUEUED: Final = 3  # words of a node in the queue: its number; the place and length of the list of what came, and went

# Kinds of records: where the items are that it has.
ONE: Final = 0  # in its own word
TASK: Final = 1  # among the tasks, from some place on
LIST: Final = 2  # in the list of what changed at the time before
BEHIND: Final = 3  # one in its own word, but for each node that the node of the record derives
_KIND_BITS: Final = 2  # of a record's last word, below the amount


@inlined
def item_of(key: int, offset: int) -> int:
    """Return the item of a group, given by its key: what its entry's word begins with at time 0."""
    return key - (offset << TAG)


@inlined
def key_of(item: int) -> int:
    return item & LOW


@inlined
def iteration_at(time: int, item: int) -> int:
    """Return the iteration that a group is in at a time."""
    return ((time << TAG) + item) >> TAG


@inlined
def write_record(record: int, node: int, kind: int, place: int, minus: int, plus: int, amount: int) -> None:
    """Write a record: derivations of a node, `amount` more for the first `plus` groups, and fewer for the next `minus`.

    Args:
        place: The number of the first item, or the only item.
    """
    store(record, 0, node)
    store(record, 1, place)
    store(record, 2, plus << 32 | minus)
    store(record, 3, amount << _KIND_BITS | kind)


@inlined
def kind_of_record(record: int) -> int:
    return load(record, 3) & (1 << _KIND_BITS) - 1


@inlined
def amount_of(record: int) -> int:
    """Return how many derivations each group of a record has more or fewer."""
    return load(record, 3) >> _KIND_BITS


@inlined
def items_of(record: int, tasks: int, changed: int) -> int:
    """Return the address of the first item of a record."""
    kind, place = kind_of_record(record), load(record, 1)
    return record + 8 if kind == ONE else (tasks if kind == TASK else changed) + 8 * place


@inlined
def schedule(record: int, number: int, time: int, heads: int, bits: int) -> None:
    """Let a record wait for a time."""
    first = load(heads, time)
    if first == 0:
        word = time >> 6
        store(bits, word, load(bits, word) | 1 << (time & 63))
    store(record, 0, load(record, 0) | first << 32)
    store(heads, time, number + 1)


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX})")
def count_tasks(frame: Vector, edges: Vector) -> int:
    """Count the entries of the nodes from which edges change, which are as many tasks at most."""
    total = 0
    for e in range(edges.shape[0]):
        head = table_of(frame, edges[e, 0])
        prefetch(block_of(head, frame[ROWS]))
        total += length_of(head)
    return total


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {VECTOR}, {VECTOR}, {VECTOR}, int64, {VECTOR}, {VECTOR})")
def list_tasks(
    frame: Vector,
    sources: Vector,
    edges: Vector,
    offsets: Vector,
    heads_of: Vector,
    bits_of: Vector,
    base: int,
    items: Vector,
    records: Vector,
) -> int:
    """List what a batch changes: items, and records that wait for their times, of which it returns the number.

    Args:
        sources: Group, node, and how many derivations come in iteration 1.
        edges: Node, node, and how many derivations come of it where the first is.
        offsets: Zero for each group; then the offsets of those that have a task: 32 bits each.
        base: The offset of a group that has a node of level 0 at rank 0, more than those of all others, as a rule.
        items: Room for one more than there are tasks; and `records`, also for one of each source.
    """
    n, m, levels, arena = sources.shape[0], edges.shape[0], frame[LEVELS], frame[ROWS]
    heads, bits, groups = address(heads_of), address(bits_of), frame[GROUPS]
    count, done, first, tasks, its_offset = 0, 0, address(records), address(items), address(offsets)
    for i in range(n):
        group = sources[i, 0]
        store32(its_offset, group, max(load32(its_offset, group), base + load(levels, sources[i, 1])))
    for i in range(n):
        group = sources[i, 0]
        store(groups, group, load(groups, group) + sources[i, 2])
        offset, minus = load32(its_offset, group), 1 if sources[i, 2] < 0 else 0
        item = item_of(group + 1, offset)
        write_record(first + 8 * RECORD * count, sources[i, 1], ONE, item, minus, 1 - minus, abs(sources[i, 2]))
        schedule(first + 8 * RECORD * count, count, offset + 1, heads, bits)
        count += 1
    for e in range(m):
        if e + 2 * _AHEAD < m:
            prefetch(table_of(frame, edges[e + 2 * _AHEAD, 0]))
        if e + _AHEAD < m:
            head = table_of(frame, edges[e + _AHEAD, 0])
            for line in range(min(places_of(head, kind_of(head)) >> (4 - kind_of(head)), _LINES)):
                prefetch(block_of(head, arena) + LINE * line)
        head, node, its_time = table_of(frame, edges[e, 0]), edges[e, 1], -1
        level, sign, begun = base + load(levels, node), edges[e, 2], done
        kind, chosen = kind_of(head), done
        table, places = block_of(head, arena), places_of(head, kind)
        if kind == WORDS:
            for at in range(0, places, 8):
                chosen += pick_eight(table + 8 * at, places - at, CHOSEN, SHORT << TAG | KEY, tasks + 8 * chosen)
        else:
            for at in range(places):
                word = word_at(table, at, kind)
                store(tasks, chosen, iteration_of(word, kind) << TAG | word & KEY)
                chosen += word >> CHOSEN_BIT & 1
        for at in range(done, chosen):
            key, rank = load(tasks, at) & LOW, load(tasks, at) >> TAG
            offset = load32(its_offset, key - 1)
            offset = offset if offset != 0 else max(level - rank, 1)  # NB: not a jump, which nobody could foresee
            store32(its_offset, key - 1, offset)
            time = offset + rank + 1
            if time != its_time:
                if at > begun:
                    count = _close(first, count, node, begun, at - begun, sign, its_time, heads, bits)
                begun, its_time = at, time
            store(tasks, at, item_of(key, offset))
        done = chosen
        if done > begun:
            count = _close(first, count, node, begun, done - begun, sign, its_time, heads, bits)
    return count


@inlined
def _close(
    first: int, count: int, node: int, begun: int, length: int, sign: int, time: int, heads: int, bits: int
) -> int:
    """Write the record of some tasks of a node; returns the number of records."""
    record = first + 8 * RECORD * count
    write_record(record, node, TASK, begun, length if sign < 0 else 0, length if sign > 0 else 0, 1)
    schedule(record, count, time, heads, bits)
    return count + 1
