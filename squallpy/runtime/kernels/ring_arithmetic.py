"""Ring arithmetic on single elements, in registers: 128-bit integers and double-doubles.

Sums of doubles are exact while they fit 106 bits, so ordinary data leaves no residue when it is deleted in any order.
What is not finite never enters a double-double: it is counted apart (`real_sums.py`).

Source: Joldes, Muller, Popescu, *Tight and rigorous error bounds for basic building blocks of double-word arithmetic*
(2017), algorithms 6 and 12; Dekker (1971) for the product's error without fused multiply-add.
"""

from math import isfinite

from squallpy.runtime.kernels.intrinsics import below, multiply_high, shift_right
from squallpy.runtime.kernels.kernel_compiler import inlined

_SPLIT = 134217729.0  # 2²⁷ + 1


@inlined
def exact_add(a_lo: int, a_hi: int, b_lo: int, b_hi: int) -> tuple[int, int]:
    """Add two integers mod 2¹²⁸."""
    lo = a_lo + b_lo
    return lo, a_hi + b_hi + below(lo, a_lo)


@inlined
def exact_multiply(a_lo: int, a_hi: int, b_lo: int, b_hi: int) -> tuple[int, int]:
    """Multiply two integers mod 2¹²⁸."""
    return a_lo * b_lo, multiply_high(a_lo, b_lo) + a_lo * b_hi + a_hi * b_lo


@inlined
def sign(word: int) -> int:
    """Return the upper word of a word that is extended by its sign."""
    return -shift_right(word, 63)


@inlined
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b rounded, and the rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@inlined
def quick_two_sum(a: float, b: float) -> tuple[float, float]:
    """Return what `two_sum` does, where |a| ≥ |b|."""
    s = a + b
    return s, b - (s - a)


@inlined
def two_product(a: float, b: float) -> tuple[float, float]:
    """Return a · b rounded, and the rounding error (0 where splitting overflows)."""
    p = a * b
    t = _SPLIT * a
    a_hi = t - (t - a)
    a_lo = a - a_hi
    t = _SPLIT * b
    b_hi = t - (t - b)
    b_lo = b - b_hi
    e = ((a_hi * b_hi - p) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo
    return p, (e if isfinite(e) else 0.0)


@inlined
def real_add(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Add double-doubles; relative error below 2⁻¹⁰⁴, none if the sum fits; not finite where it overflows."""
    s, s_low = two_sum(a, b)
    t, t_low = two_sum(a_low, b_low)
    v, v_low = quick_two_sum(s, s_low + t)
    return quick_two_sum(v, t_low + v_low)


@inlined
def real_multiply(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """Multiply double-doubles; relative error below 2⁻¹⁰¹; not finite where it overflows."""
    p, p_low = two_product(a, b)
    if not isfinite(p):
        return p, 0.0
    return quick_two_sum(p, p_low + (a * b_low + a_low * b))


@inlined
def real_of(word: int) -> tuple[float, float]:
    """Convert an integer to a double-double, exactly."""
    hi = float(word >> 32) * 4294967296.0  # both halves are exact, so their sum's error is too
    return two_sum(hi, float(word & 0xFFFFFFFF))
