"""TRY_ADD, TRY_SUBTRACT and TRY_MULTIPLY: what has no room is NULL, and nothing else."""

from typing import Any

import numpy as np
import pytest

from squallpy.base.types import BIGINT
from squallpy.functions.registry import SCALARS
from squallpy.logical.bind.function_calls import builder
from squallpy.logical.expressions import Column
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame

A, B = Column(1, "a", BIGINT, False), Column(2, "b", BIGINT, False)
ENDS = [-(2**63), -(2**63) + 1, -(2**32), -3, -1, 0, 1, 2, 2**31, 2**62, 2**63 - 1]


@pytest.mark.parametrize(
    ("name", "exact"), [("TRY_ADD", int.__add__), ("TRY_SUBTRACT", int.__sub__), ("TRY_MULTIPLY", int.__mul__)]
)
def differential_attempts_of_the_greatest_and_least(name: str, exact: Any) -> None:
    pairs = [(a, b) for a in ENDS for b in ENDS]
    columns = (Vec(np.array(side, np.int64)) for side in zip(*pairs, strict=True))
    values, valid = compile_expression(builder(SCALARS[name])(A, B))(
        VectorFrame(len(pairs), dict(zip((1, 2), columns, strict=True)))
    )
    found = [int(value) if there else None for value, there in zip(values, valid, strict=True)]
    assert found == [n if -(2**63) <= (n := exact(a, b)) < 2**63 else None for a, b in pairs]
