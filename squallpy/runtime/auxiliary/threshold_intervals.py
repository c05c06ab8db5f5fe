"""Maintenance of threshold intervals: where a running aggregate exists and satisfies predicates.

prefix sums of volume by price, down from the best:   10.5: 40   10.4: 90   10.2: 130   9.9: 200
where 0.25 * 400 > f                              →   ΔN4 = {[10.4, 10.5): −1, [10.2, 10.5): +1}

The tree of the sorted index is descended level by level. Each of its entries says between which values the prefix sums
below it are: if a predicate is TRUE for both, or for neither, so it is between them; only the other subtrees are looked
into. With groups the index is by group first: the sum in front of a group is taken off, and subtrees that reach beyond
it are looked into as well.
"""

from dataclasses import fields
from typing import Any

import numpy as np

from squallpy.base.keys import NULL
from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.threshold_intervals import ThresholdIntervals
from squallpy.runtime.auxiliary.maintainer import COUNT, Maintainer, RowDeltas, TouchedGroups
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, full, take
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_products import negated
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.sorted_index import Children, SortedIndex
from squallpy.runtime.messages.deltas import Delta, numbered
from squallpy.runtime.output_rows import Printer
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

_NO, _YES, _MIXED = 0, 1, 2
Context = list[tuple[Column, Vec]]  # variables of one row


@dataclass(frozen=True, slots=True)
class _Runs:
    """Adjacent subtrees in order, each with its group, the sum before it, and whether the predicates hold for all of
    it."""

    groups: Words
    places: Words
    before: Words
    verdicts: Words

    def replaced(self, mixed: Words, others: "_Runs", below: Words) -> "_Runs":
        """Replace the runs that are `mixed` by others; `below` is the number of the run that each of those replaces."""
        kept = np.flatnonzero(self.verdicts != _MIXED)
        order = np.argsort(np.concatenate([kept, mixed[below]]), kind="stable")

        def joined(mine: Words, theirs: Words) -> Words:
            return np.concatenate([mine[kept], theirs])[order]

        return _Runs(*(joined(getattr(self, f.name), getattr(others, f.name)) for f in fields(self)))


