"""The rows and columns of views in which a batch may have changed anything."""

import numpy as np

from squallpy.base.semirings import Semiring
from squallpy.runtime.matrix.packed_boolean import PackedMatrix
from squallpy.runtime.matrix.stored_views import Array, Factor

Touched = dict[str, tuple[Array, Array]]  # views → which rows, which columns


def touch(touched: Touched, view: str, u: Factor, v: Factor, ring: Semiring) -> None:
    """Add the rows and columns of a view that u·v may change."""
    rows, columns = occupied(u, ring), occupied(v.T, ring)
    before = touched.get(view)
    touched[view] = (rows | before[0], columns | before[1]) if before else (rows, columns)


def occupied(factor: Factor, ring: Semiring) -> Array:
    """Find the rows of a factor that are not zero."""
    if isinstance(factor, PackedMatrix):
        return factor.occupied()
    return np.asarray((factor != ring.zero).any(axis=1))
