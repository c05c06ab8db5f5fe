"""The (n, m)-mapping of a join matrix (paper §3.1): R is cut into n rows, S into m columns, a joiner has one cell.

    (4, 2), 8 joiners        ticket of R 10…: row 2       →  joiners 4, 5
    word of joiner 5 = 10 1                               →  row 10, column 1

A tuple has a ticket, 64 random bits: its row is the top log₂ n of them if it is of R, its column the top log₂ m if of
S. A joiner has a word of log₂ J bits: its row is the top log₂ n of them, its column the others, read backwards. So
from (n, m) to (n/2, 2m) one bit changes sides and no joiner its word: rows lose their last bit, columns get one more.
"""

from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass

Tickets = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Side(IntEnum):
    """A relation of the join."""

    R = 0
    S = 1

    @property
    def other(self) -> "Side":
        return Side(1 - self)


@dataclass(frozen=True, slots=True)
class Mapping:
    """n rows and m columns, both powers of two."""

    rows: int
    columns: int

    def __post_init__(self) -> None:
        if not (is_power(self.rows) and is_power(self.columns)):
            raise ValueError(f"a mapping has powers of two of rows and columns, not {self}")

    def __str__(self) -> str:
        return f"({self.rows}, {self.columns})"

    @property
    def joiners(self) -> int:
        return self.rows * self.columns

    @property
    def column_bits(self) -> int:
        """log₂ m: below that many bits of a word stands its row."""
        return self.columns.bit_length() - 1

    def cuts(self, side: Side) -> int:
        """Count the parts into which a relation is cut."""
        return self.columns if side else self.rows

    def copies(self, side: Side) -> int:
        """Count the joiners that receive a tuple."""
        return self.rows if side else self.columns

    def load(self, r: float, s: float) -> float:
        """Compute the input-load factor (§3.3): tuples received and stored by a joiner, for relations of these
        sizes."""
        return r / self.rows + s / self.columns

    def coordinates(self, side: Side, tickets: Tickets) -> Numbers:
        """Compute the row of each tuple of R, or the column of each of S."""
        return top_bits(tickets, self.cuts(side).bit_length() - 1)

    def coordinates_of(self, side: Side, words: Numbers) -> Numbers:
        """Compute the row or column of each joiner from its word."""
        bits = self.column_bits
        return _reverse_bits(words, bits) if side else words >> bits

    def words(self, rows: Numbers, columns: Numbers) -> Numbers:
        """Compute the words of the joiners in these rows and columns."""
        return (rows << self.column_bits) + _reverse_bits(columns, self.column_bits)

    def targets(self, side: Side, tickets: Tickets) -> Numbers:
        """List the joiners of each tuple, by word, one for each of its copies."""
        parts, bits = self.coordinates(side, tickets), self.column_bits
        if side is Side.R:
            return (parts << bits)[:, None] + np.arange(self.columns)
        return _reverse_bits(parts, bits)[:, None] + (np.arange(self.rows) << bits)


def find_square_mapping(joiners: int) -> Mapping:
    """Choose the mapping in the middle, √J by √J, with more columns if log₂ J is odd."""
    if not is_power(joiners):
        raise ValueError(f"a grid has a power of two of joiners, not {joiners}")
    rows = 1 << (joiners.bit_length() - 1) // 2
    return Mapping(rows, joiners // rows)


@cache
def all_mappings(joiners: int) -> tuple[Mapping, ...]:
    """List all mappings of this many joiners, a power of two."""
    return tuple(Mapping(1 << bits, joiners >> bits) for bits in range(joiners.bit_length()))


def find_best_mapping(joiners: int, r: int, s: int, now: Mapping | None = None) -> Mapping:
    """Find the mapping with the least load (Alg. 2 line 3); ties go to the present one, then to the squarest.

    64 joiners, 1 GB and 64 GB  →  (1, 64)
    """
    middle = find_square_mapping(joiners)
    # NB: integers, J times the load, so that ties are exact
    return min(
        all_mappings(joiners),
        key=lambda m: (r * m.columns + s * m.rows, m != now, abs(m.column_bits - middle.column_bits), m.rows),
    )


def is_power(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def top_bits(tickets: Tickets, bits: int) -> Numbers:
    """Take the leading bits of tickets as numbers."""
    # NB: two shifts, as a shift by 64 bits does nothing
    return ((tickets >> np.uint64(1)) >> np.uint64(63 - bits)).astype(np.int64)


def _reverse_bits(numbers: Numbers, bits: int) -> Numbers:
    """Reverse the last bits of numbers."""
    out = np.zeros_like(numbers)
    for bit in range(bits):
        out = out << 1 | numbers >> bit & 1
    return out
