"""Changes of one node at one time: derivations are added, then taken away, then rows that are uncertain are settled.

    node 9: + groups 3, 5; − 4   →   came: 3, which is new; went: 4, if that was its only one; 5 has one more

A node's derivations are added first, then taken away, so that a number of 0 is final: most entries that come or go are
known to be their group's only one, and done with when they are found. Others are looked at when all are added.
"""

from typing import Final, NamedTuple

from squallpy.runtime.kernels.arena_tables import (
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
from squallpy.runtime.kernels.grouped_batch import COMES, GOES, IS_NEW, report, settle
from squallpy.runtime.kernels.grouped_blocks import APART, FINAL, GROWTH, SIZE, line_at, list_apart, mark_of
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
    LISTED,
    LOW,
    MOST,
    ONLY,
    SHORT,
    TAG,
    add_derivations,
    count_at,
    iteration_of,
    kind_of,
    mark,
    place_of,
    table_of,
    word_at,
)
from squallpy.runtime.kernels.grouped_tasks import RECORD, item_of, items_of, iteration_at, key_of
from squallpy.runtime.kernels.intrinsics import load, move, prefetch, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.line_addresses import KEY

_BYTES: Final = 8 * RECORD


class Memory(NamedTuple):
    """A time of a batch, and the addresses of what there is at it."""

    time: int
    arena: int  # of rows, and its state
    rows_state: int
    tasks: int  # items of tasks,
    before: int  # of what changed at the time before,
    changed: int  # and of what changes now
    records: int  # of this time
    spots: int  # where in a node's table entries are that may change their rows
    late: int  # items of rows that come for them
    others: int  # words that take longer, each with how many derivations come; and entries to be dropped
    rows: int  # that came or went by another way than the lists of items
    calendar: int  # records of other times, found by the heads of times, which bits tell
    heads: int
    bits: int
    gone: int  # entries that are perhaps to be dropped when the batch is done


class Node(NamedTuple):
    """A node with its table, as it is now."""

    number: int
    head: int
    kind: int
    table: int
    places: int
    record: int  # its first one + 1
    is_apart: bool  # some of its records have several derivations for an item, or the table has pairs
    is_short: bool  # the table has words for this time


@inlined
def open_node(frame: Vector, memory: Memory, number: int, record: int, note: int) -> Node:
    """Look a node's table up."""
    head = table_of(frame, number)
    kind = kind_of(head)
    table, places = block_of(head, memory.arena), places_of(head, kind)
    is_short = kind == WORDS and memory.time <= SHORT
    return Node(number, head, kind, table, places, record, load(note, APART) != 0, is_short)


@inlined
def make_room(head: int, memory: Memory, note: int, words: int, lines: int, count: int) -> None:
    """Let a node's table have room for what comes to it, and words the lines where they then stand."""
    kind, length, growth = kind_of(head), length_of(head), load(note, GROWTH)
    if growth > 0 and is_full(length + growth - 1, places_of(head, kind), kind):
        resize(head, memory.rows_state, memory.arena, class_for(length + growth, kind), kind)
        table, places = block_of(head, memory.arena), places_of(head, kind)
        for i in range(count):
            store(lines, i, line_at(table, places >> 3, mark_of(places), load(words, i)))


@inlined
def _append(pairs: int, count: int, first: int, second: int) -> int:
    """Append a pair to others; returns how many there are now."""
    store(pairs, 2 * count, first)
    store(pairs, 2 * count + 1, second)
    return count + 1


@inlined
def _line(node: Node, word: int) -> int:
    return line_at(node.table, node.places >> 3, mark_of(node.places), word)


@inlined
def _list_records(node: Node, memory: Memory, comes: bool, count: int) -> int:
    """Append to others items of records that are apart, those that come or that go; returns how many there are."""
    is_apart, is_short, time = node.is_apart, node.is_short, memory.time
    tasks, before, records, others = memory.tasks, memory.before, memory.records, memory.others
    return list_apart(node.record, comes, is_apart, is_short, time, tasks, before, records, others, count)


