"""Packed doubles and words: what is stored of them, and what lies behind."""

from fractions import Fraction

import numpy as np

from squallpy.runtime.kernels.intrinsics import store
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.packed_reals import (
    BYTES,
    LANES,
    as_reals,
    has_others,
    load_packed,
    load_some_words,
    load_words,
    lower_reals,
    spread_word,
    store_packed,
    store_some,
    store_words,
    upper_reals,
)


@kernel(f"void({VECTOR}, {VECTOR}, int64)")
def copy_some(target: Vector, source: Vector, count: int) -> None:
    store_some(address(target), load_packed(address(source)), count)


def test_only_as_many_lanes_are_stored_as_are_asked_for() -> None:
    source = np.arange(1.0, LANES + 1)
    for count in range(1, LANES + 3):
        target = np.zeros(LANES + 2)
        copy_some(target.view(np.int64), source.view(np.int64), count)
        stored = min(count, LANES)
        assert target.tolist() == [*source[:stored], *[0.0] * (LANES + 2 - stored)]


@kernel(f"void({VECTOR}, {VECTOR}, int64)")
def multiply_words(target: Vector, source: Vector, factor: int) -> None:
    words = load_words(address(source)) * spread_word(factor)
    store_words(address(target), words)
    store_packed(address(target) + BYTES, upper_reals(words))
    store_packed(address(target) + 2 * BYTES, lower_reals(words))


def test_words_are_the_halves_that_doubles_have_room_for() -> None:
    source = np.array([0, 1, -1, 2**31, 2**32 + 5, -(2**53) - 1, 2**61 + 12345, -(2**62) + 7], np.int64)
    assert len(source) == LANES
    for factor in (1, -1, 3, 2**40 + 1):
        target = np.zeros(3 * LANES, np.int64)
        multiply_words(target, source, factor)
        products, upper, lower = target[:LANES], *target.view(np.float64)[LANES:].reshape(2, LANES)
        assert products.tolist() == (source * factor).tolist()  # modulo 2⁶⁴, as of numpy
        sums = [Fraction(a) * 2**32 + Fraction(b) for a, b in zip(upper.tolist(), lower.tolist(), strict=True)]
        assert sums == products.tolist()


@kernel(f"void({VECTOR}, {VECTOR}, int64)")
def join_words(target: Vector, source: Vector, count: int) -> None:
    words = load_some_words(address(source), count) | load_some_words(address(source) + BYTES, count)
    store_words(address(target), words)
    store_packed(address(target) + BYTES, as_reals(words))
    store(address(target) + 2 * BYTES, 0, has_others(words, 5))


def test_the_first_words_are_joined_and_compared() -> None:
    source = np.concatenate([np.full(LANES, 4), np.full(LANES, 1), [0]])
    source[LANES - 1] = 2**60 + 3
    for count in range(1, LANES + 3):
        target = np.zeros(2 * LANES + 1, np.int64)
        join_words(target, source, count)
        joined = [*(source[: min(count, LANES)] | 1).tolist(), *[0] * (LANES - count)]
        assert target[:LANES].tolist() == joined
        assert target[LANES:-1].view(np.float64).tolist() == [float(word) for word in joined]
        assert target[-1] == 1  # a 0, or the last
    source[LANES - 1] = 4
    join_words(target, source, LANES)
    assert target[-1] == 0
