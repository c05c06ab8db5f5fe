"""Hash tables against a set of keys, with hashes that want the same places: the end of the table, and its beginning."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.keys import NULL
from squallpy.runtime.kernels.hash_index import (
    BASE,
    FIRST,
    HEADER,
    HIGH,
    LOW,
    MOST,
    OF,
    OLD,
    SCALE,
    SIZE,
    TURN,
    begin_growing,
    go_on_growing,
    home,
    insert,
    is_behind,
    peek,
    remove,
    seek,
    table_of,
    wider,
)
from squallpy.runtime.kernels.hashing import hash_word
from squallpy.runtime.kernels.intrinsics import load
from squallpy.runtime.kernels.kernel_compiler import GIVEN_VECTOR, VECTOR, address, kernel

START, MOST_WORDS = 24, 400
HASHES = [-1, -2, -(1 << 32), -(1 << 40), 0, 1 << 32, 1 << 40, 1 << 59, 1 << 62, -(1 << 63)]
_PLACES = f"void({VECTOR}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, int64)"


@kernel(_PLACES)
def flip(region: Any, hashes: Any, rows: Any, key: Any) -> None:
    """Enter a key, or take it out if it is there."""
    table, shape = table_of(address(region))
    start = peek(table, shape, home(hashes[key], shape), hashes[key])
    at = seek(table, shape, start, hashes[key], address(rows) + 8 * key, 1, address(rows), 8)
    if at >= 0:
        remove(table, shape, at)
    else:
        insert(table, shape, ~at, (hashes[key] & HIGH) | (key + 1))


@kernel(f"void({VECTOR}, {VECTOR})")
def hash_words(words: Any, out: Any) -> None:
    for i in range(len(words)):
        out[i] = hash_word(words[i])


@kernel(f"boolean({VECTOR}, int64)")
def grow_on(region: Any, entries: int) -> Any:
    return go_on_growing(address(region), entries)


@kernel(f"int64({VECTOR})")
def disorder(region: Any) -> Any:
    """How many entries stand where a search for them would not come, or behind one of a larger hash."""
    wrong, (table, shape) = 0, table_of(address(region))
    for at in range(shape[0]):
        entry = load(table, at)
        if entry != 0:
            before = home(entry, shape)
            while before != at:
                wrong += is_behind(load(table, before), entry, before, shape)
                before = (before + 1) % shape[0]
    return wrong


@settings(max_examples=200, deadline=None)
@given(st.integers(-(2**31) + 1, 2**31 - 50_000), st.integers(1, 2**16))
def property_hashes_tell_words_of_32_bits(first: int, step: int) -> None:
    """No two have the same upper half, and those of an arithmetic progression are spread evenly."""
    words = np.arange(first, min(first + 40_000 * step, 2**31), step)
    words, hashes = np.append(words, NULL), np.empty(len(words) + 1, np.int64)
    hash_words(words, hashes)
    halves = hashes.view(np.uint64) >> np.uint64(32)
    assert len(np.unique(halves)) == len(words)
    if len(words) > 30_000:
        often = np.bincount((halves >> np.uint64(24)).astype(np.int64), minlength=256)
        assert often.max() < 1.6 * len(words) / 256 and often.min() > 0.4 * len(words) / 256


def entries(region: NDArray[np.int64]) -> list[np.int64]:
    table = region[HEADER:]
    return sorted(table[table != 0])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 29), st.sampled_from(HASHES)), unique_by=lambda pair: pair[0]),
    st.lists(st.integers(0, 29) | st.just("grow") | st.just("go on"), max_size=80),
    st.tuples(st.sampled_from([1, 7, 1 << 20, 3 << 32]), st.sampled_from(HASHES)) | st.none(),
)
def property_tables_stay_in_order(
    keys: list[tuple[int, int]], steps: list[int | str], line: tuple[int, int] | None
) -> None:
    """Whatever is entered and taken out while they grow, and if they shall grow again before they are done.

    Args:
        line: A scale and a base, where hashes are keys.
    """
    rows, hashes = np.arange(30), np.zeros(30, np.int64)
    for key, h in keys:
        hashes[key] = h
    region, there = np.zeros(HEADER + MOST_WORDS, np.int64), set()
    region[SIZE], due = START, 0
    if line:
        region[SCALE] = region[OLD] = line[0]
        region[BASE] = line[1] & HIGH
    for step in steps:
        size = int(region[SIZE])
        if step == "grow":
            if wider(size) <= MOST_WORDS:
                begin_growing(region.ctypes.data, wider(size))
                due = size * MOST // OF
                assert region[SIZE] == wider(size) and region[TURN] == (0 if line else -1)
        elif step == "go on":
            due += 1
            grow_on(region, due)
        elif step in there or len(there) * OF < size * MOST:
            flip(region, hashes, rows, step)
            there ^= {step}
        assert [(entry & LOW) - 1 for entry in entries(region)] == sorted(there, key=lambda k: (hashes[k] & HIGH, k))
        assert disorder(region) == 0
    while grow_on(region, due):
        due += 1
        assert disorder(region) == 0
    assert region[TURN] == 0 and len(entries(region)) == len(there)


def oracle_tables_grow_while_they_are_filled() -> None:
    """Each time done long before it is time to grow again."""
    region, keys = np.zeros(HEADER + 4000, np.int64), np.arange(2000)
    hashes = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, len(keys))
    sizes, done, late = [FIRST], True, 0
    for key in keys:
        late += not done and bool(10 * key * OF >= 9 * sizes[-1] * MOST)
        if key * OF >= sizes[-1] * MOST:
            sizes.append(wider(sizes[-1]))
            begin_growing(region.ctypes.data, sizes[-1])
        flip(region, hashes, keys, key)
        done = not grow_on(region, int(key) + 1)
        assert disorder(region) == 0
    assert sizes == [512 - HEADER, 768 - HEADER, 1024 - HEADER, 1536 - HEADER, 2048 - HEADER, 3072 - HEADER]
    assert len(entries(region)) == len(keys) and late == 0


@pytest.mark.parametrize("size, larger", [(512, 768), (768, 1024), (1024, 1536)])
def oracle_tables_grow_by_less_than_their_double(size: int, larger: int) -> None:
    assert wider(size - HEADER) == larger - HEADER
