"""ORDER BY … LIMIT kept fresh: the printed rows, and enough of those behind them that a batch seldom needs the rest.

All groups that sort before a *bar* are known, at least as many as are printed. A batch can only move the groups that
it changes, so those and the known ones are sorted together; what falls behind the bar is forgotten. Only when fewer
are left than are printed is the whole result sorted again.
"""

import numpy as np
import pyarrow as pa

from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.printer import Printer, payloads_at
from squallpy.runtime.state.store import Store

SPARE = 64  # groups known beyond those that are printed


class TopK:
    """The printed rows of one store. What it remembers follows from the store's contents, so it need not be durable."""

    def __init__(self, printer: Printer, pool: str, key_width: int, offset: int, limit: int | None) -> None:
        self._printer, self._pool, self._offset, self._limit = printer, pool, offset, limit
        self._groups = Pool(key_width, Payload((Ring.COUNT,)))
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
            self._sort_known(store, self._with_known(changed))
        assert self.shown is not None
        return self.shown

    def _with_known(self, changed: Words) -> Words:
        """The known and the changed groups, each once."""
        self._groups.clear()
        for keys in (self._known, changed):
            self._groups.upsert(keys, np.ones((len(keys), 1), np.int64))
        return self._groups.rows()[0]

    def _sort_known(self, store: Store, keys: Words) -> None:
        pool = store[self._pool]
        words = payloads_at(pool.words, pool.probe(keys))
        if self._bar:
            keys, words = np.concatenate([keys, self._bar[0]]), np.concatenate([words, self._bar[1]])
            near = np.flatnonzero(self._printer.not_after_last(self._printer.frame(keys, words, store.dictionary)))
            keys, words = keys[near], words[near]
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
        self._remember(store, keys[rows], words[rows], times[rows])

    def _sort_all(self, store: Store) -> None:
        keys, words = store[self._pool].rows()
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        rows = np.flatnonzero(times)
        rows = rows[self._printer.order(frame, rows)]
        self._bar = None
        self._remember(store, keys[rows], words[rows], times[rows])

    def _remember(self, store: Store, keys: Words, words: Words, times: Words) -> None:
        """Keep sorted groups as the known ones, cut when they have become many, and print the first."""
        if len(keys) > 4 * (self._wanted + SPARE):
            keys = keys[: self._wanted + SPARE]
            self._bar = keys[-1:].copy(), words[len(keys) - 1 : len(keys)].copy()
        self._store, self._known = store, keys
        stop = None if self._limit is None else self._wanted  # each group is printed at least once
        printed = np.repeat(np.arange(len(keys[:stop])), times[:stop])[self._offset : stop]
        head = self._printer.frame(keys[:stop], words[:stop], store.dictionary)
        self.shown = self._printer.table(head).take(pa.array(printed))
