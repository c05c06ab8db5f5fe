"""Maintenance of fixpoints whose rules copy some columns: one for each group of rows that agree on them.

reach(x, y2) ← reach(x, y) ⋈ edge(y, y2)      edge + (2, 3):  node 2 derives node 3      →      in each group that has 2

What the rules derive from a row depends on its other columns alone, its *node*. So joins, which are those of any
fixpoint, say which nodes a node derives, its *steps*, once for all groups; and one kernel follows the steps in one
group after the other, by differences by iteration (`fixpoint_iterations.py`). Leaves are sets, as rules only add.

Source: stable columns, as in Jachiet, Genevès, Gesbert, Layaïda, *On the optimization of recursive relational queries*,
SIGMOD 2020.
"""

from collections.abc import Sequence

import numpy as np

from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.fixpoint import Atom, Fixpoint, Rule
from squallpy.runtime.auxiliary.eager_sums import EagerSums
from squallpy.runtime.auxiliary.fixpoint import FixpointMaintainer, endless
from squallpy.runtime.auxiliary.fixpoint_leaves import FixpointLeaves, Own
from squallpy.runtime.auxiliary.fixpoint_rules import (
    AtomRows,
    DeltaPlan,
    RelationId,
    RuleEvaluators,
    Stored,
    delta_plans,
    slices_of,
)
from squallpy.runtime.auxiliary.fixpoint_tables import add_up
from squallpy.runtime.auxiliary.maintainer import COUNT, TouchedGroups
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.grouped_rows import EndlessError, GroupedRows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import Delta, numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

_NODES: RelationId = (True, 0)
_ROUNDS = 64  # of nodes that new nodes derive, before it is known that any group has them
_NO_TIMES = np.empty(0, np.int64)


class _Layout:
    """The leaves, the nodes and the table of a fixpoint, with their pools."""

    def __init__(self, name: str, aux: AuxiliaryPlan, kind: Fixpoint) -> None:
        self.columns = kind.columns_of(0)
        self.group = kind.stable_columns
        self.rest = tuple(at for at in range(len(self.columns)) if at not in self.group)
        own = tuple(self.columns[at] for at in self.rest)
        of_nodes = delta_plans([self._step(rule) for rule in kind.rules if rule.is_recursive])
        of_leaves = delta_plans([rule for rule in kind.rules if not rule.is_recursive])
        self.steps = RuleEvaluators(of_nodes, [(*own, *own)])
        self.is_once = _derives_once([plan for plan in of_nodes if plan.rule.atoms[plan.start].is_recursive])
        self.sources = RuleEvaluators(of_leaves, [self.columns])
        self.leaves = FixpointLeaves(name, aux, kind, is_set=True)
        self.rows = PoolName(f"{name} 0 groups", Role.FIXPOINT)

    def pools(self) -> tuple[PoolLayout, ...]:
        """Return the pools of all leaves and of the table."""
        plans = self.steps.plans
        slices = slices_of(plans, _NODES, len(self.rest))
        return (
            *self.leaves.layouts(plans),
            PoolLayout(
                self.rows, len(self.columns) + 1, COUNT, slices, numbered=numbered(self.columns), agreeing=self.group
            ),
        )

    def _step(self, rule: Rule) -> Rule:
        """Make the rule that derives a node, and the one that it is derived from, from a node."""
        atoms, before = list[Atom](), list[Column]()
        for atom in rule.atoms:
            if atom.is_recursive:
                before = [atom.columns[at] for at in self.rest]
                atoms.append(Atom(0, True, tuple(before)))
            else:
                atoms.append(atom)
        return Rule(0, tuple(atoms), rule.conjuncts, (*before, *(rule.items[at] for at in self.rest)))


def _derives_once(plans: Sequence[DeltaPlan]) -> bool:
    """True if a node derives another one by one row of a leaf at most, as the two have all columns of that row."""
    if len(plans) != 1 or len(plans[0].probes) != 1:
        return False
    (plan,) = plans
    (probe,) = plan.probes
    leaf = plan.rule.atoms[probe.occurrence].columns
    return all(at in probe.columns or column in plan.rule.items for at, column in enumerate(leaf))


