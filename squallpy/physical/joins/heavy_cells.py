"""Frequent keys of an equality on a hypercube: each is cut within the dimension that hashes the others.

    dimension a of 8 parts, a key that R has 10,000 times and S 10 times
        →   R's tuples with it are cut in 8 by their tickets, S's are copied to all 8

By its hash alone a key has one coordinate, whose joiners get all of its tuples. Instead, the bits of the dimension are
divided between the relations that have the key, as those of a hypercube are between dimensions: each relation cuts its
tuples with the key along its own bits, and copies them along those of the others. So each combination of tuples still
meets at one joiner, and no relation elsewhere in the join is touched (after SharesSkew: Afrati, Stasinopoulos, Ullman
and Vassilakopoulos, 2018, whose residual joins would need copies of these, too).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from squallpy.base.records import dataclass
from squallpy.physical.joins.hypercube import Bits, Hypercube, JoinInput, find_best_hypercube, place, sums_of
from squallpy.physical.joins.mapping import Mask, Numbers, Tickets, top_bits

MOST = 64  # keys of a dimension
_APART = 11  # bits of a ticket by which a tuple is cut along one dimension, of keys that are heavy on several


@dataclass(frozen=True, slots=True)
class HeavyCell:
    """The cells of a key.

    Args:
        key: Its hash, the ticket of all its tuples on the dimension.
        bits: For each relation on the dimension, the bits of joiners' numbers along which its tuples are cut.
    """

    dimension: int
    key: int
    bits: tuple[tuple[str, Bits], ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """The most frequent keys of a relation on a dimension, each with its tuples in a sample."""

    relation: str
    keys: Mapping[int, int]


def find_heavy_cells(
    cube: Hypercube, dimension: int, counted: Sequence[Counted], cuts: Mapping[str, float], limit: float
) -> tuple[HeavyCell, ...]:
    """Find the keys of a dimension whose tuples are more than a joiner is to get of one key, and their cells.

    Args:
        cuts: For each relation, into how many parts the other dimensions cut it.
        limit: The tuples of a key, at a joiner, from which on it is heavy; in tuples of the sample.
    """
    bits = cube.bits[dimension]
    if not bits:
        return ()
    loads = {
        key: [each.keys.get(key, 0) / cuts[each.relation] for each in counted]
        for key in {key for each in counted for key in each.keys}
    }
    heavy = sorted((key for key, of in loads.items() if sum(of) > limit), key=lambda key: (-sum(loads[key]), key))
    found = list[HeavyCell]()
    for key in heavy[:MOST]:
        inputs: list[JoinInput] = [(load, (number,)) for number, load in enumerate(loads[key])]
        shares = find_best_hypercube(1 << len(bits), len(counted), inputs).bits
        ends = np.cumsum([0, *map(len, shares)]).tolist()
        own = (bits[start:end] for start, end in pairwise(ends))
        found.append(HeavyCell(dimension, key, tuple(zip((each.relation for each in counted), own, strict=True))))
    return tuple(found)


def route_to_cells(
    cube: Hypercube, heavy: Sequence[HeavyCell], relation: str, hashed: Mapping[int, Tickets], own: Tickets
) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Yield tuples that are cut along the same bits: their positions, first joiners, and what to add for each copy.

    Args:
        hashed: For each dimension of the relation, the tickets of its tuples there.
        own: Tickets of the tuples themselves, by which those of heavy keys are cut.
    """
    free = tuple(bit for dimension, bits in enumerate(cube.bits) if dimension not in hashed for bit in bits)
    parts = [_Part(np.arange(len(own)), np.zeros(len(own), np.int64), free)]
    for dimension, tickets in hashed.items():
        keys, bits = _keys_by_bits(heavy, dimension, relation), cube.bits[dimension]
        apart = own << np.uint64(_APART * (dimension % (64 // _APART)))
        parts = [each for part in parts for each in part.cut(bits, keys, tickets, apart) if len(each.rows)]
    for part in parts:
        yield part.rows, part.firsts, sums_of(part.free)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Tuples that are cut along the same bits: their positions, first joiners, and bits of their copies."""

    rows: Numbers
    firsts: Numbers
    free: Bits

    def cut(
        self, bits: Bits, keys_by_bits: Mapping[Bits, Tickets], tickets: Tickets, own: Tickets
    ) -> "Iterator[_Part]":
        """Yield the tuples of each set of heavy keys, cut along its bits, and the others, along all of a dimension."""
        here, light = tickets[self.rows], np.ones(len(self.rows), np.bool_)
        for mine, keys in keys_by_bits.items():
            chosen = np.isin(here, keys)
            light &= ~chosen
            # NB: the key's hash turns its cells, or those of all keys would begin at the same joiner
            turned = top_bits(own[self.rows[chosen]], len(mine)) ^ top_bits(here[chosen], len(mine))
            copied = (bit for bit in bits if bit not in mine)
            yield self._along(chosen, place(mine, turned), (*self.free, *copied))
        yield self._along(light, place(bits, top_bits(here[light], len(bits))), self.free)

    def _along(self, chosen: Mask, placed: Numbers, free: Bits) -> "_Part":
        return _Part(self.rows[chosen], self.firsts[chosen] | placed, free)


def _keys_by_bits(heavy: Sequence[HeavyCell], dimension: int, relation: str) -> dict[Bits, Tickets]:
    """Group the heavy keys of a dimension by the bits along which a relation is cut."""
    found = dict[Bits, list[int]]()
    for cell in heavy:
        if cell.dimension == dimension:
            found.setdefault(dict(cell.bits)[relation], []).append(cell.key)
    return {bits: np.array(keys, np.uint64) for bits, keys in found.items()}
