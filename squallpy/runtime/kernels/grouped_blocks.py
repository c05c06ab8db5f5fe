"""Blocks of nodes: derivations that they get or lose, gathered ahead, with the cache lines where groups stand.

    node 9: + groups 3, 5; − 4   →   words (3, 2), (5, 2), (4, 2), and the lines where they stand; 2 more, 1 less

While one block is done, lines of the next one are asked for, one for each word, as a processor waits for few at a time.
Words are entries without flags and number, so that what is done in a table compares and stores them, and follows no
records.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import WORDS, block_of, bucket_among, places_of
from squallpy.runtime.kernels.grouped_batch import FIRST
from squallpy.runtime.kernels.grouped_entries import (
    LOW,
    ROWS,
    SHORT,
    STEPS,
    TAG,
    kind_of,
    steps_of,
    table_of,
    targets_of,
)
from squallpy.runtime.kernels.grouped_tasks import LIST, QUEUED, RECORD, amount_of, items_of, kind_of_record
from squallpy.runtime.kernels.intrinsics import load, load32, prefetch, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.line_addresses import LANES, LINE, address_eight

BLOCK: Final = 64  # items of a block, or those of one node that has more, and its nodes at most
NOTE: Final = 64  # bytes for each node of a block
NOTES: Final = BLOCK * NOTE
ROOM: Final = 4  # words of a window for each item, besides those of notes

# Words of a note.
MORE: Final = 0  # how many words come first, of derivations that come, one of each,
LESS: Final = 1  # and then of those that go
START: Final = 2
GROWTH: Final = 3  # how many more items come than go, and how many there are, with those of records that are apart:
SIZE: Final = 4
APART: Final = 5  # 1 if some records have several derivations for an item, or the table has pairs
FINAL: Final = 6  # 1 if nothing that comes is taken away at the same time

_BYTES: Final = 8 * RECORD
_VALID: Final = 0x0F03FF  # places of a bucket, by what the low bits of a line's address say
_NEAR: Final = 32  # nodes whose heads are asked for in advance,
_NEXT: Final = 8  # whose items are, and, twice as far, whose records


@inlined
def is_plain(record: int, is_short: bool) -> bool:
    """True if the items of a record are one derivation each, in a table that has such words."""
    return is_short and amount_of(record) == 1


@inlined
def line_at(table: int, buckets: int, mark: int, word: int) -> int:
    """Return the address of the line where a word stands, with the mark of a table that is less than a line."""
    return table + LINE * bucket_among(word, buckets) | mark


@inlined
def mark_of(places: int) -> int:
    """Return what is added to a line's address if only two or four of its places are those of the table, or none."""
    return 0 if places >= 8 else places >> 1 if places > 0 else 3


@inlined
def valid_places(line: int) -> int:
    """Return a bit for each place of a line that is one of the table."""
    return (_VALID >> ((line & 3) << 3)) & 255


@inlined
def words_of(window: int, half: int, room: int) -> int:
    """Return the address of the words of a block, behind which there are as many lines."""
    return window + 2 * NOTES + 16 * room * half


