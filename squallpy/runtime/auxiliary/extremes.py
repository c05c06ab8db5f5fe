"""MIN, MAX and their like: what is found among, or made of, the values of each group, exact under deletes.

V(k, x): (7, 3) (7, 5) (7, 9)    N1 = (7, MIN 3, MAX 9)      − (7, 9)  →  ΔN1 = {(7, 3, 9): −1, (7, 3, 5): +1}

The view holds each value of a group once, with its multiplicity: an ordered multiset, as it has a sorted index by group
and value. Beside it stand the extremes of each group; only when one of those has gone is the next looked up, in
logarithmic time. Where keys are not in the order of values (texts), a group's other values are looked through.
"""

from typing import Any

import numpy as np

from squallpy.base.keys import least_in_order, null_of
from squallpy.base.rings import Payload, Ring
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.runtime.auxiliary.folds import Folds
from squallpy.runtime.auxiliary.maintainer import RowDeltas, TouchedGroups, has_begun
from squallpy.runtime.auxiliary.percentiles import Percentiles
from squallpy.runtime.evaluate.sort_keys import ordinals
from squallpy.runtime.evaluate.vectors import Vec, full
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_index import GREATEST, SortedIndex
from squallpy.runtime.kernels.sorted_steps import Extremes
from squallpy.runtime.messages.deltas import Delta, decode, numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

ENDS = ("min", "max")


def _payload(aux: AuxiliaryPlan) -> Payload:
    return Payload((Ring.COUNT,) * (1 + len(aux.output.measures)))


class ExtremeRows:
    """A row for each group, made of the values of one key."""

    @staticmethod
    def layout(feed: Feed, aux: AuxiliaryPlan) -> PoolLayout:
        """Return the pool that holds, by group, how many values it has and what is found among, or made of, them."""
        group, measured = aux.grouped, [measure.column for measure in aux.output.measures]
        names = (*numbered(group), *numbered(measured, len(group) + 1))
        return PoolLayout(PoolName(feed.relation.name, Role.EXTREMES), len(group), _payload(aux), numbered=names)

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        output, source = aux.output, aux.source
        assert output.aggregated_key is not None
        self._output, self._source, self._plan = output, source.name, aux
        self._state = PoolName(feed.relation.name, Role.EXTREMES)
        self._over, self._value, self._group = (
            output.aggregated_key,
            source.keys.index(output.aggregated_key),
            list(aux.group),
        )
        self._count = source.payload.offsets[output.count]
        self._least = least_in_order(self._over.type)
        self._null = null_of(self._over.type)
        self._places = {source.keys[position].id: i for i, position in enumerate(aux.group)}
        self._fields = {title: expr for title, expr in output.items if isinstance(expr, Column)}
        self._lanes = {m.column.id: 1 + i for i, m in enumerate(output.measures)}
        self._nulls = {self._lanes[m.column.id]: null_of(m.column.type) for m in output.measures}
        self._ends = tuple((m.function, self._lanes[m.column.id]) for m in output.measures if m.function in ENDS)
        percentiles, folds = Percentiles(aux, self._null), Folds(aux, self._null)
        self._others = tuple(
            (self._lanes[m.column.id], m, folds if m.is_folded else percentiles)
            for m in output.measures
            if m.function not in ENDS
        )
        self._groups = Pool(len(aux.group), Payload((Ring.COUNT,)))
        self._rows = RowDeltas(feed)

    def deltas(self, store: Store, touched: TouchedGroups) -> dict[str, Delta]:
        keys, before = touched
        state, single = store.pool(self._state), self._output.single
        self._groups.clear()
        self._groups.upsert(np.ascontiguousarray(keys[:, self._group]), np.ones((len(keys), 1), np.int64))
        groups = self._groups.keys.copy()
        if single and not has_begun(store):
            groups = np.empty((1, 0), np.int64)
        if not len(groups):
            return {}
        old = state.get(groups)
        new = self._advance(store, keys, before, groups, old)
        state.upsert(groups, new - old)
        payloads, both = np.concatenate([old, new]), np.concatenate([groups, groups])
        times = (payloads[:, 0] != 0).astype(np.int64)
        if single:
            times[:] = int(has_begun(store)), 1
        else:  # only rows that are others than before
            moved = ((old[:, 0] != 0) != (new[:, 0] != 0)) | (old[:, 1:] != new[:, 1:]).any(axis=1)
            times *= np.tile(moved, 2)
        times[: len(groups)] *= -1

        def field(name: str) -> Vec:
            column = self._fields[name]
            if column.id in self._places:
                codes = np.ascontiguousarray(both[:, self._places[column.id]])
            else:
                lane = self._lanes[column.id]
                codes = np.where(payloads[:, 0] == 0, self._nulls[lane], payloads[:, lane])
            return full(decode(codes, column, store.dictionary), column.type, len(codes))

        return self._rows(times, field, store.dictionary)

    def _advance(self, store: Store, keys: Words, before: Words, groups: Words, old: Words) -> Words:
        """Count the values that each group has now, and find its extremes; all 0 for a group that has none left."""
        pool = store.pool(self._source)
        at = self._groups.probe(np.ascontiguousarray(keys[:, self._group]))
        codes, was = keys[:, self._value], before[:, self._count] > 0
        now = pool.get(keys)[:, self._count] > 0
        new, n = np.zeros_like(old), len(groups)
        new[:, 0] = old[:, 0] + np.bincount(at[now], minlength=n) - np.bincount(at[was], minlength=n)

        lost = np.zeros(len(groups), bool)
        for _, lane in self._ends:
            gone = was & ~now & (codes == old[at, lane])
            lost[at[gone]] = True
        places, found = [at[now]], [codes[now]]
        kept = np.flatnonzero(~lost & (old[:, 0] != 0))
        for _, lane in self._ends:
            places.append(kept)
            found.append(old[kept, lane])
        again = np.flatnonzero(lost)
        rows, others = self._list_values(pool, np.ascontiguousarray(groups[again]))
        places.append(again[rows])
        found.append(others)
        self._choose(store, new, np.concatenate(places), np.concatenate(found))
        for lane, measure, maker in self._others:
            there = np.flatnonzero(new[:, 0])
            new[there, lane] = maker.codes(store, np.ascontiguousarray(groups[there]), measure)
        return new

    def _list_values(self, pool: Pool, groups: Words) -> tuple[Words, Words]:
        """List (group, value) of values in groups, their extremes among them."""
        if self._plan.order < 0:
            rows, slots = pool.slice(self._plan.index, groups)
            there = pool.words_of(slots)[:, self._count] > 0
            return rows[there], pool.keys_of(slots[there])[:, self._value]
        index = pool.sorted[self._plan.order]
        rows, places = self._find_unordered(index, groups)
        for function in sorted({function for function, _ in self._ends}):
            found = self._find_extreme(index, groups, greatest=function == "max")
            rows, places = np.append(rows, np.flatnonzero(found >= 0)), np.append(places, found[found >= 0])
        return rows, index.column(self._value, places)

    def _find_unordered(self, index: SortedIndex, groups: Words) -> tuple[Words, Words]:
        """List (group, place) of the values that are too wide to be in their order."""
        rows, places = index.find_below(groups, self._least)
        there = index.entries[places, index.payload_at + self._count] > 0
        return rows[there], places[there]

    def _find_extreme(self, index: SortedIndex, groups: Words, greatest: bool) -> Words:
        """Find the place of the least or greatest value of each group, −1 where there is none."""
        low, high = np.full(len(groups), self._least), np.full(len(groups), GREATEST)
        return end_of(index, self._count, groups, (low, high), greatest=greatest)

    def _choose(self, store: Store, new: Words, places: Words, codes: Words) -> None:
        """Write the extremes of the values `codes` of the groups at `places`."""
        for lane, null in self._nulls.items():
            new[:, lane] = np.where(new[:, 0] != 0, null, 0)
        valued = codes != self._null
        places, codes = places[valued], codes[valued]
        if not len(codes):
            return
        vec = full(decode(np.ascontiguousarray(codes), self._over, store.dictionary), self._over.type, len(codes))
        ranks = ordinals(vec, self._over.type)
        for function, lane in self._ends:
            least = function == "min"
            ends = np.full(len(new), GREATEST if least else ~GREATEST)
            (np.minimum if least else np.maximum).at(ends, places, ranks)
            chosen = ranks == ends[places]  # those of one group are equal, and so are their codes
            new[places[chosen], lane] = codes[chosen]


