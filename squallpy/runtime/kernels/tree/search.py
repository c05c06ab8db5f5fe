"""Searches for keys: binary within a node, from the root to a leaf, with the nodes of later keys fetched ahead."""

from typing import Final

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import prefetch
from squallpy.runtime.kernels.kernel_compiler import Vector, address, inlined
from squallpy.runtime.kernels.tree.nodes import (
    FANOUT,
    STRIDE,
    child_of,
    count_comparisons,
    count_of,
    entry_at,
    header_of,
    is_before,
    level_of,
    root_of,
)

LINE: Final = 64  # bytes of a cache line
PREFETCH: Final = 2  # rows by which a node is fetched early, where each row has a leaf of its own


@inlined
def lower_bound(frame: Vector, node: int, key: int, low: int) -> int:
    """Find the first entry of a node, from `low` on, whose key is not below a key."""
    high, tried = count_of(frame, node), 0
    while low < high:
        middle = (low + high) >> 1
        tried += 1
        if is_before(entry_at(frame, node, middle), key, frame[at.KEY]):
            low = middle + 1
        else:
            high = middle
    count_comparisons(frame, tried)
    return low


@inlined
def upper_bound(frame: Vector, node: int, key: int, low: int, high: int) -> int:
    """Find the first entry of a node, from `low` up to `high`, whose key is above a key."""
    tried = 0
    while low < high:
        middle = (low + high) >> 1
        tried += 1
        if is_before(key, entry_at(frame, node, middle), frame[at.KEY]):
            high = middle
        else:
            low = middle + 1
    count_comparisons(frame, tried)
    return low


@inlined
def upper_bound_from(frame: Vector, node: int, key: int, start: int) -> int:
    """Find the first entry above a key by galloping from `start` on: one close by takes a few comparisons."""
    low, high, step = start, count_of(frame, node), 1
    while low + step <= high:
        count_comparisons(frame, 1)
        if is_before(key, entry_at(frame, node, low + step - 1), frame[at.KEY]):
            high = low + step - 1
            break
        low, step = low + step, 2 * step
    return upper_bound(frame, node, key, low, high)


@inlined
def child_index(frame: Vector, node: int, key: int) -> int:
    """Find the entry of an inner node in whose subtree a key is, if anywhere."""
    return upper_bound(frame, node, key, 1, count_of(frame, node)) - 1


@inlined
def prefetch_child(frame: Vector, node: int, key: int, taken: int) -> None:
    """Prefetch the child where a later key (0: none) goes, if it is behind the entry that is `taken` now."""
    i = 0 if key == 0 else upper_bound_from(frame, node, key, taken + 1) - 1
    if i > taken:
        child = child_of(frame, node, i)
        prefetch(header_of(frame, child))
        for line in range(0, 8 * FANOUT * frame[STRIDE], LINE):
            prefetch(entry_at(frame, child, 0) + line)


@inlined
def address_of_row(rows: Vector, order: Vector, step: int) -> int:
    """Return the address of the row that is number `step` in an order; 0 if there are fewer."""
    return address(rows) + 8 * rows.shape[1] * order[step] if step < len(order) else 0


@inlined
def find_leaf(frame: Vector, key: int, later: int) -> int:
    """Find the leaf where a key is, if anywhere; −1 in an empty tree. The way of a `later` key is prefetched."""
    node = root_of(frame)
    while node >= 0 and level_of(frame, node) > 0:
        i = child_index(frame, node, key)
        prefetch_child(frame, node, later, i)
        node = child_of(frame, node, i)
    return node
