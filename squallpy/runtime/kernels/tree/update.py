"""Upserts: sorted rows descend from a path that neighbours share; full nodes split on the way, thin ones are merged."""

from typing import Final

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, store
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    MATRIX,
    VECTOR,
    Vector,
    address,
    inlined,
    kernel,
)
from squallpy.runtime.kernels.memory_area import HEAD
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_arithmetic import add, copy, is_zero
from squallpy.runtime.kernels.tree.nodes import (
    BOUND,
    COUNT,
    DEPTH,
    ENTRIES,
    ENTRY,
    FANOUT,
    HEADER,
    NODE,
    NODES,
    PENDING,
    ROOT,
    SIZE,
    STEP,
    STRIDE,
    TOP,
    allocate,
    child_of,
    count_comparisons,
    count_of,
    delete_entry,
    entry_at,
    header_of,
    insert_entry,
    is_before,
    level_of,
    link,
    move_entries,
    next_node,
    path_step,
    release,
    root_of,
)
from squallpy.runtime.kernels.tree.search import PREFETCH, address_of_row, lower_bound, prefetch_child, upper_bound_from
from squallpy.runtime.kernels.tree.summaries import refresh_summary, summarise

MAX_PREFETCH: Final = 12  # rows by which a node is fetched early: as long as it takes to fill the leaves before


@inlined
def _split_point(frame: Vector, node: int, key: int) -> int:
    """Decide how many entries stay in a full node that splits for a key.

    Half of them, or all but one where the key is behind all on this level, for then others behind it will follow.
    """
    last = next_node(frame, node) < 0 and is_before(entry_at(frame, node, FANOUT - 1), key, frame[at.KEY])
    return FANOUT - 1 if last else FANOUT // 2


@inlined
def _split(frame: Vector, node: int, i: int, stays: int) -> None:
    """Split the full child of entry `i`, of whose entries the first `stays` stay; the node has room for one more."""
    left = child_of(frame, node, i)
    right = allocate(frame, level_of(frame, left))
    move_entries(frame, entry_at(frame, right, 0), entry_at(frame, left, stays), FANOUT - stays)
    store(header_of(frame, left), COUNT, stays)
    store(header_of(frame, right), COUNT, FANOUT - stays)
    link(frame, left, right)
    row = insert_entry(frame, node, i + 1)
    copy(row, entry_at(frame, right, 0), frame[at.KEY])
    store(row, frame[STRIDE] - 1, right)
    for j in range(i, i + 2):
        summarise(frame, node, j)


@inlined
def _merge(frame: Vector, node: int, i: int) -> None:
    """Merge the children of entries `i` and `i + 1`, if together they fill at most half a node."""
    left, right = child_of(frame, node, i), child_of(frame, node, i + 1)
    mine, theirs = count_of(frame, left), count_of(frame, right)
    if mine + theirs <= FANOUT // 2:
        row = entry_at(frame, left, mine)
        move_entries(frame, row, entry_at(frame, right, 0), theirs)
        if level_of(frame, left) > 0:  # a first child's key bounds nothing
            copy(row, entry_at(frame, node, i + 1), frame[at.KEY])
        store(header_of(frame, left), COUNT, mine + theirs)
        release(frame, right)
        delete_entry(frame, node, i + 1)
        summarise(frame, node, i)


@inlined
def _repair_path(frame: Vector, depth: int) -> None:
    """Recompute and merge along the path to a leaf from which an entry was deleted; the path ends with it."""
    for d in range(depth - 1, -1, -1):
        _clear_pending(frame, d)
        node, i = frame[path_step(frame, d) + NODE], frame[path_step(frame, d) + ENTRY]
        child = child_of(frame, node, i)
        count = count_of(frame, child)
        if count == 0:
            release(frame, child)
            delete_entry(frame, node, i)
            continue
        summarise(frame, node, i)
        if count < FANOUT // 4 and count_of(frame, node) > 1:
            _merge(frame, node, max(i - 1, 0))
    root = root_of(frame)
    while level_of(frame, root) > 0 and count_of(frame, root) == 1:
        child = child_of(frame, root, 0)
        release(frame, root)
        root = child
    if count_of(frame, root) == 0:
        release(frame, root)
        root = -1
    store(frame[HEAD], ROOT, root + 1)


@inlined
def _pending_sum(frame: Vector, depth: int) -> int:
    """Return the address of the payload that the entry of a step has yet to be given."""
    return address(frame) + 8 * (frame[at.SCRATCH] + PENDING + frame[at.PAYLOAD] * depth)


@inlined
def _clear_pending(frame: Vector, depth: int) -> None:
    """Set to zero what the entry of a step has yet to be given."""
    for word in range(frame[at.PAYLOAD]):
        store(_pending_sum(frame, depth), word, 0)


@inlined
def _leave(frame: Vector, depth: int) -> None:
    """Leave the node to which a step leads: give its entry the pending sum, and pass that on to the step above."""
    step, pending = path_step(frame, depth), _pending_sum(frame, depth)
    entry = entry_at(frame, frame[step + NODE], frame[step + ENTRY])
    add(frame, entry + 8 * frame[at.KEY], pending)
    refresh_summary(frame, entry, load(entry, frame[STRIDE] - 1))
    if depth > 0:
        add(frame, _pending_sum(frame, depth - 1), pending)
    _clear_pending(frame, depth)