def open_extremes(store: Store, feed: Feed, aux: AuxiliaryPlan, touched: Pool) -> Extremes:
    """Return the extremes of the groups of a view for compiled code (`codegen/extremes.py`)."""
    output, source, over = aux.output, aux.source, aux.output.aggregated_key
    assert over is not None
    view, state = store.pool(source.name), store.pool(PoolName(feed.relation.name, Role.EXTREMES))
    changed = Pool(len(aux.group), Payload((Ring.COUNT,) * (2 * _payload(aux).width + 1)))
    measures = [(1 + i, m.function == "max", null_of(m.column.type)) for i, m in enumerate(output.measures)]
    value, count = source.keys.index(over), source.payload.offsets[output.count]
    return Extremes(
        touched,
        view,
        view.sorted[aux.order],
        state,
        changed,
        group=aux.group,
        value=value,
        count=count,
        lowest=least_in_order(over.type),
        measures=measures,
    )


def end_of(index: SortedIndex, count: int, groups: Words, bounds: tuple[Words, Words], *, greatest: bool) -> Words:
    """Find the place of the least or greatest value of each group between bounds, −1 where there is none.

    Word `count` of a payload is the value's multiplicity: less than 1 if its deletes came before its inserts; it is
    passed over then.
    """
    low, high = bounds
    found = index.find_ends(groups, low, high, greatest=greatest)
    while True:
        odd: Any = np.flatnonzero((found >= 0) & (index.entries[found, index.payload_at + count] <= 0))
        if not len(odd):
            return found
        ranks = index.rank(index.column(index.ranged, found[odd]))
        found[odd] = -1
        more = ranks != (low[odd] if greatest else high[odd])
        odd, ranks = odd[more], ranks[more]
        if greatest:
            high[odd] = ranks - 1
        else:
            low[odd] = ranks + 1
        found[odd] = index.find_ends(np.ascontiguousarray(groups[odd]), low[odd], high[odd], greatest=greatest)