@inlined
def _add_others(node: Node, memory: Memory, count: int, filled: int, last: int) -> tuple[int, int]:
    """Add the derivations of others wherever their entries are; returns how many spots there are, and the last
    iteration."""
    for i in range(count):
        word, amount = load(memory.others, 2 * i), load(memory.others, 2 * i + 1)
        spot = add_derivations(node.head, memory.rows_state, memory.arena, word & KEY, word >> TAG, amount)
        store(memory.spots, filled + i, spot << 1)
        last = max(last, word >> TAG)
    return filled + count, last


@inlined
def add_words(
    node: Node, memory: Memory, words: int, lines: int, more: int, note: int, ahead: int, end: int
) -> tuple[int, int, int, int]:
    """Add a derivation of each word that comes, and those of records that are apart.

    Returns the end of the list of what changed, behind which rows that come for certain are listed; how many spots are
    to be settled; how many words were others; and the last iteration.

    Args:
        ahead: Lines to ask for meanwhile, one for each word.
    """
    time, filled, added, last, left = memory.time, 0, 0, 0, 0
    count = max(min(more, node.places - (node.places >> 3) - length_of(node.head)), 0)
    for i in range(count, more):
        left = _append(memory.others, left, load(words, i), _line(node, load(words, i)))
    find_free(words, lines, count, note + 8 * SIZE, ahead)
    while count > 0:
        if load(note, FINAL) != 0:
            taken, top = enter_rows(words, lines, count, time << TAG, memory.changed + 8 * end)
            end += count - taken
        else:
            taken, top = enter_words(words, lines, count, node.table, memory.spots + 8 * filled)
            filled += count - taken
        added, last, count = added + count - taken, max(last, top >> TAG), 0
        for i in range(taken):
            word = load(words, i)
            place = free_place_again(word, _line(node, word))
            if place == 0:
                left = _append(memory.others, left, word, _line(node, word))
            else:
                store(words, count, word)
                store(lines, count, place)
                count += 1
    store(node.head, 1, load(node.head, 1) + added)
    tried, left = left, 0
    for i in range(tried):
        word, line = load(memory.others, 2 * i), load(memory.others, 2 * i + 1)
        place = place_in_line(word, line)
        its = load(place, 0) if place != 0 else MOST << COUNT
        if its >> COUNT < MOST:
            store(place, 0, its + (1 << COUNT))
            if its & (ONLY | CHOSEN | LISTED) != ONLY | CHOSEN or its >> COUNT <= 0:
                store(memory.spots, filled, (place - node.table) >> 2)
                filled += 1
        else:
            left = _append(memory.others, left, word, 1)
    left = _list_records(node, memory, True, left)
    filled, last = _add_others(node, memory, left, filled, last)
    return end, filled, left, last


@inlined
def take_words(
    node: Node, memory: Memory, words: int, lines: int, less: int, is_moved: bool, ahead: int, end: int, filled: int
) -> tuple[int, int, int, int]:
    """Take away a derivation of each word that goes, and those of records that are apart.

    Returns what `add_words` does.

    Args:
        is_moved: The table is no more where it was when its lines were listed.
    """
    shift, left, gone = memory.time << TAG, 0, 0
    if is_moved:
        for i in range(less):
            prefetch(load(ahead, i))
            left = _append(memory.others, left, load(words, i), -1)
    else:
        find_single(words, lines, less, node.places < 16, ahead)
        tried = take_out(words, lines, less, shift, memory.changed + 8 * end)
        gone = less - tried
        end += gone
        for i in range(tried):
            word = load(words, i)
            place = place_in_line(word, _line(node, word))
            its = load(place, 0) if place != 0 else -MOST << COUNT
            if its == word | SINGLE and filled == 0:  # NB: those behind it may move
                drop(node.head, memory.arena, (place - node.table) >> 3, WORDS)
                store(memory.changed, end, word - shift)
                end += 1
            elif its >> COUNT > -MOST:
                store(place, 0, its - (1 << COUNT))
                if its >> COUNT <= 1:
                    store(memory.spots, filled, (place - node.table) >> 2)
                    filled += 1
            else:
                left = _append(memory.others, left, word, -1)
    store(node.head, 1, load(node.head, 1) - gone)
    left = _list_records(node, memory, False, left)
    filled, last = _add_others(node, memory, left, filled, 0)
    return end, filled, left, last


