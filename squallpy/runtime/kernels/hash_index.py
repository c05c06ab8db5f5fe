"""The hash index under everything: open addressing over one word per entry, in a table that grows a little at a time.

    entry = upper 32 bits of the hash | number + 1          0 = empty

An entry's home is its hash scaled to the table; it stands there or behind, and entries stand in the order of their
hashes. So a search ends where a larger hash stands: after few steps in a table that is two thirds full, also for
what is not there. Deletion (backward shift) needs no tombstones. Numbers stay below 2³¹.

All that asks of a home is that a larger hash has none before that of a smaller one. So a table of `old` positions that
shall have `size` is so at once, with room at its end, but for the homes of the hashes up to a `turn`, all at first:

    |h h h h h h h h·········|      →      |h h h h h·····h · h · h·|      →      |h · h · h · h · h · h · h|

As rows come the turn goes down, and the entries that it passes move back: growing is one sequential pass that never
looks at a key, and no batch waits for it.

A hash may also be a key itself (`order_index.py`): then home = (hash − base) · scale, from 0 to the last position, and
a table that grows only gets more positions at its end.

Source: Amble, Knuth, *Ordered hash tables* (1974); Gonnet, Munro, *The analysis of linear probing sort* (1984); Litwin,
*Linear hashing* (1980) for growing step by step.
"""

import numpy as np

from squallpy.runtime.kernels.intrinsics import (
    below,
    load,
    lowest,
    multiply_high,
    prefetch,
    reaching,
    shift_right,
    store,
)
from squallpy.runtime.kernels.kernel_compiler import inlined, kernel, making
from squallpy.runtime.kernels.stored_keys import is_key, is_told_by_hash

LOW, HIGH = 0xFFFFFFFF, -0x100000000
_LINE = 64
_NEAR = 56  # bytes behind its home that an entry seldom goes beyond
MOST, OF = 2, 3  # so full may a table be: two thirds
SIZE, OLD, TURN = 0, 1, 2  # the first words of its region; all zero: a table of FIRST positions
SCALE, BASE = 3, 4  # where hashes are keys: positions for each key, times 2³², and the hash whose home is 0
TRIED = 5  # 1: hashes are keys, or it was tried
HEADER = 8  # words before the entries
FIRST = 512 - HEADER
_TOGETHER = 8  # entries that are looked at in one step
HASTE = 2  # a table that grows is done when of the entries that come before it grows again one in so many has

_ALL = 1 << 32  # entries with which each table is done
_PARTS = 20  # bits of the part of a table that is done

Shape = tuple[int, int, int, int, int]  # size, old, turn, scale (or the size), base


@inlined
def table_of(region: int) -> tuple[int, Shape]:
    """Return where the entries of a region's table begin, and its shape."""
    size, scale = load(region, SIZE), load(region, SCALE)
    size = size if size != 0 else FIRST
    shape = (size, load(region, OLD), load(region, TURN), scale if scale != 0 else size, load(region, BASE))
    return region + 8 * HEADER, shape


@inlined
def home(entry: int, shape: Shape) -> int:
    """Return the home of an entry or a hash in a table."""
    size, old, turn, scale, base = shape
    h = entry & HIGH
    beyond = h - base if below(base, h) != 0 else 0  # without a jump, as all of this
    return min(multiply_high(beyond, scale if below(turn, h) != 0 else old), size - 1)


@inlined
def full(count: int, shape: Shape) -> bool:
    """True if there are too many entries for one more."""
    return count * OF >= shape[0] * MOST


