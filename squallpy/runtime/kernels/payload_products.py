"""Products of payload lanes, in memory.

A COUNT lane converts exactly to any ring, another only goes into its own. REAL is added up and never multiplied by
itself: that takes SIGNED.
"""

from math import isfinite

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.base.rings.cofactor import PLAIN
from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.cofactor_blocks import block_words, negate_block
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, store
from squallpy.runtime.kernels.kernel_compiler import (
    GIVEN_MATRIX,
    GIVEN_VECTOR,
    MATRIX,
    Vector,
    address,
    inlined,
    kernel,
)
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.real_sums import multiply_reals, multiply_signs, scale_real
from squallpy.runtime.kernels.ring_arithmetic import exact_multiply, real_multiply, real_of, sign

_COUNTED, _TIMES = 4, 8


def kind_of(out: Ring, source: Ring, times: bool) -> int:
    """Choose how `combine` puts a lane into one of `out`: alone, or times the lane there."""
    assert source in (out, Ring.COUNT), f"no {source.name} in {out.name}"
    assert not times or source is not Ring.REAL, "a product of sums of doubles takes their signs"
    return int(out) + (0 if source == out else _COUNTED) + (_TIMES if times else 0)


@inlined
def is_count(kind: int) -> bool:
    """True if `combine` takes a count for this kind."""
    return kind & _COUNTED != 0 or kind & 3 == 0


@inlined
def put(at: int, x: float, y: float, odd: int) -> None:
    store(at, 0, as_word(x))
    store(at, 1, as_word(y))
    store(at, 2, odd)


@inlined
def put_count(o: int, n: int, signed: bool) -> None:
    """Put the integer n, as a REAL or SIGNED element, at o."""
    x, y = real_of(n)
    put(o, x, y, 0)
    if signed:
        store(o, 3, count_triples.triple(n, 0, 0))


@inlined
def _scale(o: int, n: int, signed: bool) -> None:
    """Multiply the REAL or SIGNED element at o by n."""
    x, y, odd = as_float(load(o, 0)), as_float(load(o, 1)), load(o, 2)
    u, v = real_of(n)
    p, q = real_multiply(x, y, u, v)
    if odd != 0 or not isfinite(p):
        p, q, odd = scale_real(x, y, odd, n, u, v)
    put(o, p, q, odd)
    if signed:
        store(o, 3, count_triples.times(load(o, 3), n))


@inlined
def _multiply(o: int, a: int) -> None:
    """Multiply the SIGNED element at o by the one at a."""
    x, y, odd, signs = as_float(load(o, 0)), as_float(load(o, 1)), load(o, 2), load(o, 3)
    u, v, other, others = as_float(load(a, 0)), as_float(load(a, 1)), load(a, 2), load(a, 3)
    p, q = real_multiply(x, y, u, v)
    if odd | other != 0 or not isfinite(p):
        p, q, odd = multiply_reals(x, y, odd, signs, u, v, other, others)
    put(o, p, q, odd)
    store(o, 3, multiply_signs(signs, others))


@inlined
def combine(o: int, a: int, kind: int) -> None:
    """Set or multiply the lane at `o` by the one at `a`. kind: see `kind_of`."""
    times, counted, ring = kind >= _TIMES, kind & _COUNTED != 0, kind & 3
    if ring == 0:
        store(o, 0, load(o, 0) * load(a, 0) if times else load(a, 0))
    elif ring == 1:
        lo = load(a, 0)
        hi = sign(lo) if counted else load(a, 1)
        if times:
            lo, hi = exact_multiply(load(o, 0), load(o, 1), lo, hi)
        store(o, 0, lo)
        store(o, 1, hi)
    elif times and counted:
        _scale(o, load(a, 0), ring == 3)
    elif times:
        _multiply(o, a)
    elif counted:
        put_count(o, load(a, 0), ring == 3)
    else:
        for word in range(ring + 1):
            store(o, word, load(a, word))


def negated(words: Words, payload: Payload) -> Words:
    """Negate payloads: those returned add up with those given to nothing."""
    return _negated(np.ascontiguousarray(words), np.array([ring.code for ring in payload.rings], np.int64))


@kernel(f"{MATRIX}({GIVEN_MATRIX}, {GIVEN_VECTOR})")
def _negated(words: Vector, rings: Vector) -> Words:
    out: Words = words.copy()  # type: ignore[attr-defined]
    width = words.shape[1]
    for row in range(words.shape[0]):
        at = address(out) + 8 * row * width
        for ring in rings:  # type: ignore[attr-defined]
            if ring >= PLAIN:
                negate_block(at, ring)
                at += 8 * block_words(ring)
                continue
            if ring == 0:
                store(at, 0, -load(at, 0))
            elif ring == 1:
                lo, hi = exact_multiply(load(at, 0), load(at, 1), -1, -1)
                store(at, 0, lo)
                store(at, 1, hi)
            else:
                _scale(at, -1, ring == 3)
            at += 8 * (ring + 1)
    return out
