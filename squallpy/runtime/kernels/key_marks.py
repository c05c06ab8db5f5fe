"""Estimates of how many keys of a batch are distinct: a bit for the hash of each.

    fresh += mark_key(marks, shift, key, 1)      1 for the first key with its hash, else 0

With eight times as many bits as keys, one in sixteen of distinct keys falls on a bit that is taken: the estimate is
too low by that.

Source: Whang, Vander-Zanden, Taylor, *A linear-time probabilistic counting algorithm for database applications* (1990).
"""

from typing import Final

from squallpy.runtime.kernels.intrinsics import load, shift_right, store
from squallpy.runtime.kernels.kernel_compiler import called, inlined

MARKS: Final = 1 << 12
"""Words of the bits: for 2¹⁵ keys; of more, so many seem to be repeated."""
_LEAST_BITS: Final = 10
_MOST_BITS: Final = 18
_SPREAD: Final = -7046029254386353131  # 2⁶⁴ by the golden ratio


@called
def clear_marks(marks: int, keys: int) -> int:
    """Clear as many bits as are due for so many keys; return by how much a hash is shifted to the number of its bit."""
    bits = _LEAST_BITS
    while bits < _MOST_BITS and 1 << bits < 8 * keys:
        bits += 1
    for i in range(1 << bits - 6):
        store(marks, i, 0)
    return 64 - bits


@inlined
def mark_key(marks: int, shift: int, key: int, width: int) -> int:
    """Set the bit of a key, of so many words; return 1 if it was clear, else 0."""
    h = 0
    for i in range(width):
        h = (h ^ shift_right(h, 32) ^ load(key, i)) * _SPREAD
    bit = shift_right(h, shift)
    word, place = load(marks, bit >> 6), bit & 63
    store(marks, bit >> 6, word | 1 << place)
    return 1 - (word >> place & 1)
