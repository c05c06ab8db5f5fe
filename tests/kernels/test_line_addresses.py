"""Eight words at once are done with like one after the other, and nothing is written behind room for eight."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import types

from squallpy.runtime.kernels.intrinsics import operation
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.line_addresses import (
    GOLDEN,
    HALF,
    KEY,
    LINE,
    address_eight,
    compress,
    count_eight,
    halves_eight,
    numbers_eight,
    part_eight,
    pick_eight,
    store_one_by_one,
)

TABLE, SHIFT = 1 << 20, 5 << 32


@kernel(f"void({VECTOR}, {VECTOR}, {VECTOR}, int64, int64, int64)")
def _address(items: Vector, words: Vector, lines: Vector, count: int, buckets: int, mark: int) -> None:
    for i in range(0, count, 8):
        of_items, of_words, of_lines = address(items) + 8 * i, address(words) + 8 * i, address(lines) + 8 * i
        address_eight(of_items, of_words, of_lines, SHIFT, TABLE, buckets, mark)


@kernel(f"int64({VECTOR}, int64, int64, int64, {VECTOR})")
def _pick(words: Vector, count: int, flag: int, bits: int, to: Vector) -> int:
    found = 0
    for i in range(0, count, 8):
        found += pick_eight(address(words) + 8 * i, count - i, flag, bits, address(to) + 8 * found)
    return found


@kernel(f"void({VECTOR}, int64, {VECTOR}, int64)")
def _count(items: Vector, count: int, counts: Vector, amount: int) -> None:
    for i in range(0, count, 8):
        count_eight(address(items) + 8 * i, count - i, address(counts) + LINE, amount)


@kernel(f"int64({VECTOR}, int64, int64, {VECTOR})")
def _part(words: Vector, buckets: int, first: int, to: Vector) -> int:
    return part_eight(address(words), buckets, first, address(to), address(words))


@operation(types.int64(types.int64, types.int64, types.int64))
def _store_chosen(builder: Any, words: Any, bits: Any, to: Any) -> Any:
    """Store those of eight words that have a bit, as on processors that cannot put words in any order."""
    eight = builder.load(builder.inttoptr(words, ir.VectorType(ir.IntType(64), 8).as_pointer()), align=8)
    none = ir.Constant(eight.type, [0] * 8)
    mask = builder.bitcast(builder.trunc(bits, ir.IntType(8)), ir.VectorType(ir.IntType(1), 8))
    return store_one_by_one(builder, builder.select(mask, eight, none), to, bits)


@operation(types.int64(types.int64, types.int64, types.int64))
def _compress(builder: Any, words: Any, bits: Any, to: Any) -> Any:
    eight = builder.load(builder.inttoptr(words, ir.VectorType(ir.IntType(64), 8).as_pointer()), align=8)
    mask = builder.bitcast(builder.trunc(bits, ir.IntType(8)), ir.VectorType(ir.IntType(1), 8))
    return compress(builder, eight, to, mask)


@kernel(f"int64({VECTOR}, int64, {VECTOR})")
def _chosen(words: Vector, bits: int, to: Vector) -> int:
    return _compress(address(words), bits, address(to))


@kernel(f"int64({VECTOR}, int64, {VECTOR})")
def _chosen_one_by_one(words: Vector, bits: int, to: Vector) -> int:
    return _store_chosen(address(words), bits, address(to))


@kernel(f"int64({VECTOR}, int64, int64, {VECTOR}, {VECTOR})")
def _halves(words: Vector, count: int, first: int, places: Vector, to: Vector) -> int:
    return halves_eight(address(words), count, first, address(places), address(to))


@kernel(f"int64({VECTOR}, int64, {VECTOR}, {VECTOR})")
def _numbers(numbers: Vector, first: int, places: Vector, to: Vector) -> int:
    return numbers_eight(address(numbers), first, address(places), address(to))


@pytest.mark.parametrize("store", [_chosen, _chosen_one_by_one])
def test_chosen_words(store: Callable[[Any, int, Any], int]) -> None:
    words = np.arange(1, 9) << 40 | np.arange(11, 19)
    for bits in range(256):
        to = np.full(9, -1)
        chosen = words[(bits >> np.arange(8)) & 1 != 0].tolist()
        assert store(words, bits, to) == len(chosen)
        assert to[: len(chosen)].tolist() == chosen and not to[len(chosen) : 8].clip(0).any() and to[8] == -1


def test_words_with_a_flag() -> None:
    draw = np.random.default_rng(1)
    for count in range(27):
        words, to = draw.integers(0, 1 << 40, count + 8), np.full(count + 9, -1)
        chosen = words[:count][words[:count] & 4 != 0] & 0xFF0
        assert _pick(words, count, 4, 0xFF0, to) == len(chosen)
        assert (to[: len(chosen)] == chosen).all() and (to[len(chosen) + 8 :] == -1).all()


def test_numbers_of_groups() -> None:
    draw, counts, expected = np.random.default_rng(2), np.zeros(58, np.int64), np.zeros(100, np.int32)
    for count in range(27):
        groups, amount = draw.permutation(100)[: count + 8], 1 - 2 * (count & 1)
        _count(groups + 1 - (draw.integers(0, 9, count + 8) << 32), count, counts, amount)
        expected[groups[:count]] += amount
        assert (counts[8:].view(np.int32) == expected).all() and not counts[:4].any()


@pytest.mark.parametrize("buckets", [1, 37, 1 << 20])
def test_lines_of_words(buckets: int) -> None:
    draw = np.random.default_rng(buckets)
    for count in range(27):
        items, words = draw.integers(-(1 << 40), 1 << 40, count + 8), np.full(-8 * (-count // 8) + 1, -1)
        lines = words.copy()
        _address(items, words, lines, count, buckets, 1)
        given = items[:count] + SHIFT
        of = (((given & KEY) * GOLDEN & HALF) * buckets) >> 32
        assert (words[:count] == given).all() and (lines[:count] == TABLE + LINE * of + 1).all()
        assert words[-1] == lines[-1] == -1


def test_words_of_two_lines() -> None:
    draw, buckets = np.random.default_rng(3), 6
    for first in range(0, buckets, 2):
        for _ in range(20):
            words = draw.integers(1, 1 << 40, 8) * draw.integers(0, 2, 8)
            behind = ((((words & KEY) * GOLDEN & HALF) * buckets) >> 32) - first
            to, given = np.full(17, -1), words.copy()
            apart = _part(words, buckets, first, to)
            for half in range(2):
                here = given[(given != 0) & (behind == half)].tolist()
                assert to[8 * half : 8 * half + 8].tolist() == here + [0] * (8 - len(here))
            assert words[:apart].tolist() == given[(given != 0) & (behind >> 1 != 0)].tolist() and to[16] == -1


def test_numbers_that_are_not_0() -> None:
    draw = np.random.default_rng(4)
    for count in range(12):
        numbers = draw.integers(-3, 4, 12) * draw.integers(0, 2, 12) * draw.choice([1, 1 << 20], 12)
        places, to = np.full(9, -1), np.full(9, -1)
        chosen = np.flatnonzero(numbers[: min(count, 8)])
        words = numbers << 32 | draw.integers(0, 1 << 32, 12)
        assert _halves(words, count, 100, places, to) == len(chosen)
        assert places[: len(chosen)].tolist() == (100 + chosen).tolist() and places[8] in {0, -1}
        assert to[: len(chosen)].tolist() == numbers[chosen].tolist() and to[8] in {0, -1}
        narrow, chosen = numbers.astype(np.int32), np.flatnonzero(numbers[:8])
        assert _numbers(narrow.view(np.int64), 100, places, to) == len(chosen)
        assert places[: len(chosen)].tolist() == (100 + chosen).tolist()
        assert to[: len(chosen)].tolist() == numbers[chosen].tolist() and places[8] == -1
