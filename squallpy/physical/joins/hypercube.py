"""The hypercube of a join of many relations: the join matrix of `mapping.py` in n dimensions.

    8 joiners, 2 × 2 × 2     a tuple of R, on dimension 0, ticket 1…  →  the four joiners with coordinate 1 there

Each relation is cut along its own dimensions and copied along the others, so each combination of tuples meets at one
joiner, whatever the predicates. A joiner stores and receives Σ |R| / (parts of R's dimensions), its load. The best
parts are the shares of Afrati and Ullman (EDBT 2010), here powers of two, so that one dimension can give half of its
parts to another while joiners keep their other coordinates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from math import e, log, prod

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.mapping import Numbers, Tickets, top_bits

ROUNDING = 2 / (e * log(2))
"""Load by parts that are powers of two, by that of any shares: 1.0615 at most."""

Bits = tuple[int, ...]
"""Bits of a joiner's number, the highest first."""

JoinInput = tuple[float, tuple[int, ...]]
"""A relation of the join: its tuples, and the dimensions along which it is cut."""


@dataclass(frozen=True, slots=True)
class Hypercube:
    """An arrangement of 2ᵏ joiners.

    Args:
        bits: For each dimension, the bits of a joiner's number that are its coordinate, the highest first.
    """

    bits: tuple[Bits, ...]

    def __str__(self) -> str:
        return " × ".join(map(str, self.parts))

    @property
    def joiners(self) -> int:
        return 1 << sum(map(len, self.bits))

    @property
    def parts(self) -> tuple[int, ...]:
        """Parts into which relations are cut along each dimension."""
        return tuple(1 << len(bits) for bits in self.bits)

    def cuts(self, dimensions: Iterable[int]) -> int:
        """Count the parts into which a relation on these dimensions is cut."""
        return prod(self.parts[dimension] for dimension in dimensions)

    def copies(self, dimensions: Iterable[int]) -> int:
        """Count the joiners that receive a tuple of a relation on these dimensions."""
        return self.joiners // self.cuts(dimensions)

    def load(self, inputs: Iterable[JoinInput]) -> float:
        """Compute the tuples that a joiner receives of relations of these sizes."""
        return sum(size / self.cuts(dimensions) for size, dimensions in inputs)

    def coordinates(self, dimension: int, tickets: Tickets) -> Numbers:
        """Compute the coordinate of tuples along a dimension."""
        return top_bits(tickets, len(self.bits[dimension]))

    def coordinate_of(self, dimension: int, joiners: Numbers) -> Numbers:
        """Compute the coordinate of joiners along a dimension."""
        found = np.zeros_like(joiners)
        for bit in self.bits[dimension]:
            found = found << 1 | joiners >> bit & 1
        return found

    def move_bit(self, giver: int, taker: int) -> "Hypercube":
        """Halve the parts of one dimension and double those of another; joiners keep all other coordinates."""
        bits = list(self.bits)
        bits[taker] = (*bits[taker], bits[giver][-1])
        bits[giver] = bits[giver][:-1]
        return replace(self, bits=tuple(bits))


def place(bits: Bits, coordinates: Numbers) -> Numbers:
    """Write coordinates in some bits of joiners' numbers."""
    found = np.zeros_like(coordinates)
    for shift, bit in enumerate(reversed(bits)):
        found |= (coordinates >> shift & 1) << bit
    return found


def sums_of(bits: Iterable[int]) -> Numbers:
    """List all numbers that have no other bits than these."""
    found = np.zeros(1, np.int64)
    for bit in bits:
        found = np.concatenate([found, found + (1 << bit)])
    return np.sort(found)


def arrange(parts: Sequence[int]) -> Hypercube:
    """Arrange joiners with so many parts along each dimension, powers of two."""
    widths = [part.bit_length() - 1 for part in parts]
    assert all(part == 1 << width for part, width in zip(parts, widths, strict=True)), f"{parts}: no powers of two"
    found, low = list[tuple[int, ...]](), sum(widths)
    for width in widths:
        found.append(tuple(range(low - 1, low - 1 - width, -1)))
        low -= width
    return Hypercube(tuple(found))


def find_best_hypercube(joiners: int, dimensions: int, inputs: Sequence[JoinInput]) -> Hypercube:
    """Find the parts with the least load: bit by bit where it helps most, then by moves of a bit while one helps.

    8 joiners, three relations of equal size on a dimension each  →  2 × 2 × 2
    """
    sizes = [(max(1.0, size), on) for size, on in inputs]  # NB: unknown sizes are equal

    def load(parts: tuple[int, ...]) -> tuple[float, int]:
        return round(arrange(parts).load(sizes), 9), max(parts)

    parts = (1,) * dimensions
    for _ in range(joiners.bit_length() - 1):
        parts = min((_scaled(parts, (at, 2)) for at in range(dimensions)), key=load)
    while True:
        moves = permutations(range(dimensions), 2)
        found = [_scaled(parts, (taker, 2), (giver, 1 / 2)) for giver, taker in moves if parts[giver] > 1]
        best = min(found, key=load, default=parts)
        if load(best) >= load(parts):
            return arrange(parts)
        parts = best


def _scaled(parts: tuple[int, ...], *factors: tuple[int, float]) -> tuple[int, ...]:
    """Multiply the parts at some positions."""
    by = dict(factors)
    return tuple(int(part * by.get(at, 1)) for at, part in enumerate(parts))


def least_load(joiners: int, sizes: Iterable[float]) -> float:
    """Bound the load from below, for relations on a dimension each: that of the best shares, any numbers from 1 on.

    The k largest relations are cut, the others are everywhere: k (|R₁| … |Rₖ| / J)^(1/k) + |Rₖ₊₁| + … By Lagrange's
    rule all that are cut have the same share of a joiner's load, which no other relation exceeds.
    """
    ordered = sorted(sizes, reverse=True)
    for cut in range(len(ordered), 0, -1):
        each = float((prod(ordered[:cut]) / joiners) ** (1 / cut))
        if each <= ordered[cut - 1]:
            return cut * each + sum(ordered[cut:])
    return sum(ordered)
