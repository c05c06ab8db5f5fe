"""Joiners of a grid by number, which they keep when mappings change and when the grid grows (paper §4.2.2, Fig. 4b).

    4 joiners (2, 2) grow to 16 (4, 4)    joiner 1, word 0|1  →  joiners 1, 5, 9, 13, words 00|01, 00|11, 01|01, 01|11

Growth splits each joiner in four: its word gets two bits in the middle, the upper of the row and the lower of the
column. The first of the four is the joiner itself; the others get new numbers.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.mapping import Mapping, Mask, Numbers, Side, Tickets


@dataclass(frozen=True, slots=True)
class Grid:
    """A mapping with the number of its first joiner. A (1, 1)-grid holds a hashed key."""

    mapping: Mapping
    first: int = 0
    growths: tuple[int, ...] = ()  # for each growth, below how many bits of the word it put two more

    def __post_init__(self) -> None:
        if self.mapping.joiners < 1 << 2 * len(self.growths):
            raise ValueError(f"{self.mapping} is too small to have grown {len(self.growths)} times")

    @property
    def joiners(self) -> int:
        return self.mapping.joiners

    @property
    def numbers(self) -> Numbers:
        """The numbers of its joiners."""
        return np.arange(self.first, self.first + self.joiners)

    def __contains__(self, joiner: int) -> bool:
        return self.first <= joiner < self.first + self.joiners

    def has(self, numbers: Numbers) -> Mask:
        """Mark the joiners that are in the grid."""
        return (numbers >= self.first) & (numbers < self.first + self.joiners)

    def remap(self, mapping: Mapping) -> "Grid":
        """Arrange the same joiners under another mapping."""
        assert mapping.joiners == self.joiners, f"{self.joiners} joiners cannot be mapped as {mapping}"
        return replace(self, mapping=mapping)

    def grow(self, mapping: Mapping) -> "Grid":
        """Split each joiner into four, under a mapping of four times as many joiners."""
        assert mapping.joiners == 4 * self.joiners, f"{self.joiners} joiners do not grow to {mapping}"
        return Grid(mapping, self.first, (*self.growths, self.mapping.column_bits))

    def coordinates(self, side: Side, tickets: Tickets) -> Numbers:
        """Compute the row of each tuple of R, or the column of each of S."""
        return self.mapping.coordinates(side, tickets)

    def coordinates_of(self, side: Side, numbers: Numbers) -> Numbers:
        """Compute the row or column of each joiner; one outside the grid takes that of the joiner it splits from."""
        return self.mapping.coordinates_of(side, self._words((numbers - self.first) % self.joiners))

    def joiners_at(self, side: Side, parts: Numbers, others: Numbers) -> Numbers:
        """Find the joiners in these rows (R) or columns (S) and in these columns or rows of the other side."""
        rows, columns = (others, parts) if side else (parts, others)
        return self.first + self._offsets(self.mapping.words(rows, columns))

    def owns(self, joiner: int, side: Side, tickets: Tickets) -> Mask:
        """Mark the tuples that a joiner of the grid holds."""
        return np.equal(self.coordinates(side, tickets), self.coordinate(side, joiner))

    def coordinate(self, side: Side, joiner: int) -> int:
        """Look up the row (R) or the column (S) of one joiner."""
        return _coordinate(self, side, joiner)

    def targets(self, side: Side, tickets: Tickets) -> Numbers:
        """List the joiners of each tuple, one for each of its copies."""
        return self.first + self._offsets(self.mapping.targets(side, tickets))

    def _words(self, offsets: Numbers) -> Numbers:
        bits = self.joiners.bit_length() - 1 - 2 * len(self.growths)
        words, rest = offsets & (1 << bits) - 1, offsets >> bits
        for low in self.growths:
            words = words >> low << low + 2 | (rest & 3) << low | words & (1 << low) - 1
            rest = rest >> 2
        return words

    def _offsets(self, words: Numbers) -> Numbers:
        bits = self.joiners.bit_length() - 1
        out = np.zeros_like(words)
        for low in reversed(self.growths):
            bits -= 2
            out = out | (words >> low & 3) << bits
            words = words >> low + 2 << low | words & (1 << low) - 1
        return out | words


@lru_cache(maxsize=1 << 12)  # each joiner of a machine looks it up in each batch
def _coordinate(grid: Grid, side: Side, joiner: int) -> int:
    return int(grid.coordinates_of(side, np.array([joiner]))[0])


def single_joiner_grid(joiner: int) -> Grid:
    """Make the (1, 1)-grid of one joiner."""
    return Grid(Mapping(1, 1), joiner)


def side_by_side(mappings: Sequence[Mapping]) -> tuple[Grid, ...]:
    """Number grids one after the other."""
    firsts = np.cumsum([0, *(m.joiners for m in mappings)]).tolist()
    return tuple(Grid(m, first) for m, first in zip(mappings, firsts, strict=False))
