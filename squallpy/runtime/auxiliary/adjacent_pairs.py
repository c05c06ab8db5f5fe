"""Maintenance of adjacent pairs: each value of a group with the next one above it, or below.

V(sym, time): (7, 10) (7, 20)    N1 = (7, 10, next 20) (7, 20, next NULL)
+ (7, 15)  →  ΔN1 = {(7, 10, 20): −1, (7, 10, 15): +1, (7, 15, 20): +1}

The view has a sorted index by group and value, which finds neighbours in a logarithm; it is as after the batch. Who was
whose neighbour before follows from that and from which values have come and gone.
"""

from typing import Any, NamedTuple

import numpy as np

from squallpy.base.keys import NULL
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.adjacent_pairs import AdjacentPairs
from squallpy.runtime.auxiliary.extremes import end_of
from squallpy.runtime.auxiliary.maintainer import ChangeMaintainer, Mask, titles
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.radix_sort import ascending
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex
from squallpy.runtime.state.state_store import Store


class _Neighbours(NamedTuple):
    """The neighbours of some values: whether there is one, and its rank."""

    there: Mask
    ranks: Words


class _Values(NamedTuple):
    """Values in the order in which each comes after what may be its neighbour: (group, rank), once each.

    `along` are the ranks, or where the neighbour is above their complements, so that they ascend in a group.
    """

    groups: Words
    along: Words
    came: Mask
    gone: Mask


class PairMaintainer(ChangeMaintainer):
    """A maintainer of the values of groups, each with its neighbour."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        kind = aux.kind
        assert isinstance(kind, AdjacentPairs)
        super().__init__(feed, aux, titles(aux.output, (*aux.grouped, kind.value, kind.other)))
        self._above, self._group, self._value = kind.above, list(aux.group), aux.source.keys.index(kind.value)

    def _find_changes(self, store: Store, pool: Pool, keys: Words, came: Mask) -> tuple[Words, Words]:
        """Find the rows (group, value, neighbour) that went or came."""
        index = pool.sorted[self._order]
        values = self._find_concerned(index, np.ascontiguousarray(keys[:, self._group]), keys[:, self._value], came)
        ranks = self._reverse(values.along)
        new = self._find_neighbours(index, values.groups, ranks, above=self._above)
        old = self._find_previous(values, new)
        same = ~values.came & ~values.gone & (new.there == old.there) & (new.ranks == old.ranks)

        def rows(some: Mask, beside: _Neighbours) -> Words:
            others = np.where(beside.there, index.value(beside.ranks), NULL)
            return np.column_stack([values.groups, index.value(ranks), others])[some]

        return rows(~values.came & ~same, old), rows(~values.gone & ~same, new)

    def _find_concerned(self, index: SortedIndex, groups: Words, codes: Words, came: Mask) -> _Values:
        """Find the values that have come or gone, and those that are or were next to one."""
        ranks = index.rank(codes)
        others = self._find_neighbours(index, groups, ranks, above=not self._above)
        n, found = len(ranks), np.concatenate([groups, groups[others.there]])
        along = self._reverse(np.concatenate([ranks, others.ranks[others.there]]))
        beside = np.arange(len(found)) >= n  # of a value that is both, its change counts
        order = ascending(np.column_stack([found, along, beside]))
        found, along, beside = found[order], along[order], beside[order]
        once = np.append(True, (found[1:] != found[:-1]).any(axis=1) | (along[1:] != along[:-1]))
        arrived = np.append(came, np.zeros(len(order) - n, bool))[order]
        return _Values(found[once], along[once], (arrived & ~beside)[once], (~arrived & ~beside)[once])

    def _find_neighbours(self, index: SortedIndex, groups: Words, ranks: Words, above: bool) -> _Neighbours:
        """Find the neighbours that values have in their groups now."""
        n, last = len(ranks), GREATEST if above else LEAST
        nearest = np.where(ranks == last, last, ranks + (1 if above else -1))
        bounds = (nearest, np.full(n, GREATEST)) if above else (np.full(n, LEAST), nearest)
        places = end_of(index, self._count, groups, bounds, greatest=not above)
        there, out = (places >= 0) & (ranks != last), np.zeros(n, np.int64)
        out[there] = index.rank(index.column(self._value, places[there]))
        return _Neighbours(there, out)

    def _find_previous(self, values: _Values, new: _Neighbours) -> _Neighbours:
        """Find the neighbours that values had before the batch."""
        groups, along, came, gone = values
        rows, beside = np.arange(len(along)), self._reverse(new.ranks)
        begins = np.append(True, (groups[1:] != groups[:-1]).any(axis=1))
        start = np.maximum.accumulate(np.where(begins, rows, 0))

        def last(some: Mask) -> Words:
            """Find the last of some values before each in its group, −1 where there is none."""
            at = np.append(-1, np.maximum.accumulate(np.where(some, rows, -1))[:-1])
            return np.where(at >= start, at, -1)

        # of what has stayed: the neighbour of now, or, if that has just come, what was that one's
        present = last(~gone)
        ids = new.there & (present >= 0) & came[present] & (along[present] == beside)
        stays = np.maximum.accumulate(np.where(~gone & ~ids, rows, -1))
        root: Any = np.where(ids, stays[present], rows)
        there, nearest = new.there[root], beside[root]
        # what has gone was nearer, it may be
        left = last(gone)
        nearer = (left >= 0) & (~there | (along[left] > nearest))
        there, nearest = there | nearer, np.where(nearer, along[left], nearest)
        return _Neighbours(there, np.where(there, self._reverse(nearest), 0))

    def _reverse(self, ranks: Words) -> Words:
        """Reverse ranks if the order goes from neighbours to values; its own inverse."""
        return ~ranks if self._above else ranks
