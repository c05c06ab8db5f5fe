"""Nests of intervals at work: where a running aggregate exists and satisfies predicates (`relational/running.py`).

prefix sums of volume by price, down from the best:   10.5: 40   10.4: 90   10.2: 130   9.9: 200
where 0.25 * 400 > f                              →   ΔN4 = {[10.4, 10.5): −1, [10.2, 10.5): +1}

The tree of the sorted index is gone down level by level. Each piece of it says between which values its prefix sums
are: if a predicate is TRUE for both, or for neither, so it is between them; only the other pieces are looked into.
"""

from typing import Any

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.logical.expressions import Column
from squallpy.physical.plan import Feed, Nested, Plan
from squallpy.runtime.deltas import NULL, Delta, decode
from squallpy.runtime.evaluate.compiled import compiled
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.vector import Frame, Vec, full, take
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.sorted import Sorted
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.nested import Groups, RowDeltas
from squallpy.runtime.printer import Printer
from squallpy.runtime.state.store import PoolLayout, Store

_NO, _YES, _MIXED = 0, 1, 2
Context = list[tuple[Column, Vec]]  # variables of one row


def intervals_layouts(plan: Plan) -> tuple[PoolLayout, ...]:
    """The pools that hold the intervals, by their ends."""
    return tuple(PoolLayout(_pool(f), 2, Payload((Ring.COUNT,))) for f in plan.feeds if f.nested and f.nested.running)


def _pool(feed: Feed) -> str:
    return f"{feed.relation.name} intervals"


class Intervals:
    """A nest of intervals."""

    def __init__(self, feed: Feed, nested: Nested) -> None:
        assert nested.running is not None
        self._source, self._order, self._state = nested.source.name, nested.order, _pool(feed)
        self._rows = RowDeltas(feed)
        self._ends = {c.name: (i, c) for i, (_, c) in enumerate(nested.finish.items) if isinstance(c, Column)}
        self._total = nested.running.total
        self._where = [compiled(predicate) for predicate in nested.running.where]
        self._printer = Printer(nested.finish, nested.source)
        self._measures = nested.finish.measures
        self._context = [
            (column, title, inner.source.name, Printer(inner.finish, inner.source))
            for (column, _, title), inner in zip(nested.running.context, nested.context, strict=True)
        ]

    def deltas(self, store: Store, touched: Groups | None) -> dict[str, Delta]:
        state = store[self._state]
        old, new = state.keys.copy(), self._find(store)
        if np.array_equal(old, new):
            return {}
        state.upsert(old, np.full((len(old), 1), -1))
        state.upsert(new, np.ones((len(new), 1), np.int64))

        rows = np.concatenate([old, new])

        def field(name: str) -> Vec:
            at, column = self._ends[name]
            return full(decode(np.ascontiguousarray(rows[:, at]), column, store.dictionary), column.type, len(rows))

        return self._rows(np.repeat([-1, 1], [len(old), len(new)]), field, store.dictionary)

    def _find(self, store: Store) -> Words:
        """The intervals of now: their ends, NULL for none, in order."""
        index = store[self._source].sorted[self._order]
        context, names = self._fixed(store), store.dictionary

        def judge(least: Words, most: Words) -> Words:
            return self._judge(least, most, context, names)

        pieces = index.pieces()
        places, before, verdicts = pieces.places, pieces.before, judge(pieces.least, pieces.most)
        while len(mixed := np.flatnonzero(verdicts == _MIXED)):
            pieces = index.pieces(places[mixed], before[mixed])
            kept = np.flatnonzero(verdicts != _MIXED)
            order = np.argsort(np.concatenate([kept, mixed[pieces.rows]]), kind="stable")
            places = np.concatenate([places[kept], pieces.places])[order]
            before = np.concatenate([before[kept], pieces.before])[order]
            verdicts = np.concatenate([verdicts[kept], judge(pieces.least, pieces.most)])[order]
        nothing = np.zeros((1, before.shape[1]), np.int64)
        return self._joined(index, places, np.append(judge(nothing, nothing), verdicts))

    def _joined(self, index: Sorted, places: Words, verdicts: Words) -> Words:
        """Pieces side by side as intervals; each goes from its first record up to that of the next piece, the first one
        from nowhere to the first record."""
        steps = np.diff(verdicts, prepend=_NO)
        starts, stops = np.flatnonzero(steps > 0), np.flatnonzero(steps < 0)
        out = np.full((len(starts), 2), NULL)
        first, last = (1, 0) if index.order.down else (0, 1)
        known = starts > 0
        out[known, first] = index.column(index.ranged, index.firsts(places[starts[known] - 1]))
        out[: len(stops), last] = index.column(index.ranged, index.firsts(places[stops - 1]))
        return out

    def _judge(self, least: Words, most: Words, context: Context, names: Dictionary) -> Words:
        """What the predicates say of all records of each piece, whose prefix sums are between two payloads."""
        printer, ends = self._printer, (least, most)
        verdicts, nowhere = np.full(len(least), _YES), np.zeros(len(least), bool)
        if not self._total:
            nowhere = (printer.count(least) == 0) & (printer.count(most) == 0)
            exists = _same_sign(*map(printer.count, ends))
            verdicts = np.where(nowhere, _NO, np.where(exists, _YES, _MIXED))
        frames = [self._frame(words, context, names) for words in ends]
        for predicate in self._where:
            low, high = (np.broadcast_to(is_true(predicate(frame)), frame.rows) for frame in frames)
            told = np.where(low & high, _YES, np.where(low | high, _MIXED, _NO))
            verdicts = np.where((verdicts == _NO) | (told == _NO), _NO, np.maximum(verdicts, told))
        known = np.ones(len(verdicts), bool)  # whether a sum is NULL for all records, or for none
        for measure in self._measures:
            known &= _same_sign(*(printer.present(measure, words) for words in ends))
        return np.where(known | nowhere, verdicts, _MIXED)

    def _fixed(self, store: Store) -> Context:
        """The variables of the context, one row each."""
        out = []
        for column, title, source, printer in self._context:
            nothing = np.empty((1, 0), np.int64)
            frame = printer.frame(nothing, store[source].get(nothing), store.dictionary)
            out.append((column, full(printer.item(title, frame), column.type, 1)))
        return out

    def _frame(self, words: Words, context: Context, names: Dictionary) -> Frame:
        rows = len(words)
        frame = self._printer.frame(np.empty((rows, 0), np.int64), words, names)
        columns = {column.id: take(vec, np.zeros(rows, np.int64)) for column, vec in context}
        return Frame(rows, columns, frame.__getitem__)


def _same_sign(low: Any, high: Any) -> Any:
    """Are counts between `low` and `high` all 0, or none of them?"""
    return (low > 0) | (high < 0) | ((low == 0) & (high == 0))
