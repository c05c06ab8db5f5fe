"""Members of nodes: the groups that have a node, as a log of those that came and went.

head of a node   first unit of its block, size class + 1 | groups that are there, entries of the log
block            +3  +5  −3        →   group 5

A change is one entry at the end, wherever the group stood, so changes of one node are neighbours. What holds is read
from the end: the last entry of a group counts. A log that is full, or that has many more entries than groups, is
written anew with those that are there, so entries are read a constant number of times for each change.
"""

from typing import Final

from squallpy.runtime.kernels.arena_tables import UNIT, take_block, units_of
from squallpy.runtime.kernels.intrinsics import load, load32, store, store32
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined

_SPARSE: Final = 4  # entries for each group, at most
_FEW: Final = 32  # entries that are not too many for any number of groups


@inlined
def members_of(head: int) -> int:
    """Return how many groups have a node."""
    return load32(head, 2)


@inlined
def entries_of(head: int) -> int:
    """Return how many entries the log of a node has."""
    return load32(head, 3)


@inlined
def log_of(head: int, arena: int) -> int:
    """Return the address of a node's log."""
    return arena + UNIT * load32(head, 0)


@inlined
def end_of(head: int, arena: int) -> int:
    """Return where the next entry of a node's log will be written, if there is room."""
    return log_of(head, arena) + 4 * entries_of(head)


@inlined
def units_for(head: int) -> int:
    """Return how many units of an arena an entry more takes at most, as the log may have to be written anew."""
    return members_of(head) + 5


@inlined
def append(head: int, state: int, arena: int, group: int, gone: int, marks: Vector, mark: int) -> None:
    """Let a group be a member of a node, or if `gone` is 1 no longer, where `units_for` are free.

    Args:
        marks: A word for each group; `mark` is in none of them.
    """
    size_class, length = load32(head, 1) - 1, entries_of(head)
    if size_class < 0 or length == 4 * units_of(size_class):
        _rewrite(head, state, arena, members_of(head) + 1, marks, mark)
        length = entries_of(head)
    store32(log_of(head, arena), length, group << 1 | gone)
    members = members_of(head) + 1 - 2 * gone
    store32(head, 2, members)
    store32(head, 3, length + 1)
    if gone != 0 and length + 1 > _SPARSE * members + (_FEW if members > 0 else 0):
        _rewrite(head, state, arena, members, marks, mark)


@inlined
def _rewrite(head: int, state: int, arena: int, expected: int, marks: Vector, mark: int) -> None:
    """Write a log anew, in a block that has room for half as many members more than are expected; none for 0."""
    old, old_class, length, members = load32(head, 0), load32(head, 1) - 1, entries_of(head), members_of(head)
    if expected > 0:
        size_class = 0
        while 4 * units_of(size_class) < expected + (expected >> 1):
            size_class += 1
        block = take_block(state, arena, size_class)
        source, target, at = arena + UNIT * old, arena + UNIT * block, members
        for i in range(length - 1, -1, -1):
            word = load32(source, i)
            if marks[word >> 1] != mark:
                marks[word >> 1] = mark
                if word & 1 == 0:
                    at -= 1
                    store32(target, at, word)
        store32(head, 0, block)
        store32(head, 1, size_class + 1)
    else:
        store(head, 0, 0)
    store32(head, 3, members)
    if old_class >= 0:
        store(arena + UNIT * old, 0, load(state, 1 + old_class))
        store(state, 1 + old_class, old + 1)
