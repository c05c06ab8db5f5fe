"""Hash tables against a set of keys, with hashes that want the same places: the end of the table, and its beginning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.runtime.kernels.compiled import GIVEN_VECTOR, VECTOR, address, kernel
from squallpy.runtime.kernels.index import (
    HIGH,
    LOW,
    MOST,
    OF,
    carry_over,
    home,
    insert,
    is_behind,
    peek,
    remove,
    seek,
    wider,
)
from squallpy.runtime.kernels.machine import load

SIZE = 24
HASHES = [-1, -2, -(1 << 32), -(1 << 40), 0, 1 << 32, 1 << 40, 1 << 59, 1 << 62, -(1 << 63)]
_PLACES = f"void({VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, int64)"


@kernel(_PLACES)
def flip(table, hashes, rows, key):
    """Enter a key, or take it out if it is there."""
    start = peek(address(table), len(table), hashes[key])
    at = seek(address(table), len(table), start, hashes[key], address(rows) + 8 * key, 1, address(rows), 8)
    if at >= 0:
        remove(address(table), len(table), at)
    else:
        insert(address(table), len(table), ~at, (hashes[key] & HIGH) | (key + 1))


@kernel(f"int64({GIVEN_VECTOR})")
def disorder(table):
    """How many entries stand where a search for them would not come, or behind one of a larger hash."""
    wrong = 0
    for at in range(len(table)):
        entry = table[at]
        if entry != 0:
            before = home(entry, len(table))
            while before != at:
                wrong += is_behind(load(address(table), before), entry, before, len(table))
                before = (before + 1) % len(table)
    return wrong


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 29), st.sampled_from(HASHES)), unique_by=lambda pair: pair[0]), st.data())
def property_tables_stay_in_order(keys, data):
    rows, hashes = np.arange(30), np.zeros(30, np.int64)
    for key, h in keys:
        hashes[key] = h
    table, there = np.zeros(SIZE, np.int64), set()
    for key in data.draw(st.lists(st.integers(0, 29), max_size=80)):
        if key in there or len(there) * OF < SIZE * MOST:
            flip(table, hashes, rows, key)
            there ^= {key}
        assert sorted((table[table != 0] & LOW) - 1) == sorted(there)
        assert disorder(table) == 0
    larger = np.zeros(wider(SIZE), np.int64)
    carry_over(table.ctypes.data, len(table), larger.ctypes.data, len(larger))
    assert sorted(larger[larger != 0]) == sorted(table[table != 0])
    assert disorder(larger) == 0


@pytest.mark.parametrize("size, larger", [(512, 768), (768, 1024), (1024, 1536)])
def oracle_tables_grow_by_less_than_their_double(size, larger):
    assert wider(size) == larger
