"""Payload rings: what a view keeps per key, and how it is added and multiplied.

A view maps a key to one *payload*, an element of a direct product of rings: one `Ring` per aggregate ("lane").
Addition and multiplication are lane-wise; a scalar (a multiplicity) embeds diagonally. Lanes are stored as int64
*words* side by side in one row, so that one generic kernel serves every query.

    SUM(price), COUNT(*)   →   Payload((EXACT, COUNT))   →   words  [price.lo, price.hi, n]

Source: generalised multiset relations, `dbtoaster-batch-ivm` §3.1; rings as payloads, `fivm-on-flink` §2.
"""

from dataclasses import dataclass
from enum import IntEnum


class Ring(IntEnum):
    """The scalar rings, with the number of int64 words each takes in a payload row."""

    COUNT = 0  # ℤ mod 2⁶⁴ in one word: multiplicities and counts
    EXACT = (
        1  # ℤ mod 2¹²⁸ in two words (lo, hi): sums of integers and of scaled decimals; wraps, hence exact under deletes
    )
    REAL = 2  # double-double in two words (float64 bit patterns of hi, lo): compensated sums of DOUBLE

    @property
    def words(self) -> int:
        return 1 if self is Ring.COUNT else 2


@dataclass(frozen=True, slots=True)
class Payload:
    """The layout of one payload row: its lanes in order."""

    rings: tuple[Ring, ...]

    @property
    def width(self) -> int:
        """Words in a row."""
        return sum(ring.words for ring in self.rings)

    @property
    def offsets(self) -> tuple[int, ...]:
        """First word of each lane."""
        starts, at = [], 0
        for ring in self.rings:
            starts.append(at)
            at += ring.words
        return tuple(starts)
