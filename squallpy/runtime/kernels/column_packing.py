"""Matrices of words as they travel and are logged: each column in as few bytes a value as its range takes.

    packed([[7, 100], [7, 355]])   →  (7, 0 bytes), (100, 1 byte); 0, 255     and padding

A column is its least value and, behind that of all columns, how far each value is above it. Counts that are all 1 take
nothing, the upper words of small exact sums neither.
"""

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.intrinsics import load, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, MATRIX, VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.memory_regions import Words

_ALIGNED = 64


def packed(matrix: Words) -> npt.NDArray[np.uint8]:
    """Pack a matrix (n, K) into bytes, a multiple of 64 of them."""
    rows, columns = matrix.shape
    out = np.empty(columns * (2 + rows) + 1 + _ALIGNED // 8, np.int64)
    return out.view(np.uint8)[: _pack(matrix, out)]


def unpacked(start: int, rows: int, columns: int) -> tuple[Words, int]:
    """Unpack the matrix whose bytes are at an address, and return how many they are."""
    out = np.empty((rows, columns), np.int64)
    return out, _unpack(start, out)


@kernel(f"int64({GIVEN_MATRIX}, {VECTOR})")
def _pack(matrix: Words, out: Vector) -> int:
    rows, columns = matrix.shape
    start = address(out)
    at: int = start + 16 * columns
    for c in range(columns):
        low = high = matrix[0, c] if rows else 0
        for row in range(rows):
            low, high = min(low, matrix[row, c]), max(high, matrix[row, c])
        width, span = 0, high - low
        while span != 0:
            width, span = width + 1, shift_right(span, 8)
        out[2 * c], out[2 * c + 1] = low, width
        for row in range(rows):  # NB: eight bytes each, of which the next value overwrites those that are zero
            store(at, 0, matrix[row, c] - low)
            at += width
    padding = 8 + (start - at - 8) % _ALIGNED
    for word in range(-(-padding // 8)):
        store(at, word, 0)
    return at - start + padding


@kernel(f"int64(int64, {MATRIX})")
def _unpack(start: int, out: Words) -> int:
    rows, columns = out.shape
    at: int = start + 16 * columns
    for c in range(columns):
        low, width = load(start, 2 * c), load(start, 2 * c + 1)
        mask = -1 if width == 8 else (1 << 8 * width) - 1
        for row in range(rows):
            out[row, c] = low + (load(at, 0) & mask)
            at += width
    return at - start + 8 + (start - at - 8) % _ALIGNED
