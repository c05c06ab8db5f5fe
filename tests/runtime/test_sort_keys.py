"""What ORDER BY compares: integers in the order of the values."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.types import BIGINT, DOUBLE, VARCHAR, decimal
from squallpy.runtime.evaluate.sort_keys import ordinals
from squallpy.runtime.evaluate.vectors import Vec

LOW = -(2**63)


@pytest.mark.parametrize(
    ("type", "ascending"),
    [
        (BIGINT, np.array([LOW, -1, 0, 2**63 - 1])),
        (decimal(38, 2), np.array([-(10**37), LOW, 0, 5, 10**37], object)),
        (DOUBLE, np.array([-math.inf, -1e300, -5e-324, 0.0, 5e-324, 2.5, math.inf, math.nan])),
        (VARCHAR, pa.array(["", "B", "a", "aa", "é", "🙂"])),
    ],
    ids=["integers", "wide decimals", "doubles", "texts"],
)
def property_ordinals_ascend_with_the_values(type: Any, ascending: Any) -> None:
    shuffled = np.random.default_rng(7).permutation(len(ascending))
    values = ascending.take(pa.array(shuffled)) if isinstance(ascending, pa.Array) else ascending[shuffled]
    made = ordinals(Vec(values), type)
    assert (np.argsort(made) == np.argsort(shuffled)).all() and len(set(made)) == len(made)
    assert (np.argsort(~made) == np.argsort(-shuffled)).all()


def property_values_that_print_alike_are_one() -> None:
    zero, minus, one_nan, another = ordinals(Vec(np.array([0.0, -0.0, math.nan, -math.nan])), DOUBLE)
    assert zero == minus and one_nan == another
