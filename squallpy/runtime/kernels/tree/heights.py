"""Heights: the highest entry of a range, and the next one that is as high as another."""

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    VECTOR,
    Vector,
    address,
    inlined,
    kernel,
)
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.tree.folds import fold_between
from squallpy.runtime.kernels.tree.nodes import (
    FANOUT,
    LOWEST,
    child_of,
    count_comparisons,
    count_of,
    entry_at,
    is_before,
    level_of,
    root_of,
)
from squallpy.runtime.kernels.tree.search import child_index, lower_bound, upper_bound
from squallpy.runtime.kernels.tree.summaries import greatest_height, height_of

_greatest_between = fold_between(greatest_height)


@inlined
def _find_height(frame: Vector, node: int, start: int, end: int, height: int, is_last: bool) -> int:
    """Find the first or last of entries `start` … `end − 1` that is at least as high; −1 if none is."""
    for k in range(end - start):
        i = end - 1 - k if is_last else start + k
        count_comparisons(frame, 1)
        if height_of(frame, node, i) >= height:
            return i
    return -1


@inlined
def _seek_height(frame: Vector, key: int, height: int, is_last: bool, is_strict: bool) -> int:
    """Find the place of the first record from a key on that is at least as high; −1 if there is none.

    On the way down to the key the last subtree beside it that has one is noted: it is there if the leaf has none.

    Args:
        is_last: Find the last record up to the key instead.
        is_strict: Leave out the record of the key itself.
    """
    node, other, there = root_of(frame), -1, -1
    if node < 0:
        return -1
    while level_of(frame, node) > 0:
        i = child_index(frame, node, key)
        start, end = (0, i) if is_last else (i + 1, count_of(frame, node))
        found = _find_height(frame, node, start, end, height, is_last)
        if found >= 0:
            other, there = node, found
        node = child_of(frame, node, i)
    start, end = 0, count_of(frame, node)
    if is_last == is_strict:
        bound = lower_bound(frame, node, key, 0)
    else:
        bound = upper_bound(frame, node, key, 0, end)
    if is_last:
        end = bound
    else:
        start = bound
    found = _find_height(frame, node, start, end, height, is_last)
    if found >= 0:
        return node * FANOUT + found
    if other < 0:
        return -1
    node = other
    while level_of(frame, node) > 0:
        node = child_of(frame, node, there)
        there = _find_height(frame, node, 0, count_of(frame, node), height, is_last)
    return node * FANOUT + there


@kernel(f"{VECTOR}({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX})")
def highest_between(frame: Vector, lows: Vector, highs: Vector) -> Words:
    """Find the place of the first of the highest entries with lows[row] ≤ its key ≤ highs[row]; −1 if there is none."""
    n, key = lows.shape[0], frame[at.KEY]
    out = np.full(n, -1, np.int64)
    for row in range(n):
        low, high = address(lows) + 8 * key * row, address(highs) + 8 * key * row
        height = _greatest_between(frame, root_of(frame), low, high, LOWEST)
        place = _seek_height(frame, low, height, False, False)
        if place >= 0 and not is_before(high, entry_at(frame, place // FANOUT, place % FANOUT), key):
            out[row] = place
    return out


@kernel(
    f"Tuple(({VECTOR}, {VECTOR}))"
    f"({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, boolean, int64)"
)
def ascents(
    frame: Vector, starts: Vector, ends: Vector, froms: Vector, tops: Vector, is_last: bool, steps: int
) -> tuple[Words, Words]:
    """List (row, place) of the entries that rise from starts[row], which is left out, to ends[row].

    Those are the next entry whose height is froms[row] or more, and then each that is higher than the one before, as
    long as they are no higher than tops[row]; at most `steps` in a row.

    Args:
        is_last: Go back from starts[row]; an entry that is as high as the one before it counts, too.
    """
    n, key, found = starts.shape[0], frame[at.KEY], 0
    rows, places = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    for row in range(n):
        here, end = address(starts) + 8 * key * row, address(ends) + 8 * key * row
        height, left = froms[row], steps
        while left > 0 and height <= tops[row]:
            place = _seek_height(frame, here, height, is_last, True)
            if place < 0:
                break
            here = entry_at(frame, place // FANOUT, place % FANOUT)
            height = height_of(frame, place // FANOUT, place % FANOUT)
            past = is_before(here, end, key) if is_last else is_before(end, here, key)
            if past or height > tops[row]:
                break
            if found == len(rows):
                rows, places = np.append(rows, np.empty_like(rows)), np.append(places, np.empty_like(places))
            rows[found], places[found] = row, place
            found, left = found + 1, left - 1
            if not is_last:
                if height == tops[row]:
                    break
                height += 1
    return rows[:found].copy(), places[:found].copy()
