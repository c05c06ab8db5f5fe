"""Sums of doubles as compiled triggers add them up and multiply them: REAL and SIGNED lanes at addresses."""

from math import isfinite
from typing import Final

from squallpy.runtime.kernels import count_triples
from squallpy.runtime.kernels.c_functions import CFunction, c_function
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, store
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.payload_products import combine, put
from squallpy.runtime.kernels.real_sums import add_reals, odd_of, signs_of
from squallpy.runtime.kernels.ring_arithmetic import real_add
from squallpy.runtime.kernels.trigger_steps import call

ADD: Final = 11  # addresses in the table, then words of room there: a count, and an element
COMBINE: Final = 12
COUNT: Final = 13
ELEMENT: Final = 14
ROOM: Final = 5  # words
_SCALE: Final = 12  # of `combine`, besides the ring: times a count


@inlined
def add_double(where: int, word: int, n: int, ring: int, steps: int) -> int:
    """Add a double, `n` times, to the lane at an address; 0 if nothing is left of the lane."""
    store(steps, COUNT, n)
    return call(load(steps, ADD), where, word, ring, steps, 0, 0)


@c_function(6)
def _add_double(where: int, word: int, ring: int, steps: int, _d: int, _e: int) -> int:
    """Make an element of a double, and add it."""
    x, n, o = as_float(word), load(steps, COUNT), steps + 8 * ELEMENT
    a, a_low, odd = as_float(load(where, 0)), as_float(load(where, 1)), load(where, 2)
    if isfinite(x):
        put(o, x, 0.0, 0)
        signs = signs_of(x)
        if n != 1:
            if ring == 3:
                store(o, 3, 0)
            combine(o, steps + 8 * COUNT, _SCALE + ring)
            signs = count_triples.times(signs, n)
    else:
        put(o, 0.0, 0.0, count_triples.times(odd_of(x), n))
        signs = 0
    b, b_low, b_odd = as_float(load(o, 0)), as_float(load(o, 1)), load(o, 2)
    s, s_low = real_add(a, a_low, b, b_low)
    if odd | b_odd != 0 or not isfinite(s):
        s, s_low, odd = add_reals(a, a_low, odd, b, b_low, b_odd)
    put(where, s, s_low, odd)
    left = odd | as_word(abs(s)) | as_word(abs(s_low))
    if ring == 3:
        signs = count_triples.add(load(where, 3), signs)
        store(where, 3, signs)
        left |= signs
    return left


@inlined
def combine_lane(o: int, a: int, kind: int, steps: int) -> None:
    """Set or multiply the lane at `o` by the one at `a` (`payload_products.combine`)."""
    call(load(steps, COMBINE), o, a, kind, 0, 0, 0)


@inlined
def combine_count(o: int, n: int, kind: int, steps: int) -> None:
    """Set or multiply the lane at `o` by a count."""
    store(steps, COUNT, n)
    call(load(steps, COMBINE), o, steps + 8 * COUNT, kind, 0, 0, 0)


@c_function(6)
def _combine(o: int, a: int, kind: int, _c: int, _d: int, _e: int) -> int:
    """Set or multiply a lane."""
    combine(o, a, kind)
    return 0


REAL_STEPS: tuple[CFunction, ...] = (_add_double, _combine)
"""Functions whose addresses are in the table."""
