"""The result: the top-level view on the driver, and the rows that are printed from it.

Each batch brings the change ΔQ of the view; the result answers with the printed rows that went and that came.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from squallpy.maintain.program import RESULT
from squallpy.physical.plan import Plan
from squallpy.runtime.deltas import Delta
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.printer import Printer
from squallpy.runtime.state.store import PoolLayout, Store, StoreLayout
from squallpy.runtime.topk import TopK


@dataclass(frozen=True, slots=True)
class Changes:
    """Printed rows that a batch took away and added."""

    deletes: pa.Table
    inserts: pa.Table


def result_layout(plan: Plan) -> StoreLayout:
    return StoreLayout((PoolLayout(RESULT, len(plan.result.keys), plan.result.payload),))


class Result:
    """The printed rows of a plan's result view."""

    def __init__(self, plan: Plan) -> None:
        self._finish, self._pool = plan.finish, plan.result
        self._printer = Printer(plan.finish, plan.result)
        self._scratch = Pool(len(plan.result.keys), plan.result.payload)
        self.schema = self._printer.schema
        self._nothing = Changes(self.schema.empty_table(), self.schema.empty_table())
        cut = (plan.finish.limit is not None or plan.finish.offset) and not plan.finish.single
        self._top = (
            TopK(self._printer, RESULT, len(plan.result.keys), plan.finish.offset, plan.finish.limit) if cut else None
        )

    def apply(self, store: Store, changes: Sequence[Delta], first: bool, wanted: bool = True) -> Changes | None:
        """Add changes, one from each partition, to the view; the printed rows that went and came, if `wanted`.

        `first`: nothing has been printed before this batch.
        """
        pool = store[RESULT]
        keys, words = self._merged(changes)
        if self._finish.single and not len(keys):
            keys, words = np.empty((1, 0), np.int64), np.zeros((1, self._pool.payload.width), np.int64)
        if not wanted:
            pool.upsert(keys, words)
            return None
        if not len(keys) and not first:
            return self._nothing
        before = pool.get(keys)
        if self._top:
            shown = self.schema.empty_table() if first else self._top.before(store)
            pool.upsert(keys, words)
            return _difference(shown, self._top.after(store, keys))
        pool.upsert(keys, words)
        after = pool.get(keys)
        return self._changes(keys, before, after, store.dictionary, first)

    def _merged(self, changes: Sequence[Delta]) -> tuple[Words, Words]:
        """Changes with each group once: it may have changed in several partitions."""
        if len(changes) == 1:
            return changes[0].keys, changes[0].words
        self._scratch.clear()
        for change in changes:
            self._scratch.upsert(change.keys, change.words)
        return self._scratch.rows()

    def final(self, store: Store) -> pa.Table:
        """All printed rows, in order and cut to the limit."""
        keys, words = store[RESULT].rows()
        if self._finish.single and not len(keys):
            keys, words = np.empty((1, 0), np.int64), np.zeros((1, self._pool.payload.width), np.int64)
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        rows = np.repeat(np.arange(len(keys)), times)
        if self._finish.order or self._top:
            rows = rows[self._printer.order(frame, rows)]
        stop = None if self._finish.limit is None else self._finish.offset + self._finish.limit
        return self._printer.table(self._printer.items(frame), rows[self._finish.offset : stop])

    def _changes(self, keys: Words, before: Words, after: Words, names: Dictionary, first: bool) -> Changes:
        groups = len(keys)
        words = np.concatenate([before, after])
        frame = self._printer.frame(np.concatenate([keys, keys]), words, names)
        times, items = self._printer.times(frame, words), self._printer.items(frame)
        gone, come = times[:groups], times[groups:]
        if first:
            gone = np.zeros_like(gone)
        kept = np.where(self._printer.alike(items, groups), np.minimum(gone, come), 0)
        rows = np.repeat(np.arange(2 * groups), np.concatenate([gone - kept, come - kept]))
        table, cut = self._printer.table(items, rows), int((gone - kept).sum())
        return Changes(table.slice(0, cut), table.slice(cut))


def _difference(old: pa.Table, new: pa.Table) -> Changes:
    """Bag difference of two printed results."""
    if old is new or old.equals(new):
        return Changes(old.slice(0, 0), new.slice(0, 0))
    names = old.column_names
    numbered = [f"c{i}" for i in range(len(names))]
    both = pa.concat_tables([old.rename_columns(numbered), new.rename_columns(numbered)])
    sign = pa.array(np.concatenate([np.full(len(old), -1), np.ones(len(new), np.int64)]))
    totals = both.append_column("n", sign).group_by(numbered, use_threads=False).aggregate([("n", "sum")])
    counts = np.asarray(totals.column("n_sum"))
    rows = totals.select(numbered).rename_columns(names)
    everyone = np.arange(len(counts))
    return Changes(
        rows.take(pa.array(np.repeat(everyone, np.maximum(-counts, 0)))),
        rows.take(pa.array(np.repeat(everyone, np.maximum(counts, 0)))),
    )
