"""The program of a session: the queries that are kept fresh, over one input, while queries come and go.

program.change(queries)     between two batches: what is new is filled from what was read, what nobody reads is dropped
program.step()              one batch
program.scan(query)         the printed rows of a query as of the last batch
"""

import threading
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import field, replace
from time import perf_counter

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.settings import Settings
from squallpy.catalog.window_spec import NOW
from squallpy.checkpoint_identity import columns_read
from squallpy.choice_schedule import depends_on_rows, rows_present
from squallpy.compiler import CompiledQuery
from squallpy.live.backend import Backend, Code
from squallpy.live.backfill_from_streams import StreamBackfill
from squallpy.live.backfill_from_views import ViewBackfill
from squallpy.live.fair_lock import Hold
from squallpy.live.generation import Generation, open_log
from squallpy.live.live_executor import LiveExecutor
from squallpy.logical.nodes import Query
from squallpy.physical.plan import Plan
from squallpy.physical.planner import place
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.view_identity import ViewIdentities
from squallpy.runtime.batch.delivery import Delivery
from squallpy.runtime.checkpoint.lease import Lease
from squallpy.runtime.checkpoint.offset_log import OffsetLog
from squallpy.runtime.checkpoint.session_checkpoint import SessionCheckpoint
from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
from squallpy.runtime.local_executor import DurableLocalExecutor, LocalExecutor
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.replan import Filled, Replan, with_whole_rows
from squallpy.runtime.result.result import NO_TESTS, Equal
from squallpy.runtime.result.result_scan import RowScan
from squallpy.runtime.session_input import Log, SessionInput
from squallpy.runtime.sinks.protocol import Sink
from squallpy.runtime.sources.arrivals import Decision
from squallpy.runtime.sources.input import Input, whole
from squallpy.runtime.state.state_store import Store

Compile = Callable[[Sequence[Query], int], CompiledQuery]
"""Compiles queries together, for a number of partitions."""
Save = Callable[[int, int, int], None]
"""Puts a generation of so many partitions, begun after a number of batches, in force together with the definitions."""


@dataclass(frozen=True)
class Running:
    """Compiled queries at work.

    Args:
        identities: Those of the program's views, as far as they are known.
    """

    compiled: CompiledQuery
    executor: LiveExecutor
    input: Input
    delivery: Delivery
    identities: ViewIdentities
    log: OffsetLog | None = None

    @property
    def plan(self) -> Plan:
        return self.compiled.plan


@dataclass
class Pending:
    """Queries that are compiled, on their way to be kept fresh.

    Args:
        code: Their triggers as the setting `compile` has it.
    """

    compiled: CompiledQuery
    replan: Replan | None
    code: Code
    backfill: StreamBackfill | None = None
    """New views that are computed from streams."""
    above: ViewBackfill | None = None
    """New views that are computed from views that are held, and pools of those in another layout."""
    generation: Generation | None = None
    """The state in a checkpoint, if it is made beside batches."""

    def run(self) -> None:
        """Read what was read, while batches go on."""
        for each in (self.backfill, self.above):
            if each:
                each.run()

    def finish(self) -> Filled | None:
        """Return what is computed, as of the last batch; None if there is nothing."""
        above = self.above.finish() if self.above else None
        return replace(above or Filled(None), store=self.backfill.finish(), same=0) if self.backfill else above

    def move(self, hold: Hold) -> None:
        """Write the state in a checkpoint, while batches go on."""
        if self.generation:
            self.generation.run(hold)

    def close(self) -> None:
        """Let sources forget what they have kept for it, and pools what was written."""
        for each in (self.backfill, self.above, self.generation):
            if each:
                each.close()