class IntervalMaintainer(Maintainer):
    """A maintainer of the intervals in which a running aggregate satisfies predicates."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        kind = aux.kind
        assert isinstance(kind, ThresholdIntervals)
        self._source, self._order = aux.source.name, aux.order
        self._state = PoolName(feed.relation.name, Role.INTERVALS)
        self._rows, self._group = RowDeltas(feed), list(aux.group)
        self._titles = {title: (i, c) for i, (title, c) in enumerate(aux.output.items) if isinstance(c, Column)}
        self._total = kind.total
        self._predicates = [compile_expression(predicate) for predicate in kind.predicates]
        self._printer = Printer(aux.output, aux.source)
        self._measures = aux.output.measures
        self._context = [
            (column, title, inner.source.name, Printer(inner.output, inner.source))
            for (column, _, title), inner in zip(kind.context, aux.context, strict=True)
        ]

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pool that holds the intervals, by group and their ends."""
        keys = aux.grouped
        slices = (tuple(range(len(keys))),) if keys else ()
        name = PoolName(feed.relation.name, Role.INTERVALS)
        return (PoolLayout(name, len(keys) + 2, COUNT, slices, numbered=numbered(keys)),)

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        state, changed = store.pool(self._state), Pool(len(self._group) + 2, COUNT)
        groups, old = np.empty((1, 0), np.int64), state.keys
        if self._group:
            assert touched is not None
            keys, _ = touched
            once = Pool(len(self._group), COUNT)
            once.upsert(np.ascontiguousarray(keys[:, self._group]), np.ones((len(keys), 1), np.int64))
            groups = once.keys
            old = state.keys[state.slice(0, groups)[1]]
        if not len(groups):
            return {}
        new = self._find(store, groups)
        changed.upsert(np.concatenate([old, new]), np.repeat([-1, 1], [len(old), len(new)])[:, None])
        rows, times = (part.copy() for part in changed.rows())
        state.upsert(rows, times)
        return self._rows.of_keys(rows, times[:, 0], self._titles, store.dictionary)

    def _find(self, store: Store, groups: Words) -> Words:
        """Find the present intervals: group and ends, NULL for none, in order."""
        index = store[self._source].sorted[self._order]
        context, names = self._read_context(store), store.dictionary
        start = np.zeros((len(groups), index.payload.width), np.int64)
        if self._group:
            start = negated(index.sum_before(groups), index.payload)

        def run(subtrees: Children, mine: Words) -> tuple[_Runs, Words]:
            """Judge subtrees, without those of other groups; and return the entry that each is below."""
            there, whole = _select_own(index, groups, subtrees, mine)
            verdicts = self._judge(subtrees.least[there], subtrees.most[there], context, names)
            verdicts = np.where(whole[there], verdicts, _MIXED)
            return _Runs(mine[there], subtrees.places[there], subtrees.before[there], verdicts), subtrees.rows[there]

        subtrees = index.list_children(None, start)
        runs, _ = run(subtrees, subtrees.rows)
        while len(mixed := np.flatnonzero(runs.verdicts == _MIXED)):
            subtrees = index.list_children(runs.places[mixed], runs.before[mixed])
            runs = runs.replaced(mixed, *run(subtrees, runs.groups[mixed[subtrees.rows]]))
        nothing = np.zeros((1, start.shape[1]), np.int64)
        return self._join(index, groups, runs, int(self._judge(nothing, nothing, context, names)[0]))

    def _join(self, index: SortedIndex, groups: Words, runs: _Runs, nothing: int) -> Words:
        """Join adjacent subtrees into intervals.

        Each goes from its first record up to that of the next one, the first from nowhere to the first record.
        """
        some = np.unique(runs.groups) if self._group else np.zeros(1, np.int64)
        order = np.argsort(np.concatenate([some, runs.groups]), kind="stable")
        of = np.concatenate([some, runs.groups])[order]
        places = np.concatenate([np.full(len(some), -1), runs.places])[order]
        holds = np.concatenate([np.full(len(some), nothing), runs.verdicts])[order] == _YES
        same = of[1:] == of[:-1]
        starts = np.flatnonzero(holds & ~np.append(False, holds[:-1] & same))
        stops = np.flatnonzero(holds & ~np.append(holds[1:] & same, False))
        out = np.full((len(starts), len(self._group) + 2), NULL)
        out[:, : len(self._group)] = groups[of[starts]]
        first, last = (-1, -2) if index.order.descending else (-2, -1)
        known = places[starts] >= 0
        out[known, first] = index.column(index.ranged, index.first_records(places[starts[known]]))
        ended = np.append(same, False)[stops]
        out[ended, last] = index.column(index.ranged, index.first_records(places[stops[ended] + 1]))
        return out

    def _judge(self, least: Words, most: Words, context: Context, names: Dictionary) -> Words:
        """Judge the predicates for all records of each subtree, whose prefix sums are between two payloads."""
        printer, ends = self._printer, (least, most)
        verdicts, nowhere = np.full(len(least), _YES), np.zeros(len(least), bool)
        if not self._total:
            nowhere = (printer.count(least) == 0) & (printer.count(most) == 0)
            exists = _same_sign(*map(printer.count, ends))
            verdicts = np.where(nowhere, _NO, np.where(exists, _YES, _MIXED))
        frames = [self._frame(words, context, names) for words in ends]
        for predicate in self._predicates:
            low, high = (np.broadcast_to(is_true(predicate(frame)), frame.rows) for frame in frames)
            message = np.where(low & high, _YES, np.where(low | high, _MIXED, _NO))
            verdicts = np.where((verdicts == _NO) | (message == _NO), _NO, np.maximum(verdicts, message))
        known = np.ones(len(verdicts), bool)  # whether a sum is NULL for all records, or for none
        for measure in self._measures:
            known &= _same_sign(*(printer.present(measure, words) for words in ends))
        return np.where(known | nowhere, verdicts, _MIXED)

    def _read_context(self, store: Store) -> Context:
        """Read the variables of the context, one row each."""
        out = []
        for column, title, source, printer in self._context:
            nothing = np.empty((1, 0), np.int64)
            frame = printer.frame(nothing, store.pool(source).get(nothing), store.dictionary)
            out.append((column, full(printer.item(title, frame), column.type, 1)))
        return out

    def _frame(self, words: Words, context: Context, names: Dictionary) -> VectorFrame:
        rows = len(words)
        frame = self._printer.frame(np.empty((rows, 0), np.int64), words, names)
        columns = {column.id: take(vec, np.zeros(rows, np.int64)) for column, vec in context}
        return VectorFrame(rows, columns, frame.__getitem__)


def _same_sign(low: Any, high: Any) -> Any:
    """True if counts between `low` and `high` are all 0, or none of them is."""
    return (low > 0) | (high < 0) | ((low == 0) & (high == 0))


def _select_own(index: SortedIndex, groups: Words, subtrees: Children, mine: Words) -> tuple[Words, Any]:
    """Select the subtrees that may have records of their groups, `mine`, and mark those that have no others."""
    if not groups.shape[1]:
        return np.arange(len(mine)), np.ones(len(mine), bool)
    records = index.entries[index.first_records(subtrees.places), : groups.shape[1]]
    side = np.zeros(len(mine), np.int64)  # of the first record: −1 before the group, +1 behind it
    for a, b in zip(records.T, groups[mine].T, strict=True):
        side = np.where(side == 0, np.sign((a > b).astype(np.int64) - (a < b)), side)
    following = np.append(side[1:], 1)  # of the next subtree's first one; as far as that is known here
    following[:-1][subtrees.rows[1:] != subtrees.rows[:-1]] = 1
    if index.are_records(subtrees.places):
        return np.flatnonzero(side == 0), side == 0
    return np.flatnonzero((side <= 0) & (following >= 0)), (side == 0) & (following == 0)
