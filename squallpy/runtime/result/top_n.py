"""Maintenance of ORDER BY … LIMIT: the printed rows, and enough rows after them that a batch seldom sorts all.

All groups that sort before a *bar* are known, at least as many as are printed. A batch can only move the groups that
it changes, so those and the known ones are sorted together; what falls behind the bar is forgotten. Only when fewer
are left than are printed is the whole result sorted again, and then more are kept, up to the root of their number: if
the first ones are deleted again and again, a delete costs that root and not a scan.

Where words tell the order by the first expression of ORDER BY, and nothing is tied, a few groups are merged into the
known ones, which stay in order, without a sort.
"""

from math import isqrt
from typing import Any

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.physical.plan import PoolPlan
from squallpy.runtime.kernels.first_groups import BARRED, NO_BAR, TOLD, merge_groups, near_groups, set_bar
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.output_rows import Printer
from squallpy.runtime.state.state_store import Store

SPARE = 64  # groups known, at first, beyond those that are printed
_ALL = 2**62


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

    def __init__(self, printer: Printer, pool: PoolPlan, offset: int, limit: int | None) -> None:
        self._printer, self._pool, self._offset, self._limit = printer, pool.name, offset, limit
        self._row_count, self._spare = offset + (limit or 0), SPARE
        self._stop = None if limit is None else self._row_count  # groups that are printed: each is at least once
        self._store: Store | None = None
        self._edition = 0  # of its strings' numbers
        self._width, self._broad = len(pool.keys), pool.payload.width
        self._known = np.empty((0, self._width + self._broad + 1), np.int64)
        """Groups in order: keys, payloads, how often they are printed."""
        self._index = Pool(self._width, Payload((Ring.COUNT,)))
        self._indexed: Words | None = None  # the known groups that the index has
        self._bar: tuple[Words, Words] | None = None  # key and payload of the last known group when it became the bar
        self._order, self._told = printer.first_order.copy(), np.zeros(TOLD, np.int64)
        self._head: FirstGroups | None = None

    def before(self, store: Store) -> FirstGroups:
        """Return the printed groups of a store that has not changed since the last `after`."""
        if not self._knows(store) or self._head is None:
            self._sort_all(store)
        assert self._head is not None
        return self._head

    def after(self, store: Store, changed: Words, count: int, parts: int) -> FirstGroups:
        """Return the printed groups of the store after some groups, each named once, have changed.

        Args:
            changed: Keys of these groups, payloads before, and after.
            count: How many groups.
            parts: 1: there are no payloads before.
        """
        if self._limit is None or not self._knows(store):
            self._sort_all(store)
        elif count and not self._merge(store, changed, count, parts):
            after = count * (self._width + (parts - 1) * self._broad)
            payloads = changed[after : after + count * self._broad].reshape(count, self._broad)
            self._sort_changed(store, changed[: count * self._width].reshape(count, self._width), payloads)
        assert self._head is not None
        return self._head

    def _knows(self, store: Store) -> bool:
        """True if its memory is of this store, under the present numbers of its strings."""
        return self._store is store and self._edition == store.dictionary.edition

    def _merge(self, store: Store, changed: Words, count: int, parts: int) -> bool:
        """Merge a few groups into the known ones; False if that needs a sort, and nothing is done."""
        known = self._known
        merged = merge_groups(self._order, known, changed, count, self._width, parts, self._told)
        groups, at, times, near = self._told.tolist()
        if not near:
            return True
        if groups < 0:
            return False
        if self._bar and times < self._row_count:
            self._sort_more(store)
            return True
        self._known = self._cut(merged[:groups])
        if at < self._row_count and (at < groups or groups != len(known)):
            self._print_first()
        return True

    def _sort_changed(self, store: Store, changed: Words, payloads: Words) -> None:
        """Sort groups together with the known ones, if these or others before the bar are among them."""
        if self._indexed is not self._known:
            keys = self._known_keys
            self._index.clear()
            self._index.upsert(keys, np.ones((len(keys), 1), np.int64))
            self._indexed = self._known
        others = np.zeros(len(changed), bool)
        others[near_groups(self._order, changed, payloads)] = True
        known = self._index.probe(changed) >= 0
        some = changed[others & ~known]
        some = some[self._near(store, some)]
        if len(some):
            self._sort_known(store, np.concatenate([self._known_keys, some]))
        elif known.any():
            self._sort_known(store, self._known_keys, sorted=self._printer.in_key_order)

    @property
    def _known_keys(self) -> Words:
        return np.ascontiguousarray(self._known[:, : self._width])

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
                self._sort_more(store)
                return
        self._remember(store, keys[rows], words[rows], times[rows])

    def _sort_more(self, store: Store) -> None:
        """Sort the whole result, and know more of it than before."""
        self._spare = max(self._spare, min(2 * self._spare, isqrt(len(store.pool(self._pool)))))
        self._sort_all(store)

    def _sort_all(self, store: Store) -> None:
        keys, words = store[self._pool].rows()
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        rows = self._printer.sort_rows(frame, np.flatnonzero(times))
        self._set_bar(None)
        if not self._knows(store):
            self._head = None  # its strings may have other numbers
        self._remember(store, keys[rows], words[rows], times[rows])

    def _remember(self, store: Store, keys: Words, words: Words, times: Words) -> None:
        """Keep sorted groups as the known ones, and print the first."""
        self._store, self._edition = store, store.dictionary.edition
        self._known = self._cut(np.column_stack([keys, words, times]))
        self._print_first()

    def _cut(self, known: Words) -> Words:
        """Cut the known groups when they have become many, and let the last be the bar."""
        if len(known) <= self._most:
            return known
        known = known[: self._row_count + self._spare]
        self._set_bar(known[-1])
        return known

    @property
    def _most(self) -> int:
        """Groups that are known at most; all of them without a LIMIT."""
        return _ALL if self._limit is None else 2 * (self._row_count + self._spare)

    def _set_bar(self, group: Words | None) -> None:
        """Let a group be the bar, if any."""
        if group is None:
            self._bar, self._order[BARRED] = None, NO_BAR
        else:
            self._bar = group[np.newaxis, : self._width].copy(), group[np.newaxis, self._width : -1].copy()
            set_bar(self._order, *self._bar)

    def _print_first(self) -> None:
        """Let the printed groups be the first known ones."""
        first, width = self._known[: self._stop], self._width
        times, ends = first[:, -1], np.cumsum(first[:, -1])
        most = ends if self._stop is None else np.minimum(ends, self._stop)
        printed = np.maximum(most - np.maximum(ends - times, self._offset), 0)
        keys, words = (np.ascontiguousarray(part) for part in (first[:, :width], first[:, width:-1]))
        head = FirstGroups(keys, words, printed)
        if not head.same(self._head):
            self._head = head
