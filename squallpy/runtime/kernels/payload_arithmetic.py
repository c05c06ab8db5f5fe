"""Payloads in memory, as the kernels of pools and sorted indexes see them: the lanes' rings are in the frame."""

from math import isfinite

from squallpy.base.rings.cofactor import PLAIN
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels import pool_layout as at
from squallpy.runtime.kernels.cofactor_blocks import add_block, block_words, is_zero_block
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, store
from squallpy.runtime.kernels.kernel_compiler import Vector, inlined
from squallpy.runtime.kernels.real_sums import add_reals
from squallpy.runtime.kernels.ring_arithmetic import exact_add, real_add


@inlined
def add(frame: Vector, target: int, source: int) -> bool:
    """Add the payload at `source` to the one at `target`, lane by lane; False if nothing is left."""
    left, i = 0, 0
    for lane in range(frame[at.LANES]):
        ring = frame[at.RINGS + lane]
        if ring >= PLAIN:
            left |= add_block(target + 8 * i, source + 8 * i, ring)
            i += block_words(ring)
            continue
        if ring == 0:
            n = load(target, i) + load(source, i)
            store(target, i, n)
            left |= n
            i += 1
            continue
        if ring == 1:
            lo, hi = exact_add(load(target, i), load(target, i + 1), load(source, i), load(source, i + 1))
            left |= lo | hi
            store(target, i, lo)
            store(target, i + 1, hi)
            i += 2
            continue
        a, a_low, a_odd = as_float(load(target, i)), as_float(load(target, i + 1)), load(target, i + 2)
        b, b_low, b_odd = as_float(load(source, i)), as_float(load(source, i + 1)), load(source, i + 2)
        x, y = real_add(a, a_low, b, b_low)
        if a_odd | b_odd != 0 or not isfinite(x):
            x, y, a_odd = add_reals(a, a_low, a_odd, b, b_low, b_odd)
            store(target, i + 2, a_odd)
            left |= a_odd
        store(target, i, as_word(x))
        store(target, i + 1, as_word(y))
        if x != 0.0 or y != 0.0:
            left = 1 if left == 0 else left
        i += 3
        if ring == 3:
            signs = count_triples.add(load(target, i), load(source, i))
            store(target, i, signs)
            left |= signs
            i += 1
    return left != 0


@inlined
def is_zero(frame: Vector, source: int) -> bool:
    """True if the payload at `source` is zero in every lane (−0.0 included)."""
    i = 0
    for lane in range(frame[at.LANES]):
        ring = frame[at.RINGS + lane]
        if ring >= PLAIN:
            if not is_zero_block(source + 8 * i):
                return False
            i += block_words(ring)
            continue
        if ring == 0:
            if load(source, i) != 0:
                return False
            i += 1
            continue
        a, b = load(source, i), load(source, i + 1)
        if ring >= 2:  # all but the sign
            a, b = a << 1, (b << 1) | load(source, i + 2)
            if ring == 3:
                b |= load(source, i + 3)
        if a | b != 0:
            return False
        i += 2 if ring == 1 else ring + 1
    return True


@inlined
def copy(target: int, source: int, words: int) -> None:
    """Copy words from one address to another."""
    for i in range(words):
        store(target, i, load(source, i))
