"""Lookups of records by ranges of keys, and of the entries that stand below others."""

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load
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
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_arithmetic import add, copy
from squallpy.runtime.kernels.stored_keys import same
from squallpy.runtime.kernels.tree.nodes import (
    FANOUT,
    child_of,
    count_comparisons,
    count_of,
    entry_at,
    is_before,
    level_of,
    next_node,
    previous_node,
    root_of,
)
from squallpy.runtime.kernels.tree.search import (
    PREFETCH,
    address_of_row,
    child_index,
    find_leaf,
    lower_bound,
    upper_bound,
    upper_bound_from,
)


@inlined
def _contains(frame: Vector, leaf: int, key: int) -> bool:
    """True if a leaf has a key's lower bound behind its first entry, before which there may be others."""
    count_comparisons(frame, 2)
    last, wide = entry_at(frame, leaf, count_of(frame, leaf) - 1), frame[at.KEY]
    return is_before(entry_at(frame, leaf, 0), key, wide) and not is_before(last, key, wide)


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_VECTOR}, int64)")
def ranges_between(frame: Vector, lows: Vector, highs: Vector, order: Vector, most: int) -> tuple[Words, Words]:
    """Find for each row the place of the first entry with lows[row] ≤ its key ≤ highs[row], and count such entries.

    The upper bound is searched for from the first entry on; counting ends in the node in which there are `most` of
    them. Lower bounds ascend in the `order`, by which rows are visited: neighbours stay in a leaf, and equal ranges are
    searched for once.
    """
    n, key, leaf, again, before = lows.shape[0], frame[at.KEY], -1, False, -1
    places, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for k in range(n):
        row = order[k]
        low, high = address(lows) + 8 * key * row, address(highs) + 8 * key * row
        low_before, high_before = address(lows) + 8 * key * before, address(highs) + 8 * key * before
        if before >= 0 and same(low, low_before, key) and same(high, high_before, key):
            places[row], counts[row] = places[before], counts[before]
            continue
        before = row
        if is_before(high, low, key):
            continue
        if not again or not _contains(frame, leaf, low):
            found = find_leaf(frame, low, address_of_row(lows, order, k + PREFETCH))
            if found < 0:
                continue
            again, leaf = found == leaf, found
        here, first = leaf, lower_bound(frame, leaf, low, 0)
        if first == count_of(frame, here):
            here, first = next_node(frame, here), 0
        places[row] = here * FANOUT + first
        while here >= 0:
            end = upper_bound_from(frame, here, high, first)
            counts[row] += end - first
            if end < count_of(frame, here) or counts[row] >= most:
                break
            here, first = next_node(frame, here), 0
    return places, counts


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR})")
def entries_of_ranges(frame: Vector, firsts: Vector, counts: Vector) -> tuple[Words, Words]:
    """List (row, place) of as many entries as each row counts, from its first place on."""
    total, k = 0, 0
    for row in range(counts.shape[0]):
        total += counts[row]
    rows, places = np.empty(total, np.int64), np.empty(total, np.int64)
    for row in range(counts.shape[0]):
        leaf, first, left = firsts[row] // FANOUT, firsts[row] % FANOUT, counts[row]
        while left > 0:
            some = min(left, count_of(frame, leaf) - first)
            for i in range(first, first + some):
                rows[k], places[k] = row, leaf * FANOUT + i
                k += 1
            left, first, leaf = left - some, 0, next_node(frame, leaf)
    return rows, places