@inlined
def find_spots(node: Node, memory: Memory) -> int:
    """List the spots of all items of a node, whose table has moved; returns how many there are."""
    filled, other = 0, node.record
    while other > 0:
        at = memory.records + _BYTES * (other - 1)
        items, size = items_of(at, memory.tasks, memory.before), (load(at, 2) & LOW) + (load(at, 2) >> 32)
        other = shift_right(load(at, 0), 32)
        for i in range(size):
            item = load(items, i)
            spot = place_of(node.table, node.places, key_of(item), iteration_at(memory.time, item), node.kind)
            store(memory.spots, filled, spot << 1)
            filled += 1
    return filled


@inlined
def settle_spots(
    node: Node, memory: Memory, filled: int, is_uncertain: bool, end: int, reported: int, state: Vector
) -> tuple[int, int, int, int, int, int]:
    """Choose the entries of groups whose derivations have changed, and list rows that come, and behind `end` that go.

    Returns the end of that list; how many come, and how many of those that go are reported; how many entries were
    dropped, and how many are to be, which are the others; and how many rows are reported now.

    Args:
        is_uncertain: Lines that had room may have none any more.
    """
    came, went, dropped, dead = 0, 0, 0, 0
    for i in range(filled):
        spot, has_room = load(memory.spots, i) >> 1, load(memory.spots, i) & 1 != 0
        if spot < 0:
            continue
        word, effect = word_at(node.table, spot, node.kind), 0
        item = item_of(word & KEY, memory.time - iteration_of(word, node.kind))
        if word & ONLY != 0:
            if count_at(node.table, spot, node.kind) > 0:
                effect = COMES | IS_NEW if word & CHOSEN == 0 else 0
                mark(node.table, spot, node.kind, word | CHOSEN)
            elif word & LISTED == 0:
                if is_uncertain and node.kind == WORDS:
                    has_room = node.places < 16 or matches(node.table, node.places, spot >> 3, 0, WORDS) != 0
                if has_room:
                    store(node.table, spot, 0)
                    dropped += 1
                else:
                    mark(node.table, spot, node.kind, (word | LISTED) & ~CHOSEN)
                    entry = (word & KEY) << 32 | iteration_of(word, node.kind)
                    dead = _append(memory.others, dead, entry, spot)
                if word & CHOSEN != 0:
                    store(memory.changed, end, item)
                    reported = report(memory.rows, reported, word, node.number, 1)
                    end, went = end + 1, went + 1
        elif word != 0:
            calendar, heads, bits, gone = memory.calendar, memory.heads, memory.bits, memory.gone
            effect = settle(
                spot, memory.time, node.table, node.places, node.kind, node.number, calendar, heads, bits, gone, state
            )
            if effect & GOES != 0:
                store(memory.changed, end, item)
                end += 1
        if effect & COMES != 0:
            store(memory.late, came, item)
            came += 1
            if effect & IS_NEW != 0:
                reported = report(memory.rows, reported, word, node.number, 0)
    return end, came, went, dropped, dead, reported


@inlined
def insert_late(memory: Memory, at: int, end: int, count: int) -> None:
    """Insert the items of rows that come late in the list of what changed, before those that go."""
    if count > 0:
        move(memory.changed + 8 * (at + count), memory.changed + 8 * at, end - at)
        move(memory.changed + 8 * at, memory.late, count)
