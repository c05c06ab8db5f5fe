"""Maintenance of ORDER BY … LIMIT: the printed rows, and enough rows after them that a batch seldom sorts all.

All groups that sort before a *bar* are known, at least as many as are printed. A batch can only move the groups that
it changes, so those and the known ones are sorted together; what falls behind the bar is forgotten. Only when fewer
are left than are printed is the whole result sorted again, and then more are kept, up to the root of their number: if
the first ones are deleted again and again, a delete costs that root and not a scan.
"""

from math import isqrt
from typing import Any

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.output_rows import Printer
from squallpy.runtime.state.state_store import Store

SPARE = 64  # groups known, at first, beyond those that are printed


@dataclass(frozen=True, slots=True)
class FirstGroups:
    """The first groups: keys, payloads, and how often they are printed."""

    keys: Words
    words: Words
    times: Words

    def same(self, other: "FirstGroups | None") -> bool:
        """True if it prints the same as another head of the same store."""
        return other is not None and all(
            np.array_equal(a, b)
            for a, b in ((self.keys, other.keys), (self.words, other.words), (self.times, other.times))
        )


class TopK:
    """The printed groups of one store. What it remembers follows from the contents, so it need not be durable."""

    def __init__(self, printer: Printer, pool: str, key_width: int, offset: int, limit: int | None) -> None:
        self._printer, self._pool, self._offset, self._limit = printer, pool, offset, limit
        self._row_count, self._spare = offset + (limit or 0), SPARE
        self._store: Store | None = None
        self._edition = 0  # of its strings' numbers
        self._known = Pool(key_width, Payload((Ring.COUNT,)))
        self._bar: tuple[Words, Words] | None = None  # key and payload of the last known group when it became the bar
        self._head: FirstGroups | None = None
        self._first = printer.first_order

    def before(self, store: Store) -> FirstGroups:
        """Return the printed groups of a store that has not changed since the last `after`."""
        if not self._knows(store) or self._head is None:
            self._sort_all(store)
        assert self._head is not None
        return self._head

    def after(
        self, store: Store, changed: Words, payloads: Words | None = None, before: Words | None = None
    ) -> FirstGroups:
        """Return the printed groups of the store after the groups `changed`, each named once, have changed.

        Args:
            payloads: What they have now, if that is known.
            before: What they had, if that is known.
        """
        if self._limit is None or not self._knows(store):
            self._sort_all(store)
        else:
            if payloads is not None and before is not None:  # which known groups were not behind the bar
                moved = self._may_be_near(changed, payloads) | self._may_be_near(changed, before)
                if moved is not True:
                    changed, payloads = changed[moved], payloads[moved]
            if not len(changed):
                assert self._head is not None
                return self._head
            known = self._known.probe(changed) >= 0
            others = changed[~known & self._may_be_near(changed, payloads)]
            others = others[self._near(store, others)]
            if len(others):
                self._sort_known(store, np.concatenate([self._known.keys, others]))
            elif known.any():
                self._sort_known(store, self._known.keys, sorted=self._printer.in_key_order)
        assert self._head is not None
        return self._head

    def _knows(self, store: Store) -> bool:
        """True if its memory is of this store, under the present numbers of its strings."""
        return self._store is store and self._edition == store.dictionary.edition

    def _may_be_near(self, keys: Words, payloads: Words | None) -> Any:
        """Mark the groups whose words are not behind the bar by the first expression of ORDER BY: a filter before
        values are made."""
        if self._bar is None or self._first is None or payloads is None:
            return True
        return self._first(keys, payloads, *self._bar)

    def _near(self, store: Store, keys: Words) -> Any:
        """Mark the groups that may sort before the bar."""
        if self._bar is None or not len(keys):
            return np.ones(len(keys), bool)
        keys, words = self._barred(keys, store.pool(self._pool).get(keys))
        return self._printer.up_to_last(self._printer.frame(keys, words, store.dictionary))[:-1]

    def _barred(self, keys: Words, words: Words) -> tuple[Words, Words]:
        """Append the bar to groups."""
        if self._bar is None:
            return keys, words
        return np.concatenate([keys, self._bar[0]]), np.concatenate([words, self._bar[1]])

    def _sort_known(self, store: Store, keys: Words, sorted: bool = False) -> None:
        """Keep those of the known groups, and of others, that sort before the bar; perhaps they are sorted already."""
        pool = store.pool(self._pool)
        keys, words = self._barred(keys, pool.get(keys))
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        if self._bar:
            times[-1] = 1
        rows = np.flatnonzero(times)
        rows = rows if sorted else self._printer.sort_rows(frame, rows)
        if self._bar:  # NB: the sort is stable and the bar comes last, so its own group, unchanged, stays before it
            rows = rows[: int(np.flatnonzero(rows == len(keys) - 1)[0])]
            if times[rows].sum() < self._row_count:
                self._spare = max(self._spare, min(2 * self._spare, isqrt(len(pool))))
                self._sort_all(store)
                return
        self._remember(store, keys[rows], words[rows], times[rows])

    def _sort_all(self, store: Store) -> None:
        keys, words = store[self._pool].rows()
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        rows = self._printer.sort_rows(frame, np.flatnonzero(times))
        self._bar = None
        if not self._knows(store):
            self._head = None  # its strings may have other numbers
        self._remember(store, keys[rows], words[rows], times[rows])

    def _remember(self, store: Store, keys: Words, words: Words, times: Words) -> None:
        """Keep sorted groups as the known ones, cut when they have become many, and print the first."""
        if len(keys) > 2 * (self._row_count + self._spare):
            keys = keys[: self._row_count + self._spare]
            self._bar = keys[-1:].copy(), words[len(keys) - 1 : len(keys)].copy()
        self._store, self._edition = store, store.dictionary.edition
        self._known.clear()
        self._known.upsert(keys, np.ones((len(keys), 1), np.int64))
        stop = None if self._limit is None else self._row_count  # each group is printed at least once
        ends = np.cumsum(times[:stop])
        most = ends if stop is None else np.minimum(ends, stop)
        printed = np.maximum(most - np.maximum(ends - times[:stop], self._offset), 0)
        head = FirstGroups(keys[:stop], words[:stop], printed)
        if not head.same(self._head):
            self._head = head
