"""Rows brought in order against numpy's sort by several keys."""

import numpy as np
import pytest

from squallpy.runtime.kernels.radix_sort import ascending

ENDS = np.iinfo(np.int64)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("rows", [0, 1, 2, 500])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 4), (1000, 70_000), (-(2**40), 2**40), (ENDS.min, ENDS.max)])
def test_differential_rows_are_in_the_order_of_numpy(width: int, rows: int, low: int, high: int) -> None:
    drawn = np.random.default_rng(rows).integers(low, high, (rows, width), endpoint=True)
    assert ascending(drawn).tolist() == np.lexsort(drawn.T[::-1]).tolist()