def wider(size: int) -> int:
    """Return the size that a table grows to, half as much again or a third: with the header sizes are 2ᵏ and 3 · 2ᵏ."""
    words = size + HEADER
    return size + (words // 2 if words & (words - 1) == 0 else words // 3)


@inlined
def is_of(entry: int, h: int) -> bool:
    """True if this is an entry, and most probably that of a hash."""
    return (entry ^ h) & HIGH == 0 and entry != 0  # in this order: no processor could predict which are empty


@inlined
def is_behind(entry: int, h: int, at: int, shape: Shape) -> bool:
    """True if no entry is at a position, or one whose place is behind that of a hash.

    An entry that the end of the table sent on to its beginning stands before those at home there, and has the larger
    hash.
    """
    if below(entry - 1, h | LOW) != 0:  # as unsigned words: there is one, and its hash is not larger
        return (entry ^ h) & HIGH != 0 and home(h, shape) > at and home(entry, shape) <= at
    return home(entry, shape) <= at or home(h, shape) > at  # the first also where none is


@inlined
def after(at: int, shape: Shape) -> int:
    """Return the next position."""
    return 0 if at + 1 == shape[0] else at + 1


@inlined
def ask(table: int, shape: Shape, h: int) -> int:
    """Ask for the cache lines where the entry of a hash would stand: it may be in the next. Its home."""
    at = home(h, shape)
    prefetch(table + 8 * at)
    prefetch(table + 8 * at + _NEAR)
    return at


@inlined
def ask_behind(table: int, at: int) -> None:
    """Ask for the cache lines behind a position: an entry that is inserted there moves those in them on."""
    prefetch(table + 8 * at + _NEAR)
    prefetch(table + 8 * at + _NEAR + _LINE)


@inlined
def peek(table: int, shape: Shape, start: int, h: int) -> int:
    """Find the position of the entry that a hash most probably has, or would have, from its home on.

    No key is compared. Of the first entries all are looked at in one step: how many there are before that of the hash
    no processor could predict.
    """
    at = start
    if at + _TOGETHER <= shape[0]:
        found = reaching(table + 8 * at, h & HIGH)
        at += lowest(found) if found != 0 else _TOGETHER - 1
        entry = load(table, at)
        if found != 0 and home(entry, shape) <= at:  # also of an empty one
            return at
    while True:
        entry = load(table, at)
        if is_behind(entry, h, at, shape) or (entry ^ h) & HIGH == 0:
            return at
        at = after(at, shape)


@inlined
def seek(table: int, shape: Shape, start: int, h: int, key: int, width: int, rows: int, unit: int) -> int:
    """Find the position of the entry whose row (`width` words of `unit` bytes, the first at `rows`) equals `key`.

    If there is none, it is that where the entry belongs, as ~position. The search begins at `start`: the home, or where
    the hash was peeked, if nothing was removed since. Rows whose key the hash tells are not looked at.
    """
    at, is_told = start, is_told_by_hash(key, width, unit)
    while True:
        entry = load(table, at)
        if is_of(entry, h):
            if is_told or is_key(rows + ((entry & LOW) - 1) * unit * width, key, width, unit):
                return at
        elif is_behind(entry, h, at, shape):
            return ~at
        at = after(at, shape)


@inlined
def seek_number(table: int, shape: Shape, h: int, number: int) -> int:
    """Find the position of the entry of `number`, which is there."""
    at = home(h, shape)
    while load(table, at) & LOW != number + 1:
        at = after(at, shape)
    return at


@inlined
def insert(table: int, shape: Shape, at: int, entry: int) -> int:
    """Put an entry where it belongs; what stands there and behind moves on. Return the last position that was written.

    NB: eight entries moved on in one step wait for cache lines that most insertions do not need.
    """
    last = at
    while entry != 0:
        following = load(table, at)
        store(table, at, entry)
        last = at
        at, entry = after(at, shape), following
    return last


@inlined
def crowding(shape: Shape, h: int, at: int, last: int) -> int:
    """Count the entries that the one of a hash, inserted at a position, passed from its home on, or moved up to `last`.

    Where the end of the table sent one on to its beginning, they are very many.
    """
    return abs(at - home(h, shape)) + abs(last - at)


@inlined
def remove(table: int, shape: Shape, at: int) -> None:
    """Take the entry at a position out; what stands behind, but not at home, moves back."""
    while True:
        behind = after(at, shape)
        entry = load(table, behind)
        if entry == 0 or home(entry, shape) == behind:
            break
        store(table, at, entry)
        at = behind
    store(table, at, 0)


@inlined
def wipe(table: int, shape: Shape, h: int) -> None:
    """Empty the cluster from the home of `h` on; for each hash in the table, this empties the table."""
    at = home(h, shape)
    while load(table, at) != 0:
        store(table, at, 0)
        at = after(at, shape)


@inlined
def wipe_all(region: int) -> None:
    """Empty a table, at a cost in proportion to its size."""
    table, shape = table_of(region)
    for at in range(shape[0]):
        store(table, at, 0)
    settle(region)


@inlined
def forget_order(region: int) -> None:
    """Empty a table, whose hashes are not keys from then on."""
    wipe_all(region)
    store(region, SCALE, 0)
    store(region, BASE, 0)
    store(region, OLD, 0)


@inlined
def settle(region: int) -> None:
    """Finish the growth of an empty table, which has nothing to move."""
    store(region, TURN, 0)


@inlined
def place_for(table: int, shape: Shape, entry: int) -> int:
    """Find where an entry belongs that is not there."""
    at = home(entry, shape)
    while not is_behind(load(table, at), entry, at, shape):
        at = after(at, shape)
    return at


@inlined
def _enter(table: int, shape: Shape, entry: int) -> int:
    """Put an entry that is not there into a table; its position."""
    at = place_for(table, shape, entry)
    insert(table, shape, at, entry)
    return at


@making
def go_on_growing(region: int, entries: int) -> bool:
    """Move the turn of a table that grows as far as is due with so many entries; return whether it goes on to grow.

    The entries that it passes, and those behind them that stand behind their homes, leave, which leaves all others
    where a search finds them; then they come back, most of them one behind the other.
    """
    table, shape = table_of(region)
    size, old, turn, scale, base = shape
    if turn == 0:
        return False
    last, whole = shift_right(turn, 32), (size - old) * MOST
    done = min(HASTE * max(entries * OF - old * MOST, 0), whole)
    least = ((1 << _PARTS) - (done << _PARTS) // whole) << (32 - _PARTS)  # the hashes that move are above it
    if least >= last:
        return True
    start, end = home((least + 1) << 32, shape), home(turn, shape)
    while not is_behind(load(table, end), turn, end, shape):
        end = after(end, shape)
    behind = end
    while load(table, behind) != 0 and home(load(table, behind), shape) != behind:
        behind = after(behind, shape)
    moved, n = np.empty(_from(start, end, size) + _from(end, behind, size) + 1, np.int64), 0
    at = start
    while at != end:  # without a jump: which positions are taken nobody could predict
        entry = load(table, at)
        moves = below(shift_right(entry, 32) - least - 1, last - least)
        moved[n] = entry
        store(table, at, entry & (moves - 1))
        n += moves
        at = after(at, shape)
    while at != behind:
        moved[n] = load(table, at)
        store(table, at, 0)
        n += 1
        at = after(at, shape)
    shape = (size, old, least << 32, scale, base)
    store(region, TURN, shape[2])
    at = -1
    for i in range(n):
        there = max(home(moved[i], shape), at + 1)
        ascends = i == 0 or below(moved[i - 1], moved[i]) != 0  # not where they come from the end and the beginning
        if ascends and there < size and load(table, there) == 0:
            store(table, there, moved[i])
            at = there
        else:
            at = _enter(table, shape, moved[i])
    return least != 0


@inlined
def _from(start: int, end: int, size: int) -> int:
    """Count the positions from one to another."""
    return end - start if end >= start else end - start + size


@kernel("void(int64, int64)")
def begin_growing(region: int, size: int) -> None:
    """Give a table more positions: there is memory for them in its region, empty.

    What the end of the table sent on to its beginning has room behind the end now, and so have, where hashes are keys,
    entries whose homes are there.
    """
    while go_on_growing(region, _ALL):
        pass
    table, (old, _, _, _, base) = table_of(region)
    scale, sent, last = load(region, SCALE), 0, old
    shape = (old, old, 0, old, base) if scale == 0 else (old, scale, 0, scale, base)
    wider_shape = (size, old, -1, size, base) if scale == 0 else (size, scale, 0, scale, base)
    while load(table, sent) != 0 and home(load(table, sent), shape) > sent:
        sent += 1
    while load(table, last - 1) != 0 and home(load(table, last - 1), wider_shape) > last - 1:
        last -= 1
    entries = np.empty(sent + old - last, np.int64)
    for i in range(sent):
        entries[i] = load(table, 0)
        remove(table, shape, 0)
    for i in range(last, old):
        entries[sent + i - last] = load(table, i)
        store(table, i, 0)
    store(region, SIZE, size)
    store(region, OLD, wider_shape[1])
    store(region, TURN, wider_shape[2])
    for i in range(len(entries)):
        _enter(table, wider_shape, entries[i])
