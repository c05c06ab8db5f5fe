"""Entries of grouped rows: the groups that have a node in one small table, and the steps of nodes.

    node 7:   (3, 1): 1, chosen      (5, 2): 2, chosen      (5, 4): 1        group, iteration: number of derivations
    steps:    7 → 9, 9 → 4

A row is there if one of its entries is *chosen*, that of its least iteration, its rank. Tables have words, of group,
iteration and number, and pairs only where these are large.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import (
    OWNED,
    PAIRS,
    STATE,
    UNIT,
    WORDS,
    block_of,
    bucket_of,
    class_for,
    enter,
    first_of,
    free_place,
    give_block,
    is_full,
    length_of,
    matches,
    next_bucket,
    places_of,
    set_block,
    take_block,
    units_of,
)
from squallpy.runtime.kernels.intrinsics import load, load32, store
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.line_addresses import KEY
from squallpy.runtime.kernels.memory_area import CONSTANTS

# Regions of the area, each an address and a number of words in the frame.
GROUPS: Final = CONSTANTS  # how many derivations of iteration 1 a group has; a group without any has no rows
HEADS: Final = CONSTANTS + 2  # of nodes: the head of its table, then that of its steps; OWNED: these are known
ROWS: Final = CONSTANTS + 4
STEPS: Final = CONSTANTS + 6
LEVELS: Final = CONSTANTS + 8  # of nodes: as a rule more than that of any node that derives it
HEAD_BYTES: Final = 32  # of a node, so that both are in one cache line

# Scalars in the head: the last iteration of any entry, all entries, nodes with known steps, and the state of arenas.
LAST: Final = 1
ENTRIES: Final = 2
KNOWN: Final = 3
ROWS_STATE: Final = 4
STEPS_STATE: Final = ROWS_STATE + STATE
SCALARS: Final = STEPS_STATE + STATE

LISTED: Final = 1 << 28  # flags of an entry's word, above the key: perhaps to be dropped when the batch is done
NOTED: Final = 1 << 29  # chosen before the batch
CHOSEN_BIT: Final = 30
CHOSEN: Final = 1 << CHOSEN_BIT
ONLY: Final = 1 << 31  # there is no other entry of the group
TAG: Final = 32  # bits below the iteration; in tables of WORDS it has 16, and the number of derivations is above
SHORT: Final = (1 << 16) - 1
COUNT: Final = 48
MOST: Final = (1 << 15) - 1
NEVER: Final = 1 << 31
LOW: Final = (1 << 32) - 1

AHEAD: Final = 8  # rows for whose lines is asked in advance
INLINE: Final = 3  # steps of a node that are in its head


@inlined
def table_of(frame: Vector, node: int) -> int:
    """Return the address of the head of a node's table."""
    return frame[HEADS] + HEAD_BYTES * node


@inlined
def steps_of(frame: Vector, node: int) -> int:
    """Return the address of the head of a node's steps."""
    return frame[HEADS] + HEAD_BYTES * node + HEAD_BYTES // 2


@inlined
def kind_of(head: int) -> int:
    """Return the kind of a table of rows: pairs only where an iteration or a number is too large for words."""
    return WORDS + (load(head, 0) & OWNED)


@inlined
def iteration_of(word: int, kind: int) -> int:
    """Return the iteration of an entry."""
    return word >> TAG & SHORT if kind == WORDS else word >> TAG


@inlined
def count_at(table: int, at: int, kind: int) -> int:
    """Return the number of derivations of the entry at a place."""
    return load(table, at) >> COUNT if kind == WORDS else load(table, 2 * at + 1)


@inlined
def word_at(table: int, at: int, kind: int) -> int:
    return load(table, at << (kind - 1))


@inlined
def row_of(word: int, node: int, goes: int) -> int:
    """Return the row of an entry, which comes or goes (1): group, node, and that, in 31, 32 and 1 bits."""
    return ((word & KEY) - 1) << 33 | 2 * node | goes


@inlined
def mark(table: int, at: int, kind: int, word: int) -> None:
    """Store an entry's word with other flags."""
    store(table, at << (kind - 1), word)


@inlined
def set_entry(table: int, at: int, kind: int, key: int, flags: int, iteration: int, count: int) -> None:
    if kind == WORDS:
        store(table, at, count << COUNT | iteration << TAG | flags | key)
    else:
        store(table, 2 * at, iteration << TAG | flags | key)
        store(table, 2 * at + 1, count)


