"""Tuples of two relations as they arrive.

bursts([(R, 3), (S, 2)])   →   r r r s s
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.physical.joins.key_frequencies import Keys
from squallpy.physical.joins.mapping import Mask, Numbers, Side, Tickets


@dataclass(frozen=True, slots=True)
class Stream:
    """The relation, ticket and multiplicity of each tuple, in their order."""

    sides: npt.NDArray[np.int8]
    tickets: Tickets
    counts: npt.NDArray[np.int8]  # −1 for a delete, which has the ticket of an earlier insert

    def __len__(self) -> int:
        return len(self.sides)


@dataclass(frozen=True, slots=True)
class StreamPart:
    """Tuples of a stream, by position."""

    stream: Stream
    positions: Numbers

    @property
    def tickets(self) -> Tickets:
        return self.stream.tickets[self.positions]

    def take(self, which: Mask | Numbers) -> "StreamPart":
        return StreamPart(self.stream, self.positions[which])


def bursts(runs: Sequence[tuple[Side, int]], seed: int = 0) -> Stream:
    """Generate runs of tuples: so many of one relation, then so many of another, and so on."""
    sides = np.repeat([int(side) for side, _ in runs], [length for _, length in runs]).astype(np.int8)
    return of_sides(sides, seed)


def random_stream(length: int, fraction: float = 0.5, seed: int = 0, deletes: float = 0.0) -> Stream:
    """Generate tuples, of R with probability `fraction`; a fraction `deletes` of them is deleted again later."""
    rng = np.random.default_rng(seed)
    inserts = of_sides((rng.random(length) >= fraction).astype(np.int8), seed)
    count = int(deletes * length)
    gone = np.sort(rng.choice(length, count, replace=False))
    # each delete comes somewhere behind its insert
    slots = np.concatenate([np.arange(length, dtype=np.float64), gone + rng.random(count) * (length - gone)])
    order = np.argsort(slots, kind="stable")
    source = np.concatenate([np.arange(length), gone])[order]
    signs = np.where(order < length, 1, -1).astype(np.int8)
    return Stream(inserts.sides[source], inserts.tickets[source], signs)


def fluctuating(length: int, k: int, seed: int = 0, start: int = 1) -> Stream:
    """Generate a stream whose ratio |R| : |S| swings between k and 1/k (paper §5.4).

    One relation waits until the other is k times as large.
    """
    sizes, runs, side, total = [start, start], [(Side.R, start), (Side.S, start)], Side.R, 2 * start
    while total < length:
        run = min(k * sizes[side.other] - sizes[side], length - total)
        runs.append((side, run))
        sizes[side], total, side = sizes[side] + run, total + run, side.other
    return bursts(runs, seed)


def of_sides(sides: npt.NDArray[np.int8], seed: int = 0) -> Stream:
    """Generate inserts of these relations, with random tickets."""
    tickets = np.random.default_rng([seed, 1]).integers(0, 2**64, len(sides), np.uint64, endpoint=False)
    return Stream(sides, tickets, np.ones(len(sides), np.int8))


def zipf_keys(length: int, keys: int, z: float, seed: int = 0) -> Keys:
    """Generate hashes of keys drawn by Zipf's law: the i-th with a probability in proportion to i⁻ᶻ."""
    weights = 1 / np.arange(1, keys + 1) ** z
    drawn = np.random.default_rng([seed, 2]).choice(keys, length, p=weights / weights.sum())
    return hash_keys(drawn)


def hash_keys(keys: Numbers) -> Keys:
    """Hash each key."""
    hashes = np.random.default_rng(7).integers(0, 2**64, int(keys.max(initial=0)) + 1, np.uint64, endpoint=False)
    return hashes[keys]
