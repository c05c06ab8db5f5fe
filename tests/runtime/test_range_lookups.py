"""Ranges of sorted indexes: overlaps are counted once."""

import ctypes
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.runtime.kernels.range_steps import RANGE_STEPS
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST
from squallpy.runtime.triggers.range_lookups import overlaid

*_, OVERLAY_STEP = RANGE_STEPS
POINTS = range(7)
ENDS = st.sampled_from(POINTS)


def counted(
    groups: NDArray[np.int64], bounds: tuple[NDArray[np.int64], NDArray[np.int64]], words: NDArray[np.int64]
) -> Counter:
    """How often each point is in a range of each group."""
    found = Counter()
    for group, low, high, word in zip(map(tuple, groups.tolist()), *map(list, bounds), words[:, 0], strict=True):
        for point in POINTS:
            if low <= point <= high:
                found[group, point] += int(word)
    return Counter({key: n for key, n in found.items() if n})


def cut(
    groups: NDArray[np.int64], bounds: tuple[NDArray[np.int64], NDArray[np.int64]], words: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Ranges that do not overlap, as compiled triggers have them: groups, ends, counts."""
    pieces = np.ascontiguousarray(np.column_stack([groups, *bounds, words]))
    out = np.zeros((2 * len(pieces), pieces.shape[1]), np.int64)
    overlay = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)(OVERLAY_STEP.address)
    made = overlay(pieces.ctypes.data, len(pieces), groups.shape[1], words.shape[1], out.ctypes.data, 0)
    return out[:made]


@given(
    st.lists(st.tuples(st.integers(0, 2), ENDS | st.just(LEAST), ENDS | st.just(GREATEST), st.integers(-2, 2))),
    st.integers(0, 2),
)
def property_overlaid_ranges_count_alike_and_do_not_overlap(
    ranges: list[tuple[int, int, int, int]], width: int
) -> None:
    matrix = np.array(ranges, np.int64).reshape(len(ranges), 4)
    groups, bounds, words = np.repeat(matrix[:, :1], width, 1), (matrix[:, 1], matrix[:, 2]), matrix[:, 3:]
    rows, new, counts = overlaid(groups, bounds, words)
    compiled = cut(groups, bounds, words)
    assert sorted(map(tuple, compiled.tolist())) == sorted(
        (*group, *ends, *count)
        for group, *ends, count in zip(groups[rows].tolist(), *new, counts.tolist(), strict=True)
    )
    assert counted(groups[rows], new, counts) == counted(groups, bounds, words)
    assert counts.all()
    once = counted(groups[rows], new, np.ones_like(counts))
    assert set(once.values()) <= {1}
