"""Triggers at work: the stages of a plan over the pools of one partition."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor
from squallpy.base.timing import SILENT, Trace
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.codegen.statement_code import touched_name
from squallpy.physical.distribute.location_tags import EVERYWHERE
from squallpy.physical.joins.joiner_groups import GroupHomes
from squallpy.physical.plan import Derive, Lookup, Plan, Stage, Update
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.program.auxiliary.kind import AuxiliaryKind
from squallpy.runtime.auxiliary.fixpoint_leaves import Own
from squallpy.runtime.auxiliary.groups import RowsOf
from squallpy.runtime.auxiliary.maintainer import TouchTracker, begin
from squallpy.runtime.auxiliary.maintainer_registry import auxiliary_layouts, open_maintainer
from squallpy.runtime.auxiliary.model_rows import ModelMaintainer
from squallpy.runtime.auxiliary.window_rows import WindowMaintainer
from squallpy.runtime.compiled.functions import CompiledPlan, CompiledRun
from squallpy.runtime.ingest.upserts import latest_rows
from squallpy.runtime.joiners.batch_plan import BatchPlan, Copying
from squallpy.runtime.joiners.joiner import ChangeTracker
from squallpy.runtime.joiners.routing import partitions_of, tickets_of
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool, as_pool
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta, numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store, StoreLayout
from squallpy.runtime.time.unmatched_deletes import COUNTS, book_entries, entries, ledger_layouts
from squallpy.runtime.time.watermark import clock_layouts, read_watermarks, tick
from squallpy.runtime.triggers.duplicate_keys import KeyCheck
from squallpy.runtime.triggers.statement_execution import Keeper, Noted, RunnableStatement, statements_of_checked

Deltas = dict[str, Delta]  # by name


def driver_layouts(plan: Plan) -> tuple[PoolLayout, ...]:
    """Lay out the pools that the driver keeps besides the result."""
    return (*_view_layouts(plan, plan.driver_pools), *auxiliary_layouts(plan, on_driver=True))


def _view_layouts(plan: Plan, names: Collection[str]) -> tuple[PoolLayout, ...]:
    # Products with blocks read their other factors, too, where they stand.
    has_blocks = any(isinstance(ring, Cofactor) for p in (*plan.pools, *plan.results) for ring in p.payload.rings)
    return tuple(
        PoolLayout(
            p.name,
            len(p.keys),
            p.payload,
            p.slices,
            p.orders,
            numbered(p.keys),
            p.is_ordered,
            group=p.group,
            adaptive=True,
            narrow=True,
            small=not has_blocks,
        )
        for p in plan.pools
        if p.name in names
    )


def result_layouts(plan: Plan, partitioned: bool) -> tuple[PoolLayout, ...]:
    """Lay out the results that partitions keep, or those that the driver does."""
    return tuple(
        PoolLayout(r.name, len(r.keys), r.payload, numbered=numbered(r.keys))
        for r in plan.results
        if (r.name in plan.partitioned) is partitioned
    )


def store_layout(plan: Plan) -> StoreLayout:
    """Lay out the pools that a partition of the plan keeps."""
    views = _view_layouts(plan, {pool.name for pool in plan.pools} - plan.driver_pools)
    twice = {
        line.view: PoolName(line.view, Role.OTHER_GRID) for line in plan.on_grid if not line.key and not line.cells
    }
    second = [replace(view, name=twice[view.name]) for view in views if view.name in twice]
    plain = [
        replace(view, slices=(), group=(), orders=(), ordered=False, listed=True)
        for view in views
        if view.name in twice
    ]
    changed = [replace(view, name=PoolName(view.name, Role.CHANGES)) for view in plain]
    reached = [replace(view, name=PoolName(view.name, Role.REACHED), payload=COUNTS) for view in plain]
    latest = [rows.layout for rows in latest_rows(plan).values()]
    beside = [*latest, *ledger_layouts(plan), *clock_layouts(plan), *auxiliary_layouts(plan)]
    return StoreLayout((*views, *second, *changed, *reached, *beside, *result_layouts(plan, partitioned=True)))


@dataclass(slots=True)
class Notes:
    """Incidents of a batch, counted."""

    unmatched: int = 0
    duplicates: int = 0
    late: int = 0
    compared: int = 0
    pairs: int = 0
    open_rows: int = 0
    late_rows: dict[str, list[str]] = field(default_factory=dict)
    singular: dict[str, int] = field(default_factory=dict)

    def take(self, window: WindowMaintainer, booked: bool) -> None:
        """Add the incidents in a window; unmatched deletes of a stream with a ledger (`booked`) are counted there."""
        self.unmatched += 0 if booked else window.unmatched
        self.late += window.late
        if window.late_rows:
            self.late_rows.setdefault(window.stream, []).extend(window.late_rows)

    def count_lookups(self, statement: RunnableStatement) -> None:
        """Add the lookups of a statement that was interpreted."""
        compared, pairs = statement.take_counts()
        self.compared += compared
        self.pairs += pairs

    def take_singular(self, model: ModelMaintainer) -> None:
        """Add the groups whose regression is not determined, by its label."""
        if model.singular:
            self.singular[model.label] = self.singular.get(model.label, 0) + model.singular


class StageExecutor:
    """A stage of the trigger program in one partition. Deterministic: all its memory is in the store."""

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        partition: int = 0,
        *,
        is_last: bool = True,
        trace: Trace = SILENT,
        compiled: CompiledPlan | None = None,
    ) -> None:
        self._plan, self._partition, self._is_last, self._trace = plan, partition, is_last, trace
        self._sends, self._keeps = stage.sends, stage.keeps
        updates = [step for step in stage.steps if isinstance(step, Update)]
        payloads = {p.name: p.payload for p in (*plan.pools, *plan.deltas, *plan.results)}
        indexed = {step.source for u in updates for step in u.steps if isinstance(step, Lookup)}
        targets = {u.target for u in updates}
        self._scratch = {  # deltas that are looked up, and those that are added up here
            d.name: Pool(len(d.keys), d.payload, d.slices, orders=d.orders, group=d.group)
            for d in plan.deltas
            if d.name in indexed | targets
        }
        self._results = [result.name for result in plan.results]
        self._scratch |= {result.name: Pool(len(result.keys), result.payload) for result in plan.results}
        derived = {step.relation: step for step in stage.steps if isinstance(step, Derive)}
        own = {f.relation.name: (f, f.auxiliary) for f in plan.feeds if f.auxiliary and f.relation.name in derived}
        self._maintainers = {
            name: open_maintainer(feed, aux, self._own_rows(aux.kind, derived[name].divided))
            for name, (feed, aux) in own.items()
        }
        self._sources = {name: aux.source.name for name, (_, aux) in own.items()}
        looked = {step.row.relation for u in updates for step in u.steps if isinstance(step, Lookup) and step.row}
        named = looked | derived.keys()
        seen = {f.relation.name: f.auxiliary for f in plan.feeds if f.auxiliary and f.relation.name in named}
        self._copied = {name for name, place in plan.places if place == EVERYWHERE.value}
        self._everywhere = {name for name, source in self._sources.items() if source in self._copied}
        self._touched = {n.source.name: TouchTracker(n.source) for n in seen.values() if n.kind.has_groups}
        rows = {name: RowsOf(seen[name], self._touched[seen[name].source.name]) for name in looked}
        runs = compiled.runs(plan.stages.index(stage)) if compiled else {}
        self._steps: list[RunnableStatement | Derive | CompiledRun] = []
        for number, s in enumerate(stage.steps):
            if number in runs:
                self._steps.append(runs[number])
            elif not any(run.code.first < number < run.code.stop for run in runs.values()):
                self._steps.append(RunnableStatement(s, payloads, rows) if isinstance(s, Update) else s)
        self._checked = statements_of_checked(runs.values(), stage.steps, payloads, rows)
        self._statements = [step for step in self._steps if isinstance(step, RunnableStatement)]
        self._statements += [step for statements in self._checked.values() for step in statements]
        self._clocks, self._ledgers = tuple(plan.clocks.values()), plan.ledgers
        self._ledger_names = [PoolName(feed.relation.name, Role.LEDGER) for feed in plan.sources]
        noted, columns = self._touched, {pool.name: pool.keys for pool in plan.pools}
        unique = [view for view in plan.unique if view.view in targets & columns.keys()]
        self._unique = {u.view: KeyCheck(u, columns[u.view], noted.get(u.view)) for u in unique}
        self._notes = Notes()
        # NB: told by one stage, for figures are added up
        self._timed = [clock for clock in self._clocks if is_last and clock.field != ARRIVAL]
        self._watermarks: dict[str, dict[str, int]] = {}

    @property
    def notes(self) -> dict[str, Any]:
        """Counts of the last batch's incidents and work.

        `unmatched`: deletes that found nothing to delete; `duplicates`: rows that broke a PRIMARY KEY; `late`: rows
        that came when a window had passed them, with `late_rows`, their texts by stream, where those are reported;
        `compared` and `pairs`: the comparisons of its lookups, and the rows that they made; `singular`: by the label of
        a regression, the groups that were touched whose features are constant or collinear, if there are any;
        `watermarks`: event times that streams have reached, by stream and partition; `open_rows`: rows of windows that
        processing time moves.
        """
        counts: dict[str, Any] = {name: getattr(self._notes, name) for name in ("unmatched", "duplicates", "late")}
        counts |= {"compared": self._notes.compared, "pairs": self._notes.pairs}
        counts |= {"watermarks": self._watermarks} if self._watermarks else {}
        counts |= {"open_rows": self._notes.open_rows} if self._notes.open_rows else {}
        by_name = {"late_rows": self._notes.late_rows, "singular": self._notes.singular}
        return counts | {name: found for name, found in by_name.items() if found}

    @property
    def work(self) -> int:
        """Rows that its statements have made so far (`Statement.work`)."""
        return sum(step.work for step in self._statements)

    def apply(
        self, store: Store, deltas: Iterable[Delta], batch: BatchPlan | None = None, waiting: int = 0
    ) -> tuple[list[Delta], Deltas]:
        """Apply a batch; return the changes of results, and by name the deltas that the stage sends or keeps.

        Args:
            waiting: The number of last steps that `derive` makes later, of groups that stay noted.
        """
        given = self._add_up(deltas)
        self._book(store, given)
        tick(store, self._clocks, given)
        self._watermarks = read_watermarks(store, self._timed, str(self._partition))
        pools: dict[str, Container] = dict(store) | self._scratch
        pools |= {touched_name(view): tracker.pool for view, tracker in self._touched.items()}
        on_grid = {line.view for line in self._plan.on_grid} if batch else set()
        changes: dict[str, Noted] = {**self._touched, **self._unique}
        if batch:
            pools |= {view: store[batch.pool(view)] for view in on_grid}
        if isinstance(batch, Copying):
            changes |= {view: ChangeTracker(store[PoolName(view, Role.CHANGES)]) for view in on_grid}
        for step in self._steps[: len(self._steps) - waiting]:
            if isinstance(step, Derive):
                with self._trace(f"Δ{step.relation.upper()}"):
                    self._derive(step, store, given)
            elif isinstance(step, CompiledRun):
                with self._trace("compiled"):
                    self._run_compiled(step, given, pools, store.dictionary, changes)
            elif (delta := _rows(step.delta, given, pools)) is not None:
                keep = None if step.update.keep is None else self._own_filter(step.update, store.dictionary)
                if batch and step.target in on_grid and len(batch.grids) > 1:
                    keep = self._home_filter(step.update, batch, store.dictionary)
                with self._trace(f"{step.delta} → {step.target}" if self._trace.on else ""):
                    step.run(delta, pools, store.dictionary, changes.get(step.target), keep)
                self._notes.count_lookups(step)
        for view, check in self._unique.items():
            more = check.duplicates(as_pool(pools[view]), store.dictionary)
            if not (self._partition and view in self._copied):
                self._notes.duplicates += more
        if not waiting:
            self.forget_groups()
        if self._is_last:
            begin(store)
        changed = [Delta(name, *self._scratch[name].rows()) for name in self._results]
        names = [(send.name, send.source) for send in self._sends] + [(name, name) for name in self._keeps]
        found = ((name, _rows(source, given, pools)) for name, source in names)
        return changed, {name: Delta(name, d.keys, d.words) for name, d in found if d is not None}

    def derive(self, store: Store, waiting: int) -> list[Delta]:
        """Make the last steps, of the groups that are noted; return the changes of results."""
        given = self._add_up(())
        pools: dict[str, Container] = dict(store) | self._scratch
        for step in self._steps[len(self._steps) - waiting :]:
            if isinstance(step, Derive):
                self._derive(step, store, given)
            elif isinstance(step, RunnableStatement) and (delta := _rows(step.delta, given, pools)) is not None:
                step.run(delta, pools, store.dictionary)
        return [Delta(name, *self._scratch[name].rows()) for name in self._results]

    @property
    def touched(self) -> Mapping[str, TouchTracker]:
        """The groups of views that the batch touched."""
        return self._touched

    def forget_groups(self) -> None:
        """Let no groups be touched."""
        for touched in self._touched.values():
            touched.clear()

    def _run_compiled(
        self,
        run: CompiledRun,
        given: Deltas,
        pools: Mapping[str, Container],
        names: Dictionary,
        changes: Mapping[str, Noted],
    ) -> None:
        """Run statements that are one function, or interpret them where it has no answer."""
        deltas = [_rows(name, given, pools) for name in run.code.deltas]
        if not any(deltas):
            return
        rows = [(np.ascontiguousarray(d.keys), np.ascontiguousarray(d.words)) if d else None for d in deltas]
        if (found := run(rows, pools, names)) is None:
            for step in self._checked[run]:
                if (found_rows := _rows(step.delta, given, pools)) is not None:
                    step.run(found_rows, pools, names, changes.get(step.target))
                    self._notes.count_lookups(step)
            return
        for (view, delta), repeats in zip(run.code.unique, found, strict=True):
            if repeats and (added := deltas[run.code.deltas.index(delta)]):
                self._unique[view].suspect(added.keys, added.words)

    def _add_up(self, deltas: Iterable[Delta]) -> Deltas:
        """Add up the deltas that have arrived, by name; those that are looked up, in their pools."""
        parts: dict[str, list[Delta]] = {}
        for delta in deltas:
            parts.setdefault(delta.name, []).append(delta)
        for pool in self._scratch.values():
            pool.clear()
        given = {name: _merge(some) for name, some in parts.items()}
        for name in self._ledger_names:
            if len(parts.get(name, ())) > 1:  # NB: a row may have several readers, each of whose deltas has it once
                given[name] = Delta(name, *entries(given[name].keys, given[name].words))
        self._fill(given)
        return given

    def _fill(self, deltas: Mapping[str, Delta]) -> None:
        for name, delta in deltas.items():
            if name in self._scratch:
                self._scratch[name].upsert(np.ascontiguousarray(delta.keys), np.ascontiguousarray(delta.words))

    def _book(self, store: Store, deltas: Mapping[str, Delta]) -> None:
        self._notes = Notes()
        for name in self._ledger_names:
            if changes := deltas.get(name):
                self._notes.unmatched += book_entries(store.pool(changes.name), changes.keys, changes.words)

    def _derive(self, step: Derive, store: Store, deltas: Deltas) -> None:
        if step.is_alone and self._partition != 0:
            return
        touched = self._touched.get(self._sources[step.relation])
        maintainer = self._maintainers[step.relation]
        changes = maintainer.deltas(store, touched.groups() if touched else None)
        if not (self._partition and step.relation in self._everywhere):
            if isinstance(maintainer, WindowMaintainer):
                self._notes.open_rows += maintainer.open_rows
                self._notes.take(maintainer, booked=maintainer.stream in self._ledgers)
            elif isinstance(maintainer, ModelMaintainer):
                self._notes.take_singular(maintainer)
        self._fill(changes)
        deltas |= changes

    def _home_filter(self, step: Update, batch: BatchPlan, names: Dictionary) -> Keeper:
        """Make the filter of rows that all groups of joiners see: those stored in this joiner's group."""
        homes, group = GroupHomes(tuple(grid.joiners for grid in batch.grids)), batch.group(self._partition)
        by, columns = range(len(step.keys)), step.keys

        def mine(keys: Words) -> Words:
            return np.flatnonzero(homes.of(tickets_of(keys, columns, by, names)) == group)

        return mine

    def _own_filter(self, step: Update, names: Dictionary) -> Keeper:
        """Make the filter of rows that every partition has: those that belong to this one."""
        assert step.keep is not None
        by, columns, partitions = step.keep, step.keys, step.partitions or self._plan.partitions

        def mine(keys: Words) -> Words:
            targets = partitions_of(keys, columns, by, partitions, names)
            return np.flatnonzero(targets == self._partition)

        return mine

    def _own_rows(self, kind: AuxiliaryKind, divided: DividedRows | None) -> Own | None:
        """Make the filter of rows of a fixpoint that this partition derives, if partitions divide them."""
        if divided is None:
            return None
        assert isinstance(kind, Fixpoint)
        columns, by = [kind.columns_of(at) for at in range(len(kind.tables))], divided.columns

        def mine(table: int, rows: Words, names: Dictionary) -> Words:
            targets = partitions_of(rows, columns[table], by[table], self._plan.partitions, names)
            return np.flatnonzero(targets == self._partition)

        return mine


def _rows(name: str, deltas: Mapping[str, Delta], pools: Mapping[str, Container]) -> Delta | None:
    """Return the rows of a delta of this batch, or of a view, if there are any."""
    if name in deltas or name not in pools:
        return deltas.get(name)
    keys, words = pools[name].rows()
    return Delta(name, keys, words) if len(keys) else None


def _merge(parts: list[Delta]) -> Delta:
    if len(parts) == 1:
        return parts[0]
    return Delta(parts[0].name, np.concatenate([p.keys for p in parts]), np.concatenate([p.words for p in parts]))
