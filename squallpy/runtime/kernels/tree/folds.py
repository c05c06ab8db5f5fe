"""Folds of the entries between two keys by a monoid: sums of payloads, greatest heights."""

from collections.abc import Callable

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.tree.nodes import child_of, count_of, is_before, level_of, root_of
from squallpy.runtime.kernels.tree.search import child_index, lower_bound, upper_bound
from squallpy.runtime.kernels.tree.summaries import sum_entries

Fold = Callable[[Vector, int, int, int, int], int]
"""A monoid: (frame, node, start, end, total) → total with the node's entries `start` … `end` − 1."""


@inlined
def _fork(frame: Vector, node: int, low: int, high: int) -> tuple[int, int, int]:
    """Find the node at which the paths to two keys part, and the entries that they take there; in a leaf 0, 0."""
    while level_of(frame, node) > 0:
        i, j = child_index(frame, node, low), child_index(frame, node, high)
        if i != j:
            return node, i, j
        node = child_of(frame, node, i)
    return node, 0, 0


def fold_between(fold: Fold) -> Fold:
    """Make the function (frame, root, low, high, total) that folds the entries with low ≤ key ≤ high.

    It folds whole entries between two paths: those inside the node where the paths fork, then along each path.
    """

    @inlined
    def fold_side(frame: Vector, node: int, key: int, total: int, is_right: bool) -> int:
        while level_of(frame, node) > 0:
            i = child_index(frame, node, key)
            start, end = (i + 1, count_of(frame, node)) if is_right else (0, i)
            total = fold(frame, node, start, end, total)
            node = child_of(frame, node, i)
        start, end = 0, count_of(frame, node)
        if is_right:
            start = lower_bound(frame, node, key, 0)
        else:
            end = upper_bound(frame, node, key, 0, end)
        return fold(frame, node, start, end, total)

    @inlined
    def between(frame: Vector, root: int, low: int, high: int, total: int) -> int:
        if root < 0 or is_before(high, low, frame[at.KEY]):
            return total
        node, i, j = _fork(frame, root, low, high)
        if i == j:
            first = lower_bound(frame, node, low, 0)
            return fold(frame, node, first, upper_bound(frame, node, high, first, count_of(frame, node)), total)
        total = fold(frame, node, i + 1, j, total)
        total = fold_side(frame, child_of(frame, node, i), low, total, True)
        return fold_side(frame, child_of(frame, node, j), high, total, False)

    return between


_sum_between = fold_between(sum_entries)


@kernel(f"void({VECTOR}, {GIVEN_MATRIX}, {GIVEN_MATRIX}, {VECTOR})")
def sums_between(frame: Vector, lows: Vector, highs: Vector, out: Vector) -> None:
    """Sum for each row the payloads with lows[row] ≤ key ≤ highs[row] into `out`: zeros before, row after row."""
    key, wide, root = frame[at.KEY], frame[at.PAYLOAD], root_of(frame)
    for row in range(lows.shape[0]):
        low, high = address(lows) + 8 * key * row, address(highs) + 8 * key * row
        _sum_between(frame, root, low, high, address(out) + 8 * wide * row)
