"""Triples: three counts in one word, so that a sum of doubles can tell how often it met +∞, −∞ and NaN.

    add(triple(1, 0, 2), triple(1, 0, -2))   →   triple(2, 0, 0)

A count is kept modulo the prime 2¹⁹ − 1, in 20 bits of which one is free: the three are added at once, and only a
count that is a multiple of 524 287 is taken for none. The upper four bits of the word are not used here, and are 0.
"""

from typing import Final

from squallpy.runtime.kernels.intrinsics import shift_right
from squallpy.runtime.kernels.kernel_compiler import inlined

PRIME: Final = (1 << 19) - 1
_ONES: Final = 1 | 1 << 20 | 1 << 40
BITS: Final = PRIME * _ONES  # all that a triple uses


@inlined
def triple(a: int, b: int, c: int) -> int:
    """Pack three counts, of any sign, into a word."""
    return (a % PRIME) | (b % PRIME) << 20 | (c % PRIME) << 40


@inlined
def count(word: int, which: int) -> int:
    """Read one count of a triple, 0 … PRIME − 1."""
    return shift_right(word, 20 * which) & PRIME


@inlined
def add(a: int, b: int) -> int:
    """Count by count."""
    s = a + b
    return (s + (shift_right(s + _ONES, 19) & _ONES)) & BITS  # where s ≥ 2¹⁹ − 1, s + 1 without its upper bit


@inlined
def times(a: int, n: int) -> int:
    """Multiply each count by n."""
    n = n % PRIME
    return triple(count(a, 0) * n, count(a, 1) * n, count(a, 2) * n)