@inlined
def _fits(frame: Vector, key: int, depth: int) -> bool:
    """True if a key belongs to the node of a step, and the node has room for one more."""
    count_comparisons(frame, 1)
    step = path_step(frame, depth)
    node, bound = frame[step + NODE], frame[step + BOUND]
    return count_of(frame, node) < FANOUT and (bound == 0 or is_before(key, bound, frame[at.KEY]))


@inlined
def _begin(frame: Vector) -> None:
    """Begin a path at the root, which is made or grows where it has no room for an entry."""
    head, node, step = frame[HEAD], root_of(frame), path_step(frame, 0)
    if node < 0:
        node = allocate(frame, 0)
        store(head, ROOT, node + 1)
    elif count_of(frame, node) == FANOUT:
        top = allocate(frame, level_of(frame, node) + 1)
        row = insert_entry(frame, top, 0)
        copy(row, entry_at(frame, node, 0), frame[at.KEY])
        store(row, frame[STRIDE] - 1, node)
        store(head, ROOT, top + 1)
        node = top
    frame[step + NODE], frame[step + ENTRY], frame[step + BOUND] = node, 0, 0


@inlined
def _prefetch_distance(frame: Vector, rows: int) -> int:
    """Choose how many rows early a node is fetched, if so many come to the tree: a leaf has some 20 entries."""
    return min(MAX_PREFETCH, PREFETCH + 3 * 20 * rows // max(1, load(frame[HEAD], SIZE)))


@inlined
def _descend(frame: Vector, key: int, depth: int, later: int) -> int:
    """Extend the path from its node at `depth` to the leaf of a key, splitting full nodes; return the leaf's depth.

    Keys ascend, so in the first node the search begins at the entry that the path took before. Where the key of a
    `later` row (0: there is none) goes another way, its node is prefetched meanwhile.
    """
    step = path_step(frame, depth)
    node = frame[step + NODE]
    while level_of(frame, node) > 0:
        i = upper_bound_from(frame, node, key, frame[step + ENTRY] + 1) - 1
        if count_of(frame, child_of(frame, node, i)) == FANOUT:
            _split(frame, node, i, _split_point(frame, child_of(frame, node, i), key))
            if not is_before(key, entry_at(frame, node, i + 1), frame[at.KEY]):
                i += 1
        frame[step + ENTRY], bound = i, frame[step + BOUND]
        if i + 1 < count_of(frame, node):
            bound = entry_at(frame, node, i + 1)
        prefetch_child(frame, node, later, i)
        depth, step, node = depth + 1, step + STEP, child_of(frame, node, i)
        frame[step + NODE], frame[step + ENTRY], frame[step + BOUND] = node, 0, bound
    return depth


@inlined
def _has_room(frame: Vector) -> bool:
    """True if there is room for as many new nodes as one entry can need."""
    nodes, places = load(frame[HEAD], TOP) + DEPTH, frame[at.PLACES]
    return nodes * HEADER <= frame[places + NODES + 1] and nodes * FANOUT * frame[STRIDE] <= frame[places + ENTRIES + 1]


@kernel(f"{MATRIX}({GIVEN_MATRIX}, {GIVEN_VECTOR})")
def permute_columns(keys: Words, columns: Vector) -> Words:
    """Put the columns of keys into another order."""
    n, width = keys.shape
    rows = np.empty((n, width), np.int64)
    for row in range(n):
        for i in range(width):
            rows[row, i] = keys[row, columns[i]]
    return rows


@kernel(f"int64({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_VECTOR}, int64)")
def upsert_entries(frame: Vector, rows: Vector, payloads: Vector, order: Vector, start: int) -> int:
    """Add a payload to each key; return how many keys of the `order` are done, −1 if the widths are wrong.

    Keys ascend in the `order`, which is followed from its number `start` on for as long as there is room. From one key
    to the next the path is only left as far up as it has to be, and brought up to date there.
    """
    n, key, wide, head = rows.shape[0], frame[at.KEY], frame[at.PAYLOAD], frame[HEAD]
    if rows.shape[1] != key or payloads.shape[1] != wide or payloads.shape[0] != n:
        return -1
    done, depth, leaf, i, ahead = start, 0, -1, 0, _prefetch_distance(frame, n)
    while done < n:
        given, payload = address(rows) + 8 * key * order[done], address(payloads) + 8 * wide * order[done]
        if leaf < 0 or not _fits(frame, given, depth):
            while depth > 0 and (leaf < 0 or not _fits(frame, given, depth)):
                depth -= 1
                _leave(frame, depth)
            if not _has_room(frame):
                break
            if depth == 0:
                _begin(frame)
            depth = _descend(frame, given, depth, address_of_row(rows, order, done + ahead))
            leaf, i = frame[path_step(frame, depth) + NODE], 0
        i = lower_bound(frame, leaf, given, i)
        entry = entry_at(frame, leaf, i)
        done += 1
        if i == count_of(frame, leaf) or is_before(given, entry, key):
            if is_zero(frame, payload):
                continue
            entry = insert_entry(frame, leaf, i)
            copy(entry, given, key)
            copy(entry + 8 * key, payload, wide)
            store(head, SIZE, load(head, SIZE) + 1)
        elif not add(frame, entry + 8 * key, payload):
            delete_entry(frame, leaf, i)
            store(head, SIZE, load(head, SIZE) - 1)
            if count_of(frame, leaf) < FANOUT // 4:
                _repair_path(frame, depth)
                leaf, depth = -1, 0
                continue
        if depth > 0:
            add(frame, _pending_sum(frame, depth - 1), payload)
    while depth > 0:
        depth -= 1
        _leave(frame, depth)
    return done
