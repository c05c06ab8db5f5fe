"""ORDER BY … LIMIT kept fresh: the printed rows, and enough of those behind them that a batch seldom needs the rest.

All groups that sort before a *bar* are known, at least as many as are printed. A batch can only move the groups that
it changes, so those and the known ones are sorted together; what falls behind the bar is forgotten. Only when fewer
are left than are printed is the whole result sorted again.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.printer import Printer, payloads_at
from squallpy.runtime.state.store import Store

SPARE = 256  # groups known beyond those that are printed


class TopK:
    """The printed rows of one store. What it remembers follows from the store's contents, so it need not be durable."""

    def __init__(self, printer: Printer, pool: str, offset: int, limit: int | None) -> None:
        self._printer, self._pool, self._offset, self._limit = printer, pool, offset, limit
        self._wanted = offset + (limit or 0)
        self._store: Store | None = None
        self._known: Words = np.empty((0, 0), np.int64)
        self._bar: tuple[Words, Words] | None = None  # key and payload of the last known group when it became the bar
        self.shown: pa.Table | None = None

    def before(self, store: Store) -> pa.Table:
        """What is printed of a store that nothing has been added to since the last `after`."""
        if self._store is not store or self.shown is None:
            self._sort_all(store)
        assert self.shown is not None
        return self.shown

    def after(self, store: Store, changed: Words) -> pa.Table:
        """What is printed of the store after the groups `changed` have changed."""
        if self._limit is None or self._store is not store:
            self._sort_all(store)
        else:
            self._sort_known(store, np.unique(np.concatenate([self._known, changed]), axis=0))
        assert self.shown is not None
        return self.shown

    def _sort_known(self, store: Store, keys: Words) -> None:
        pool = store[self._pool]
        words = payloads_at(pool.words, pool.probe(keys))
        if self._bar:
            keys, words = np.concatenate([keys, self._bar[0]]), np.concatenate([words, self._bar[1]])
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        if self._bar:
            times[-1] = 1
        rows = np.flatnonzero(times)
        rows = rows[self._printer.order(frame, rows)]
        if self._bar:  # NB: the sort is stable and the bar comes last, so its own group, unchanged, stays before it
            rows = rows[: int(np.flatnonzero(rows == len(keys) - 1)[0])]
            if times[rows].sum() < self._wanted:
                self._sort_all(store)
                return
        self._remember(store, frame, keys, words, rows, times)

    def _sort_all(self, store: Store) -> None:
        keys, words = store[self._pool].rows()
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        rows = np.flatnonzero(times)
        self._bar = None
        self._remember(store, frame, keys, words, rows[self._printer.order(frame, rows)], times)

    def _remember(self, store: Store, frame: Any, keys: Words, words: Words, rows: Words, times: Words) -> None:
        """Keep the sorted `rows` as the known groups, cut when they have become many, and print the first."""
        if len(rows) > 4 * (self._wanted + SPARE):
            rows = rows[: self._wanted + SPARE]
            self._bar = keys[rows[-1:]].copy(), words[rows[-1:]].copy()
        self._store, self._known = store, keys[rows].copy()
        head = rows[: None if self._limit is None else self._wanted]  # each is printed at least once
        printed = np.repeat(head, times[head])[self._offset : None if self._limit is None else self._wanted]
        self.shown = self._printer.table(frame).take(pa.array(printed))
