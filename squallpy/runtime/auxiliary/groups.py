"""Rows of groups: what an aggregate, DISTINCT or EXISTS says about each group of a view.

M_R changed for b = 7:  (7, 2)  →  (7, 3)      N1(b, count):  ΔN1 = {(7, 2): −1, (7, 3): +1}
"""

from collections.abc import Callable

import numpy as np

from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.runtime.auxiliary.extremes import ExtremeRows
from squallpy.runtime.auxiliary.maintainer import Maintainer, Mask, RowDeltas, TouchedGroups, TouchTracker, has_begun
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, take
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.output_rows import Printer
from squallpy.runtime.state.state_store import PoolLayout, Store


class GroupMaintainer(Maintainer):
    """A maintainer of rows of groups, made of their sums or of the values of a key."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        self._rows: _SumRows | ExtremeRows = (
            ExtremeRows(feed, aux) if aux.output.aggregated_key else _SumRows(feed, aux)
        )

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        return (ExtremeRows.layout(feed, aux),) if aux.output.aggregated_key else ()

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        assert touched is not None
        return self._rows.deltas(store, touched)


class _SumRows:
    """A row for each group, made of its sums."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        self._output, self._source = aux.output, aux.source.name
        self._printer = Printer(aux.output, aux.source)
        self._rows = RowDeltas(feed)

    def deltas(self, store: Store, touched: TouchedGroups) -> dict[str, Delta]:
        keys, before = touched
        if self._output.single and not len(keys) and not has_begun(store):
            keys, before = np.empty((1, 0), np.int64), np.zeros((1, before.shape[1]), np.int64)
        if not len(keys):
            return {}
        words = np.concatenate([before, store.pool(self._source).get(keys)])
        frame = self._printer.frame(np.concatenate([keys, keys]), words, store.dictionary)
        times = self._printer.times(frame, words)
        times[: len(keys)] *= 0 if self._output.single and not has_begun(store) else -1
        if self._output.number is not None:
            return self._number_rows(times, frame, store.dictionary)
        return self._rows(times, lambda name: self._printer.item(name, frame), store.dictionary)

    def _number_rows(self, times: Words, frame: VectorFrame, names: Dictionary) -> dict[str, Delta]:
        """Repeat the row of each group as often as it is there, with numbers."""
        title = next(title for title, expr in self._output.items if expr == self._output.number)
        counts = np.abs(times)
        rows = np.repeat(np.arange(len(times)), counts)
        numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)

        def field(name: str) -> Vec:
            return Vec(numbers) if name == title else take(self._printer.item(name, frame), rows)

        return self._rows(np.sign(times)[rows], field, names)


class RowsOf:
    """Rows made of sums, computed where they are read; `touched` knows what the view was before the batch."""

    def __init__(self, aux: AuxiliaryPlan, touched: TouchTracker) -> None:
        self.plan, self._touched = aux, touched
        self._printer = Printer(aux.output, aux.source)

    @property
    def noted(self) -> tuple[int, int]:
        """The addresses of the groups whose payloads were others before the batch, and of those; 0 if none were."""
        return self._touched.addresses

    def __call__(self, pool: Pool, keys: Words, before: bool, names: Dictionary) -> tuple[Mask, Callable[[str], Vec]]:
        """Compute the rows of keys: a mask of those that have one, and their fields."""
        words = pool.get(keys)
        if before:
            self._touched.take_back(keys, words)
        frame = self._printer.frame(keys, words, names)
        return self._printer.times(frame, words) > 0, lambda title: self._printer.item(title, frame)
