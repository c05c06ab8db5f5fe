"""The values at a fraction of all in their order, MEDIAN among them: exact under deletes.

V(k, x): (7, 3) (7, 5) twice (7, 9)    N1 = (7, BELOW 1/2: 5)      − (7, 5), − (7, 5), + (7, 4)  →  N1 = (7, 4)

The sorted index knows how many values there are below each of its nodes, so that the one with a number is found on the
way from the root to a leaf. Where keys are not in the order of values (texts), a group's values are looked through.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from squallpy.base.keys import least_in_order
from squallpy.physical.plan import AuxiliaryPlan
from squallpy.program.output_spec import Measure
from squallpy.runtime.evaluate.sort_keys import ordinals
from squallpy.runtime.evaluate.vectors import full
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex
from squallpy.runtime.messages.deltas import decode
from squallpy.runtime.state.state_store import Store


def number_of(function: str, fraction: Fraction, counts: Words) -> Any:
    """Number the value, from 0, at a fraction of the count.

    below, 1/2, [4, 5]  →  [1, 2]        above, 1/2, [4, 5]  →  [2, 2]
    """
    over, under = fraction.numerator, fraction.denominator
    match function:
        case "below":
            return over * (counts - 1) // under
        case "above":
            return -(-over * (counts - 1) // under)
        case "reaches":
            return np.maximum(-(-over * counts // under) - 1, 0)
    assert function == "left", function
    return np.minimum(counts - 1, (under - over) * counts // under)


class Percentiles:
    """Finds the values of groups; `null` is the code of none."""

    def __init__(self, aux: AuxiliaryPlan, null: int) -> None:
        source, output = aux.source, aux.output
        assert output.aggregated_key is not None
        self._plan, self._null, self._over = aux, null, output.aggregated_key
        self._value, self._count = source.keys.index(output.aggregated_key), source.payload.offsets[output.count]
        self._in_order = aux.order >= 0 and not output.aggregated_key.type.is_wide

    def codes(self, store: Store, groups: Words, measure: Measure) -> Words:
        """Find the value of each group at the fraction of a measure."""
        found, rest = np.full(len(groups), self._null), np.arange(len(groups))
        if self._in_order:
            sure = self._find_by_sum(store[self._plan.source.name].sorted[self._plan.order], groups, measure, found)
            rest = np.flatnonzero(~sure)
        if len(rest):
            found[rest] = self._recompute(store, np.ascontiguousarray(groups[rest]), measure)
        return found

    def _find_by_sum(self, index: SortedIndex, groups: Words, measure: Measure, found: Words) -> Any:
        """Write the values of groups that one walk down the index finds, and mark those that are certainly right."""
        n, width = groups.shape
        least, greatest = np.full(n, LEAST), np.full(n, GREATEST)
        counts = index.sum_ranges(groups, least, greatest)[:, self._count]
        sure = counts == 0
        some = np.flatnonzero(counts > 0)
        assert measure.fraction is not None
        wanted = number_of(measure.function, measure.fraction, counts[some])
        mine, least = np.ascontiguousarray(groups[some]), least[some]
        before = index.sum_before(np.column_stack([mine, least]))[:, self._count]
        places = index.find_by_sum(self._count, before + wanted)
        some, mine, least, wanted, places = (x[places >= 0] for x in (some, mine, least, wanted, places))
        entries, codes = index.entries[places], index.column(self._value, places)
        # NB: what is less than nothing in other groups, its deletes being early, may lead astray: is it the right one?
        upto = index.sum_ranges(mine, least, index.rank(codes))[:, self._count]
        own = entries[:, index.payload_at + self._count]
        right = (entries[:, :width] == mine).all(axis=1) & (upto > wanted) & (upto - own <= wanted)
        found[some[right]], sure[some[right]] = codes[right], True
        return sure

    def _recompute(self, store: Store, groups: Words, measure: Measure) -> Words:
        pool = store.pool(self._plan.source.name)
        if self._plan.order < 0:
            rows, slots = pool.slice(self._plan.index, groups)
            codes, counts = pool.keys_of(slots)[:, self._value], pool.words_of(slots)[:, self._count]
        else:
            index, n = pool.sorted[self._plan.order], len(groups)
            least = least_in_order(self._over.type)
            ways = index.find_below(groups, least), index.find_entries(groups, np.full(n, least), np.full(n, GREATEST))
            rows, places = (np.concatenate(each) for each in zip(*ways, strict=True))
            codes, counts = index.column(self._value, places), index.entries[places, index.payload_at + self._count]
        there: Any = (counts > 0) & (codes != self._null)
        rows, codes, counts = rows[there], np.ascontiguousarray(codes[there]), counts[there]
        found = np.full(len(groups), self._null)
        if not len(rows):
            return found
        ranks = ordinals(
            full(decode(codes, self._over, store.dictionary), self._over.type, len(codes)), self._over.type
        )
        order = np.lexsort((ranks, rows))
        rows, codes, counts = rows[order], codes[order], counts[order]
        totals = np.bincount(rows, counts, len(groups)).astype(np.int64)
        upto = np.cumsum(counts) - (np.cumsum(totals) - totals)[rows]
        assert measure.fraction is not None
        passed = np.flatnonzero(upto > number_of(measure.function, measure.fraction, totals)[rows])
        first, at = np.unique(rows[passed], return_index=True)
        found[first] = codes[passed[at]]
        return found