@inlined
def gather(
    q: int,
    there: int,
    queue: Vector,
    firsts: int,
    frame: Vector,
    tasks: int,
    before: int,
    first: int,
    time: int,
    window: int,
    half: int,
    room: int,
) -> tuple[int, int]:
    """Gather a block from node number `q` of the queue on; returns the number of the next node and that of words.

    It is `q` if there is no room.
    """
    arena, notes = frame[ROWS], window + NOTES * half
    words, count, shift = words_of(window, half, room), 0, time << TAG
    lines, end, asked = words + 8 * room, min(there, q + BLOCK), 0
    while q < end and asked < BLOCK:
        if q + _NEAR < there:
            prefetch(table_of(frame, queue[QUEUED * (q + _NEAR)]))
            prefetch(firsts + 8 * queue[QUEUED * (q + _NEAR)])
        if q + 2 * _NEXT < there:
            prefetch(first + _BYTES * ((load32(firsts, 2 * queue[QUEUED * (q + 2 * _NEXT)]) & FIRST) - 1))
            items = items_of(
                first + _BYTES * ((load32(firsts, 2 * queue[QUEUED * (q + _NEXT)]) & FIRST) - 1), tasks, before
            )
            prefetch(items)
            prefetch(items + LINE)
            prefetch(items + 2 * LINE)
        node = queue[QUEUED * q]
        head, record = table_of(frame, node), load32(firsts, 2 * node) & FIRST
        kind = kind_of(head)
        is_short, more, less, growth, size, apart = kind == WORDS and time <= SHORT, 0, 0, 0, 0, 0
        other, is_new = record, False
        while other > 0:
            at = first + _BYTES * (other - 1)
            its_less, its_more = load(at, 2) & LOW, load(at, 2) >> 32
            size, growth = size + its_more + its_less, growth + its_more - its_less
            if is_plain(at, is_short):
                more, less = more + its_more, less + its_less
            else:
                apart = 1
            is_new |= its_more > 0 and kind_of_record(at) != LIST
            other = shift_right(load(at, 0), 32)
            if other > 0:
                items = items_of(first + _BYTES * (other - 1), tasks, before)
                prefetch(items)
                prefetch(items + LINE)
        if count + size > room - LANES:
            break
        # NB: only what comes by a task is taken away at once, where its edge is new and the node before it goes
        is_final = not is_new or growth == size
        places, table = places_of(head, kind), block_of(head, arena)
        buckets, mark, there_more, there_less = places >> (4 - kind), mark_of(places), count, count + more
        other, has_less = record, False
        while other > 0:
            at = first + _BYTES * (other - 1)
            its_less, its_more, items = load(at, 2) & LOW, load(at, 2) >> 32, items_of(at, tasks, before)
            other = shift_right(load(at, 0), 32)
            if is_plain(at, is_short):
                if its_more + its_less == size:  # NB: those that go are right behind, as they are in the list
                    its_more, its_less = size, 0
                for i in range(0, its_more, 8):
                    at, to = items + 8 * i, 8 * (there_more + i)
                    address_eight(at, words + to, lines + to, shift, table, buckets, mark)
                there_more, has_less = there_more + its_more, has_less | (its_less > 0)
            else:
                for i in range(its_more + its_less):
                    prefetch(table + LINE * bucket_among(load(items, i), buckets))
        other = record if has_less else 0
        while other > 0:  # NB: when all that come are there, as behind those of a list more are stored than it has
            at = first + _BYTES * (other - 1)
            its_less, its_more, items = load(at, 2) & LOW, load(at, 2) >> 32, items_of(at, tasks, before)
            other = shift_right(load(at, 0), 32)
            if is_plain(at, is_short):
                for i in range(0, its_less, 8):
                    at, to = items + 8 * (its_more + i), 8 * (there_less + i)
                    address_eight(at, words + to, lines + to, shift, table, buckets, mark)
                there_less += its_less
        prefetch(targets_of(steps_of(frame, node), frame[STEPS]))
        store(notes, MORE, more)
        store(notes, LESS, less)
        store(notes, START, count)
        store(notes, GROWTH, growth)
        store(notes, SIZE, size)
        store(notes, APART, apart)
        store(notes, FINAL, 1 if is_final else 0)
        notes += NOTE
        count, asked, q = count + more + less, asked + size, q + 1
    return q, count


@inlined
def list_apart(
    record: int,
    comes: bool,
    is_apart: bool,
    is_short: bool,
    time: int,
    tasks: int,
    before: int,
    first: int,
    pairs: int,
    count: int,
) -> int:
    """Append the items of a node's other records, those that come or that go, to pairs of word and derivations.

    Returns how many pairs there are now.
    """
    while is_apart and record > 0:
        at = first + _BYTES * (record - 1)
        less, more, items, amount = load(at, 2) & LOW, load(at, 2) >> 32, items_of(at, tasks, before), amount_of(at)
        record = shift_right(load(at, 0), 32)
        if not is_plain(at, is_short):
            for i in range(0 if comes else more, more if comes else more + less):
                store(pairs, 2 * count, load(items, i) + (time << TAG))
                store(pairs, 2 * count + 1, amount if comes else -amount)
                count += 1
    return count
