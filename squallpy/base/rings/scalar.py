"""The scalar rings: counts, exact sums and sums of doubles."""

from enum import IntEnum


class Ring(IntEnum):
    """The scalar rings, with the number of int64 words each takes in a payload row."""

    COUNT = 0  # ℤ mod 2⁶⁴ in one word: multiplicities and counts
    EXACT = 1  # ℤ mod 2¹²⁸ in two words (lo, hi): sums of integers and scaled decimals; wraps, so deletes are exact
    REAL = 2  # three words: compensated sums of DOUBLE (a double-double), and counts of ∞, −∞ and NaN
    SIGNED = 3  # four words: REAL that can be multiplied, hence with counts of the values above, below and exactly 0

    @property
    def words(self) -> int:
        return int(self) + 1

    @property
    def code(self) -> int:
        """The ring as kernels know it."""
        return int(self)
