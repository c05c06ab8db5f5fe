"""Spellings of numbers that Arrow and SQL read by different rules.

0x1F        an integer in Arrow, not a number in SQL
1e-99999    as a DECIMAL: Arrow reads beyond its tables, or crashes
"""

from typing import Any

import numpy as np

from squallpy.runtime.kernels.kernel_compiler import kernel

HEXADECIMAL, EXPONENT = 1, 2
_SMALL, _X, _E, _ZERO, _POINT, _TEN = (np.uint8(code) for code in (*b" xe0.", 10))


@kernel("uint8(Array(uint8, 1, 'C', readonly=True))")
def find_numerals(data: Any) -> int:
    """Set bits HEXADECIMAL for an X after a zero, and EXPONENT for an E after a digit or a point."""
    found = np.uint8(0)
    for i in range(1, len(data)):  # NB: 8-bit and branch-free, so that LLVM vectorises it
        letter, before = np.uint8(data[i] | _SMALL), data[i - 1]
        hexadecimal = np.uint8(letter == _X) & np.uint8(before == _ZERO)
        is_digit = np.uint8(np.uint8(before - _ZERO) < _TEN) | np.uint8(before == _POINT)
        exponent = np.uint8(letter == _E) & is_digit
        found = np.uint8(found | hexadecimal | np.uint8(exponent << np.uint8(1)))
    return found  # type: ignore[return-value]
