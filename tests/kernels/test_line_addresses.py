"""Eight lines at once are those of one word after the other, and nothing is written behind the last."""

import numpy as np
import pytest

from squallpy.runtime.kernels.arena_tables import GOLDEN, HALF, KEY, LINE
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.line_addresses import address_eight

TABLE, SHIFT = 1 << 20, 5 << 32


@kernel(f"void({VECTOR}, {VECTOR}, {VECTOR}, int64, int64, int64)")
def _address(items: Vector, words: Vector, lines: Vector, count: int, buckets: int, mark: int) -> None:
    for i in range(0, count, 8):
        of_items, of_words, of_lines = address(items) + 8 * i, address(words) + 8 * i, address(lines) + 8 * i
        address_eight(of_items, of_words, of_lines, count - i, SHIFT, TABLE, buckets, mark)


@pytest.mark.parametrize("buckets", [1, 37, 1 << 20])
def test_lines_of_words(buckets: int) -> None:
    draw = np.random.default_rng(buckets)
    for count in range(27):
        items, words = draw.integers(-(1 << 40), 1 << 40, count + 8), np.full(count + 8, -1)
        lines = words.copy()
        _address(items, words, lines, count, buckets, 1)
        given = items[:count] + SHIFT
        of = (((given & KEY) * GOLDEN & HALF) * buckets) >> 32
        assert (words[:count] == given).all() and (lines[:count] == TABLE + LINE * of + 1).all()
        assert (words[count:] == -1).all() and (lines[count:] == -1).all()
