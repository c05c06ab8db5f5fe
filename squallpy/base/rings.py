"""Payload rings: the values that a view stores for each key, with their sum and product.

A view maps a key to one *payload*, an element of a direct product of rings: one `Ring` per aggregate ("lane").
Addition and multiplication are lane-wise; a scalar (a multiplicity) embeds diagonally. Lanes are stored as int64
*words* side by side in one row, so that one generic kernel serves every query.

    SUM(price), COUNT(*)   →   Payload((EXACT, COUNT))   →   words  [price.lo, price.hi, n]

Source: generalised multiset relations, `dbtoaster-batch-ivm` §3.1; rings as payloads, `fivm-on-flink` §2.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate


class Ring(IntEnum):
    """The scalar rings, with the number of int64 words each takes in a payload row."""

    COUNT = 0  # ℤ mod 2⁶⁴ in one word: multiplicities and counts
    EXACT = 1  # ℤ mod 2¹²⁸ in two words (lo, hi): sums of integers and scaled decimals; wraps, so deletes are exact
    REAL = 2  # three words: compensated sums of DOUBLE (a double-double), and counts of ∞, −∞ and NaN
    SIGNED = 3  # four words: REAL that can be multiplied, hence with counts of the values above, below and exactly 0

    @property
    def words(self) -> int:
        return int(self) + 1


@dataclass(frozen=True, slots=True)
class Payload:
    """The layout of one payload row: its lanes in order."""

    rings: tuple[Ring, ...]
    offsets: tuple[int, ...] = field(init=False, compare=False)
    """First word of each lane."""
    width: int = field(init=False, compare=False)
    """Words in a row."""

    def __post_init__(self) -> None:
        ends = tuple(accumulate((ring.words for ring in self.rings), initial=0))
        object.__setattr__(self, "offsets", ends[:-1])
        object.__setattr__(self, "width", ends[-1])
