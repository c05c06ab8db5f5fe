"""Triggers at work: the statements of a plan over the pools of one partition, relation by relation."""

import numpy as np

from squallpy.maintain.program import RESULT
from squallpy.physical.plan import Feed, Lookup, Nested, Plan
from squallpy.runtime.deltas import Delta
from squallpy.runtime.extremes import Extremes, extremes_layouts
from squallpy.runtime.intervals import Intervals, intervals_layouts
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.ledger import ledger_layouts, ledger_name, unmatched
from squallpy.runtime.nested import Aggregates, NestFeed, RowsOf, Touched, begin, begun_layouts
from squallpy.runtime.state.store import PoolLayout, Store, StoreLayout
from squallpy.runtime.statement import Statement


def store_layout(plan: Plan) -> StoreLayout:
    """The pools that a partition of the plan keeps."""
    views = tuple(PoolLayout(p.name, len(p.keys), p.payload, p.slices, p.orders) for p in plan.pools)
    return StoreLayout(
        (*views, *ledger_layouts(plan), *begun_layouts(plan), *extremes_layouts(plan), *intervals_layouts(plan))
    )


class Machine:
    """The trigger program of one partition. Deterministic: all its memory is in the store."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        payloads = {p.name: p.payload for p in (*plan.pools, *plan.deltas, plan.result)}
        self.unmatched = 0
        self._result = Pool(len(plan.result.keys), plan.result.payload)
        indexed = {
            step.source for updates in plan.updates for u in updates for step in u.steps if isinstance(step, Lookup)
        }
        self._indexed = {
            d.name: Pool(len(d.keys), d.payload, d.slices, orders=d.orders) for d in plan.deltas if d.name in indexed
        }
        self._nested = {f.relation.name: _nest(f, f.nested) for f in plan.feeds if f.nested}
        self._touched = {n.source.name: Touched(n.source) for f in plan.feeds if (n := f.nested) and not n.running}
        rows = {
            f.relation.name: RowsOf(n, self._touched[n.source.name])
            for f in plan.feeds
            if (n := f.nested) and not n.running and not n.finish.over
        }
        self._triggers = [[Statement(update, payloads, rows) for update in updates] for updates in plan.updates]

    def apply(self, store: Store, deltas: list[Delta]) -> Delta:
        """Apply one batch, relation by relation; returns the change of the result.

        `unmatched` is then the number of deletes in the batch that found nothing to delete.
        """
        self._result.clear()
        self.unmatched = 0
        given: dict[str, list[Delta]] = {}
        for delta in deltas:
            given.setdefault(delta.name, []).append(delta)
        for feed, statements in zip(self._plan.feeds, self._triggers, strict=True):
            if feed.nested:
                touched = self._touched.get(feed.nested.source.name)
                mine = self._nested[feed.relation.name].deltas(store, touched.groups() if touched else None)
            else:
                mine = {d.name: _merged(given[d.name]) for d in feed.deltas if d.name in given}
            pools: dict[str, Pool] = dict(store)
            for name, delta in mine.items():
                if name in self._indexed:
                    self._indexed[name].clear()
                    self._indexed[name].upsert(delta.keys, delta.words)
            pools |= self._indexed | {RESULT: self._result}
            if (ledger := ledger_name(feed.relation.name)) in given:
                changes = _merged(given[ledger])
                self.unmatched += unmatched(store[ledger], changes.keys, changes.words)
            for statement in statements:
                if statement.delta in mine:
                    noted = self._touched.get(statement.target)
                    statement.run(mine[statement.delta], pools, store.dictionary, noted)
            for name in mine:
                if name in self._indexed:
                    self._indexed[name].clear()
        for touched in self._touched.values():
            touched.clear()
        begin(store)
        keys, words = self._result.rows()
        return Delta(RESULT, keys, words)


def _nest(feed: Feed, nested: Nested) -> NestFeed:
    if nested.running:
        return Intervals(feed, nested)
    return Extremes(feed, nested) if nested.finish.over else Aggregates(feed, nested)


def _merged(parts: list[Delta]) -> Delta:
    if len(parts) == 1:
        return parts[0]
    return Delta(parts[0].name, np.concatenate([p.keys for p in parts]), np.concatenate([p.words for p in parts]))
