"""Rows brought in order: by their first column, then by the next ones, as signed words.

    ascending([[7, 2], [-1, 5], [7, 1]])    →   [1, 2, 0]

Without a comparison: columns that fit into a word together, each as what it is above its least value, are one number,
and those are sorted digit by digit from the last. Rows that are alike keep their order.

Source: radix sort from the least digit, as in Knuth, *Sorting and Searching* (1973) §5.2.5.
"""

from typing import Final

import numpy as np

from squallpy.runtime.kernels.intrinsics import load, shift_right
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, inlined, kernel
from squallpy.runtime.kernels.memory_regions import Words

FEW: Final = 1 << 12  # rows up to which digits are small: more take fewer passes, each through more digits
SMALL: Final = 8
LARGE: Final = 11


@inlined
def _bits(word: int) -> int:
    """Count the bits of an unsigned word."""
    bits = 0
    while bits < 64 and shift_right(word, bits) != 0:
        bits += 1
    return bits


@inlined
def _in_order(start: int, rows: int, width: int) -> bool:
    """True if rows ascend as they are."""
    for row in range(1, rows):
        above, here = start + 8 * (row - 1) * width, start + 8 * row * width
        for i in range(width):
            if load(above, i) != load(here, i):
                if load(above, i) > load(here, i):
                    return False
                break
    return True


@kernel(f"{VECTOR}({GIVEN_MATRIX})")
def ascending(rows: Vector) -> Words:
    """Return the numbers of the rows in ascending order of the rows."""
    n, width = rows.shape
    digit = SMALL if n <= FEW else LARGE
    way, packed, ends = np.arange(n), np.zeros(n, np.int64), np.empty(1 << digit, np.int64)
    other, others, column, start = np.empty(n, np.int64), np.empty(n, np.int64), width - 1, address(rows)
    if _in_order(start, n, width):
        return way
    while column >= 0:
        used = 0
        while column >= 0:
            least = most = load(start, column)
            for row in range(1, n):
                word = load(start, row * width + column)
                least, most = min(least, word), max(most, word)
            bits = _bits(most - least)
            if used + bits > 64:
                break
            if bits > 0:
                for i in range(n):
                    packed[i] |= (load(start, way[i] * width + column) - least) << used
            used += bits
            column -= 1
        for shift in range(0, used, digit):
            ends[:] = 0
            for i in range(n):
                ends[(packed[i] >> shift) & (len(ends) - 1)] += 1
            total = 0
            for d in range(len(ends)):
                total, ends[d] = total + ends[d], total
            for i in range(n):
                d = (packed[i] >> shift) & (len(ends) - 1)
                other[ends[d]], others[ends[d]] = way[i], packed[i]
                ends[d] += 1
            way, packed, other, others = other, others, way, packed
        packed[:] = 0
    return way
