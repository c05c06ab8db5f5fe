"""Maintenance of first rows: the first n of each group in an order, numbered.

V(k, x): (7, 10) (7, 20) (7, 30), first 2 by x     N1 = (7, 10, number 1) (7, 20, 2)
+ (7, 15)  →  ΔN1 = {(7, 20, 2): −1, (7, 15, 2): +1}

Groups that a batch touched are looked at anew, unless all that changed is behind their last one. The view has a sorted
index by group and the first key of the order, which finds their first rows however many others there are; those that
are alike in this key are sorted by the other ones. Where the first key is of a type that no index orders, a text, all
rows of a group are sorted. The rows that were the first before stand in a pool of their own.
"""

import numpy as np

from squallpy.base.keys import least_in_order
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.first_rows import FirstRowsOfGroups
from squallpy.runtime.auxiliary.maintainer import COUNT, Maintainer, RowDeltas, TouchedGroups, titles
from squallpy.runtime.evaluate.sort_keys import ordinals
from squallpy.runtime.evaluate.vectors import full
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex
from squallpy.runtime.messages.deltas import Delta, decode, numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store


class FirstRowsMaintainer(Maintainer):
    """A maintainer of the first rows of groups."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        kind = aux.kind
        assert isinstance(kind, FirstRowsOfGroups)
        columns = _columns(kind)
        self._source, self._order, self._slice, self._kind = aux.source.name, aux.order, aux.index, kind
        self._count = aux.source.payload.offsets[aux.output.count]
        self._state, self._columns = PoolName(feed.relation.name, Role.FIRST_ROWS), columns
        self._group = [aux.source.keys.index(column) for column in kind.group]
        self._places = [aux.source.keys.index(column) for column in columns]
        self._titles, self._rows = titles(aux.output, [*columns, kind.number]), RowDeltas(feed)

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pool that holds the rows: keys (group, other columns, number), with a slice by the group."""
        assert isinstance(aux.kind, FirstRowsOfGroups)
        columns, name = _columns(aux.kind), PoolName(feed.relation.name, Role.FIRST_ROWS)
        slices = (tuple(range(len(aux.kind.group))),) if aux.kind.group else ()
        return (PoolLayout(name, len(columns) + 1, COUNT, slices=slices, numbered=numbered(columns)),)

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        assert touched is not None
        keys, _ = touched
        if not len(keys):
            return {}
        pool, state = store.pool(self._source), store.pool(self._state)
        groups, were = self._find_concerned(pool, state, keys)
        now = self._find_rows(pool, groups, store.dictionary)
        here, there = (np.ascontiguousarray(rows).view(np.dtype((np.void, 8 * rows.shape[1]))) for rows in (now, were))
        come, went = now[~np.isin(here, there).reshape(-1)], were[~np.isin(there, here).reshape(-1)]
        rows, times = np.concatenate([went, come]), np.repeat([-1, 1], [len(went), len(come)])
        state.upsert(rows, times[:, None])
        return self._rows.of_keys(rows, times, self._titles, store.dictionary)

    def _list_held(self, state: Pool, groups: Words) -> tuple[Words, Words]:
        """List the first rows before the batch: the position of the group, and (group, other columns, number)."""
        if not self._group:
            rows, _ = state.rows()
            return np.zeros(len(rows), np.int64), rows
        of, slots = state.slice(0, groups)
        there = state.words_of(slots)[:, 0] > 0
        return of[there], state.keys_of(slots[there])

    def _find_concerned(self, pool: Pool, state: Pool, keys: Words) -> tuple[Words, Words]:
        """Find the groups of which a row that changed is not behind all that were the first; returned with these."""
        if self._group:
            once = Pool(len(self._group), COUNT)
            mine = np.ascontiguousarray(keys[:, self._group])
            once.upsert(mine, np.ones((len(mine), 1), np.int64))
            of, groups = once.probe(mine), once.keys.copy()
        else:
            of, groups = np.zeros(len(keys), np.int64), np.zeros((1, 0), np.int64)
        held, rows = self._list_held(state, groups)
        if self._order < 0:
            return groups, rows
        index, first = pool.sorted[self._order], len(self._group)
        last = rows[:, -1] == self._kind.count
        ends = np.full(len(groups), GREATEST)  # where the first rows end in the order of their first key
        ends[held[last]] = self._along(index, rows[last, first], GREATEST)
        near = self._along(index, keys[:, self._places[first]], LEAST) <= ends[of]
        concerned = np.zeros(len(groups), bool)
        concerned[of[near]] = True
        return groups[concerned], rows[concerned[held]]

    def _along(self, index: SortedIndex, codes: Words, unordered: int) -> Words:
        """Map values of the first key to words that ascend in the order, or to one for those that an index does not
        order."""
        column, down, _ = self._kind.sorting[0]
        ranks = index.rank(codes)
        return np.where(ranks < least_in_order(column.type), unordered, ~ranks if down else ranks)

    def _find_rows(self, pool: Pool, groups: Words, names: Dictionary) -> Words:
        """Find the first rows of groups: (group, other columns, number)."""
        of, keys, copies = self._list_indexed(pool, groups) if self._order >= 0 else self._list_all(pool, groups)
        sorting = [of]
        for column, down, nulls_first in self._kind.sorting:
            vec = full(
                decode(np.ascontiguousarray(keys[:, self._columns.index(column)]), column, names), column.type, len(of)
            )
            ranks = ordinals(vec, column.type)
            valid = np.ones(len(of), bool) if vec.valid is None else np.asarray(vec.valid)
            sorting += [valid if nulls_first else ~valid, np.where(valid, ~ranks if down else ranks, 0)]
        way = np.lexsort(sorting[::-1])
        of, keys, copies = of[way], keys[way], np.minimum(copies[way], self._kind.count)
        upto = np.cumsum(copies)
        begins = np.append(True, of[1:] != of[:-1])[: len(of)]
        before = upto - copies
        before -= np.maximum.accumulate(np.where(begins, before, 0))
        often = np.clip(self._kind.count - before, 0, copies)
        rows = np.repeat(np.arange(len(of)), often)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(often) - often, often)
        return np.column_stack([keys[rows], before[rows] + within + 1])

    def _list_all(self, pool: Pool, groups: Words) -> tuple[Words, Words, Words]:
        """List all rows of groups: the position of the group, its columns, and how often it is there."""
        if self._group:
            of, slots = pool.slice(self._slice, groups)
        else:
            slots = np.arange(len(pool))
            of = np.zeros(len(slots), np.int64)
        copies = pool.words_of(slots)[:, self._count]
        there = copies > 0
        return of[there], pool.keys_of(slots[there])[:, self._places], copies[there]

    def _list_indexed(self, pool: Pool, groups: Words) -> tuple[Words, Words, Words]:
        """List the rows of groups that may be among the first, by the sorted index."""
        index, n = pool.sorted[self._order], len(groups)
        column, down, nulls_first = self._kind.sorting[0]
        least = least_in_order(column.type)
        low, high = np.full(n, least), np.full(n, GREATEST)
        wanted = self._kind.count
        while True:
            firsts, counts = index.find_ranges(groups, low, high, wanted + 1)
            of, places = index.list_ranges(firsts, np.minimum(counts, wanted))
            found = np.bincount(of[self._copies(index, places) > 0], minlength=n)
            if not ((found < self._kind.count) & (counts > wanted)).any():
                break
            wanted *= 2  # some have been deleted before they came
        last = np.append(of[1:] != of[:-1], True)[: len(of)]  # the last listed of each group: all alike come, too
        ended, ranks = of[last], index.rank(index.column(index.ranged, places[last]))
        cut = counts[ended] > wanted
        (low if down else high)[ended[cut]] = ranks[cut]
        of, places = index.find_entries(groups, low, high)
        if column.type.is_wide or nulls_first:
            few = np.arange(n)
        else:
            few = np.flatnonzero(found < self._kind.count)
        rest, others = index.find_below(np.ascontiguousarray(groups[few]), least, with_null=True)
        of, places = np.concatenate([of, few[rest]]), np.concatenate([places, others])
        copies = self._copies(index, places)
        there = copies > 0
        of, places, copies = of[there], places[there], copies[there]
        return of, np.column_stack([index.column(at, places) for at in self._places]), copies

    def _copies(self, index: SortedIndex, places: Words) -> Words:
        copies: Words = index.entries[places, index.payload_at + self._count]
        return copies


def _columns(kind: FirstRowsOfGroups) -> list[Column]:
    return [*kind.group, *kind.along]
