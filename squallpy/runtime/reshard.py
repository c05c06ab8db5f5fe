"""Resharding: the state of a query moved from the partitions of one plan to those of another, without its input.

    M_R by a on 2 partitions             →   M_R by a on 4 partitions, or by b, or everywhere, or in one process
    extremes, intervals … of its groups      follow the view that they are of

Both plans are of one program, so they keep the same pools; only where a record is differs. The state before is read
from snapshots and journals as of the last committed batch, each record once although several partitions may have a
copy, and is written as snapshots, with which the other plan's partitions begin. Takes time in proportion to the state.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from squallpy.base.json_codec import to_json
from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.physical.distribute.location_tags import EVERYWHERE
from squallpy.physical.plan import DIVIDED, Plan, Send
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.program.auxiliary.kind import Columns
from squallpy.program.view_identity import Held
from squallpy.runtime.auxiliary.fixpoint_leaves import LEAF
from squallpy.runtime.auxiliary.maintainer import FIRST_BATCH_LAYOUT, begin
from squallpy.runtime.auxiliary.maintainer_registry import auxiliary_layouts
from squallpy.runtime.batch.micro_batch import PartitionStages, Publisher
from squallpy.runtime.checkpoint.checkpoint import CannotMove
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.runtime.ingest.upserts import latest_rows
from squallpy.runtime.joiners.batch_plan import BatchPlan, KeyMoves, OnRanges, senders_to
from squallpy.runtime.joiners.hand_off_store import HandOffStore
from squallpy.runtime.joiners.joiner import Joiner
from squallpy.runtime.joiners.migration_policy import MigrationPolicy, open_policy
from squallpy.runtime.joiners.routing import partitions_of, spread
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.matrix.driver_stage import PARTITION, add_cells
from squallpy.runtime.matrix.driver_stage import layout as layout_of_matrices
from squallpy.runtime.messages.deltas import Delta, unpack_deltas
from squallpy.runtime.replan import add_records, all_layouts, lanes_of
from squallpy.runtime.result.result import result_layout
from squallpy.runtime.state.pool_names import ROLES_OF_GROUPS, PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store
from squallpy.runtime.time.unmatched_deletes import ledger_layouts
from squallpy.runtime.time.watermark import clock_layouts
from squallpy.runtime.triggers.stage_executor import store_layout

CHUNK = 1 << 20  # records that are moved at a time
_DRIVER = -1  # in place of the number of a partition
_COPIES = Send("", "", None)
_OF_MIGRATIONS = (Role.OTHER_GRID, Role.REACHED, Role.CHANGES)


def find_immovable_join(plan: Plan) -> str:
    """Return why the state of a plan's joins cannot move to another plan; empty if it can."""
    if plan.grid and not plan.on_grid:
        return "its joins are on a grid that does not adapt"
    if plan.hypercube:
        return "its join is on a hypercube"
    return "its joiners are in groups" if plan.groups else ""


