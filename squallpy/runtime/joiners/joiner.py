"""Joiner of a partition: it fills the pools of other grids, hands off records to other joiners, and takes theirs in."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from squallpy.base.types import Kind
from squallpy.physical.joins.band_histograms import Positions
from squallpy.physical.joins.hypercube import Hypercube
from squallpy.physical.joins.mapping import Mask, Numbers, Tickets
from squallpy.physical.joins.migration_transfers import migration
from squallpy.physical.joins.range_partitioning import RangePartitioning
from squallpy.physical.plan import OnGrid, Plan
from squallpy.runtime.joiners.band_positions import CAME, HELD, count_positions
from squallpy.runtime.joiners.batch_plan import BatchPlan, Copying, KeyMoves, OnHypercube, OnRanges, Switched
from squallpy.runtime.joiners.routing import positions_of, tickets_of
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_products import negated
from squallpy.runtime.kernels.view_container import HASHES, Container
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import Store

SAMPLE = 64  # rows of a delta whose texts are measured
_HERE = np.ones((1, 1), np.int64)  # how often a key stands where it was reached


class Joiner:
    """The joiner of a partition. All its memory is in the store."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._number, self._views = number, plan.on_grid
        self._columns = {pool.name: pool.keys for pool in plan.pools}
        self._columns |= {delta.name: delta.keys for delta in plan.deltas}
        self._banded = dict(plan.band.keys) if plan.band else {}
        self._texts = {d.name: [i for i, c in enumerate(d.keys) if c.type.kind is Kind.VARCHAR] for d in plan.deltas}

    def begin(self, store: Store, plan: BatchPlan, deltas: Sequence[Delta]) -> list[Delta]:
        """Begin a batch: drop the pools of the grid before, take in the records that joiners have handed off, return
        the rest."""
        names = {view.view for view in self._views}
        for name in names:
            if plan.drops_copies:
                store[plan.other_pool(name)].clear()
                store[PoolName(name, Role.REACHED)].clear()
                store[PoolName(name, Role.CHANGES)].clear()
        for delta in deltas:
            if delta.name in names:
                self._take_in(store, plan, delta)
        return [delta for delta in deltas if delta.name not in names]

    def count_arrivals(self, plan: BatchPlan, deltas: Sequence[Delta], names: Dictionary) -> dict[str, Any]:
        """Count the tuples that arrived for a stage, by relation; see `JoinerStatistics`."""
        counts, came = dict.fromkeys(("r", "s", "r bytes", "s bytes"), 0), list[tuple[OnGrid, Delta]]()
        for view in self._views:
            name = view.side.name.lower()
            for delta in deltas:
                if delta.name in view.deltas:
                    counts[name] += len(delta.keys)
                    counts[f"{name} bytes"] += _bytes(delta, self._texts[delta.name], names)
                    came.append((view, delta))
        return {"joiners": {str(self._number): counts}} | self._report(plan, came, CAME, names)

    def count_held(self, store: Store, plan: BatchPlan) -> dict[str, Any]:
        """Count the tuples that it has after a batch, by relation."""
        counts = dict.fromkeys("RS", 0)
        for view in self._views:
            held = len(store[plan.pool(view.view)])
            counts[view.side.name] += held
            counts |= {view.view: held} if view.cells else {}
        held_here = ((view, Delta(view.view, *store[plan.pool(view.view)].rows())) for view in self._views)
        return {"joiners": {str(self._number): counts}} | self._report(plan, held_here, HELD, store.dictionary)

    def _report(
        self, plan: BatchPlan, some: Iterable[tuple[OnGrid, Delta]], names_by_side: Sequence[str], names: Dictionary
    ) -> dict[str, Any]:
        """Count the positions of tuples, each at one of its joiners, where the plan wants a report."""
        found = dict[str, Counter[str]]()
        if isinstance(plan, OnRanges) and plan.reports:
            for view, delta in some:
                positions, tickets = self._positions(plan.ranges, delta, names)
                rows, joiners, owned = plan.ranges.route(view.side, positions, tickets)
                mine = positions.take(rows[owned & (joiners == self._number)])
                found.setdefault(names_by_side[view.side], Counter()).update(count_positions(mine))
        return {"ranges": {name: dict(counts) for name, counts in found.items()}} if found else {}

    def _positions(self, ranges: RangePartitioning, delta: Delta, names: Dictionary) -> tuple[Positions, Tickets]:
        """Compute the positions and tickets of records in a band join."""
        columns = self._columns[delta.name]
        tickets = tickets_of(delta.keys, columns, range(len(columns)), names)
        return positions_of(delta.keys, columns, self._banded[delta.name], ranges.band, names), tickets

    def hand_off(self, store: Store, plan: BatchPlan) -> tuple[list[tuple[int, Delta]], int]:
        """List the records for other joiners when a batch is done, and count all that were copied, those copied here
        included."""
        copies: list[tuple[int, Delta]] = []
        match plan:
            case Copying():
                copies += self._copies(store, plan)
            case KeyMoves() if plan.moves:
                for view in self._views:
                    copies += self._move_keys(store, plan, view)
            case OnHypercube(to=Hypercube() as to):
                for view in self._views:
                    copies += self._move_cells(store, plan, to, view)
            case OnRanges(to=RangePartitioning() as after):
                for view in self._views:
                    copies += self._move_ranges(store, plan, after, view)
        handed = [(target, delta) for target, delta in copies if target != self._number]
        return handed, sum(len(delta.keys) for _, delta in copies)

    def _move_keys(self, store: Store, plan: KeyMoves, view: OnGrid) -> Iterator[tuple[int, Delta]]:
        """Yield its tuples of keys that move, for the joiners that lack them; delete those that it is not to keep."""
        pool, forgotten = store[view.view], list[Delta]()
        keys, words = pool.rows()
        columns = self._columns[view.view]
        hashes = tickets_of(keys, columns, view.key, store.dictionary)
        for key, old, new in plan.moves:
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

    def _move_cells(self, store: Store, plan: OnHypercube, to: Hypercube, view: OnGrid) -> Iterator[tuple[int, Delta]]:
        """Yield its tuples that its partner lacks in the other hypercube; delete those that it is not to keep."""
        pool, move = store[view.view], plan.move
        assert move is not None
        keys, words = pool.rows()
        if not len(keys):
            return
        partner, kept, sent = move.partner(self._number), np.ones(len(keys), np.bool_), np.ones(len(keys), np.bool_)
        had = np.ones(len(keys), np.bool_)
        for dimension, by in view.cells:
            if plan.cube.bits[dimension] == to.bits[dimension]:  # NB: heavy keys have cells of their own there
                continue
            tickets = tickets_of(keys, self._columns[view.view], by, store.dictionary)
            old, new = plan.cube.coordinates(dimension, tickets), to.coordinates(dimension, tickets)
            mine, theirs = (np.array([joiner]) for joiner in (self._number, partner))
            kept &= new == to.coordinate_of(dimension, mine)
            sent &= new == to.coordinate_of(dimension, theirs)
            had &= old == plan.cube.coordinate_of(dimension, theirs)
        rows, gone = np.flatnonzero(sent & ~had), np.flatnonzero(~kept)
        parcel = Delta(view.view, keys.take(rows, axis=0), words.take(rows, axis=0))
        forgotten = keys.take(gone, axis=0), negated(words.take(gone, axis=0), pool.payload)
        if len(rows):
            yield partner, parcel
        pool.upsert(*forgotten)  # NB: at the end, for what a pool holds moves when something goes

    def _move_ranges(
        self, store: Store, plan: OnRanges, to: RangePartitioning, view: OnGrid
    ) -> Iterator[tuple[int, Delta]]:
        """Yield its tuples that joiners lack in other ranges; delete those that it is not to keep."""
        pool = store[plan.pool(view.view)]
        held = Delta(view.view, *pool.rows())
        if not len(held.keys):
            return
        positions, tickets = self._positions(plan.ranges, held, store.dictionary)
        rows, joiners, owned = plan.ranges.route(view.side, positions, tickets)
        new_rows, new_joiners, _ = to.route(view.side, positions, tickets)
        own = _mark(rows[owned & (joiners == self._number)], len(tickets))
        gone = ~_mark(new_rows[new_joiners == self._number], len(tickets))
        for target in np.unique(new_joiners).tolist():
            had = _mark(rows[joiners == target], len(tickets))
            lacking = np.flatnonzero(_mark(new_rows[new_joiners == target], len(tickets)) & own & ~had)
            if target != self._number and len(lacking):
                yield target, held.take(lacking)
        pool.upsert(held.keys[gone], negated(held.words[gone], pool.payload))  # NB: at the end, as it moves others

    def _copies(self, store: Store, plan: Copying) -> Iterator[tuple[int, Delta]]:
        """Copy a range of the records after a batch, and of those copied before, the changes since its last turn."""
        hashes, group = plan.copies(self._number), plan.group(self._number)
        if hashes is None or group is None:
            return
        moves = plan.migrations[group]
        for view in self._views:
            columns, copied = self._columns[view.view], self._copy(store, plan, view.view, *hashes)
            tickets = partial(tickets_of, copied.keys, columns, range(len(columns)), store.dictionary)
            for joiners, rows in moves.partition_tuples(self._number, view.side, tickets):
                theirs = copied if rows is None else copied.take(rows)
                if self._number in joiners:
                    store.ordered(plan.other_pool(view.view)).fill(theirs.keys, theirs.words, hashes[1])
                yield from ((joiner, theirs) for joiner in joiners)

    def _copy(self, store: Store, plan: Copying, view: str, low: int, high: int) -> Delta:
        """Copy a view's records with some hashes, and the changes of those before; note up to where it has copied."""
        pool, places = store.ordered(plan.pool(view)), store[PoolName(view, Role.REACHED)]
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

    def _take_in(self, store: Store, plan: BatchPlan, delta: Delta) -> None:
        """Take in what was sent to it after the batch before."""
        match plan:
            case Switched() | Copying(now=Switched()):
                store.ordered(plan.pool(delta.name)).fill(delta.keys, delta.words, HASHES)
            case Copying():
                reached = max((plan.low, *plan.done))
                store.ordered(plan.other_pool(delta.name)).fill(delta.keys, delta.words, reached)
            case _:
                store[plan.pool(delta.name)].upsert(delta.keys, delta.words)


def _mark(rows: Numbers, count: int) -> Mask:
    """Mark some of so many rows."""
    found = np.zeros(count, np.bool_)
    found[rows] = True
    return found


def _bytes(delta: Delta, texts: Sequence[int], names: Dictionary) -> int:
    """Estimate the bytes of rows from their texts in a sample."""
    rows, width = len(delta.keys), delta.keys.shape[1] + delta.words.shape[1]
    some = delta.keys[:: max(1, rows // SAMPLE)]
    spelled = sum(names.nbytes(some[:, i]) for i in texts)
    return int(8 * width * rows + spelled * rows // max(1, len(some)))


class ChangeTracker:
    """The changes of a view since a migration last copied it."""

    def __init__(self, changed: Container) -> None:
        self._changed = changed

    def note(self, pool: Container, keys: Words, words: Words) -> None:
        """Note what is added to a pool."""
        self._changed.upsert(keys, words)