@dataclass
class LiveProgram:
    """The queries of a session in one executor.

    Args:
        checkpoint: Where state is kept; None: only in memory.
    """

    settings: Settings
    input: SessionInput
    compile: Compile
    observer: Observer
    backend: Backend
    checkpoint: SessionCheckpoint | None = None
    lease: Lease | None = None
    batches: int = 1
    """The number of batches so far; batch 0 is that of static tables, before any row of a stream."""
    queries: tuple[Query, ...] = ()
    running: Running | None = field(default=None, init=False)
    _beside: Generation | None = field(default=None, init=False)

    def prepare(self, queries: Sequence[Query]) -> Pending | None:
        """Compile queries that are to be kept fresh; None for none."""
        if not queries:
            return None
        compiled = self.compile(queries, self._partitions)
        running = self.running
        replan = Replan(running.plan, compiled.plan, running.identities) if running else None
        return Pending(compiled, replan, self.backend.compile(compiled.plan, self.settings))

    @property
    def rows_read(self) -> dict[str, int]:
        """Rows that were read of each relation of the plan in force, 0 where its source does not number them."""
        relations = self.running.compiled.relations if self.running else ()
        ends = {r.name: self.input.position(r.name) if r.stream else whole(self.input.open(r))[1] for r in relations}
        return {name: end.get("row", 0) for name, end in ends.items()}

    @property
    def rows_present(self) -> dict[str, int]:
        """Rows that there are of relations with deletes, where they are counted or kept by key in one place."""
        return rows_present(self.running.compiled.relations if self.running else (), self.usage)

    @property
    def is_outdated(self) -> bool:
        """True if views of the plan in force would be others if it were chosen now."""
        running = self.running
        if running is None or running.plan.matrices:
            return False
        if not depends_on_rows(running.compiled):
            return False
        plan = self.compile(self.queries, self._partitions).plan
        return bool(Replan(running.plan, plan, running.identities).missing)

    @property
    def _partitions(self) -> int:
        return self.backend.partitions(self.settings)

    def begin_backfill(self, pending: Pending, hold: Hold) -> None:
        """Begin to compute what the queries so far do not hold, between two batches; SQ6009 if rows of it are gone.

        Args:
            hold: Keeps batches from being applied.
        """
        replan, compiled = pending.replan, pending.compiled
        if compiled.plan.matrices:
            if self.checkpoint:
                message = "a session with a checkpoint has no matrices"
                raise SquallError("SQ3001", message, hint="run them as a script: squall run --checkpoint DIR")
            pending.backfill = StreamBackfill(compiled.plan, self.input, compiled.relations, columns_read(compiled))
            return
        program = replan.fill if replan else compiled.program
        if replan and self._holder and (replan.plan_above or (replan.laid_out_anew and self.checkpoint is None)):
            pending.above = ViewBackfill(replan, self._holder, hold, copies=self.checkpoint is None)
        if program is None or (replan and replan.plan_above and self._holder):
            return
        plan = self._place(program)
        if replan and not replan.has_payloads_of(plan):
            program = compiled.program
            plan = self._place(program)
        plan = replace(plan, keeps_ledgers=replan is None or replan.keeps_ledgers)
        part = replace(compiled, program=program, plan=plan)
        names = {relation.source.name for relation in program.relations if not relation.is_computed}
        relations = [relation for relation in compiled.relations if relation.name in names]
        pending.backfill = StreamBackfill(plan, self.input, relations, columns_read(part))

    def change(self, queries: Sequence[Query], pending: Pending | None, sinks: Mapping[int, Sink], save: Save) -> None:
        """Keep these queries fresh from now on, each with its sink, and no others, between two batches.

        If that fails all stays as it was.
        """
        if pending is None:
            save(0, self.batches, 0)
            self._close()
            self.queries, self.running = (), None
            self.input.forget(())
            return
        compiled, replan = pending.compiled, pending.replan
        new = {query.number for query in queries} - {query.number for query in self.queries}
        if self.checkpoint is None:
            log, given = None, self._arrivals(compiled, lambda _: None)
            filled = pending.finish()
            matrices = pending.backfill.matrices(given, self.batches) if pending.backfill else None
            store = replan.carry(self._store, filled) if replan and not matrices else filled.store if filled else None
            executor: LiveExecutor = LocalExecutor(
                compiled.plan, given, store=store, number=self.batches, compiled=pending.code, matrices=matrices
            )
            self._introduce(queries, new, sinks, executor)
            save(0, self.batches, 1)
        else:
            generation = pending.generation or self._begin(self.checkpoint, pending, pending.finish(), self._log)
            generation.catch_up()
            log, given = generation.log, self._arrivals(compiled, generation.log.write)
            executor = generation.executor(given)
            self._introduce(queries, new, sinks, executor)
            save(generation.number, self.batches, compiled.plan.partitions)
            generation.is_in_force = True
        self._close()
        identities = replan.identities if replan else ViewIdentities(compiled.program)
        self._run(queries, Running(compiled, executor, given, self._delivery(queries, sinks), identities, log))

    def end(self, pending: Pending) -> None:
        """Forget queries on their way, which are kept fresh now or cannot be."""
        self._beside = None
        pending.close()

    def _close(self) -> None:
        if self.running:
            self.running.executor.close()

    def end_scans(self) -> None:
        """End scans of results, whose rows cannot be had any more."""
        if self.running:
            self.running.executor.end_scans()

    def close(self) -> None:
        """End what runs; state stays where it is."""
        self._close()
        self.backend.close()

    @property
    def _holder(self) -> Callable[[str], Store] | None:
        """The function that finds the store of a pool; None if state is in several partitions."""
        executor = self.running.executor if self.running else None
        return executor.holder if isinstance(executor, LocalExecutor | DurableLocalExecutor) else None

    def _run(self, queries: Sequence[Query], running: Running) -> None:
        self.queries, self.running = tuple(queries), running
        self.input.forget(running.compiled.relations)

    @property
    def _log(self) -> OffsetLog | None:
        return self.running.log if self.running else None

    @property
    def _store(self) -> Store:
        assert self.running and isinstance(self.running.executor, LocalExecutor)
        return self.running.executor.store

    def _arrivals(self, compiled: CompiledQuery, log: Log, decided: Decision | None = None) -> Input:
        rows = self.settings.batch_rows
        has_time, columns = NOW.name in compiled.plan.clocks, columns_read(compiled)
        return self.input.arrivals(compiled.relations, columns, self.batches, rows, log, decided, has_time)

    def _delivery(self, queries: Sequence[Query], sinks: Mapping[int, Sink]) -> Delivery:
        taking = [sinks[query.number] for query in queries]
        return Delivery(taking, self.observer, threading.Event(), int, lease=self.lease)

    def _introduce(
        self,
        queries: Sequence[Query],
        new: Container[int],
        sinks: Mapping[int, Sink],
        executor: LiveExecutor,
        rows: bool = True,
    ) -> None:
        """Begin the sinks of new queries, with the rows that these have."""
        for number, (query, schema) in enumerate(zip(queries, executor.schemas, strict=True)):
            if query.number in new:
                sinks[query.number].begin(query, schema, None)
                if rows and query.sink:
                    found = executor.result(number)
                    sinks[query.number].batch(self.batches - 1, found.slice(0, 0), found)

    def begin_generation(self, pending: Pending) -> None:
        """Begin to write the state of new queries in the checkpoint, between two batches, if others go on beside."""
        executor = self.running.executor if self.running else None
        if self.checkpoint and isinstance(executor, DurableLocalExecutor):
            pending.generation = self._begin(self.checkpoint, pending, pending.finish(), self._log)
            pending.generation.begin_beside(executor)
            self._beside = pending.generation

    def _begin(
        self, checkpoint: SessionCheckpoint, pending: Pending, filled: Filled | None, before: OffsetLog | None
    ) -> Generation:
        compiled, settings = pending.compiled, self.settings

        def open(input: Input, location: StateLocation) -> LiveExecutor:
            return self.backend.open(compiled.plan, input, location, settings, pending.code)

        return Generation(checkpoint, compiled, pending.replan, filled, self.batches, self.input, before, open)

    def resume(self, queries: Sequence[Query], sinks: Mapping[int, Sink], save: Save) -> None:
        """Go on with the queries that the checkpoint is of, where it stands, perhaps on other partitions.

        A batch that was begun is done at once, as views may have it already, and nobody else yet.
        """
        assert self.checkpoint
        location = self.checkpoint.current
        self.batches = self.checkpoint.record.batches
        if location is None or not queries:
            return
        partitions = self.checkpoint.record.partitions
        compiled = self.compile(queries, partitions)
        log, done = open_log(compiled, location, self.input), Committed(location.durable)
        self.input.check(compiled.relations, columns_read(compiled))  # NB: before it is known which files were read
        decided = log.restore()
        assert decided, "a generation is begun with its offsets"
        self.batches, is_done = done.batches, decided.batch < done.batches
        self.input.took({name: (start, end if is_done else start) for name, (start, end) in decided.spans.items()}, {})
        self.input.times = decided.times
        if partitions != self._partitions:
            before, compiled = compiled, self.compile(queries, self._partitions)
            pending = Pending(compiled, Replan(before.plan, compiled.plan), None)
            generation = self._begin(self.checkpoint, pending, None, log)
            log, location, decided = generation.log, generation.location, None
            generation.write()
            save(generation.number, self.batches, self._partitions)
        given = self._arrivals(compiled, log.write, decided)
        code = self.backend.compile(compiled.plan, self.settings)
        executor = self.backend.open(compiled.plan, given, location, self.settings, code)
        self._introduce(queries, sinks.keys(), sinks, executor, rows=False)
        identities = ViewIdentities(compiled.program)
        self._run(queries, Running(compiled, executor, given, self._delivery(queries, sinks), identities, log))
        if decided and not is_done:
            self.step()

    def _place(self, program: TriggerProgram) -> Plan:
        return with_whole_rows(place(program, 1, {}, compensated=self.settings.fivm_sums == "compensated"))

    def step(self) -> BatchReport | None:
        """Read and apply a batch of what has come, and pass it on; None if there is nothing new."""
        if self.running is None:
            return None
        executor, input = self.running.executor, self.running.input
        step = input.next(executor.next)
        if step is None:
            return None
        started = perf_counter()
        changes, report = executor.step(step)
        self.running.delivery.batch(step.number, changes, report)
        executor.commit()
        self.input.took(step.spans, step.times)
        self.batches = executor.next
        self.input.commit(input, step, report.open_rows)
        if self._beside:
            self._beside.note(step)
        return replace(report, number=step.number, seconds=perf_counter() - started)

    def scan(self, query: Query, equal: Equal = NO_TESTS) -> RowScan:
        """Begin to list the printed rows of a query as of the last batch.

        Args:
            equal: Values that columns of the wanted rows have, by position; others may be left out.
        """
        numbers = [each.number for each in self.queries]
        if self.running is None or query.number not in numbers:
            raise SquallError("SQ2001", f"{query.view} is being filled", hint="read it when CREATE has come back")
        return self.running.executor.scan(numbers.index(query.number), equal)

    @property
    def usage(self) -> Mapping[str, Mapping[str, int]]:
        """Records and bytes of each view."""
        return self.running.executor.usage if self.running else {}
