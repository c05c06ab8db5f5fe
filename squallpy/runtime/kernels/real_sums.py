"""Sums of doubles of which some are infinite, NaN, or too large for their sum: the REAL and SIGNED rings.

A REAL element is (hi, lo, odd): the sum of the finite values is (hi + lo) · 2¹²⁸ᵏ, and the word `odd` holds the triple
(how many were +∞, −∞, NaN) with k in its upper four bits. So an infinity leaves a sum with the row that brought it, and
a sum that had no room is right again once it has. k is the least that will do, 0 for all ordinary data, and what
follows here is then never called. The sum prints as NaN if a NaN or both infinities are there, else as the infinity
that is, else as its finite part.

Products of sums, (a₁ + a₂) · (b₁ + b₂), need to know besides how many values of each sign an infinity meets: SIGNED
adds a word, the triple (how many were > 0, < 0, = 0). In the papers' terms the counts are an element of the monoid ring
over {+, −, 0, +∞, −∞, NaN} under IEEE multiplication.
"""

from math import inf, isfinite, isnan, ldexp

from squallpy.runtime.kernels.count_triples import BITS, add, count, times, triple
from squallpy.runtime.kernels.intrinsics import shift_right
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.ring_arithmetic import real_add, real_multiply

_STEP, _MOST = 128, 15  # k counts steps of 2¹²⁸


@inlined
def odd_of(x: float) -> int:
    """Make the triple of one value that is not finite."""
    return triple(0, 0, 1) if isnan(x) else triple(1, 0, 0) if x > 0.0 else triple(0, 1, 0)


@inlined
def signs_of(x: float) -> int:
    """Make the triple of one finite value."""
    return triple(1, 0, 0) if x > 0.0 else triple(0, 1, 0) if x < 0.0 else triple(0, 0, 1)


@inlined
def exponent(odd: int) -> int:
    """Read k, the scale of an element, from its triple."""
    return shift_right(odd, 60)


@inlined
def _settled(x: float, y: float, k: int, odd: int) -> tuple[float, float, int]:
    """Make the element of (x + y) · 2¹²⁸ᵏ with the least k. NB: beyond k = 15 it stays infinite."""
    while k > 0 and (k > _MOST or abs(x) < ldexp(1.0, 1024 - _STEP)):
        x, y, k = ldexp(x, _STEP), ldexp(y, _STEP), k - 1
    return x, y if isfinite(x) else 0.0, odd | k << 60


@inlined
def add_reals(a: float, a_low: float, a_odd: int, b: float, b_low: float, b_odd: int) -> tuple[float, float, int]:
    """Add two elements, finite or not."""
    i, j = exponent(a_odd), exponent(b_odd)
    k = max(i, j) + 1
    a, a_low = ldexp(a, (i - k) * _STEP), ldexp(a_low, (i - k) * _STEP)
    b, b_low = ldexp(b, (j - k) * _STEP), ldexp(b_low, (j - k) * _STEP)
    x, y = real_add(a, a_low, b, b_low)
    return _settled(x, y, k, add(a_odd & BITS, b_odd & BITS))


@inlined
def _multiply_finite(
    a: float, a_low: float, i: int, b: float, b_low: float, j: int, odd: int
) -> tuple[float, float, int]:
    x, y = real_multiply(a, a_low, b, b_low)
    k = i + j
    if not isfinite(x):  # then neither is below 1
        x, y = real_multiply(ldexp(a, -512), ldexp(a_low, -512), ldexp(b, -512), ldexp(b_low, -512))
        k += 1024 // _STEP
    return _settled(x, y, k, odd)


@inlined
def scale_real(a: float, a_low: float, odd: int, n: int, x: float, y: float) -> tuple[float, float, int]:
    """Multiply an element by an integer n, which is also x + y."""
    return _multiply_finite(a, a_low, exponent(odd), x, y, 0, times(odd & BITS, n))


@inlined
def multiply_reals(
    a: float, a_low: float, a_odd: int, a_signs: int, b: float, b_low: float, b_odd: int, b_signs: int
) -> tuple[float, float, int]:
    """Multiply two elements, finite or not."""
    up, down = _signed_product(
        count(a_odd, 0), count(a_odd, 1), count(a_signs, 0), count(a_signs, 1),
        count(b_odd, 0), count(b_odd, 1), count(b_signs, 0), count(b_signs, 1),
    )  # fmt: skip
    a_zero, a_nan, b_zero, b_nan = count(a_signs, 2), count(a_odd, 2), count(b_signs, 2), count(b_odd, 2)
    a_infinite, b_infinite = count(a_odd, 0) + count(a_odd, 1), count(b_odd, 0) + count(b_odd, 1)
    a_all = a_infinite + a_nan + a_zero + count(a_signs, 0) + count(a_signs, 1)
    b_others = b_infinite + b_zero + count(b_signs, 0) + count(b_signs, 1)
    nan = a_nan * b_others + a_all * b_nan + a_infinite * b_zero + a_zero * b_infinite
    return _multiply_finite(a, a_low, exponent(a_odd), b, b_low, exponent(b_odd), triple(up, down, nan))


@inlined
def _signed_product(
    a_up: int, a_down: int, a_plus: int, a_minus: int, b_up: int, b_down: int, b_plus: int, b_minus: int
) -> tuple[int, int]:
    """Count the products that are +∞ and −∞: those with an infinity and without a 0 or NaN."""
    up = a_up * (b_up + b_plus) + a_down * (b_down + b_minus) + a_plus * b_up + a_minus * b_down
    down = a_up * (b_down + b_minus) + a_down * (b_up + b_plus) + a_plus * b_down + a_minus * b_up
    return up, down


@inlined
def multiply_signs(a: int, b: int) -> int:
    """Count the signs of all products of finite values."""
    plus, minus, zero = count(a, 0), count(a, 1), count(a, 2)
    other_plus, other_minus, other_zero = count(b, 0), count(b, 1), count(b, 2)
    return triple(
        plus * other_plus + minus * other_minus,
        plus * other_minus + minus * other_plus,
        zero * (other_plus + other_minus + other_zero) + (plus + minus) * other_zero,
    )


@inlined
def printed(x: float, y: float, odd: int) -> float:
    """Round an element to one double."""
    if odd == 0:
        return x + y
    up, down = count(odd, 0) != 0, count(odd, 1) != 0
    if count(odd, 2) != 0 or (up and down):
        return inf - inf
    if up or down:
        return inf if up else -inf
    return ldexp(x + y, _STEP * exponent(odd))
