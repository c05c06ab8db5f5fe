"""The hash index under everything: open addressing over one word per entry.

    entry = upper 32 bits of the hash | number + 1          0 = empty

An entry's home is its hash scaled to the table, so the table is ordered by hash but for collisions: growing it is one
sequential pass that never looks at a key, and deletion (backward shift) needs no tombstones. Numbers stay below 2³¹.
"""

import numpy as np

from squallpy.runtime.kernels.compiled import inlined, kernel
from squallpy.runtime.kernels.machine import load, multiply_high, store

LOW, HIGH = 0xFFFFFFFF, -0x100000000


@inlined
def home(entry: int, size: int) -> int:
    """Where in a table of `size` an entry (or its hash) would like to stand."""
    return multiply_high(entry & HIGH, size)


@inlined
def full(count: int, size: int) -> bool:
    """Too many entries for one more? (Load at most 5/8.)"""
    return count * 8 >= size * 5


@inlined
def same(a: int, b: int, width: int) -> bool:
    """Are the `width` words at two addresses equal?"""
    for i in range(width):  # noqa: SIM110
        if load(a, i) != load(b, i):
            return False
    return True


@inlined
def peek(table: int, size: int, h: int) -> int:
    """Where the entry that a hash most probably has stands, found without a look at any key, or where it would."""
    at = home(h, size)
    while True:
        entry = load(table, at)
        if entry == 0 or (entry ^ h) & HIGH == 0:
            return at
        at += 1
        if at == size:
            at = 0


@inlined
def seek(table: int, size: int, start: int, h: int, key: int, width: int, rows: int, stride: int) -> int:
    """Position of the entry whose row (`width` words at `rows + number * stride`) equals `key`, or of the empty entry
    where it belongs; from `start` on, its home or where it was peeked, if nothing was removed meanwhile."""
    at = start
    while True:
        entry = load(table, at)
        if entry == 0:
            return at
        if (entry ^ h) & HIGH == 0 and same(rows + ((entry & LOW) - 1) * stride, key, width):
            return at
        at += 1
        if at == size:
            at = 0


@inlined
def seek_number(table: int, size: int, h: int, number: int) -> int:
    """Position of the entry of `number`, which is there."""
    at = home(h, size)
    while load(table, at) & LOW != number + 1:
        at += 1
        if at == size:
            at = 0
    return at


@inlined
def remove(table: int, size: int, at: int) -> None:
    """Empty the entry at a position, moving later ones of its cluster back."""
    hole = at
    while True:
        at += 1
        if at == size:
            at = 0
        entry = load(table, at)
        if entry == 0:
            break
        distance, gap = at - home(entry, size), at - hole
        if (distance + size if distance < 0 else distance) >= (gap + size if gap < 0 else gap):
            store(table, hole, entry)
            hole = at
    store(table, hole, 0)


@inlined
def wipe(table: int, size: int, h: int) -> None:
    """Empty the cluster from the home of `h` on; for each hash in the table, this empties the table."""
    at = home(h, size)
    while load(table, at) != 0:
        store(table, at, 0)
        at += 1
        if at == size:
            at = 0


_BLOCK = 64  # entries of a table carried over at a time


@kernel("void(int64, int64, int64, int64)")
def carry_over(old: int, old_size: int, new: int, new_size: int) -> None:
    """Put the entries of one table into an empty one.

    By blocks, of which the entries that are there come first, without a jump: which they are nobody could predict.
    """
    block = np.empty(_BLOCK, np.int64)
    for start in range(0, old_size, _BLOCK):
        there = 0
        for i in range(start, min(start + _BLOCK, old_size)):
            entry = load(old, i)
            block[there] = entry
            there += entry != 0
        for i in range(there):
            at = home(block[i], new_size)
            while load(new, at) != 0:
                at += 1
                if at == new_size:
                    at = 0
            store(new, at, block[i])
