"""Words of 32 bits, which hold most keys, in the place of words of 64.

7   →   7        NULL   →   −2³¹        2³¹   →   none
"""

from typing import Final

from squallpy.base.keys import NULL
from squallpy.runtime.kernels.intrinsics import below
from squallpy.runtime.kernels.kernel_compiler import inlined

LEAST: Final = -(1 << 31)
"""Word of 32 bits that stands for NULL."""
_MOST: Final = (1 << 31) - 1


@inlined
def narrowed(word: int) -> int:
    """Return the word of 32 bits, as one of 64, that stands for a word which they hold."""
    return LEAST if word == NULL else word


@inlined
def needs_more(word: int) -> int:
    """Return 1 if 32 bits do not hold a word."""
    return below(2 * _MOST, word + _MOST) & (0 if word == NULL else 1)
