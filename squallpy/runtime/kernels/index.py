"""The hash index under everything: open addressing over one word per entry.

    entry = upper 32 bits of the hash | number + 1          0 = empty

An entry's home is its hash scaled to the table; it stands there or behind, and entries stand in the order of their
hashes. So a search ends where a larger hash stands: after few steps in a table that is two thirds full, also for
what is not there. Growing is one sequential pass that never looks at a key, and deletion (backward shift) needs no
tombstones. Numbers stay below 2³¹.

Source: Amble, Knuth, *Ordered hash tables* (1974); Gonnet, Munro, *The analysis of linear probing sort* (1984).
"""

import numpy as np

from squallpy.runtime.kernels.compiled import Vector, inlined, kernel
from squallpy.runtime.kernels.machine import below, load, multiply_high, prefetch, store

LOW, HIGH = 0xFFFFFFFF, -0x100000000
_NEAR = 56  # bytes behind its home that an entry seldom goes beyond
MOST, OF = 2, 3  # so full may a table be: two thirds


@inlined
def home(entry: int, size: int) -> int:
    """Where in a table of `size` an entry (or its hash) would like to stand."""
    return multiply_high(entry & HIGH, size)


@inlined
def full(count: int, size: int) -> bool:
    """Too many entries for one more?"""
    return count * OF >= size * MOST


def wider(size: int) -> int:
    """The size that a table grows to, half as much again or a third: sizes are 2ᵏ and 3 · 2ᵏ."""
    return size + (size // 2 if size & (size - 1) == 0 else size // 3)


@inlined
def same(a: int, b: int, width: int) -> bool:
    """Are the `width` words at two addresses equal?"""
    for i in range(width):  # noqa: SIM110
        if load(a, i) != load(b, i):
            return False
    return True


@inlined
def is_of(entry: int, h: int) -> bool:
    """Is this an entry, and most probably that of a hash?"""
    return entry != 0 and (entry ^ h) & HIGH == 0


@inlined
def is_behind(entry: int, h: int, at: int, size: int) -> bool:
    """Is there no entry at a position, or one that stands behind where that of a hash would?

    What the end of the table sent on to its beginning stands before what is at home there, and has the larger hash.
    """
    if below(entry - 1, h | LOW) != 0:  # as unsigned words: there is one, and its hash is not larger
        return home(h, size) > at and home(entry, size) <= at
    return entry == 0 or home(entry, size) <= at or home(h, size) > at


@inlined
def after(at: int, size: int) -> int:
    """The next position."""
    return 0 if at + 1 == size else at + 1


@inlined
def ask(table: int, size: int, h: int) -> None:
    """Ask for the cache lines where the entry of a hash would stand: it may be in the next."""
    there = table + 8 * home(h, size)
    prefetch(there)
    prefetch(there + _NEAR)


@inlined
def peek(table: int, size: int, h: int) -> int:
    """Where the entry that a hash most probably has stands, found without a look at any key, or where it would."""
    at = home(h, size)
    while True:
        entry = load(table, at)
        if is_behind(entry, h, at, size) or (entry ^ h) & HIGH == 0:
            return at
        at = after(at, size)


@inlined
def seek(table: int, size: int, start: int, h: int, key: int, width: int, rows: int, stride: int) -> int:
    """Position of the entry whose row (`width` words at `rows + number * stride`) equals `key`; if there is none, that
    where it belongs, as ~position. From `start` on, its home or where it was peeked, if nothing was removed since."""
    at = start
    while True:
        entry = load(table, at)
        if is_behind(entry, h, at, size):
            return ~at
        if (entry ^ h) & HIGH == 0 and same(rows + ((entry & LOW) - 1) * stride, key, width):
            return at
        at = after(at, size)


@inlined
def seek_number(table: int, size: int, h: int, number: int) -> int:
    """Position of the entry of `number`, which is there."""
    at = home(h, size)
    while load(table, at) & LOW != number + 1:
        at = after(at, size)
    return at


@inlined
def insert(table: int, size: int, at: int, entry: int) -> None:
    """Put an entry where it belongs; what stands there and behind moves on."""
    while entry != 0:
        following = load(table, at)
        store(table, at, entry)
        at, entry = after(at, size), following


@inlined
def remove(table: int, size: int, at: int) -> None:
    """Take the entry at a position out; what stands behind, but not at home, moves back."""
    while True:
        behind = after(at, size)
        entry = load(table, behind)
        if entry == 0 or home(entry, size) == behind:
            break
        store(table, at, entry)
        at = behind
    store(table, at, 0)


@inlined
def wipe(table: int, size: int, h: int) -> None:
    """Empty the cluster from the home of `h` on; for each hash in the table, this empties the table."""
    at = home(h, size)
    while load(table, at) != 0:
        store(table, at, 0)
        at = after(at, size)


_BLOCK = 64  # entries of a table carried over at a time


@inlined
def _carry(old: int, start: int, stop: int, new: int, size: int, end: int, block: Vector) -> int:
    """Put the entries at positions of one table into another, behind `end`, where its last stands; where it then does.

    By blocks, of which the entries that are there come first, without a jump: which they are nobody could predict.
    """
    for first in range(start, stop, _BLOCK):
        there = 0
        for i in range(first, min(first + _BLOCK, stop)):
            entry = load(old, i)
            block[there] = entry
            there += entry != 0
        for i in range(there):
            end = max(home(block[i], size), end + 1)
            if end < size:
                store(new, end, block[i])
            else:
                _enter(new, size, block[i])
    return end


@inlined
def _enter(table: int, size: int, entry: int) -> None:
    """Put an entry that is not there into a table."""
    at = home(entry, size)
    while not is_behind(load(table, at), entry, at, size):
        at = after(at, size)
    insert(table, size, at, entry)


@kernel("void(int64, int64, int64, int64)")
def carry_over(old: int, old_size: int, new: int, new_size: int) -> None:
    """Put the entries of one table into an empty one, in the order of their hashes."""
    block, first = np.empty(_BLOCK, np.int64), 0
    while load(old, first) != 0 and home(load(old, first), old_size) > first:  # from the table's end on they came here
        first += 1
    end = _carry(old, first, old_size, new, new_size, -1, block)
    _carry(old, 0, first, new, new_size, end, block)