@dataclass(frozen=True)
class RecordHomes:
    """The homes of the records of a plan's pools, under the plan of a batch that adaptive joins have come to."""

    plan: Plan
    policy: MigrationPolicy | None

    def __post_init__(self) -> None:
        if reason := find_immovable_join(self.plan):
            raise CannotMove(reason)
        if self.plan.matrices and self.plan.matrices.parts:
            raise CannotMove("its matrices are in blocks on partitions")

    @property
    def batch_plan(self) -> BatchPlan | None:
        return self.policy.plan if self.policy else None

    @cached_property
    def grid_views(self) -> frozenset[str]:
        """The views whose records may be at several joiners each."""
        return frozenset(line.view for line in self.plan.on_grid)

    @cached_property
    def passing(self) -> frozenset[str]:
        """The pools of migrations, and what notes that there was a batch."""
        of_views = (PoolName(view, role) for view in self.grid_views for role in _OF_MIGRATIONS)
        return frozenset((*of_views, FIRST_BATCH_LAYOUT.name))

    def pool(self, name: str) -> str:
        """Name the pool that has the records of a view: those on a grid have two, of which a migration fills one."""
        return self.batch_plan.pool(name) if self.batch_plan and name in self.grid_views else name

    @cached_property
    def _sends(self) -> Mapping[str, tuple[tuple[Column, ...], Send]]:
        """The columns of each pool, and how its records would be sent to where they are."""
        plan, found = self.plan, dict[str, tuple[tuple[Column, ...], Send]]()
        places, lines = dict(plan.places), {line.view: line for line in plan.on_grid}
        spreads = dict(plan.spreads)
        for pool in plan.pools:
            all_keys, place = tuple(range(len(pool.keys))), places.get(pool.name, ())
            if line := lines.get(pool.name):
                send = Send(pool.name, pool.name, all_keys, line.side, line.key)
            elif place in (EVERYWHERE.value, DIVIDED):
                send = _COPIES
            else:
                by = place if isinstance(place, tuple) else all_keys
                send = Send("", "", by, partitions=spreads.get(pool.name))
            found[pool.name] = pool.keys, send
        for result in plan.results:
            if result.name in plan.partitioned and isinstance(hashed := places.get(result.name), tuple):
                found[result.name] = result.keys, Send("", "", hashed)
        kept = {layout.name for layout in auxiliary_layouts(plan)}
        for feed in plan.feeds:
            if aux := feed.auxiliary:
                columns, send = found[aux.source.name]
                found[PoolName(feed.relation.name, Role.COEFFICIENTS)] = columns, send
                of_groups = [name for role in ROLES_OF_GROUPS if (name := PoolName(feed.relation.name, role)) in kept]
                if of_groups and send.keys is not None:
                    send = Send("", "", tuple(map(aux.group.index, send.keys)), partitions=send.partitions)
                found |= dict.fromkeys(of_groups, (aux.grouped, send))
                prefix, kind = f"{Role.FIXPOINT.value} {feed.relation.name} ", aux.kind
                own = [name for name in kept if name.startswith(prefix)]
                found |= dict.fromkeys(own, ((), found[aux.source.name][1]))  # NB: on one partition, or on all
                if divided := plan.divisions.get(feed.relation.name):
                    assert isinstance(kind, Fixpoint)
                    parts = ((name, name.removeprefix(prefix)) for name in own)
                    found |= {name: _send_of_part(part, aux.source.keys, kind, divided) for name, part in parts}
        for latest in latest_rows(plan).values():
            found[latest.name] = latest.keys, Send("", "", tuple(range(len(latest.keys))))
        times = [layout.name for layout in clock_layouts(plan)]
        times += [PoolName(window, role) for window in plan.windows for role in (Role.BOUND, Role.END)]
        return found | dict.fromkeys(times, ((), _COPIES))

    @cached_property
    def _divided(self) -> Mapping[str, DividedRows]:
        """The views of which partitions have some rows all, and others each its own."""
        ways, named = self.plan.divisions, {feed.relation.name: feed.auxiliary for feed in self.plan.feeds}
        return {aux.source.name: ways[name] for name, aux in named.items() if aux and name in ways}

    def parts(self, layout: PoolLayout, keys: Words, names: Dictionary) -> Iterator[tuple[int, Words]]:
        """Yield the partitions that keep some of these records of a pool, with the numbers of those."""
        rows = np.arange(len(keys))
        if layout.name in self._ledgers:
            for partition in range(self.plan.partitions):
                yield partition, np.flatnonzero(keys[:, 0] % self.plan.partitions == partition)
            return
        columns, send = self._sends[layout.name]
        if divided := self._divided.get(layout.name):
            own = np.full(len(keys), -1)
            for leaf, by in divided.hashed:
                some = np.flatnonzero(keys[:, divided.number] == leaf)
                own[some] = partitions_of(keys[some], columns, by, self.plan.partitions, names)
            for partition in range(self.plan.partitions):
                yield partition, np.flatnonzero((own < 0) | (own == partition))
            return
        numbered = Delta(layout.name, keys, rows[:, None])
        for partition, part in spread(numbered, columns, send, self.plan, self.batch_plan, names):
            yield partition, part.words[:, 0]

    @cached_property
    def _ledgers(self) -> frozenset[str]:
        return frozenset(layout.name for layout in ledger_layouts(self.plan))

    def owned(self, layout: PoolLayout, partition: int, keys: Words, names: Dictionary) -> Words:
        """List which of the records that a partition keeps no partition before it does."""
        if layout.name not in self.grid_views and self._sends.get(layout.name, ((), None))[1] is not _COPIES:
            return np.arange(len(keys))
        first = np.full(len(keys), self.plan.partitions)
        for other, rows in self.parts(layout, keys, names):
            first[rows] = np.minimum(first[rows], other)
        return np.flatnonzero(first == partition)


def _send_of_part(part: str, keys: Sequence[Column], kind: Fixpoint, divided: DividedRows) -> tuple[Columns, Send]:
    """Find the columns of a pool of a fixpoint that is divided, and how its records are sent to their partitions."""
    of, *number = part.split()
    if of != LEAF:
        return kind.columns_of(int(of)), Send("", "", divided.columns[int(of)])
    slots, by = kind.leaves[int(number[0])].slots, divided.keys_of(int(number[0]))
    return slots, _COPIES if by is None else Send("", "", tuple(slots.index(keys[position]) for position in by))


