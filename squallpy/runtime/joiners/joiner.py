"""A joiner's part of a course: what it has of views on the grid, and what it sends when the grid is to be another.

What it sends after a batch arrives before the next; what it keeps itself is where it will be at once.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from squallpy.base.types import Kind
from squallpy.physical.joins.migration import migration
from squallpy.physical.plan import OnGrid, Plan
from squallpy.runtime.joiners.batch_plan import Course
from squallpy.runtime.joiners.routing import tickets_of
from squallpy.runtime.kernels.container import HASHES, Container
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.products import negated
from squallpy.runtime.kernels.regions import Words
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.store import Store

SAMPLE = 64  # rows of a delta whose texts are measured
_HERE = np.ones((1, 1), np.int64)  # how often a key stands where it was reached


class Joiner:
    """The joiner of a partition. All its memory is in the store."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._number, self._views = number, plan.on_grid
        self._columns = {pool.name: pool.keys for pool in plan.pools}
        self._texts = {d.name: [i for i, c in enumerate(d.keys) if c.type.kind is Kind.VARCHAR] for d in plan.deltas}

    def begin(self, store: Store, course: Course, deltas: Sequence[Delta]) -> list[Delta]:
        """Before a batch: drop what the grid before had; take in what joiners have sent. What else has come is left."""
        names = {view.view for view in self._views}
        for name in names:
            if course.fresh:
                store[course.other(name)].clear()
                store[PoolName(name, Role.REACHED)].clear()
                store[PoolName(name, Role.CHANGES)].clear()
        for delta in deltas:
            if delta.name in names:
                self._settle(store, course, delta)
        return [delta for delta in deltas if delta.name not in names]

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

    def sent(self, store: Store, course: Course) -> tuple[list[tuple[int, Delta]], int]:
        """What it sends to joiners when a batch is done; how many tuples that are, with those copied here."""
        share = course.copies(self._number)
        copies = [*self._copies(store, course, *share)] if share else []
        for view in self._views if course.moves else ():
            copies += self._moved(store, course, view)
        letters = [(target, delta) for target, delta in copies if target != self._number]
        return letters, sum(len(delta.keys) for _, delta in copies)

    def _moved(self, store: Store, course: Course, view: OnGrid) -> Iterator[tuple[int, Delta]]:
        """What it has of keys that take another place, to those that have it not; what it is not to have any more, it
        forgets."""
        pool, forgotten = store[view.view], list[Delta]()
        keys, words = pool.rows()
        columns = self._columns[view.view]
        hashes = tickets_of(keys, columns, view.key, store.dictionary)
        for key, old, new in course.moves:
            rows = np.flatnonzero(hashes == np.uint64(key))
            if not len(rows) or self._number not in old:
                continue
            moves, mine, counts = migration(old, new), keys.take(rows, axis=0), words.take(rows, axis=0)
            tickets = tickets_of(mine, columns, range(keys.shape[1]), store.dictionary)
            gone = ~moves.keeps(self._number, view.side, tickets)
            forgotten.append(Delta(view.view, mine[gone], negated(counts[gone], pool.payload)))
            for target, chosen in moves.parcels(self._number, view.side, tickets):
                yield target, Delta(view.view, mine.take(chosen, axis=0), counts.take(chosen, axis=0))
        for delta in forgotten:  # NB: at the end, for what a pool holds moves when something goes
            pool.upsert(delta.keys, delta.words)

    def _copies(self, store: Store, course: Course, low: int, high: int) -> Iterator[tuple[int, Delta]]:
        """After a batch: a share of the records, and of those before by what batches since its last turn have changed
        them."""
        if (group := course.group(self._number)) is None:
            return
        moves = course.migrations[group]
        for view in self._views:
            columns, copied = self._columns[view.view], self._share(store, course, view.view, low, high)
            tickets = partial(tickets_of, copied.keys, columns, range(len(columns)), store.dictionary)
            for joiners, rows in moves.partition_tuples(self._number, view.side, tickets):
                theirs = copied if rows is None else copied.take(rows)
                if self._number in joiners:
                    store.ordered(course.other(view.view)).fill(theirs.keys, theirs.words, high)
                yield from ((joiner, theirs) for joiner in joiners)

    def _share(self, store: Store, course: Course, view: str, low: int, high: int) -> Delta:
        """What is copied of a view after a batch; goes on to where it ends."""
        pool, places = store.ordered(course.pool(view)), store[PoolName(view, Role.REACHED)]
        since = store[PoolName(view, Role.CHANGES)]
        changed, changes = since.rows()
        reached = places.keys[-1:]
        copied = Delta(view, *pool.copy_fraction(reached, low, high))
        again = pool.select_copied(changed, reached, low)
        if len(copied.keys) and pool.sorted:
            places.upsert(copied.keys[-1:], _HERE)
        if len(again):
            copied = copied.with_rows(changed.take(again, axis=0), changes.take(again, axis=0))
        since.clear()
        return copied

    def _settle(self, store: Store, course: Course, delta: Delta) -> None:
        """Take in what was sent to it after the batch before."""
        if course.fresh:
            store.ordered(course.pool(delta.name)).fill(delta.keys, delta.words, HASHES)
        elif course.grids:
            store.ordered(course.other(delta.name)).fill(delta.keys, delta.words, max((course.low, *course.done)))
        else:
            store[delta.name].upsert(delta.keys, delta.words)


def _bytes(delta: Delta, texts: Sequence[int], names: Dictionary) -> int:
    """What rows take, their texts as a sample of them has."""
    rows, width = len(delta.keys), delta.keys.shape[1] + delta.words.shape[1]
    some = delta.keys[:: max(1, rows // SAMPLE)]
    spelled = sum(names.nbytes(some[:, i]) for i in texts)
    return int(8 * width * rows + spelled * rows // max(1, len(some)))


class Changes:
    """Takes down what changes in a view that is copied."""

    def __init__(self, changed: Container) -> None:
        self._changed = changed

    def note(self, pool: Container, keys: Words, words: Words) -> None:
        """To be told what is added to a pool."""
        self._changed.upsert(keys, words)
