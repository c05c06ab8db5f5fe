"""Maintenance of fixpoints of any rules, one iteration after the other.

edge − (2, 3):   reach − (2, 3) of iteration 1,  − (1, 3) of iteration 2,  …        ΔN1 = {(2, 3): −1, (1, 3): −1, …}

Deletes are exact by *differences by iteration*: each row is stored with the iteration that first derives it, and how
often each iteration does. A batch changes these counts iteration by iteration, so a row whose last derivation of its
iteration goes is known to have none but later ones, and rows that derive only each other lose them one after the other.
Deletion and re-derivation (DRed) would look up all other derivations of each row that may go, of which most stay;
counts without iterations would keep rows on a cycle forever. Both read rules backwards, where these only read them
forwards, by the same joins as inserts. The price is a count, and work where a row stays and its iteration changes.

Source: McSherry, Murray, Isaacs, Isard, *Differential dataflow*, CIDR 2013; Gupta, Mumick, Subrahmanian, *Maintaining
views incrementally*, SIGMOD 1993, for counts and DRed.
"""

from collections import defaultdict

import numpy as np

from squallpy.base.keys import null_of
from squallpy.logical.recursion import Growth
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.runtime.auxiliary.fixpoint import FixpointMaintainer, endless
from squallpy.runtime.auxiliary.fixpoint_leaves import FixpointLeaves, Own
from squallpy.runtime.auxiliary.fixpoint_rules import (
    AtomRows,
    RelationId,
    RuleEvaluators,
    Stored,
    delta_plans,
    slices_of,
)
from squallpy.runtime.auxiliary.fixpoint_tables import TableState, add_up, split_by_iteration, table_state
from squallpy.runtime.auxiliary.maintainer import TouchedGroups
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.state.state_store import PoolLayout, Store

Agenda = defaultdict[int, list[tuple[int, Words, Words]]]  # by iteration: table, keys, times


class _Layout:
    """The tables and leaves of a fixpoint, with their pools."""

    def __init__(self, name: str, aux: AuxiliaryPlan, kind: Fixpoint) -> None:
        self.plans = delta_plans(kind.rules)
        self.tables = list[TableState]()
        for at, table in enumerate(kind.tables):
            columns = kind.columns_of(at)
            key = len(columns) if table.growth is Growth.UNION else None
            slices = slices_of(self.plans, (True, at), key)
            self.tables.append(table_state(table, f"{name} {at}", columns, slices))
        self.leaves = FixpointLeaves(name, aux, kind, is_set=False)

    def pools(self) -> tuple[PoolLayout, ...]:
        """Return the pools of all leaves and tables."""
        return (*self.leaves.layouts(self.plans), *(layout for table in self.tables for layout in table.layouts()))


class IteratedFixpointMaintainer(FixpointMaintainer):
    """A maintainer of the rows of recursive tables, with how often each iteration derives each."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan, own: Own | None = None) -> None:
        super().__init__(feed, aux, own)
        self._layout = _Layout(feed.relation.name, aux, self._kind)
        self._rules = RuleEvaluators(self._layout.plans, [table.columns for table in self._layout.tables])

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pools of leaves and of recursive tables."""
        assert isinstance(aux.kind, Fixpoint)
        return _Layout(feed.relation.name, aux, aux.kind).pools()

    def _maintain(self, store: Store, touched: TouchedGroups) -> dict[str, Delta]:
        agenda: Agenda = defaultdict(list)
        stored = self._layout.leaves.stored(store)
        stored |= {(True, at): table.stored(store) for at, table in enumerate(self._layout.tables)}
        for relation, change in self._layout.leaves.changes(store, touched, stored):
            self._derive(relation, change, stored, agenda, store)
        changes = self._iterate(store, stored, agenda)
        return self._report(store, changes)

    def _iterate(self, store: Store, stored: dict[RelationId, Stored], agenda: Agenda) -> list[list[AtomRows]]:
        """Add the derivations of each iteration in order, until there are none; returned are the changed rows."""
        changes: list[list[AtomRows]] = [[] for _ in self._layout.tables]
        while agenda:
            iteration = min(agenda)
            if iteration > self._kind.most:
                raise endless(self._kind)
            parts = agenda.pop(iteration)
            for at, table in enumerate(self._layout.tables):
                mine = [(keys, times) for to, keys, times in parts if to == at]
                if not mine:
                    continue
                change = table.apply(store, iteration, *add_up(mine))
                for later, keys in change.again:
                    agenda[later].append((at, keys, np.zeros(len(keys), np.int64)))
                if len(change.rows.times):
                    changes[at].append(change.rows)
                    self._derive((True, at), change.rows, stored, agenda, store)
        return changes

    def _derive(
        self, relation: RelationId, rows: AtomRows, stored: dict[RelationId, Stored], agenda: Agenda, store: Store
    ) -> None:
        """Derive by all rules what changed rows, which are stored, add to later iterations and take from them."""
        for rule, keys, iterations, times in self._rules.derive(relation, rows, stored, store.dictionary):
            if self._own and not rule.is_recursive:
                mine = self._own(rule.table, keys, store.dictionary)
                keys, iterations, times = keys[mine], iterations[mine], times[mine]
                if not len(mine):
                    continue
            for iteration, some, often in split_by_iteration(keys, iterations, times):
                agenda[iteration].append((rule.table, some, often))

    def _report(self, store: Store, changes: list[list[AtomRows]]) -> dict[str, Delta]:
        """Make the deltas of the rows that went and came with the batch."""
        parts = list[tuple[Words, Words]]()
        start = int(self._is_tagged)
        for at, table in enumerate(self._layout.tables):
            if changes[at]:
                keys, times = table.net(store, changes[at])
                if self._is_tagged:
                    whole = np.empty((len(keys), len(self._columns)), np.int64)
                    whole[:] = [null_of(c.type) for c in self._columns]
                    whole[:, 0], whole[:, start : start + table.width] = at, keys
                    keys = whole
                parts.append((keys, times))
            start += table.width
        if not parts:
            return {}
        rows, times = (np.concatenate(some) for some in zip(*parts, strict=True))
        return self._rows.of_keys(rows, times, self._titles, store.dictionary)
