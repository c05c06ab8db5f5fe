"""The program of a session: the queries that are kept fresh, over one input, while queries come and go.

program.change(queries)     between two batches: what is new is filled from what was read, what nobody reads is dropped
program.step()              one batch
program.table(query)        the printed result of a query as of the last batch
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import pyarrow as pa

from squallpy.base.settings import JoinOperator, Settings
from squallpy.checkpoint_identity import columns_read
from squallpy.compiler import CompiledQuery
from squallpy.logical.nodes import Query
from squallpy.physical.plan import Plan
from squallpy.physical.planner import place
from squallpy.program.trigger_program import Program
from squallpy.runtime.batch.delivery import Delivery
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.replan import Replan
from squallpy.runtime.session_input import SessionInput
from squallpy.runtime.sinks.protocol import Sink
from squallpy.runtime.sources.input import Input
from squallpy.runtime.state.state_store import Store

Compile = Callable[[Sequence[Query]], CompiledQuery]


@dataclass
class LiveProgram:
    """The queries of a session in one executor.

    Args:
        compile: Compiles queries together, for one partition.
        sinks: The sink of each query.
    """

    settings: Settings
    input: SessionInput
    compile: Compile
    observer: Observer
    batches: int = 1
    """The number of batches so far; batch 0 is that of static tables, before any row of a stream."""
    queries: tuple[Query, ...] = ()
    compiled: CompiledQuery | None = None
    _sinks: Mapping[str, Sink] = field(default_factory=dict)
    _executor: LocalExecutor | None = None
    _input: Input | None = None
    _delivery: Delivery | None = None

    def change(self, queries: Sequence[Query], sinks: Mapping[int, Sink]) -> None:
        """Keep these queries fresh from now on, each with its sink, and no others.

        Views that the queries before have are held; others are computed from what was read of their streams. SQ6009 if
        that is gone; then all stays as it was.
        """
        if not queries:
            self.queries, self.compiled, self._executor, self._input, self._delivery = (), None, None, None, None
            return
        compiled = self.compile(queries)
        store = self._state(compiled)
        given = self.input.arrivals(
            compiled.relations, columns_read(compiled), self.batches, self.settings.batch_rows, lambda _: None
        )
        executor = LocalExecutor(compiled.plan, given, store=store, number=self.batches)
        self.queries, self.compiled, self._executor, self._input = tuple(queries), compiled, executor, given
        self._delivery = Delivery([sinks[query.number] for query in queries], self.observer, threading.Event(), int)

    def _state(self, compiled: CompiledQuery) -> Store:
        """Make the state that new queries begin with."""
        old = self._executor
        if old is None or self.compiled is None:
            return self._filled(compiled, compiled.program)
        replan = Replan(self.compiled.plan, compiled.plan)
        filled = self._filled(compiled, replan.fill) if replan.fill else None
        return replan.carry(old.store, filled)

    def _filled(self, compiled: CompiledQuery, program: Program) -> Store:
        """Run a part of a compiled program over all that has been read of its streams."""
        plan = place(program, 1, {}, operator=JoinOperator.AUTO, compensated=self.settings.fivm_sums == "compensated")
        part = replace(compiled, program=program, plan=plan)
        names = {relation.source.name for relation in program.relations if not relation.is_computed}
        relations = [relation for relation in compiled.relations if relation.name in names]
        history = self.input.history(relations, columns_read(part))
        executor = LocalExecutor(plan, history, with_changes=False)
        executor.run(lambda *_: True)
        return executor.store

    def step(self) -> BatchReport | None:
        """Read and apply a batch of what has come, and pass it on; None if there is nothing new."""
        if self._executor is None or self._input is None or self._delivery is None:
            return None
        step = self._input.next(self._executor.next)
        if step is None:
            return None
        started = perf_counter()
        changes, report = self._executor.step(step)
        self.input.took(step.spans, step.times)
        self.batches = self._executor.next
        self._delivery.batch(step.number, changes, report)
        self._input.commit(step, report.open_rows)
        return replace(report, number=step.number, seconds=perf_counter() - started)

    def table(self, query: Query) -> pa.Table:
        """Return the printed result of a query as of the last batch."""
        assert self._executor
        return self._executor.result(self.queries.index(query))

    @property
    def schemas(self) -> Mapping[int, pa.Schema]:
        """The printed columns of queries, by their numbers."""
        assert self._executor
        return {query.number: schema for query, schema in zip(self.queries, self._executor.schemas, strict=True)}

    @property
    def plan(self) -> Plan | None:
        return self.compiled.plan if self.compiled else None

    @property
    def usage(self) -> Mapping[str, Mapping[str, int]]:
        """Records and bytes of each view."""
        return self._executor.store.usage() if self._executor else {}
