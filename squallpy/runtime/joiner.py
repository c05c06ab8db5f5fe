"""A joiner's part of a course: what it has of views on the grid, and what it sends when the grid is to be another."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from squallpy.base.types import Kind
from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration import Migration
from squallpy.physical.plan import OnGrid, Plan
from squallpy.runtime.course import Course
from squallpy.runtime.deltas import Delta
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.products import negated
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.routing import tickets_of
from squallpy.runtime.state.store import Store

SAMPLE = 64  # rows of a delta whose texts are measured


class Joiner:
    """The joiner of a partition. All its memory is in the store."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._number, self._views = number, plan.on_grid
        self._columns = {pool.name: pool.keys for pool in plan.pools}
        self._texts = {d.name: [i for i, c in enumerate(d.keys) if c.type.kind is Kind.VARCHAR] for d in plan.deltas}

    def begin(self, store: Store, course: Course) -> None:
        """Before a batch: drop what the grid before had, and what the batch before has changed."""
        for view in self._views:
            if course.fresh:
                store[course.other(view.view)].clear()
            if course.to:
                store[course.changed(view.view)].clear()

    def arrived(self, deltas: Sequence[Delta], names: Dictionary) -> dict[str, Any]:
        """What arrived for a stage, by relation; see `course.Seen`."""
        counts = dict.fromkeys(("r", "s", "r bytes", "s bytes"), 0)
        for view in self._views:
            name = view.side.name.lower()
            for delta in deltas:
                if delta.name in view.deltas:
                    counts[name] += len(delta.keys)
                    counts[f"{name} bytes"] += _bytes(delta, self._texts[delta.name], names)
        return {"joiners": {str(self._number): counts}}

    def held(self, store: Store, course: Course) -> dict[str, Any]:
        """What it has after a batch, by relation."""
        counts = dict.fromkeys("RS", 0)
        for view in self._views:
            counts[view.side.name] += len(store[course.pool(view.view)])
        return {"joiners": {str(self._number): counts}}

    def sent(self, store: Store, course: Course) -> Iterator[tuple[int, Delta]]:
        """What it sends to joiners when a batch is done."""
        if course.to:
            yield from self._copies(store, course)
        for view in self._views if course.moves else ():
            yield from self._moved(store, course, view)

    def _moved(self, store: Store, course: Course, view: OnGrid) -> Iterator[tuple[int, Delta]]:
        """What it has of keys that take another place, to those that have it not; to itself, taken away, what it is not
        to have any more."""
        keys, words = store[view.view].rows()
        columns = self._columns[view.view]
        hashes = tickets_of(keys, columns, view.key, store.dictionary)
        for key, old, new in course.moves:
            rows = np.flatnonzero(hashes == np.uint64(key))
            if not len(rows) or not old.has(np.array([self._number]))[0]:
                continue
            migration, mine, counts = Migration(old, new), keys[rows], words[rows]
            tickets = tickets_of(mine, columns, range(keys.shape[1]), store.dictionary)
            gone = ~migration.keeps(self._number, view.side, tickets)
            yield self._number, Delta(view.view, mine[gone], negated(counts[gone], store[view.view].payload))
            for target, chosen in self._passed_on(migration, view.side, tickets):
                yield target, Delta(view.view, mine[chosen], counts[chosen])

    def _copies(self, store: Store, course: Course) -> Iterator[tuple[int, Delta]]:
        """After a batch: the records of the hashes whose turn it is, and of those before what the batch has changed, as
        it is now: of what has gone, zero."""
        if (group := course.group(self._number)) is None:
            return
        migration = course.migrations[group]
        for view in self._views:
            pool, changed = store[course.pool(view.view)], store[course.changed(view.view)].keys
            slots = pool.between(course.low, course.high)
            again = np.ascontiguousarray(changed[pool.hashes(changed) < course.low])
            keys, words = (
                np.concatenate([pool.keys[slots], again]),
                np.concatenate([pool.words[slots], pool.get(again)]),
            )
            tickets = tickets_of(keys, self._columns[view.view], range(keys.shape[1]), store.dictionary)
            for target, rows in self._targets(migration, view.side, tickets):
                yield target, Delta(view.view, keys[rows], words[rows])

    def _targets(self, migration: Migration, side: Side, tickets: Any) -> Iterator[tuple[int, Any]]:
        """Which rows go where: to itself those that it keeps."""
        kept = np.flatnonzero(migration.keeps(self._number, side, tickets))
        if len(kept):
            yield self._number, kept
        yield from self._passed_on(migration, side, tickets)

    def _passed_on(self, migration: Migration, side: Side, tickets: Any) -> Iterator[tuple[int, Any]]:
        """Which rows go to which other joiners."""
        rows, targets = migration.sends(self._number, side, tickets)
        for target in np.unique(targets).tolist():
            yield target, rows[targets == target]

    def settle(self, store: Store, course: Course, deltas: Sequence[Delta]) -> int:
        """What was sent to it; how many tuples that were."""
        views, received = {view.view for view in self._views}, 0
        for delta in deltas:
            if delta.name in views:
                keys, words = np.ascontiguousarray(delta.keys), np.ascontiguousarray(delta.words)
                pool = store[course.other(delta.name) if course.to else course.pool(delta.name)]
                if course.to:  # in place of what was copied before
                    pool.upsert(keys, negated(pool.get(keys), pool.payload))
                pool.upsert(keys, words)
                received += len(keys)
        return received


def _bytes(delta: Delta, texts: Sequence[int], names: Dictionary) -> int:
    """What rows take, their texts as a sample of them has."""
    rows, width = len(delta.keys), delta.keys.shape[1] + delta.words.shape[1]
    some = delta.keys[:: max(1, rows // SAMPLE)]
    spelled = sum(pc.sum(pc.binary_length(names.strings(some[:, i]))).as_py() or 0 for i in texts)
    return int(8 * width * rows + spelled * rows // max(1, len(some)))


class Changes:
    """Takes down the keys that change."""

    def __init__(self, keys: Pool) -> None:
        self._keys = keys

    def note(self, pool: Pool, keys: Words) -> None:
        """To be told before `keys` change."""
        self._keys.upsert(keys, np.ones((len(keys), 1), np.int64))
