"""Nodes of the tree: their layout, headers and entries. Entries and keys are given by address, nodes by number."""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, move, store
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.memory_area import HEAD

FANOUT: Final = 32
DEPTH: Final = 12  # levels at most: nodes are at least a quarter full, but for a few
LOWEST: Final = -(2**63)  # no height is less

# Constants in the frame; KEY, PAYLOAD, LANES, PLACES, SCRATCH and RINGS are where pools have them (see `pool_layout`).
STRIDE: Final = 4  # words in an entry
SUMMARY: Final = 6  # of a subtree besides its sum: NO_SUMMARY, EXTENTS, or the word of keys whose maximum is kept

NO_SUMMARY: Final = 0
EXTENTS: Final = -1  # the least and the greatest of its prefix sums

# Regions, as offsets from PLACES.
ENTRIES: Final = 0
NODES: Final = 2

# A node's header.
COUNT: Final = 0
LEVEL: Final = 1
PREVIOUS: Final = 2  # + 1; 0: none
NEXT: Final = 3
HEADER: Final = 4

# Scalars in the head.
SIZE: Final = 1  # entries in leaves
ROOT: Final = 2  # + 1; 0: empty
TOP: Final = 3  # nodes ever used
FREE: Final = 4  # first free node + 1

# The scratch: steps of the path to a leaf, a count of key comparisons, and sums that are pending along the path.
NODE: Final = 0
ENTRY: Final = 1  # that the path takes
BOUND: Final = 2  # address of the key below which all rows of the node are; 0: there is none
STEP: Final = 3
COMPARED: Final = STEP * (DEPTH + 1)
PENDING: Final = COMPARED + 1  # for each step a payload that its entry has yet to be given


def scratch_words(payload: int) -> int:
    """Return how many words of scratch a tree needs whose payloads have `payload` words."""
    return PENDING + DEPTH * payload


@inlined
def header_of(frame: Vector, node: int) -> int:
    """Return the address of a node's header."""
    return frame[frame[at.PLACES] + NODES] + 8 * HEADER * node


@inlined
def count_of(frame: Vector, node: int) -> int:
    return load(header_of(frame, node), COUNT)


@inlined
def entry_at(frame: Vector, node: int, i: int) -> int:
    """Return the address of a node's i-th entry."""
    return frame[frame[at.PLACES] + ENTRIES] + 8 * frame[STRIDE] * (node * FANOUT + i)


@inlined
def child_of(frame: Vector, node: int, i: int) -> int:
    return load(entry_at(frame, node, i), frame[STRIDE] - 1)


@inlined
def root_of(frame: Vector) -> int:
    """Return the root, or −1 in an empty tree."""
    return load(frame[HEAD], ROOT) - 1


@inlined
def level_of(frame: Vector, node: int) -> int:
    """Return a node's distance from the leaves."""
    return load(header_of(frame, node), LEVEL)


@inlined
def next_node(frame: Vector, node: int) -> int:
    """Return the next node on the same level, or −1."""
    return load(header_of(frame, node), NEXT) - 1


@inlined
def previous_node(frame: Vector, node: int) -> int:
    """Return the previous node on the same level, or −1."""
    return load(header_of(frame, node), PREVIOUS) - 1


@inlined
def is_before(a: int, b: int, width: int) -> bool:
    """True if the key at `a` is less than the one at `b`."""
    for i in range(width):
        x, y = load(a, i), load(b, i)
        if x != y:
            return x < y
    return False


@inlined
def path_step(frame: Vector, depth: int) -> int:
    """Return the word of the frame at which a step of the path begins."""
    return frame[at.SCRATCH] + STEP * depth


@inlined
def count_comparisons(frame: Vector, comparisons: int) -> None:
    frame[frame[at.SCRATCH] + COMPARED] += comparisons


@inlined
def move_entries(frame: Vector, to: int, source: int, entries: int) -> None:
    """Copy entries from one address to another, which may overlap."""
    move(to, source, entries * frame[STRIDE])


@inlined
def allocate(frame: Vector, level: int) -> int:
    """Take a free node, or the next one that was never used, as an empty node of a level."""
    head = frame[HEAD]
    node = load(head, FREE) - 1
    if node >= 0:
        store(head, FREE, load(header_of(frame, node), NEXT))
    else:
        node = load(head, TOP)
        store(head, TOP, node + 1)
    header = header_of(frame, node)
    store(header, COUNT, 0)
    store(header, LEVEL, level)
    store(header, PREVIOUS, 0)
    store(header, NEXT, 0)
    return node


@inlined
def release(frame: Vector, node: int) -> None:
    """Free a node, unlinked from its level."""
    header, head = header_of(frame, node), frame[HEAD]
    previous, following = load(header, PREVIOUS), load(header, NEXT)
    if previous != 0:
        store(header_of(frame, previous - 1), NEXT, following)
    if following != 0:
        store(header_of(frame, following - 1), PREVIOUS, previous)
    store(header, NEXT, load(head, FREE))
    store(head, FREE, node + 1)


@inlined
def link(frame: Vector, left: int, right: int) -> None:
    """Link a new node behind another on its level."""
    mine, other = header_of(frame, left), header_of(frame, right)
    following = load(mine, NEXT)
    store(other, NEXT, following)
    store(other, PREVIOUS, left + 1)
    store(mine, NEXT, right + 1)
    if following != 0:
        store(header_of(frame, following - 1), PREVIOUS, right + 1)


@inlined
def insert_entry(frame: Vector, node: int, i: int) -> int:
    """Make room for a node's i-th entry, and return its address."""
    count, row = count_of(frame, node), entry_at(frame, node, i)
    move_entries(frame, row + 8 * frame[STRIDE], row, count - i)
    store(header_of(frame, node), COUNT, count + 1)
    return row


@inlined
def delete_entry(frame: Vector, node: int, i: int) -> None:
    count, row = count_of(frame, node) - 1, entry_at(frame, node, i)
    move_entries(frame, row, row + 8 * frame[STRIDE], count - i)
    store(header_of(frame, node), COUNT, count)
