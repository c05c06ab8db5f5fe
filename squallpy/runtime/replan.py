"""Replanning: the state of a session's queries under another program, when views are added or dropped.

    before: Q1, M_R            after: Q1, Q2, M_R, M_S
    held:   Q1, M_R            their rows stay; which they are follows from their statements, not their names
    filled: Q2, M_S            computed by the statements of the new program from all that was read so far

What is filled is computed beside the running queries, in one partition, by a program with nothing but these views and
those that they are maintained from.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.rings import Payload
from squallpy.physical.plan import Plan
from squallpy.physical.planner import place
from squallpy.program.restrict import restrict, restrict_above, restrict_to_rows
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.view_identity import Held, ViewIdentities, held_auxiliary, held_views
from squallpy.runtime.auxiliary.maintainer import begin
from squallpy.runtime.ingest.upserts import latest_rows
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.result.result import result_layout
from squallpy.runtime.state.pool_names import ROLES_OF_GROUPS, PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store, StoreLayout
from squallpy.runtime.triggers.stage_executor import store_layout

_OF_AUXILIARY = (*ROLES_OF_GROUPS, Role.COEFFICIENTS, Role.BOUND, Role.END)


@dataclass(frozen=True)
class Replan:
    """A change from the plan of some queries to that of others.

    Args:
        known: The identities of the old plan's views, if some are known.
    """

    old: Plan
    new: Plan
    known: ViewIdentities | None = None

    @cached_property
    def identities(self) -> ViewIdentities:
        """The identities of the new plan's views."""
        return ViewIdentities(self.new.program)

    @cached_property
    def held(self) -> Mapping[str, Held]:
        """The pools of the new plan whose records a pool of the old one has, by name."""
        layouts = {layout.name: layout for layout in all_layouts(self.old)}
        mine, found = {layout.name: layout for layout in all_layouts(self.new)}, dict[str, Held]()
        pools = {p.name: p for p in (*self.old.pools, *self.old.results)}
        ours, before = self.identities, self.known or ViewIdentities(self.old.program)
        for name, held in held_views(ours, before).items():
            if held.view in pools and name in mine:
                rings = tuple(layouts[held.view].payload.rings[lane] for lane in held.lanes)
                if rings == mine[name].payload.rings:
                    found[name] = held
        for name, was in held_auxiliary(ours, before).items():
            found |= {PoolName(name, role): Held(PoolName(was, role), ()) for role in _OF_AUXILIARY}
            prefix = f"{Role.FIXPOINT.value} {name} "
            parts = (pool.removeprefix(prefix) for pool in mine if pool.startswith(prefix))
            fixpoint = Role.FIXPOINT
            found |= {PoolName(f"{name} {p}", fixpoint): Held(PoolName(f"{was} {p}", fixpoint), ()) for p in parts}
        for clock in self.new.clocks.values():
            if self.old.clocks.get(clock.name) == clock:
                names = (PoolName(clock.name, role) for role in (Role.CLOCK, Role.IDLE, Role.ACTIVITY))
                found |= {name: Held(name, ()) for name in names}
        found |= {name: Held(name, ()) for name in self._beside_sources() if name not in self._changed_sources}
        return {name: held for name, held in found.items() if name in mine and held.view in layouts}

    def _beside_sources(self) -> dict[PoolName, str]:
        """Name the pools that streams have besides views, each with its stream."""
        names = {PoolName(name, Role.LATEST): name for name in latest_rows(self.new)}
        return names | {PoolName(name, Role.LEDGER): name for name in self.new.ledgers}

    @cached_property
    def _changed_sources(self) -> frozenset[PoolName]:
        """The pools besides views that are of other columns than before, or were not there."""
        read = {feed.relation.name: feed.fields for feed in self.old.sources}
        now = {feed.relation.name: feed.fields for feed in self.new.sources}
        latest, new_latest = latest_rows(self.old), latest_rows(self.new)
        same = {name for name in now if name in self.old.ledgers and read.get(name) == now[name]}
        same_latest = {n for n in new_latest if n in latest and latest[n].columns == new_latest[n].columns}
        names = self._beside_sources()
        return frozenset(
            name
            for name, of in names.items()
            if of not in (same_latest if name.startswith(Role.LATEST.value) else same)
        )

    @cached_property
    def missing(self) -> frozenset[str]:
        """The views whose records have to be computed."""
        views = {view.name for view in self.new.program.views} - self.held.keys()
        names = self._beside_sources()
        changed = {names[name] for name in self._changed_sources}
        for trigger in self.new.program.triggers if changed else ():
            if {trigger.relation.name, trigger.relation.source.name} & changed:
                views |= {statement.target for statement in trigger.statements if not statement.partial}
        return frozenset(views)

    @property
    def keeps_ledgers(self) -> bool:
        """True if what computes missing views has to count rows that are deleted, as their columns are others."""
        return any(name.startswith(Role.LEDGER.value) for name in self._changed_sources)

    @cached_property
    def fill(self) -> TriggerProgram | None:
        """The program that computes what is missing from streams; None if nothing is."""
        return restrict(self.new.program, self.missing) if self.missing else None

    @cached_property
    def plan_above(self) -> Plan | None:
        """The plan that computes what is missing from views that are held; None if that takes more."""
        if not self.missing or self._changed_sources:
            return None
        given = self.new.program, self.missing, self.held.keys()
        program = restrict_above(*given) or restrict_to_rows(*given)
        plan = place(program, 1, {}) if program else None
        return plan if plan and self.has_payloads_of(plan) else None

    @cached_property
    def adopted(self) -> Mapping[str, str]:
        """The pools of the new plan that pools of the old one become as they are, by name."""
        layouts, found = {layout.name: layout for layout in all_layouts(self.old)}, dict[str, str]()
        for layout in all_layouts(self.new):
            held = self.held.get(layout.name)
            if held and held.view not in found.values() and _is_same(layouts[held.view], layout, held.lanes):
                found[layout.name] = held.view  # NB: two views may have equal rows
        return found

    @property
    def laid_out_anew(self) -> Mapping[str, Held]:
        """The pools of the new plan that are copied from pools of the old one, as they are laid out in another way."""
        listed = {layout.name for layout in all_layouts(self.new) if layout.listed}
        return {name: held for name, held in self.held.items() if name not in self.adopted and name not in listed}

    def has_payloads_of(self, plan: Plan) -> bool:
        """True if the pools of a plan of part of the new program have the payloads that they have in the new plan."""
        payloads = {pool.name: pool.payload for pool in (*self.new.pools, *self.new.results)}
        return all(payloads[pool.name] == pool.payload for pool in (*plan.pools, *plan.results))

    def carry(self, old: Store, filled: "Filled | None") -> Store:
        """Make the state of the new plan, of one partition, from that of the old one, which is used up."""
        new, layouts = Store(StoreLayout(all_layouts(self.new)), dictionary=old.dictionary), old.layout.pools
        for layout in new.layout.pools:
            name, held = layout.name, self.held.get(layout.name)
            if (was := self.adopted.get(name)) and was in old:
                new.adopt(name, old[was])
            elif held and held.view in old and not (filled and filled.copies and name in filled.copies):
                keys, words = old[held.view].rows()
                payload = next(each.payload for each in layouts if each.name == held.view)
                new[name].upsert(np.array(keys), lanes_of(held, payload, words))
            elif filled:
                filled.give(new, layout)
        begin(new)
        return new