@dataclass(frozen=True)
class Reshard:
    """A move of the state as of a number of committed batches from one plan's partitions to another's.

    Args:
        facts: The state of the driver with the last commit.
        sizes: Rows of the relations, by which adaptive joins begin.
        held: Where the old plan has the records of each pool, if it is of another program; None: under the same name.
    """

    old: Plan
    new: Plan
    batches: int
    facts: Mapping[str, Any]
    sizes: Mapping[str, int]
    held: Mapping[str, Held] | None = None

    def __call__(
        self, before: StateLocation, after: StateLocation, filled: Store | None = None
    ) -> dict[str, Any] | None:
        """Write the state at another location; returns the state of the driver there. Raises CannotMove.

        Args:
            filled: The pools that the old plan does not hold, in one partition.
        """
        if self.old.keeps_results != self.new.keeps_results:
            raise CannotMove("its result was not kept" if self.new.keeps_results else "its result is kept")
        old = RecordHomes(self.old, open_policy(self.old, self.facts.get("joins"), self.sizes))
        new = RecordHomes(self.new, open_policy(self.new, None, self.sizes, {}))
        state = SpreadState(self.new, new)
        for partition, store in self._stores(before, old):
            self._move(old, partition, store, state)
        if filled is not None and self.held is not None:
            state.add_filled(filled, self.held)
        state.write(after, self.batches)
        if self.old.matrices and self.new.matrices:
            layout = layout_of_matrices(self.old.matrices)
            cells = before.read(PARTITION, layout, add_cells, step=self.batches - 1)
            after.write(PARTITION, cells, step=self.batches - 1, stages=1)
        return {"joins": to_json(new.policy)} if new.policy else None

    def _stores(self, before: StateLocation, homes: RecordHomes) -> Iterator[tuple[int, Store]]:
        """Read the state of the driver, then that of each partition, with what joiners have handed off to it."""
        plan = self.old
        yield _DRIVER, before.read("result", result_layout(plan), Publisher(plan).run, step=self.batches - 1)
        for partition in range(plan.partitions):
            runs = PartitionStages(plan, partition).runs
            step = self.batches * plan.stages_of_partitions - 1
            store = before.read(f"partition-{partition}", store_layout(plan), *runs, step=step)
            if isinstance(now := homes.batch_plan, KeyMoves | OnRanges):
                sent = HandOffStore(before.durable).read(self.batches - 1, partition, senders_to(now, partition))
                deltas = [delta for message in sent for delta in unpack_deltas(message, store.dictionary)[1]]
                Joiner(plan, partition).begin(store, now, deltas)
            yield partition, store

    def _move(self, old: RecordHomes, partition: int, store: Store, state: "SpreadState") -> None:
        """Add the records of a partition to where the other plan keeps them."""
        before = {layout.name: layout for layout in all_layouts(self.old)}
        for name, layout in state.layouts.items():
            held = Held(name, ()) if self.held is None else self.held.get(name)
            if held is None or held.view not in before or name in state.homes.passing:
                continue
            pool, was = old.pool(held.view), before[held.view]
            if pool not in store:
                continue
            keys, words = store[pool].rows()
            for start in range(0, len(keys), CHUNK):
                part = keys[start : start + CHUNK], words[start : start + CHUNK]
                if partition != _DRIVER:
                    chosen = old.owned(was, partition, part[0], store.dictionary)
                    part = part[0][chosen], part[1][chosen]
                state.add(layout, part[0], lanes_of(held, was.payload, part[1]), store.dictionary)


class SpreadState:
    """The state of a plan in the making: that of the driver, and that of each partition.

    Args:
        homes: Where its records are.
    """

    def __init__(self, plan: Plan, homes: RecordHomes) -> None:
        self._plan, self.homes = plan, homes
        self._driver = Store(result_layout(plan))
        self._stores = [Store(store_layout(plan)) for _ in range(plan.partitions)]
        pools = (*self._stores[0].layout.pools, *self._driver.layout.pools)
        self.layouts = {layout.name: layout for layout in pools}

    def add(self, layout: PoolLayout, keys: Words, words: Words, names: Dictionary) -> None:
        """Add records of a pool to where they are kept."""
        if layout.name in self._driver:
            add_records(self._driver, layout, keys, words, names)
            return
        for target, rows in self.homes.parts(layout, keys, names):
            add_records(self._stores[target], layout, keys[rows], words[rows], names)

    def add_filled(self, filled: Store, held: Container[str] = ()) -> None:
        """Add the pools of a state in one partition, but those that are held elsewhere."""
        for name, layout in self.layouts.items():
            if name not in held and name in filled and name not in self.homes.passing:
                self.add(layout, *filled[name].rows(), filled.dictionary)

    def write(self, location: StateLocation, batches: int) -> None:
        """Write the state at a location, as of a number of batches."""
        for each in (self._driver, *self._stores):
            begin(each)
        location.write("result", self._driver, step=batches - 1, stages=1)
        stages = self._plan.stages_of_partitions
        for partition, store in enumerate(self._stores):
            location.write(f"partition-{partition}", store, step=batches * stages - 1, stages=stages)


def spread_state(plan: Plan, filled: Store) -> SpreadState:
    """Spread a state in one partition over those of a plan."""
    state = SpreadState(plan, RecordHomes(plan, open_policy(plan)))
    state.add_filled(filled)
    return state
