"""The local executor: the plan in this process, in one partition, with or without a checkpoint."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
import pyarrow as pa

from squallpy.base.timing import SILENT, Trace
from squallpy.codegen.program import PlanCode
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.deferred_rows import DeferredRows, count_deferred_steps
from squallpy.runtime.batch.direct_batch import DirectBatch
from squallpy.runtime.batch.micro_batch import (
    Computed,
    PartitionStages,
    Publisher,
    Sender,
    unpack_changes,
    unpack_parcels,
)
from squallpy.runtime.checkpoint.partition_report import checkpoint_figures
from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
from squallpy.runtime.compiled.background import BackgroundCompiler
from squallpy.runtime.compiled.functions import CompiledPlan
from squallpy.runtime.formats.file_rows import READ
from squallpy.runtime.ingest.upserts import UpsertFeeds
from squallpy.runtime.kernels.batch_driver import ADDED, SKIPPED
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.matrix.matrix_stage import MatrixStage, compute, open_matrices
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.replan import all_layouts
from squallpy.runtime.result.noted_rows import NotedRows
from squallpy.runtime.result.result import NO_TESTS, Changes, Equal, Results, Wanted, result_layout
from squallpy.runtime.result.result_scan import RowScan
from squallpy.runtime.shadow import Applied, Shadow
from squallpy.runtime.sources.input import BatchSpans, Input, arriving
from squallpy.runtime.sources.replay import RowBatches
from squallpy.runtime.state.state_store import Store, StoreLayout
from squallpy.runtime.triggers.program_functions import are_programs_loaded, open_programs
from squallpy.runtime.triggers.stage_executor import StageExecutor, store_layout

Printed = tuple[Changes | None, ...]  # by each query
OnBatch = Callable[[int, Printed, BatchReport], bool]  # batch, printed changes, report → True to continue
_NO_WORDS: Words = np.empty(0, np.int64)
LOADING = 0.1
"""Seconds that it takes to load the kernels of interpreted batches of one call: not before batches took as long."""


class _Stages:
    """A batch from its source rows to the changes of results, its stages one by one.

    Args:
        ways: How results take their changes (`batch_driver`), if that may wait until somebody reads them in `store`.
    """

    def __init__(
        self, plan: Plan, trace: Trace, compiled: CompiledPlan | None, store: Store, ways: Sequence[int] = ()
    ) -> None:
        self._upserts, self._trace = UpsertFeeds(plan), trace
        self._sender = Sender(plan, trace, compiled)
        self.stage = StageExecutor(plan, plan.stages[0], trace=trace, compiled=compiled)
        self._waiting = count_deferred_steps(plan, ways) if ways and not (compiled or trace.on) else 0
        self._noted: list[Delta | NotedRows] = [
            NotedRows(result.name, 0, _NO_WORDS, self.settle) for result in plan.results
        ]
        self._later = DeferredRows(
            store, self.stage.touched, {*ways} != {ADDED}, lambda: self.stage.derive(store, self._waiting), self._put
        )

    def _put(self, number: int, count: int, words: Words) -> None:
        noted = self._noted[number]
        assert isinstance(noted, NotedRows)
        noted.count, noted.words = count, words

    @property
    def may_wait(self) -> bool:
        """True if changes of results wait until somebody reads them."""
        return self._waiting > 0

    def settle(self) -> None:
        """Apply changes of results that wait."""
        self._later.settle()

    def __call__(
        self, store: Store, input: Input, step: BatchSpans, computed: Computed | None, first: bool = True
    ) -> Applied:
        """Apply a batch; return the changes of results, and statistics.

        Args:
            first: Changes do not wait.
        """
        if self._waiting and not self._later.begin_batch():
            self.stage.forget_groups()
        with self._trace("feed"):
            part = self._sender.read(input.whole(step), store.dictionary, computed)
        read = perf_counter()
        with self._trace("statements"):
            part.deltas += self._upserts.deltas(store, part.upserts)
            waiting = 0 if first else self._waiting
            deltas = [*part.deltas, *(delta for _, delta in part.ledgers)]
            changed, _ = self.stage.apply(store, deltas, waiting=waiting)
        self._later.waits = waiting > 0
        stats = part.stats | {"trigger_seconds": perf_counter() - read} | self.stage.notes
        return self._noted if waiting else [*changed], stats


class _BatchLoop(ABC):
    """The loop over the batches of a local executor."""

    input: Input
    next: int
    _compiler: BackgroundCompiler | None

    def run(
        self, on_batch: OnBatch, begin: Callable[[], None] = lambda: None, stop: threading.Event | None = None
    ) -> None:
        """Apply all batches that are not done, or until `on_batch` says stop or `stop` is set; `begin` first."""
        begin()
        try:
            for step in arriving(self.input, self.next, stop or threading.Event()):
                if step:
                    changes, report = self.step(step)
                    go_on = on_batch(step.number, changes, report)
                    self.commit()
                    self.input.commit(step, report.open_rows)
                    if not go_on:
                        return
        finally:
            self._stop_compiler()

    @abstractmethod
    def step(self, step: BatchSpans | None = None) -> tuple[Printed, BatchReport]:
        """Apply the next batch, which may be given."""

    @abstractmethod
    def commit(self) -> None:
        """Note that the batch has reached its sink."""

    def _stop_compiler(self) -> None:
        if self._compiler:
            self._compiler.stop()


class LocalExecutor(_BatchLoop):
    """The executor of a plan of one partition over its input, batch by batch.

    Args:
        measured: The statistics of each batch include the size of its state, which costs as much as a very small batch.
        store: The state to go on from, as of batch `number`, with `matrices`; None: nothing has been read.
    """

    def __init__(
        self,
        plan: Plan,
        input: Input,
        with_changes: Wanted = True,
        measured: bool = False,
        trace: Trace = SILENT,
        store: Store | None = None,
        number: int = 0,
        compiled: CompiledPlan | PlanCode | None = None,
        matrices: MatrixStage | None = None,
    ) -> None:
        assert plan.partitions == 1 and len(plan.stages) == 1
        self._plan, self.input = plan, input
        self._measured, self._trace = measured, trace
        self._results = Results(plan, with_changes)
        self.matrices = matrices or open_matrices(plan, input)
        self._store = store or Store(StoreLayout(all_layouts(plan)))
        self._compiler = BackgroundCompiler(compiled) if isinstance(compiled, PlanCode) else None
        self._spent = 0.0  # seconds, by batches that are interpreted by statement
        self._shadow = Shadow() if isinstance(compiled, CompiledPlan) and compiled.is_checked else None
        self._use(compiled if isinstance(compiled, CompiledPlan) else None)
        self.schemas = self._results.schemas
        self.next = number

    def _use(self, compiled: CompiledPlan | None) -> None:
        """Apply batches by compiled functions from here on, as far as there are any: all state is in the store, where
        no change waits."""
        ways = self._results.ways if self._shadow is None else (SKIPPED,) * len(self._plan.results)
        is_due = self._spent >= LOADING or are_programs_loaded()
        programs = open_programs(self._plan) if is_due and not (compiled or self._trace.on) else None
        self._direct = DirectBatch.of(self._plan, compiled or programs, self._store, ways)
        self._stages = _Stages(self._plan, self._trace, compiled, self._store, () if self._direct else ways)
        is_waiting = self._compiler and compiled is None
        at_once = self._direct and not (self._shadow or self._measured or self._trace.on or is_waiting)
        self._rows = self._direct.resident_rows(self.input) if self._direct and at_once else None

    def step(self, step: BatchSpans | None = None) -> tuple[Printed, BatchReport]:
        """Apply the next batch, which may be given."""
        self._store.renew()
        if step is None and self._rows and self.next and (done := self._step_at_once(self._rows)):
            return done
        begin = perf_counter()
        done = self._step(step)
        seconds = perf_counter() - begin
        if compiled := self._compiler.note(seconds) if self._compiler else None:
            self._settle()
            self._use(compiled)
        elif self._direct is None and self.next > 1:  # NB: the first batch loads kernels itself
            before, self._spent = self._spent, self._spent + seconds
            if before < LOADING <= self._spent:
                self._settle()
                self._use(None)
        return done

    def _step_at_once(self, rows: RowBatches) -> tuple[Printed, BatchReport] | None:
        """Apply the next batch by compiled code alone, all of whose rows are in memory, if it has an answer."""
        assert self._direct
        self._results.prepare(self._store)
        done = self._direct.over_rows(*rows.bounds(self.next))
        if done is None:
            return None
        self.next += 1
        return self._results.apply(self._store, done[0], False), done[1]

    def _step(self, step: BatchSpans | None) -> tuple[Printed, BatchReport]:
        step = step or self.input.step(self.next)
        with self._trace("feed"):
            computed = compute(self._plan, self.matrices, step, self._trace)
        if self._shadow:
            changed, stats = self._apply_checked(self._shadow, step, computed)
        else:
            changed, stats = self._apply(step, computed)
        with self._trace("result"):
            changes = self._results.apply(self._store, changed, self.next == 0)
        stats["duplicates"] += self._results.duplicates
        if self._measured:
            stats["views"] = self.store.usage()
        stats["profile"] = self._trace.take_seconds()
        self.next += 1
        return changes, BatchReport.of(stats)

    def _apply(self, step: BatchSpans, computed: Computed | None) -> Applied:
        """Apply a batch by compiled code alone, if it has an answer."""
        if self._direct is None:
            if self.next and self._stages.may_wait:
                self._results.prepare(self._store)
            return self._stages(self._store, self.input, step, computed, self.next == 0)
        begin = perf_counter()
        with self._trace("compiled"):
            if self.next:
                self._results.prepare(self._store)
            done = self._direct(self.input.whole(step), self.next == 0)
        if done is None:
            return self._stages(self.store, self.input, step, computed)
        done[1]["trigger_seconds"] = perf_counter() - begin
        return done

    def _apply_checked(self, shadow: Shadow, step: BatchSpans, computed: Computed | None) -> Applied:
        """Apply a batch, and interpret it, too, if that is due; where they differ, go on as interpreted."""
        interpreter = _Stages(self._plan, self._trace, None, self._store)
        done, state = shadow.apply(
            self._store, lambda: self._apply(step, computed), lambda copy: interpreter(copy, self.input, step, computed)
        )
        if state is not self._store:
            self._store, self._shadow = state, None
            self._results.end_scans()
            self._use(None)
        return done

    @property
    def store(self) -> Store:
        """The state as of the last batch."""
        self._settle()
        return self._store

    def _settle(self) -> None:
        """Let results be as of the last batch, whose changes may wait until somebody reads them."""
        if self._direct:
            self._direct.settle()
        self._stages.settle()

    def final(self) -> tuple[pa.Table, ...]:
        """Return the printed result of each query as of the last batch."""
        return self._results.final(self.store)

    def commit(self) -> None:
        """Do nothing: nothing is resumed."""

    def end_scans(self) -> None:
        """End scans, whose rows cannot be had any more."""
        self._results.end_scans()

    def close(self) -> None:
        """Let somebody else have the state."""
        self._stop_compiler()
        self._settle()
        self.end_scans()

    def result(self, query: int, equal: Equal = NO_TESTS) -> pa.Table:
        """Return the printed result of one query as of the last batch (`Results.table`)."""
        return self._results.table(self.store, query, equal)

    def scan(self, query: int, equal: Equal = NO_TESTS) -> RowScan:
        """Begin to list the rows of one query as of the last batch (`Results.scan`)."""
        return self._results.scan(self.store, query, equal)

    @property
    def work(self) -> int:
        """Rows that interpreted statements have made since code was compiled (`Statement.work`)."""
        return self._stages.stage.work + (self._direct.work if self._direct else 0)

    def holder(self, pool: str) -> Store:
        """Return the store that has a pool."""
        assert pool in self._store
        return self.store

    @property
    def usage(self) -> dict[str, dict[str, int]]:
        """Records and bytes by pool (`Store.usage`)."""
        return self.store.usage()


class DurableLocalExecutor(_BatchLoop):
    """The local executor with its state in a checkpoint, from which it resumes."""

    def __init__(
        self,
        plan: Plan,
        input: Input,
        location: StateLocation,
        with_changes: Wanted = True,
        trace: Trace = SILENT,
        compiled: CompiledPlan | PlanCode | None = None,
    ) -> None:
        assert plan.partitions == 1
        self._compiler = BackgroundCompiler(compiled) if isinstance(compiled, PlanCode) else None
        compiled = compiled if isinstance(compiled, CompiledPlan) else None
        self._plan, self.input, self._trace = plan, input, trace
        self._sender, self._publisher = Sender(plan, trace, compiled), Publisher(plan, with_changes, trace)
        self._matrices = open_matrices(plan, input, location)
        self.schemas = self._publisher.results.schemas
        self._stages = PartitionStages(plan, trace=trace, compiled=compiled)
        self._node = location.partition("partition-0", store_layout(plan), *self._stages.runs, trace=trace)
        self._result = location.partition("result", result_layout(plan), self._publisher.run, trace=trace)
        self._committed = Committed(location.durable)
        self.next = self._committed.batches

    def step(self, step: BatchSpans | None = None) -> tuple[Printed, BatchReport]:
        """Apply the next batch, which may be given, exactly once: one that was applied returns the output of then."""
        started, step = perf_counter(), step or self.input.step(self.next)
        with self._trace("feed"):
            computed = compute(self._plan, self._matrices, step, self._trace)
            sent = self._sender.messages(0, self.input.whole(step), computed=computed)
            messages = [message for _, message in sent]
        with self._trace("apply"):
            for stage in range(self._plan.stages_of_partitions - 1):
                messages = [message for _, message in unpack_parcels(self._node.apply(self.next, messages, stage))]
            output = self._node.apply(self.next, messages, self._plan.stages_of_partitions - 1)
        with self._trace("publish"):
            printed = self._result.apply(self.next, [b"first" if self.next == 0 else b"", output])
            changes, stats = unpack_changes(printed)
        self._committed.read_sums.add(stats.pop(READ, {}))
        stats |= checkpoint_figures([self._node.report(0), self._result.report("result")])
        seconds = perf_counter() - started
        stats |= {"trigger_seconds": seconds, "profile": self._trace.take_seconds()}
        if self._compiler and (compiled := self._compiler.note(seconds)):
            self._sender.use(compiled)
            self._stages.use(compiled)
        return changes, BatchReport.of(stats)

    def commit(self) -> None:
        """Note that the batch has reached its sink."""
        self.next += 1
        self._committed.commit(self.next)

    def final(self) -> tuple[pa.Table, ...]:
        return self._publisher.results.final(self._result.store())

    def end_scans(self) -> None:
        """End scans, whose rows cannot be had any more."""
        self._publisher.results.end_scans()

    def close(self) -> None:
        """Let somebody else have the state."""
        self._stop_compiler()
        self.end_scans()

    def result(self, query: int, equal: Equal = NO_TESTS) -> pa.Table:
        """Return the printed result of one query as of the last batch (`Results.table`)."""
        return self._publisher.results.table(self._result.store(), query, equal)

    def scan(self, query: int, equal: Equal = NO_TESTS) -> RowScan:
        """Begin to list the rows of one query as of the last batch (`Results.scan`)."""
        return self._publisher.results.scan(self._result.store(), query, equal)

    @property
    def usage(self) -> dict[str, dict[str, int]]:
        """Records and bytes by pool (`Store.usage`)."""
        return self._node.store().usage() | self._result.store().usage()

    def keep_log(self, keeps: bool) -> None:
        """Take no snapshots while somebody reads the log."""
        self._node.keeps_log = self._result.keeps_log = keeps

    def open_state(self) -> None:
        """Read the state now, and not with the next batch."""
        self._node.store()
        self._result.store()

    def holder(self, pool: str) -> Store:
        """Return the store that has a pool."""
        return result if pool in (result := self._result.store()) else self._node.store()
