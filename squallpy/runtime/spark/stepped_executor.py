"""The Spark executor batch by batch, as a session asks for them.

executor.step(step)     one batch; Spark's loop waits in a thread for the next
executor.commit()       the batch has reached its sinks
executor.close()        the loop ends; the state is in its location
"""

import queue
import threading
from collections.abc import Mapping
from dataclasses import field
from typing import cast

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.codegen.program import PlanCode
from squallpy.physical.plan import Plan
from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.result.result import NO_TESTS, BatchChanges, Changes, Equal
from squallpy.runtime.result.result_scan import RowScan
from squallpy.runtime.sources.input import Batches, BatchSpans, Input, OffsetSpan
from squallpy.runtime.sources.stream_times import Times
from squallpy.runtime.spark.executor import SparkExecutor
from squallpy.runtime.spark.spark_session import Cluster

Printed = tuple[Changes | None, ...]


@dataclass
class _Gate:
    """Batches of which those up to a number may be read.

    Args:
        waiting: Set when the loop has come to one that may not.
    """

    inner: Batches
    last: int
    waiting: threading.Event = field(default_factory=threading.Event)
    batches: int | None = None

    @property
    def example(self) -> int:
        return self.inner.example

    def spans(self, batch: int) -> Mapping[str, OffsetSpan] | None:
        if batch > self.last:
            self.waiting.set()
            return None
        return self.inner.spans(batch)

    @property
    def times(self) -> Times:
        return self.inner.times

    def note(self, open_rows: int) -> None:
        """Do nothing: the session takes note."""


class _GatedInput(Input):
    """An input whose sources forget when the session says so."""

    def commit(self, step: BatchSpans, open_rows: int = 0) -> None:
        """Do nothing."""


class SteppedSparkExecutor:
    """The executor of a plan on Spark, from where its location stands."""

    def __init__(
        self,
        plan: Plan,
        input: Input,
        location: StateLocation,
        cluster: Cluster,
        splits: int,
        name: str,
        code: PlanCode | None = None,
    ) -> None:
        self.next = Committed(location.durable).batches
        self._gate = _Gate(input.batches, input.batches.example)
        gated = _GatedInput(input.sources, self._gate, input.in_order)
        self._executor = SparkExecutor(plan, gated, location, "", splits, name=name, cluster=cluster, code=code)
        self.schemas = self._executor.schemas
        self._done: queue.Queue[tuple[Printed, BatchReport] | BaseException] = queue.Queue()
        self._delivered, self._stop = threading.Semaphore(0), threading.Event()
        self._thread: threading.Thread | None = None

    def step(self, step: BatchSpans | None = None) -> tuple[Printed, BatchReport]:
        """Apply the next batch, which has been decided on."""
        self._gate.waiting.clear()
        self._gate.last = self.next
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="squallpy on Spark", daemon=True)
            self._thread.start()
        found = self._done.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def commit(self) -> None:
        """Note that the batch has reached its sinks; returns when that is durable."""
        self.next += 1
        self._delivered.release()
        while not self._gate.waiting.wait(0.02):
            if not self._done.empty():
                raise self._failure()

    def _failure(self) -> BaseException:
        found = self._done.get()
        assert isinstance(found, BaseException)
        return found

    def _run(self) -> None:
        try:
            self._executor.run(self._on_batch, stop=self._stop)
        except BaseException as error:
            self._done.put(error)

    def _on_batch(self, batch: int, changes: BatchChanges, report: BatchReport) -> bool:
        self._done.put((cast(Printed, changes), report))
        self._delivered.acquire()
        return not self._stop.is_set()

    def close(self) -> None:
        """End Spark's loop after the batch in work."""
        self.end_scans()
        self._stop.set()
        self._delivered.release()
        if self._thread:
            self._thread.join()

    def end_scans(self) -> None:
        """End scans, whose rows cannot be had any more."""
        self._executor.end_scans()

    def result(self, query: int, equal: Equal = NO_TESTS) -> pa.Table:
        """Return the printed result of one query as of the last batch (`Results.table`)."""
        return self._executor.result(query, equal)

    def scan(self, query: int, equal: Equal = NO_TESTS) -> RowScan:
        """Begin to list the rows of one query as of the last batch (`Results.scan`)."""
        return self._executor.scan(query, equal)

    @property
    def usage(self) -> Mapping[str, Mapping[str, int]]:
        """Records and bytes by pool of the driver."""
        return self._executor.usage
