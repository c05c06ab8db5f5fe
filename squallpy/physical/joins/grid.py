"""The joiners of a grid, by number: they keep it when mappings change, and when the grid grows (paper §4.2.2, Fig. 4b).

    4 joiners (2, 2) grow to 16 (4, 4)    joiner 1, word 0|1  →  joiners 1, 5, 9, 13, words 00|01, 00|11, 01|01, 01|11

Growth splits each joiner in four: its word gets two bits in the middle, of which the upper continues the row and the
lower the column. The first of the four is the joiner itself; numbers of the others are new.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from squallpy.physical.joins.mapping import Mapping, Mask, Numbers, Side, Tickets


@dataclass(frozen=True, slots=True)
class Grid:
    """A mapping and where its joiners are: from number `first` on. A (1, 1)-grid is the place of a hashed key."""

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
        """Which of these joiners are in the grid?"""
        return (numbers >= self.first) & (numbers < self.first + self.joiners)

    def mapped(self, mapping: Mapping) -> "Grid":
        """The same joiners under another mapping."""
        assert mapping.joiners == self.joiners, f"{self.joiners} joiners cannot be mapped as {mapping}"
        return replace(self, mapping=mapping)

    def grown(self, mapping: Mapping) -> "Grid":
        """Four joiners where there was one."""
        assert mapping.joiners == 4 * self.joiners, f"{self.joiners} joiners do not grow to {mapping}"
        return Grid(mapping, self.first, (*self.growths, self.mapping.column_bits))

    def part(self, side: Side, tickets: Tickets) -> Numbers:
        """The row of each tuple of R, the column of each of S."""
        return self.mapping.part(side, tickets)

    def part_of(self, side: Side, numbers: Numbers) -> Numbers:
        """The row, or the column, of joiners; of one that is not in the grid, that of the joiner it splits from."""
        return self.mapping.part_of(side, self._words((numbers - self.first) % self.joiners))

    def at(self, side: Side, parts: Numbers, others: Numbers) -> Numbers:
        """The joiners in rows, or columns, and in columns, or rows, of the other side."""
        rows, columns = (others, parts) if side else (parts, others)
        return self.first + self._offsets(self.mapping.words(rows, columns))

    def owns(self, joiner: int, side: Side, tickets: Tickets) -> Mask:
        """Which of these tuples does a joiner of the grid hold?"""
        return np.equal(self.part(side, tickets), self.place(side, joiner))

    def place(self, side: Side, joiner: int) -> int:
        """The row, or the column, of one joiner."""
        return _place(self, side, joiner)

    def targets(self, side: Side, tickets: Tickets) -> Numbers:
        """The joiners of each tuple: as many columns as it has copies."""
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


@lru_cache(maxsize=1 << 12)  # asked for by each joiner of a machine, batch after batch
def _place(grid: Grid, side: Side, joiner: int) -> int:
    return int(grid.part_of(side, np.array([joiner]))[0])


def at(joiner: int) -> Grid:
    """The place of what one joiner has alone."""
    return Grid(Mapping(1, 1), joiner)


def side_by_side(mappings: Sequence[Mapping]) -> tuple[Grid, ...]:
    """Grids one after the other."""
    firsts = np.cumsum([0, *(m.joiners for m in mappings)]).tolist()
    return tuple(Grid(m, first) for m, first in zip(mappings, firsts, strict=False))