@inlined
def _widen(head: int, state: int, arena: int) -> None:
    """Make pairs of the words of a table, for which there is room."""
    places, table, size_class = places_of(head, WORDS), block_of(head, arena), class_for(length_of(head) + 1, PAIRS)
    block = take_block(state, arena, size_class)
    size, target = 4 * units_of(size_class) >> PAIRS, arena + UNIT * block
    for i in range(places):
        word = load(table, i)
        if word != 0:
            at = free_place(target, size, word & KEY, PAIRS)
            set_entry(target, at, PAIRS, word & KEY, word & (15 << 28), iteration_of(word, WORDS), word >> COUNT)
    give_block(head, state, arena)
    set_block(head, block, size_class, OWNED)


@inlined
def chosen_place(table: int, places: int, key: int, kind: int) -> int:
    """Find the place of a key's chosen entry, or −1."""
    return _place_with(table, places, key, CHOSEN, CHOSEN, kind)


@inlined
def place_of(table: int, places: int, key: int, iteration: int, kind: int) -> int:
    """Find the place of the entry of a group and an iteration, or −1."""
    return _place_with(table, places, key, (SHORT if kind == WORDS else -1) << TAG, iteration << TAG, kind)


@inlined
def _place_with(table: int, places: int, key: int, bits: int, value: int, kind: int) -> int:
    """Find the place of a key's entry whose word has a value in some bits, or −1."""
    bucket = start = bucket_of(key, places, kind)
    while True:
        found = matches(table, places, bucket, key, kind)
        while found != 0:
            at = first_of(found, bucket, kind)
            if word_at(table, at, kind) & bits == value:
                return at
            found &= found - 1
        if matches(table, places, bucket, 0, kind) != 0:
            return -1
        bucket = next_bucket(bucket, places, kind)
        if bucket == start:
            return -1


@inlined
def add_derivations(head: int, state: int, arena: int, key: int, iteration: int, amount: int) -> int:
    """Add derivations for a group in an iteration to a table; the place of the entry, −1 if there is none."""
    kind = kind_of(head)
    places, table, only, found, free = places_of(head, kind), block_of(head, arena), ONLY, -1, -1
    if places > 0:
        bucket = start = bucket_of(key, places, kind)
        while found < 0:
            same = matches(table, places, bucket, key, kind)
            while same != 0:
                at = first_of(same, bucket, kind)
                word = word_at(table, at, kind)
                if iteration_of(word, kind) == iteration:
                    found = at
                    break
                mark(table, at, kind, word & ~ONLY)
                only = 0
                same &= same - 1
            if found >= 0:
                break
            vacant = matches(table, places, bucket, 0, kind)
            if vacant != 0:
                free = first_of(vacant, bucket, kind)
                break
            bucket = next_bucket(bucket, places, kind)
            if bucket == start:
                break
    if found >= 0:
        count = count_at(table, found, kind) + amount
        if kind == PAIRS:
            store(table, 2 * found + 1, count)
            return found
        if -MOST <= count <= MOST:
            store(table, found, load(table, found) + (amount << COUNT))
            return found
    elif amount == 0:
        return -1
    if kind == WORDS and (found >= 0 or iteration > SHORT or not -MOST <= amount <= MOST):
        _widen(head, state, arena)
        kind, free = PAIRS, -1
        if found >= 0:
            table = block_of(head, arena)
            at = place_of(table, places_of(head, PAIRS), key, iteration, PAIRS)
            store(table, 2 * at + 1, load(table, 2 * at + 1) + amount)
            return at
    if free < 0 or is_full(length_of(head), places, kind):
        free = enter(head, state, arena, key, kind)
        table = block_of(head, arena)
    else:
        store(head, 1, load(head, 1) + 1)
    set_entry(table, free, kind, key, only, iteration, amount)
    return free


@inlined
def targets_of(node: int, arena: int) -> int:
    """Return the address of the nodes, of 32 bits each, that the node whose head is given derives.

    A head is their number and OWNED, then three of them, or the first unit of a block with all and its size class.
    """
    return node + 4 if load32(node, 0) >> 1 <= INLINE else arena + UNIT * load32(node, 1)
