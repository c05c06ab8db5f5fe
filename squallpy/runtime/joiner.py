"""A joiner's part of a course: what it has of views on the grid, and what it sends when the grid is to be another."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from squallpy.physical.joins.mapping import Side
from squallpy.physical.joins.migration import Migration
from squallpy.physical.plan import Plan
from squallpy.runtime.course import Course
from squallpy.runtime.deltas import Delta
from squallpy.runtime.routing import tickets_of
from squallpy.runtime.state.store import Store


class Joiner:
    """The joiner of a partition. All its memory is in the store."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._number, self._views = number, plan.on_grid
        self._columns = {pool.name: pool.keys for pool in plan.pools}

    def begin(self, store: Store, course: Course) -> None:
        """Before a batch: drop what the grid before had."""
        if course.fresh:
            for view in self._views:
                store[course.other(view.view)].clear()

    def seen(self, store: Store, course: Course, deltas: Sequence[Delta]) -> dict[str, Any]:
        """What arrived and what it has, by relation; see `course.Seen`."""
        counts = dict.fromkeys("rsRS", 0)
        for view in self._views:
            name = view.side.name
            counts[name.lower()] += sum(len(delta.keys) for delta in deltas if delta.name == view.delta)
            counts[name] += len(store[course.pool(view.view)])
        return {"joiners": {str(self._number): counts}}

    def copies(self, store: Store, course: Course, deltas: Sequence[Delta]) -> Iterator[tuple[int, Delta]]:
        """After a batch: what it has of the hashes whose turn it is, and what the batch has changed of those before."""
        assert course.to
        migration = Migration(course.grid, course.to)
        for view in self._views:
            pool = store[course.pool(view.view)]
            slots = pool.between(course.low, course.high)
            parts = [(pool.keys[slots], pool.words[slots])]
            for delta in deltas:
                if delta.name == view.delta:
                    again = np.flatnonzero(pool.hashes(np.ascontiguousarray(delta.keys)) < course.low)
                    parts.append((delta.keys[again], delta.words[again]))
            keys, words = (np.concatenate(some) for some in zip(*parts, strict=True))
            tickets = tickets_of(keys, self._columns[view.view], range(keys.shape[1]), store.dictionary)
            for target, rows in self._targets(migration, view.side, tickets):
                yield target, Delta(view.view, keys[rows], words[rows])

    def _targets(self, migration: Migration, side: Side, tickets: Any) -> Iterator[tuple[int, Any]]:
        """Which rows go where: to itself those that it keeps."""
        kept = np.flatnonzero(migration.keeps(self._number, side, tickets))
        if len(kept):
            yield self._number, kept
        rows, targets = migration.sends(self._number, side, tickets)
        for target in np.unique(targets).tolist():
            yield target, rows[targets == target]

    def settle(self, store: Store, course: Course, deltas: Sequence[Delta]) -> int:
        """What was copied for it; how many tuples that were."""
        views, received = {view.view for view in self._views}, 0
        for delta in deltas:
            if delta.name in views:
                keys, words = np.ascontiguousarray(delta.keys), np.ascontiguousarray(delta.words)
                store[course.other(delta.name)].upsert(keys, words)
                received += len(keys)
        return received