@kernel(f"Tuple(({MATRIX}, {MATRIX}))({VECTOR}, {GIVEN_VECTOR}, {GIVEN_MATRIX}, int64, int64)")
def entries_after(frame: Vector, columns: Vector, after: Words, share: int, of: int) -> tuple[Words, Words]:
    """Copy keys and payloads of the first entries behind a key (no row: of all), in their order.

    They are `share` by `of` of those there are, rounded up. The i-th word of a key goes to column `columns[i]`.
    """
    key, wide, node, first, left = frame[at.KEY], frame[at.PAYLOAD], root_of(frame), 0, 0
    while node >= 0 and level_of(frame, node) > 0:
        node = child_of(frame, node, child_index(frame, node, address(after)) if after.shape[0] > 0 else 0)
    if node >= 0 and after.shape[0] > 0:
        first = upper_bound(frame, node, address(after), 0, count_of(frame, node))
    leaf = node
    while leaf >= 0:
        left += count_of(frame, leaf)
        leaf = next_node(frame, leaf)
    n = -(-(left - first) * share // of)
    keys, payloads, k = np.empty((n, key), np.int64), np.empty((n, wide), np.int64), 0
    while k < n:
        for i in range(first, min(count_of(frame, node), first + n - k)):
            entry = entry_at(frame, node, i)
            for word in range(key):
                keys[k, columns[word]] = load(entry, word)
            copy(address(payloads) + 8 * wide * k, entry + 8 * key, wide)
            k += 1
        first, node = 0, next_node(frame, node)
    return keys, payloads


@kernel(f"{VECTOR}({GIVEN_MATRIX}, {GIVEN_MATRIX})")
def rows_up_to(rows: Vector, key: Vector) -> Words:
    """Select the rows that are not behind a key; without one, none."""
    n, width, found = rows.shape[0] if key.shape[0] > 0 else 0, rows.shape[1], 0
    out = np.empty(n, np.int64)
    for row in range(n):
        out[found] = row
        if not is_before(address(key), address(rows) + 8 * width * row, width):
            found += 1
    return out[:found].copy()


@inlined
def end_between(frame: Vector, low: int, high: int, is_last: bool) -> int:
    """Find the place of the first or last entry with low ≤ its key ≤ high, at addresses; −1 if there is none."""
    key, leaf = frame[at.KEY], find_leaf(frame, high if is_last else low, 0)
    if leaf < 0:
        return -1
    if is_last:
        i = upper_bound(frame, leaf, high, 0, count_of(frame, leaf)) - 1
        if i < 0:
            leaf = previous_node(frame, leaf)
            i = count_of(frame, leaf) - 1 if leaf >= 0 else -1
    else:
        i = lower_bound(frame, leaf, low, 0)
        if i == count_of(frame, leaf):
            leaf, i = next_node(frame, leaf), 0
    if leaf >= 0:
        entry = entry_at(frame, leaf, i)
        if not is_before(entry, low, key) and not is_before(high, entry, key):
            return leaf * FANOUT + i
    return -1


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, boolean)")
def ends_between(frame: Vector, lows: Vector, highs: Vector, is_last: bool) -> Words:
    """Find the place of the first or last entry with lows[row] ≤ its key ≤ highs[row]; −1 if there is none."""
    n, width = lows.shape[0], 8 * frame[at.KEY]
    out = np.empty(n, np.int64)
    for row in range(n):
        out[row] = end_between(frame, address(lows) + width * row, address(highs) + width * row, is_last)
    return out


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_VECTOR})")
def first_records(frame: Vector, places: Vector) -> Words:
    """Find the place of the first record below each entry; in a leaf that is the entry itself."""
    out = np.empty(places.shape[0], np.int64)
    for row in range(places.shape[0]):
        place = places[row]
        level = level_of(frame, place // FANOUT)
        for _ in range(level):
            place = child_of(frame, place // FANOUT, place % FANOUT) * FANOUT
        out[row] = place
    return out


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, {GIVEN_VECTOR})")
def child_entries(frame: Vector, nodes: Vector) -> tuple[Words, Words]:
    """List (row, place) of all entries in each of the nodes."""
    total = 0
    for row in range(nodes.shape[0]):
        total += count_of(frame, nodes[row])
    rows, places, k = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for row in range(nodes.shape[0]):
        for i in range(count_of(frame, nodes[row])):
            rows[k], places[k] = row, nodes[row] * FANOUT + i
            k += 1
    return rows, places


@kernel(f"void({VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, {VECTOR}, {VECTOR}, {VECTOR})")
def extents_of(frame: Vector, rows: Vector, places: Vector, before: Vector, least: Vector, most: Vector) -> None:
    """Compute the least and the greatest prefix sum of the records below each entry.

    `before` gives each entry the sum in front of its node; those of entries that follow another one of the same row are
    overwritten with the sum in front of the entry. All hold rows of payload words side by side.
    """
    key, wide = frame[at.KEY], frame[at.PAYLOAD]
    up, down = key, key
    for k in range(rows.shape[0]):
        entry = entry_at(frame, places[k] // FANOUT, places[k] % FANOUT)
        if level_of(frame, places[k] // FANOUT) > 0:
            up, down = key + wide, key + 2 * wide
        here = address(before) + 8 * wide * k
        low, high = address(least) + 8 * wide * k, address(most) + 8 * wide * k
        if k > 0 and rows[k] == rows[k - 1]:
            last = entry_at(frame, places[k - 1] // FANOUT, places[k - 1] % FANOUT)
            copy(here, address(before) + 8 * wide * (k - 1), wide)
            add(frame, here, last + 8 * key)
        copy(low, entry + 8 * up, wide)
        copy(high, entry + 8 * down, wide)
        add(frame, low, here)
        add(frame, high, here)
