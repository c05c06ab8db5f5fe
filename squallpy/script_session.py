"""Sessions of scripts: the queries of one, compiled, explained, or run over their input.

text → Script → queries → `compiler.py` → plan → executor → sink
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.recursion import guarded_depth, run_deep
from squallpy.base.settings import Settings
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition
from squallpy.catalog.relation import Field, Relation
from squallpy.catalog.sink_spec import CHANGES, FINAL, SinkSpec
from squallpy.catalog.window_spec import NOW
from squallpy.checkpoint_identity import Setup, columns_read, fingerprint
from squallpy.compiler import CompiledQuery, Compiler
from squallpy.explain import PLACED, SIZED, Timer, Tracer, list_passes, program_stage_text, stage_text, why_text
from squallpy.frontend.source_text import read_directive, read_script
from squallpy.logical.bind import Script, compile_script
from squallpy.logical.nodes import Query
from squallpy.run_choice import RunChoice
from squallpy.run_plans import Executor, PlannedRun, RunOptions, RunPlanner
from squallpy.runtime.evaluate.constant_evaluation import fold_constant

__all__ = ["Executor", "RunOptions", "ScriptSession", "Target"]

if TYPE_CHECKING:  # NB: the runtime is imported by runs only, so that EXPLAIN starts at once
    from squallpy.maintain.matrix.matrix_program import MatrixProgram
    from squallpy.runtime.batch.delivery import Delivery
    from squallpy.runtime.checkpoint.lease import Lease
    from squallpy.runtime.observers.dead_letters import DeadLetters
    from squallpy.runtime.observers.protocol import Observer
    from squallpy.runtime.observers.report import BatchReport
    from squallpy.runtime.query_input import Reading
    from squallpy.runtime.result.result import BatchChanges
    from squallpy.runtime.sinks.outputs import Outputs
    from squallpy.runtime.sinks.protocol import Sink
    from squallpy.runtime.sinks.query_output import QueryOutput
    from squallpy.runtime.sources.protocol import Source
    from squallpy.runtime.spark.executor import SparkExecutor


@dataclass(frozen=True, slots=True)
class Target:
    """A query, and what is wanted of it: its changes, its result, where they go."""

    query: Query
    options: RunOptions


class ScriptSession:
    """A script and its settings.

    Args:
        script: the file; files that the script names are found from its folder.
        settings: the engine settings.
        text: a script that is no file; `script` is then its name in messages, and its folder is the working directory.
    """

    def __init__(self, script: Path, settings: Settings | None = None, text: str | None = None) -> None:
        self.path, self.settings = script, settings or Settings()
        self._programs: dict[str, MatrixProgram] = {}
        self.text = read_script(script) if text is None else text

    @cached_property
    def script(self) -> Script:
        """Text → statements → bound queries."""
        return run_deep(lambda: compile_script(self.text, str(self.path), self._infer, self._outputs, fold_constant))

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler of the script's queries."""
        return Compiler(self.script, self.settings, self._programs)

    def compile(
        self, queries: Query | Sequence[Query], partitions: int, sizes: dict[str, int], report_late: bool = False,
        bounded: bool = False,
    ) -> CompiledQuery:  # fmt: skip
        """Compile one or several queries to a physical plan (`Compiler.compile`)."""
        several = [queries] if isinstance(queries, Query) else queries
        return self.compiler.compile(several, partitions, sizes, report_late, bounded=bounded)

    def explain(self, stage: str) -> str:
        """Show the queries at one of `explain.STAGES`, or what each pass has changed ("trace").

        Reads no rows and starts no JVM.
        """
        return run_deep(lambda: self._explain(self._queries, stage))

    def _explain(self, queries: Sequence[Query], stage: str) -> str:
        if stage == "trace":
            tracer = Tracer()
            self.compiler.to_program(*queries, observer=tracer)
            return tracer.text
        if stage == "why":
            return why_text(self.compiler, queries, self.settings.partitions, self.sizes, bounded=self._has_ends)
        if stage not in PLACED and not (self.script.matrices or self.script.programs):
            totals = self.compiler.totals(self.sizes, self._has_ends) if stage in SIZED else {}
            return program_stage_text(self.compiler.to_program(*queries, totals=totals), stage)
        partitions = 1 if stage == "code" else self.settings.partitions
        apart = [n for n, query in enumerate(queries) if query.sink and query.sink.mode not in (None, FINAL)]
        compiled = self.compiler.compile(queries, partitions, self.sizes, apart=apart, bounded=self._has_ends)
        return stage_text(compiled, stage, self.yardstick)

    def time_passes(self) -> str:
        """List all passes with the milliseconds that each takes for the queries of the script."""
        timer = Timer()
        self.compiler.to_program(*self._queries, observer=timer)
        return list_passes(timer.seconds)

    @property
    def yardstick(self) -> str:
        """Figures to compare the stages with, from a comment `-- yardstick: 1 job, 3 stages (by whom)` of the
        script."""
        return read_directive(self.text, "yardstick")

    def run(
        self,
        options: RunOptions,
        sink: "Sink",
        stop: threading.Event | None = None,
        working: Callable[[bool], None] = lambda _: None,
        observer: "Observer | None" = None,
    ) -> None:
        """Run the queries of the script over their input, with the rows of each to its own sink, else to `sink`, and
        reports to `observer`.

        Of several queries without sinks only the results are wanted: `sink` gets them in the script's order.

        With `stop` set, the run ends after the batch in work; with a checkpoint, the next run goes on there. Before
        its first batch a run is not `working`: nothing has to be waited for.
        """
        from squallpy.runtime.observers.protocol import Observers

        stop = stop or threading.Event()
        queries = self._queries
        self._check_streams(options)
        with (
            self._lease(options) as lease,
            self._closing(),
            self._open_outputs(queries, options) as outputs,
            closing(self._dead_letters(options)) as letters,
        ):
            told = Observers(letters, *([observer] if observer else []))
            targets = [
                Target(query, self._wanted(query, outputs.sink(query) if outputs else None, options))
                for query in queries
            ]
            working(False)
            with guarded_depth():
                self._run(targets, options, sink, told, stop, lease, working, outputs)

    def _dead_letters(self, options: RunOptions) -> "DeadLetters":
        """Open the files of rows that cannot be read, for streams that name any."""
        from squallpy.runtime.checkpoint.checkpoint import is_used
        from squallpy.runtime.observers.dead_letters import DeadLetters

        resumed = options.checkpoint is not None and is_used(options.checkpoint)
        return DeadLetters(self.script.relations.values(), self.path.parent, resumed)

    @contextmanager
    def _open_outputs(self, queries: Sequence[Query], options: RunOptions) -> "Iterator[Outputs | None]":
        """Find the outputs of queries; None if none has a sink."""
        if options.out is None and all(query.sink is None for query in queries):
            yield None
            return
        from squallpy.runtime.sinks.outputs import Outputs

        with closing(Outputs(queries, self.path.parent, options.out)) as outputs:
            outputs.check(self.script.relations.values(), self.path.parent)
            yield outputs

    def _wanted(self, query: Query, sink: SinkSpec | None, options: RunOptions) -> RunOptions:
        """Choose what a sink writes: the final result, or the changes of each batch; SQ7003 where there is no end.

        Of a materialized view nothing is written.
        """
        if query.view:
            return replace(options, out=None, changes=False, final=False)
        if sink is None:
            return replace(options, out=None)
        endless = None if options.trigger.ends else self.endless
        mode = sink.mode or (CHANGES if endless else FINAL)
        if mode == FINAL and endless:
            what = f"mode 'final' writes the answer at the end, and the stream {endless.name} has none"
            raise SquallError("SQ7003", what, sink.place("mode"), "write mode 'changes'")
        return replace(options, changes=mode != FINAL, final=mode == FINAL, out=replace(sink, mode=mode))

    @contextmanager
    def _lease(self, options: RunOptions) -> "Iterator[Lease | None]":
        """Hold the lease of the checkpoint, if there is one."""
        from squallpy.runtime.checkpoint.checkpoint import hold_lease

        if options.checkpoint is None or options.lease:
            yield options.lease
            return
        with hold_lease(options.checkpoint) as lease:
            yield lease

    def _run(
        self,
        targets: Sequence["Target"],
        options: RunOptions,
        sink: "Sink",
        observer: "Observer",
        stop: threading.Event,
        lease: "Lease | None" = None,
        working: Callable[[bool], None] = lambda _: None,
        outputs: "Outputs | None" = None,
    ) -> None:
        from squallpy.runtime.batch.delivery import Delivery
        from squallpy.runtime.checkpoint.checkpoint import is_used
        from squallpy.runtime.sinks.protocol import AtEnd, NoOutput, Sinks

        queries, folder, reading = tuple(target.query for target in targets), options.checkpoint, self._reading(options)
        planner = RunPlanner(self.compiler, options, self.path.stem, self.tasks)
        run: PlannedRun | None = self._plan(queries, planner, reading, self._setup(targets, options, reading))
        assert run
        choice = RunChoice(planner, run.setup)
        if lease:
            lease.check()
        with ExitStack() as opened:
            resumes = folder is not None and is_used(folder)
            sinks, printed = list["Sink"](), [target for target in targets if target.query.is_printed]
            for target in targets:  # NB: a run that starts over clears them before its checkpoint is used
                if target.options.out and outputs:
                    opened_sink = outputs.open(target.options.out, run.made_for.query, resumes)
                    sinks.append(opened.enter_context(closing(opened_sink)))
                elif target.query.view:
                    sinks.append(NoOutput())
                else:
                    sinks.append(sink if len(printed) == 1 else AtEnd(sink))
                if options.tap and target.options.changes:
                    sinks[-1] = Sinks(sinks[-1], options.tap(target.query))
            delivery, is_first = Delivery(sinks, observer, stop, reading.number, options.profile, lease), True
            wanted = [target.options.changes for target in targets]
            while run:
                self._run_plan(run, choice, planner, wanted, delivery, stop, working, is_first)
                again = choice.chosen
                if again:  # NB: with a checkpoint as if it was started again, which reads what is there
                    reading = self._reading(options) if folder else reading
                run, is_first = self._plan(queries, planner, reading, again) if again else None, False

    def _reading(self, options: RunOptions) -> "Reading":
        from squallpy.runtime.query_input import open_reading

        return open_reading(
            self.script.relations, self.path.parent, options.checkpoint, options.trigger, self.foreign, options.clock,
            options.read_time,
        )  # fmt: skip

    def _setup(self, targets: Sequence["Target"], options: RunOptions, reading: "Reading") -> Setup:
        """Describe how the first plan of a run is made; one that goes on begins with that of its checkpoint."""
        from squallpy.runtime.checkpoint.checkpoint import recorded_setup

        partitions = self.settings.partitions if options.backend == "spark" else 1
        apart = tuple(n for n, t in enumerate(targets) if t.options.out and t.options.changes and not t.options.tap)
        final = any(target.options.final for target in targets)
        known = recorded_setup(options.checkpoint) if options.checkpoint else {}
        return Setup(
            self.settings, partitions, options.late, final, apart if partitions > 1 else (), reading.has_end,
            known.get("rows", {}), tuple(known.get("present", ())),
        )  # fmt: skip

    def _plan(self, queries: Sequence[Query], planner: RunPlanner, reading: "Reading", setup: Setup) -> PlannedRun:
        """Plan a run, and choose what it reads."""
        compiled = planner.compile(queries, setup, reading.sizes)
        batch_rows = planner.options.batch_rows or self.settings.batch_rows
        has_time = NOW.name in compiled.plan.clocks
        reading.select(compiled.relations, columns_read(compiled), batch_rows, self.settings.interleave, has_time)
        sizes = {r.name: reading.sizes[r.name] for r in compiled.relations}
        made_for = run_deep(lambda: fingerprint(compiled, reading.order, sizes, setup))
        return PlannedRun(reading, setup, compiled, made_for)

    def _run_plan(
        self,
        run: PlannedRun,
        choice: RunChoice,
        planner: RunPlanner,
        wanted: Sequence[bool],
        delivery: "Delivery",
        stop: threading.Event,
        working: Callable[[bool], None],
        is_first: bool,
    ) -> None:
        """Run a plan to the end of its input, or until another one is chosen."""
        from squallpy.runtime.checkpoint.state_folders import Committed
        from squallpy.runtime.observers.protocol import QueryStart
        from squallpy.runtime.sources.source_report import measure_sources

        reading, compiled, queries = run.reading, run.compiled, run.compiled.queries
        with planner.open_state(run) as location:
            choice.begin(run)
            input = reading.begin(location)
            measure = partial(measure_sources, input) if planner.options.measured or reading.batches is None else None
            delivery.follow(reading.number, measure)
            input = replace(input, on_idle=delivery.idle)
            executor = planner.open_executor(compiled.plan, input, location, wanted)
            delivery.begin(queries, executor.schemas, reading.batches)
            if compiled.plan.partitioned:
                cast("SparkExecutor", executor).writers = {
                    n: cast("QueryOutput", each).part_writer(n, self.settings.sinks_part_rows)
                    for n, each in enumerate(delivery.sinks)
                    if compiled.is_printed_by_partitions(n)
                }
            done = Committed(location.durable).batches if location else 0
            number = reading.number(done)
            done = location.before if location and number is None else number or 0
            about = QueryStart(
                queries, reading.batches, executor.final, done, compiled.plan, executor.result, lambda: executor.usage
            )
            (delivery.observer.on_query_started if is_first else delivery.observer.on_plan_changed)(about)

            def deliver(batch: int, changes: "BatchChanges", report: "BatchReport") -> bool:
                return delivery.batch(batch, changes, report) and not choice.choose(run, batch, lambda: executor.usage)

            executor.run(deliver, lambda: working(True), stop)
            if choice.chosen is None:
                delivery.end(executor.final())

    @property
    def tasks(self) -> Mapping[str, int]:
        """The most tasks that read a relation, where they are not all."""
        return {}

    @property
    def _queries(self) -> tuple[Query, ...]:
        if not self.script.queries:
            raise SquallError("SQ1002", f"{self.path}: the script has no SELECT", hint="add one; it is kept fresh")
        return tuple(self.script.queries)

    def _outputs(self, declared: MatrixProgramDefinition, matrices: Mapping[str, Matrix]) -> tuple[str, ...]:
        from squallpy.maintain.matrix.script_programs import Programs  # NB: only scripts with matrices import it

        return Programs(self._programs).outputs(declared, matrices)

    def _infer(self, relation: Relation) -> tuple[Field, ...] | Relation:
        if relation.is_foreign:
            from squallpy.runtime.sources.registry import infer_foreign

            return infer_foreign(relation, self.path.parent)
        from squallpy.runtime.sources import infer_fields

        return infer_fields(relation, self.path.parent)

    @cached_property
    def foreign(self) -> "Mapping[str, Source]":
        """The sources that others have written, opened."""
        relations = [relation for relation in self.script.relations.values() if relation.is_foreign]
        if not relations:
            return {}
        from squallpy.runtime.sources.registry import open_foreign

        base, shared = self.path.parent, dict[Any, Any]()
        return {each.name: open_foreign(each, base, self._spark_stream, shared) for each in relations}

    def _spark_stream(self, relation: Relation) -> "tuple[str, Source]":
        from squallpy.runtime.spark.stream_source import SparkStream

        stream = SparkStream(relation, self.path.parent)
        return stream.name, stream

    def _check_streams(self, options: RunOptions) -> None:
        """Refuse streams of Spark's without Spark, and one batch of all that is there before they have begun."""
        stream = next((r for r in self.script.relations.values() if r.format == "spark"), None)
        if stream and options.backend != "spark":
            message = f"USING spark reads {stream.name} by Spark's readStream, and there is no Spark"
            raise SquallError("SQ3001", message, stream.span, "run it on Spark")
        if stream and options.trigger.once:
            message = "--trigger once cannot wait for a stream of Spark's"
            raise SquallError("SQ7003", message, stream.span, "write --trigger available-now")

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Close the sources that others have written at the end of a run."""
        try:
            yield
        finally:
            for source in self.__dict__.pop("foreign", {}).values():
                source.close()

    @property
    def endless(self) -> Relation | None:
        """A stream that has no end; None if all have one."""
        relations = self.script.relations.values()
        return next((r for r in relations if r.is_watched or (r.stream and self._is_endless(r.name))), None)

    def _is_endless(self, name: str) -> bool:
        return name in self.foreign and not self.foreign[name].is_bounded

    @property
    def _has_ends(self) -> bool:
        """True if all files are read to their end."""
        return not any(relation.is_watched for relation in self.script.relations.values())

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Rows of each relation as far as its files are there: EXPLAIN also works without data."""
        from squallpy.runtime.sources.source import count_rows

        return {r.name: count_rows(r, self.path.parent) for r in self.script.relations.values()}
