"""Keys that are numbers of a dictionary mean the same under another one."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.keys import LEAST, NULL
from squallpy.base.types import decimal
from squallpy.logical.expressions import Column
from squallpy.runtime.evaluate.vectors import Vec, to_arrow
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.messages.deltas import Delta, decode, encode, pack_deltas, unpack_deltas

WIDE = decimal(38, 2)
ENDS = [0, NULL - 1, NULL, NULL + 1, LEAST - 1, LEAST, 2**63 - 1, 2**63, 10**38 - 1, 1 - 10**38]
VALUES = st.lists(st.none() | st.sampled_from(ENDS) | st.integers(1 - 10**38, 10**38 - 1))


@given(VALUES)
def property_wide_decimals_survive_a_message(values: list[int | None]) -> None:
    column, rows = Column(0, "d", WIDE, True), len(values)
    valid = np.array([v is not None for v in values], bool)
    vec = Vec(np.array([*(v or 0 for v in values), None], object)[:-1], valid)
    ours, theirs = Dictionary(), Dictionary()
    theirs.intern(pa.array(["so that its numbers differ"]))
    keys = encode(vec, column, rows, ours)
    delta = Delta("d", keys.reshape(-1, 1), np.ones((rows, 1), np.int64))
    _, (got,) = unpack_deltas(pack_deltas([(delta, (column,))], ours, {}), theirs)
    there = decode(got.keys[:, 0], column, theirs)
    assert to_arrow(there, WIDE, rows).equals(to_arrow(vec, WIDE, rows))


@given(st.lists(st.integers(LEAST, 2**63 - 1)))
def property_a_value_that_has_room_is_its_own_key(values: list[int]) -> None:
    names, key = Dictionary(), Column(0, "d", WIDE)
    assert encode(Vec(np.array([*values, None], object)[:-1]), key, len(values), names).tolist() == values
    assert not len(names)
