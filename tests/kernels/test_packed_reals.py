"""Packed doubles: what is stored of them, and what lies behind."""

import numpy as np

from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.packed_reals import LANES, load_packed, store_some


@kernel(f"void({VECTOR}, {VECTOR}, int64)")
def copy_some(target: Vector, source: Vector, count: int) -> None:
    store_some(address(target), load_packed(address(source)), count)


def test_only_as_many_lanes_are_stored_as_are_asked_for() -> None:
    source = np.arange(1.0, LANES + 1)
    for count in range(1, LANES + 3):
        target = np.zeros(LANES + 2)
        copy_some(target.view(np.int64), source.view(np.int64), count)
        stored = min(count, LANES)
        assert target.tolist() == [*source[:stored], *[0.0] * (LANES + 2 - stored)]
