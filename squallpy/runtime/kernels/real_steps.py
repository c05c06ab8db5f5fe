"""Steps of compiled triggers over doubles, each as the word of its bits.

Arithmetic follows IEEE's rules; comparisons have NaN behind all numbers, and -0.0 is 0.0.
"""

from math import sqrt
from typing import Final

import numpy as np

from squallpy.runtime.kernels.intrinsics import as_float, as_word
from squallpy.runtime.kernels.kernel_compiler import inlined
from squallpy.runtime.kernels.ring_arithmetic import two_product

_NAN: Final = 0x7FF8000000000000
_MAGNITUDE: Final = 2**63 - 1


@inlined
def real_add(a: int, b: int) -> int:
    """Add doubles."""
    return as_word(as_float(a) + as_float(b))


@inlined
def real_subtract(a: int, b: int) -> int:
    """Subtract doubles."""
    return as_word(as_float(a) - as_float(b))


@inlined
def real_multiply(a: int, b: int) -> int:
    """Multiply doubles."""
    return as_word(as_float(a) * as_float(b))


@inlined
def real_product_rest(a: int, b: int) -> int:
    """Compute what rounding took from the product of doubles."""
    _, rest = two_product(as_float(a), as_float(b))
    return as_word(rest)


@inlined
def real_divide(a: int, b: int) -> int:
    """Divide doubles; 0 by 0.0, where the quotient is NULL."""
    divisor = as_float(b)
    return as_word(as_float(a) / divisor) if divisor != 0.0 else 0


@inlined
def real_square_root(a: int) -> int:
    """Take the square root of a double; NaN of a negative one."""
    return as_word(sqrt(as_float(a)))


@inlined
def real_floor(a: int) -> int:
    """Round a double down to a whole number."""
    return as_word(np.floor(as_float(a)))


@inlined
def real_ceil(a: int) -> int:
    """Round a double up to a whole number."""
    return as_word(np.ceil(as_float(a)))


@inlined
def real_trunc(a: int) -> int:
    """Cut a double off to a whole number."""
    return as_word(np.trunc(as_float(a)))


@inlined
def real_half_away(a: int) -> int:
    """Round a double to the next whole number, half away from zero."""
    value = as_float(a)
    return as_word(np.trunc(value + np.copysign(0.5, value)))


@inlined
def has_word(a: int) -> bool:
    """True if a double has a whole number of 64 bits."""
    return -9223372036854775808.0 <= as_float(a) < 9223372036854775808.0


@inlined
def word_of(a: int) -> int:
    """Return the whole number of a double; 0 if it has none of 64 bits."""
    return int(as_float(a)) if has_word(a) else 0


@inlined
def real_of(word: int, unit: int) -> int:
    """Divide an integer by a double."""
    return as_word(float(word) / as_float(unit))


@inlined
def mean_of(low: int, high: int, count: int, unit: int) -> int:
    """Divide a sum of 128 bits by a count and a double; 0 for none."""
    value = float(low)
    if high != low >> 63:
        value = float(high) * 18446744073709551616.0 + (value if low >= 0 else value + 18446744073709551616.0)
    return as_word(value / float(count) / as_float(unit)) if count != 0 else 0


@inlined
def real_key(word: int) -> int:
    """Return the word by which a double is a key: one for 0.0 and -0.0, one for each NaN."""
    number = as_float(word) + 0.0
    return as_word(number) if number == number else _NAN


@inlined
def ordinal(word: int) -> int:
    """Return the word by which a double is compared."""
    key = real_key(word)
    return key ^ _MAGNITUDE if key < 0 else key
