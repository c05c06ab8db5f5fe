"""The sum of many payloads, for deltas without keys: of counts and exact sums in registers, lane by lane.

[[1, 5], [-1, 7]]   →   [0, 12]
"""

from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.intrinsics import load, store
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.ring_arithmetic import exact_add


@kernel(f"boolean({VECTOR}, {GIVEN_MATRIX}, {VECTOR})")
def sum_payloads(frame: Vector, payloads: Vector, total: Vector) -> bool:
    """Sum up payloads of the pool with this frame into one that is zero; False if it has lanes of other rings."""
    for lane in range(frame[at.LANES]):
        if frame[at.RINGS + lane] > 1:
            return False
    n, width, first, i = payloads.shape[0], payloads.shape[1], address(payloads), 0
    for lane in range(frame[at.LANES]):
        lo, hi = 0, 0
        if frame[at.RINGS + lane] == 0:
            for row in range(n):
                lo += load(first, row * width + i)
        else:
            for row in range(n):
                lo, hi = exact_add(lo, hi, load(first, row * width + i), load(first, row * width + i + 1))
            store(address(total), i + 1, hi)
        store(address(total), i, lo)
        i += 1 + frame[at.RINGS + lane]
    return True