class GroupedFixpointMaintainer(FixpointMaintainer):
    """A maintainer of the rows of a recursive table with stable columns."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan, own: Own | None = None) -> None:
        super().__init__(feed, aux, own)
        self._layout = layout = _Layout(feed.relation.name, aux, self._kind)
        of_parts: list[dict[str, tuple[int, Column]]] = [{}, {}]
        for title, (at, column) in self._titles.items():
            part, among = (0, layout.group) if at in layout.group else (1, layout.rest)
            of_parts[part][title] = among.index(at), column
        self.sums = EagerSums(feed, of_parts, self._titles)

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pools of leaves and of the recursive table."""
        assert isinstance(aux.kind, Fixpoint)
        return _Layout(feed.relation.name, aux, aux.kind).pools()

    def _maintain(self, store: Store, touched: TouchedGroups) -> dict[str, Delta]:
        rows, layout, names = self._rows_of(store), self._layout, store.dictionary
        stored = layout.leaves.stored(store)
        stored[_NODES] = Stored(rows.nodes.pool, len(layout.rest), False, False, is_counted=False)
        self._learn(rows, rows.unknown(), stored, names)  # NB: after a restart, by the leaves as they were
        steps, sources = list[tuple[Words, Words]](), list[tuple[Words, Words]]()
        for relation, change in layout.leaves.changes(store, touched, stored):
            steps += [(pairs, n) for _, pairs, _, n in layout.steps.derive(relation, change, stored, names)]
            sources += [(found, n) for _, found, _, n in layout.sources.derive(relation, change, stored, names)]
        given, often = add_up(sources) if sources else (np.empty((0, len(layout.columns)), np.int64), _NO_TIMES)
        if self._own:
            mine = self._own(0, given, names)
            given, often = given[mine], often[mine]
        changed, nodes = self._add_steps(rows, steps, given[:, layout.rest])
        given = np.column_stack([rows.intern_groups(given), nodes, often])
        self._learn(rows, rows.unknown_of(np.concatenate([changed[:, 1], given[:, 1]])), stored, names)
        try:
            derived = rows.propagate(
                given,
                changed,
                self._kind.most,
                lambda numbers: self._learn(rows, numbers, stored, names),
                self.sums.needs_rows,
                self.sums.needs_numbers,
            )
        except EndlessError:
            raise endless(self._kind) from None
        return self.sums(derived.rows, (derived.groups, derived.nodes), names)

    def _rows_of(self, store: Store) -> GroupedRows:
        rows = store[self._layout.rows]
        assert isinstance(rows, GroupedRows)
        return rows

    def _add_steps(self, rows: GroupedRows, parts: list[tuple[Words, Words]], others: Words) -> tuple[Words, Words]:
        """Add to how often nodes derive nodes, from pairs of their keys.

        Returns the steps that came and went, and the numbers of other nodes.
        """
        width = len(self._layout.rest)
        pairs, times = add_up(parts) if parts else (np.empty((0, 2 * width), np.int64), _NO_TIMES)
        sources, targets, numbers = rows.intern_nodes(pairs[:, :width], pairs[:, width:], others)
        return rows.add_steps(sources, targets, times, self._layout.is_once), numbers

    def _learn(self, rows: GroupedRows, numbers: Words, stored: dict[RelationId, Stored], names: Dictionary) -> None:
        """Find the steps of nodes, and of those that are new in them, some rounds of them."""
        for _ in range(_ROUNDS):
            if not len(numbers):
                return
            keys = np.ascontiguousarray(rows.nodes.keys[numbers])
            new = AtomRows(keys, np.zeros(len(keys), np.int64), np.ones(len(keys), np.int64))
            found = [(pairs, n) for _, pairs, _, n in self._layout.steps.derive(_NODES, new, stored, names)]
            rows.learn(numbers)
            steps, _ = self._add_steps(rows, found, keys[:0])
            numbers = rows.unknown_of(steps[:, 1])
