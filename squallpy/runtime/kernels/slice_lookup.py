"""Lookups by a slice, whatever it is kept in: postings, runs of records, or a group of the primary index."""

from squallpy.runtime.kernels.group_index import grouped
from squallpy.runtime.kernels.kernel_compiler import GIVEN_MATRIX, VECTOR, Vector, kernel, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.postings import sliced
from squallpy.runtime.kernels.primary_index import is_by_runs
from squallpy.runtime.kernels.run_index import sliced_by_runs


@making
def sliced_records(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """List all (row of `bound`, record) that agree on the columns of slice `s`, of the group if −1, ascending."""
    if s < 0:
        return grouped(frame, bound)
    if s == 0 and is_by_runs(frame):
        return sliced_by_runs(frame, bound)
    return sliced(frame, s, bound)


@kernel(f"Tuple(({VECTOR}, {VECTOR}))({VECTOR}, int64, {GIVEN_MATRIX})")
def slice_records(frame: Vector, s: int, bound: Vector) -> tuple[Words, Words]:
    """Do what `sliced_records` does, as an entry point."""
    return sliced_records(frame, s, bound)
