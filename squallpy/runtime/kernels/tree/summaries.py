"""Summaries of subtrees in the entries above them: sums of payloads, extents of prefix sums, greatest heights."""

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import below, load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.payload_arithmetic import add
from squallpy.runtime.kernels.ring_arithmetic import exact_add
from squallpy.runtime.kernels.tree.nodes import (
    EXTENTS,
    LOWEST,
    NO_SUMMARY,
    STRIDE,
    SUMMARY,
    child_of,
    count_comparisons,
    count_of,
    entry_at,
    level_of,
)


@inlined
def _is_less(a_lo: int, a_hi: int, b_lo: int, b_hi: int) -> bool:
    return a_hi < b_hi or (a_hi == b_hi and below(a_lo, b_lo) != 0)


@inlined
def _set_extents(frame: Vector, row: int, child: int) -> None:
    """Compute the extents of the entry at `row`: per lane the least and greatest sum up to any record below it."""
    key, wide, leaf = frame[at.KEY], frame[at.PAYLOAD], level_of(frame, child) == 0
    up, down = (0, 0) if leaf else (wide, 2 * wide)
    for word in range(2 * wide):
        store(row, key + wide + word, 0)
    at_lane = key
    for lane in range(frame[at.LANES]):
        lo, hi, a_lo, a_hi, b_lo, b_hi, wider = 0, 0, 0, 0, 0, 0, frame[at.RINGS + lane] != 0
        for i in range(count_of(frame, child)):
            entry = entry_at(frame, child, i) + 8 * at_lane
            x_lo, y_lo, z_lo = load(entry, up), load(entry, down), load(entry, 0)
            x_hi = load(entry, up + 1) if wider else x_lo >> 63
            y_hi = load(entry, down + 1) if wider else y_lo >> 63
            z_hi = load(entry, 1) if wider else z_lo >> 63
            if leaf:
                y_lo, y_hi = x_lo, x_hi
            x_lo, x_hi = exact_add(lo, hi, x_lo, x_hi)
            y_lo, y_hi = exact_add(lo, hi, y_lo, y_hi)
            lo, hi = exact_add(lo, hi, z_lo, z_hi)
            if i == 0 or _is_less(x_lo, x_hi, a_lo, a_hi):
                a_lo, a_hi = x_lo, x_hi
            if i == 0 or _is_less(b_lo, b_hi, y_lo, y_hi):
                b_lo, b_hi = y_lo, y_hi
        store(row, at_lane + wide, a_lo)
        store(row, at_lane + 2 * wide, b_lo)
        if wider:
            store(row, at_lane + wide + 1, a_hi)
            store(row, at_lane + 2 * wide + 1, b_hi)
        at_lane += 2 if wider else 1


@inlined
def height_of(frame: Vector, node: int, i: int) -> int:
    """Return the height of a record, or the greatest below an inner entry."""
    leaf = level_of(frame, node) == 0
    return load(entry_at(frame, node, i), frame[SUMMARY] if leaf else frame[STRIDE] - 2)


@inlined
def greatest_height(frame: Vector, node: int, start: int, end: int, height: int) -> int:
    """Return the greatest of a height and those of entries `start` … `end − 1`."""
    count_comparisons(frame, end - start)
    for i in range(start, end):
        height = max(height, height_of(frame, node, i))
    return height


@inlined
def sum_entries(frame: Vector, node: int, start: int, end: int, target: int) -> int:
    """Add the payloads of entries `start` … `end − 1` to the one at `target`, and return `target`."""
    for i in range(start, end):
        add(frame, target, entry_at(frame, node, i) + 8 * frame[at.KEY])
    return target


@inlined
def refresh_summary(frame: Vector, row: int, child: int) -> None:
    """Recompute the summary in the entry at `row`, whose sum is right, from its child."""
    if frame[SUMMARY] == EXTENTS:
        _set_extents(frame, row, child)
    elif frame[SUMMARY] != NO_SUMMARY:
        store(row, frame[STRIDE] - 2, greatest_height(frame, child, 0, count_of(frame, child), LOWEST))


@inlined
def summarise(frame: Vector, node: int, i: int) -> None:
    """Recompute the sum and the summary of an inner entry from its child."""
    row, child = entry_at(frame, node, i), child_of(frame, node, i)
    for word in range(frame[at.PAYLOAD]):
        store(row, frame[at.KEY] + word, 0)
    sum_entries(frame, child, 0, count_of(frame, child), row + 8 * frame[at.KEY])
    refresh_summary(frame, row, child)
