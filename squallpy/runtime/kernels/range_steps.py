"""Lookups of ranges in compiled triggers: the records of a sorted index between two keys, in order, or their sum.

    store(bounds, …)                               the keys from which and up to which records are, one behind the other
    place = -1
    while True:
        place = next_between(index, bounds, place, steps)
        if place < 0: break
        entry = entry_of(index, place)             its key in the order of the index, and its payload

An index is given by the address of the words that describe it (`sorted_steps.SortedRows`).
"""

from typing import Any, Final

import numpy as np

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.c_functions import CFunction, c_function
from squallpy.runtime.kernels.intrinsics import load, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import inlined, making
from squallpy.runtime.kernels.radix_sort import ascending
from squallpy.runtime.kernels.sorted_steps import SORT, SORTED_STEPS
from squallpy.runtime.kernels.tree.folds import fold_between
from squallpy.runtime.kernels.tree.lookup import end_between
from squallpy.runtime.kernels.tree.nodes import FANOUT, count_of, entry_at, is_before, next_node, root_of
from squallpy.runtime.kernels.tree.summaries import sum_entries
from squallpy.runtime.kernels.trigger_steps import call, frame_at

NEXT: Final = SORT + len(SORTED_STEPS)  # addresses in the table
END: Final = NEXT + 1
SUM: Final = NEXT + 2
OVERLAY: Final = NEXT + 3
_GREATEST = 2**63 - 1

_ascending: Any = ascending
_ascending_rows: Any = making(_ascending.py_func)
_sum_between = fold_between(sum_entries)


@inlined
def next_between(index: int, bounds: int, place: int, steps: int) -> int:
    """Find the place of the record behind another (−1: of the first) between two keys; −1 if there is none."""
    return call(load(steps, NEXT), index, bounds, place, 0, 0, 0)


@c_function(6)
def _next_between(index: int, bounds: int, place: int, _c: int, _d: int, _e: int) -> int:
    """Find the next record of a range."""
    frame = frame_at(load(index, 0))
    key = frame[at.KEY]
    if place < 0:
        return end_between(frame, bounds, bounds + 8 * key, False)
    leaf, i = place // FANOUT, place % FANOUT + 1
    if i == count_of(frame, leaf):
        leaf, i = next_node(frame, leaf), 0
    if leaf < 0 or is_before(bounds + 8 * key, entry_at(frame, leaf, i), key):
        return -1
    return leaf * FANOUT + i


@inlined
def end_of(index: int, bounds: int, is_last: int, steps: int) -> int:
    """Find the place of the first or last record between two keys; −1 if there is none."""
    return call(load(steps, END), index, bounds, is_last, 0, 0, 0)


@c_function(6)
def _end_of(index: int, bounds: int, is_last: int, _c: int, _d: int, _e: int) -> int:
    """Find an end of a range."""
    frame = frame_at(load(index, 0))
    return end_between(frame, bounds, bounds + 8 * frame[at.KEY], is_last != 0)


@inlined
def sum_between(index: int, bounds: int, out: int, steps: int) -> int:
    """Sum the payloads between two keys to an address; returns 0 if all of its words are."""
    return call(load(steps, SUM), index, bounds, out, 0, 0, 0)


@c_function(6)
def _sum_of_range(index: int, bounds: int, out: int, _c: int, _d: int, _e: int) -> int:
    """Sum the payloads of a range."""
    frame, some = frame_at(load(index, 0)), 0
    for i in range(frame[at.PAYLOAD]):
        store(out, i, 0)
    _sum_between(frame, root_of(frame), bounds, bounds + 8 * frame[at.KEY], out)
    for i in range(frame[at.PAYLOAD]):
        some |= load(out, i)
    return 1 if some != 0 else 0


@inlined
def entry_of(index: int, place: int) -> int:
    """Return the address of the record at a place: its key in the order of the index, then its payload."""
    return entry_at(frame_at(load(index, 0)), 0, place)


@inlined
def middle(low: int, high: int) -> int:
    """Return the word halfway between two, the lower one of two such."""
    return low + shift_right(high - low, 1)


@inlined
def real_of_rank(rank: int) -> int:
    """Return the double, as the word of its bits, that has a rank; −0.0 is no key."""
    return 0 if rank == -1 else rank ^ ((rank >> 63) & _GREATEST)


@inlined
def overlay(pieces: int, count: int, group: int, width: int, out: int, steps: int) -> int:
    """Cut ranges with counts, group by group, into ranges that do not overlap, fewer than twice as many; count these.

    [1, 5]: −1, [3, 9]: +1   →   [1, 2]: −1, [6, 9]: +1

    Args:
        pieces: The address of rows of `group` words, then the first and the last word of a range, and `width` counts.
        out: The address of what comes of them.
    """
    return call(load(steps, OVERLAY), pieces, count, group, width, out, 0)


@c_function(6)
def _overlay(pieces: int, count: int, group: int, width: int, out: int, _e: int) -> int:
    """Cut ranges."""
    stride, m, made = group + 2 + width, 0, 0
    points, own = np.empty((2 * count, group + 2), np.int64), np.empty(2 * count, np.int64)
    for k in range(count):
        piece = pieces + 8 * stride * k
        if load(piece, group) <= load(piece, group + 1):
            for half in range(2):
                for i in range(group):
                    points[m, i] = load(piece, i)
                points[m, group], points[m, group + 1], own[m] = load(piece, group + half), half, piece
                m += 1
    total = np.zeros(width, np.int64)
    order = _ascending_rows(points[:m])
    for j in range(m - 1):
        here, then, some = order[j], order[j + 1], 0
        a, b, first, last = points[here, group + 1], points[then, group + 1], points[here, group], points[then, group]
        for i in range(width):
            word = load(own[here], group + 2 + i)
            total[i] += -word if a != 0 else word
            some |= total[i]
        # NB: only between two points is it sure that the one behind the first is a word; each group ends with 0
        if some != 0 and (first + a <= last - 1 + b if first < last else a < b):
            place = out + 8 * stride * made
            for i in range(group):
                store(place, i, points[here, i])
            store(place, group, first + a)
            store(place, group + 1, last - 1 + b)
            for i in range(width):
                store(place, group + 2 + i, total[i])
            made += 1
    return made


RANGE_STEPS: tuple[CFunction, ...] = (_next_between, _end_of, _sum_of_range, _overlay)
"""Functions whose addresses are in the table."""
