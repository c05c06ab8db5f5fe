"""Plans of a run, the state of each, and the executors that run them.

queries and a setup → plan → its state, at the checkpoint → executor
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from squallpy.base.batch_trigger import AS_IT_COMES, BatchTrigger
from squallpy.base.events import CHECKPOINT, INFO, log_event
from squallpy.base.json_codec import from_json
from squallpy.base.records import dataclass
from squallpy.base.settings import Settings
from squallpy.base.timing import Trace, read_time
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.checkpoint_identity import Setup, plan_identity
from squallpy.compiler import CompiledQuery, Compiler, results_apart
from squallpy.logical.nodes import Query
from squallpy.physical.plan import Plan

if TYPE_CHECKING:  # NB: the runtime is imported by runs only, so that EXPLAIN starts at once
    import pyarrow as pa

    from squallpy.runtime.checkpoint.checkpoint import CheckpointIdentity
    from squallpy.runtime.checkpoint.lease import Lease
    from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
    from squallpy.runtime.observers.profile import Profile
    from squallpy.runtime.observers.report import BatchReport
    from squallpy.runtime.query_input import Reading
    from squallpy.runtime.result.result import BatchChanges
    from squallpy.runtime.sinks.protocol import Sink
    from squallpy.runtime.sources.input import Input


class Executor(Protocol):
    """Runs a plan: `begin` before the first batch, every batch to `on_batch` until that says stop; then the result as
    of the last."""

    schemas: "tuple[pa.Schema, ...]"

    def run(
        self,
        on_batch: "Callable[[int, BatchChanges, BatchReport], bool]",
        begin: Callable[[], None],
        stop: threading.Event,
    ) -> None: ...

    def final(self) -> "tuple[pa.Table, ...]": ...

    def result(self, query: int) -> "pa.Table": ...

    @property
    def usage(self) -> Mapping[str, Mapping[str, int]]: ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run.

    Args:
        trigger: When batches of streams without end begin.
        changes: The printed changes of each batch are wanted, of a query without a sink.
        final: The final result is wanted, of a query without a sink.
        out: The sink of queries that have none; None: they are only printed.
        measured: The size of the state is wanted.
        late: Rows that came after their window had passed are wanted.
        profile: Collects where the time of each batch goes.
        conf: Settings of Spark's own.
        tap: Makes another sink of a query whose changes are wanted, which gets them as well.
        clock: A clock that never jumps, by which batches of streams without end begin and windows close.
        read_time: Gives the time of day in microseconds, which NOW() is.
    """

    backend: str = "spark"
    master: str = "local[2]"
    batch_rows: int | None = None
    trigger: BatchTrigger = AS_IT_COMES
    changes: bool = False
    final: bool = True
    out: SinkSpec | None = None
    measured: bool = False
    late: bool = False
    checkpoint: str | None = None
    lease: "Lease | None" = None  # of the checkpoint, if the caller has it already
    profile: "Profile | None" = None
    conf: Mapping[str, str] = field(default_factory=dict)
    tap: "Callable[[Query], Sink] | None" = None
    clock: Callable[[], float] = monotonic
    read_time: Callable[[], int] = read_time


@dataclass(frozen=True)
class PlannedRun:
    """The queries of a run with their plan, and their input."""

    reading: "Reading"
    setup: Setup
    compiled: CompiledQuery
    made_for: "CheckpointIdentity"


@dataclass(frozen=True)
class RunPlanner:
    """Plans of a script's queries under the options of a run.

    Args:
        name: That of the script.
        tasks: The most tasks that read a relation, where they are not all.
    """

    compiler: Compiler
    options: RunOptions
    name: str
    tasks: Mapping[str, int] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return self.compiler.settings

    def compile(self, queries: Sequence[Query], setup: Setup, sizes: Mapping[str, int]) -> CompiledQuery:
        """Compile queries by a setup, for inputs of some sizes."""
        compiler = replace(self.compiler, settings=setup.settings, rows=setup.rows, present=setup.present)
        compiled = compiler.compile(queries, setup.partitions, dict(sizes), setup.late, setup.apart, setup.bounded)
        if compiled.plan.only_grows and not setup.final:
            apart = tuple(results_apart(compiled, setup.apart))  # NB: rows that only come need not meet
            plan = replace(compiled.plan, keeps_results=False, partitioned=apart)
            compiled = replace(compiled, plan=plan)
        return compiled

    def _move(
        self,
        queries: Sequence[Query],
        plan: Plan,
        was: "CheckpointIdentity",
        before: "StateLocation",
        after: "StateLocation",
        done: "Committed",
    ) -> Any:
        """Move the state of queries to another plan (`checkpoint.MoveState`)."""
        from squallpy.runtime.checkpoint.checkpoint import CannotMove
        from squallpy.runtime.reshard import Reshard

        old = self.compile(queries, from_json(Setup, was.setup), was.sizes)
        if plan_identity(old) != was.plan:
            raise CannotMove("it was made by another version, or for other sizes")
        log_event(CHECKPOINT, INFO, "move", batch=done.batches, before=old.plan.partitions, after=plan.partitions)
        return Reshard(old.plan, plan, done.batches, done.facts or {}, was.sizes)(before, after)

    @contextmanager
    def open_state(self, run: PlannedRun) -> Iterator["StateLocation | None"]:
        """Open the state of a run; None for a local one that is not to be resumed."""
        from squallpy.runtime.checkpoint.checkpoint import open_checkpoint
        from squallpy.runtime.checkpoint.durable_folder import open_durable
        from squallpy.runtime.checkpoint.state_folders import temporary_location

        snapshot, local = self.settings.snapshot_mb << 20, self.settings.local_dir
        reading, made_for = run.reading, run.made_for
        if folder := self.options.checkpoint:
            move = partial(self._move, run.compiled.queries, run.compiled.plan)
            rows, inputs = reading.batch_rows, reading.inputs
            location = open_checkpoint(folder, made_for, rows, local, snapshot, inputs, reading.repeat, move)
            yield location
            if inputs:
                inputs.save(open_durable(folder, "driver"), ended=True)
            location.delete_local()  # NB: only after a clean end; after a crash it is reused
        elif self.options.backend == "spark":
            with temporary_location(local, made_for.plan, snapshot) as location:
                yield location
        else:
            yield None

    def open_executor(
        self, plan: Plan, input: "Input", location: "StateLocation | None", wanted: Sequence[bool]
    ) -> Executor:
        """Open the executor of a plan over its input.

        Args:
            wanted: Queries whose changes are wanted.
        """
        from squallpy.runtime.compiled.functions import compile_plan, printed_code

        options, input = self.options, replace(input, tasks=self.tasks)
        trace, compiled = Trace(on=options.profile is not None), compile_plan(plan, self.settings.compile)
        if options.backend == "spark":
            from squallpy.runtime.spark.executor import SparkExecutor

            assert location is not None
            return SparkExecutor(
                plan, input, location, options.master, self.settings.splits, options.conf, wanted, trace,
                self.name, code=printed_code(compiled),
            )  # fmt: skip
        from squallpy.runtime.local_executor import DurableLocalExecutor, LocalExecutor

        if location is not None:
            return DurableLocalExecutor(plan, input, location, wanted, trace, compiled)
        return LocalExecutor(plan, input, wanted, options.measured, trace, compiled=compiled)
