"""Sort keys: the values that ORDER BY compares, as integers."""

from typing import Any

import numpy as np
import pyarrow.compute as pc

from squallpy.base.types import Kind, Type
from squallpy.runtime.evaluate.vectors import Vec

_MAGNITUDE = 2**63 - 1  # all bits but the sign


def ordinals(vec: Vec, type: Type) -> Any:
    """Map each value to an int64 of the same order; `~` reverses it. For NULL it is arbitrary.

    −∞ < −1.0 < −0.0 = 0.0 < ∞ < NaN        'B' < 'a' < 'é': by code point
    """
    values = vec.values
    match type.kind:
        case Kind.VARCHAR | Kind.NULL:
            return np.asarray(pc.rank(values, tiebreaker="dense")).astype(np.int64)
        case Kind.DOUBLE:  # the bits of a double ascend with it, and those of a negative one descend
            bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
            return np.where(bits < 0, bits ^ _MAGNITUDE, bits)
    if values.dtype == object:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    return values.astype(np.int64)