@dataclass(frozen=True)
class Filled:
    """Pools of a new plan that are computed beside the old one.

    Args:
        store: Those that are missing.
        copies: Those that are held, in the layout that they get.
        same: Strings, from the first one on, that have the number that they have in the old plan's state.
    """

    store: Store | None
    copies: Store | None = None
    same: int = 0

    def give(self, new: Store, layout: PoolLayout) -> None:
        """Let a store have a pool, as it is if that can be."""
        name = layout.name
        for mine in (self.copies, self.store):
            if mine and name in mine:
                if _is_same(mine.layout_of(name), layout) and self._has_same_numbers(layout, mine[name]):
                    new.adopt(name, mine[name])
                else:
                    add_records(new, layout, *mine[name].rows(), mine.dictionary)
                return

    def _has_same_numbers(self, layout: PoolLayout, pool: Container) -> bool:
        """True if all strings of a pool have the numbers that they have in the old plan's state."""
        for numbered in layout.numbered:
            column, cells = numbered(*pool.rows())
            if len(cells) and column[cells].max() - numbered.first >= self.same:
                return False
        return True


def with_whole_rows(plan: Plan) -> Plan:
    """Read all columns of the streams of which rows are counted or kept by key, so that no other view changes these.

    The ledger of a change stream and the last rows of upserts are of the columns that are read.
    """
    feeds = []
    for feed in plan.feeds:
        source = feed.relation.source
        if feed.auxiliary is None and (feed.relation.name in plan.ledgers or source.is_keyed):
            whole = [f.name for f in feed.relation.fields if not f.metadata]
            feed = replace(feed, fields=(*whole, *(name for name in feed.fields if name not in whole)))
        feeds.append(feed)
    return replace(plan, feeds=tuple(feeds))


def all_layouts(plan: Plan) -> tuple[PoolLayout, ...]:
    """Return the layouts of all pools of a plan, those of its results and of its partitions."""
    return (*result_layout(plan).pools, *store_layout(plan).pools)


def _is_same(old: PoolLayout, new: PoolLayout, lanes: tuple[int, ...] = ()) -> bool:
    """True if a pool can serve as another as it is, with all of its lanes or these."""
    whole = not lanes or lanes == tuple(range(len(old.payload.rings)))
    shapes = ((x.key_width, x.payload, x.slices, x.group, x.orders, x.ordered, x.listed) for x in (old, new))
    return whole and len(set(shapes)) == 1


def lanes_of(held: Held, payload: Payload, words: Words) -> Words:
    """Take the words of some lanes out of records."""
    if not held.lanes:
        return np.array(words)
    starts = ((payload.offsets[lane], payload.rings[lane].words) for lane in held.lanes)
    return np.ascontiguousarray(words[:, [word for first, count in starts for word in range(first, first + count)]])


def add_records(store: Store, layout: PoolLayout, keys: Words, words: Words, names: Dictionary) -> None:
    """Add records of a store with other numbers of strings."""
    store[layout.name].upsert(*renumbered(store, layout, keys, words, names))


def renumbered(store: Store, layout: PoolLayout, keys: Words, words: Words, names: Dictionary) -> tuple[Words, Words]:
    """Copy records, with strings under the numbers that they have in a store."""
    keys, words = np.array(keys), np.array(words)
    for numbered in layout.numbered if names is not store.dictionary else ():
        column, cells = numbered(keys, words)
        if len(cells):
            column[cells] = store.dictionary.intern(names.strings(column[cells] - numbered.first)) + numbered.first
    return keys, words
