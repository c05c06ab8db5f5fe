"""Delivery of batches: the rows to a sink, then a report to observers."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, cast

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.logical.nodes import Query
from squallpy.runtime.checkpoint.lease import Lease
from squallpy.runtime.observers.profile import Profile
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport, RunSummary
from squallpy.runtime.result.result import BatchChanges
from squallpy.runtime.sinks.protocol import Sink
from squallpy.runtime.sinks.written_changes import PartitionedOutput, WrittenChanges
from squallpy.runtime.sources.source_report import SourceReport

_IDLE = 1.0  # seconds between two reports that there is nothing to read


class Delivery:
    """The way of batches to the sink of each query and the observer, which get each by its `number` in the replay.

    Args:
        sources: Measures the sources after a batch, if anybody wants to know.
        lease: Checked before a sink gets a batch, and again before the batch is committed.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        observer: Observer,
        stop: threading.Event,
        number: Callable[[int], int | None],
        profile: Profile | None = None,
        lease: Lease | None = None,
        sources: Callable[[int], Mapping[str, SourceReport]] | None = None,
    ) -> None:
        self.sinks, self.observer, self._stop, self._number = sinks, observer, stop, number
        self._profile, self._lease, self._sources = profile, lease, sources
        self._batch, self._measured = -1, 0.0
        self._start = self._last = perf_counter()
        self._images, self._whole = dict[str, int](), False
        self._summary, self._begun = RunSummary(), False

    def batch(self, batch: int, changes: BatchChanges, report: BatchReport) -> bool:
        """Pass a batch on, unless it has been before; whether to go on after it."""
        self._check()
        self._batch = batch
        self._check_images(batch, report.images)
        if (number := self._number(batch)) is not None:
            self._pass(number, changes, report)
        self._check()
        return not self._stop.is_set()

    def begin(self, queries: Sequence[Query], schemas: Sequence[pa.Schema], batches: int | None) -> None:
        """Begin the sink of each query, if they have not begun."""
        for sink, query, schema in zip(() if self._begun else self.sinks, queries, schemas, strict=not self._begun):
            sink.begin(query, schema, batches)
        self._begun = True

    def follow(
        self, number: Callable[[int], int | None], sources: Callable[[int], Mapping[str, SourceReport]] | None
    ) -> None:
        """Number the batches of another plan, whose first ones repeat those so far, and measure its sources."""
        self._number, self._sources = number, sources

    def idle(self) -> None:
        """Tell the observer now and then that there is nothing to read."""
        self._last = now = perf_counter()  # NB: a batch does not take the time that it was waited for
        if now > self._measured + _IDLE:
            self._measured = now
            self.observer.on_query_idle(self._measure())

    def _measure(self) -> Mapping[str, SourceReport]:
        return self._sources(self._batch) if self._sources and self._batch >= 0 else {}

    def _check(self) -> None:
        if self._lease:
            self._lease.check()

    def _pass(self, number: int, changes: BatchChanges, report: BatchReport) -> None:
        now = perf_counter()
        seconds, self._last = now - self._last, now
        self._summary = self._summary.with_batch(report)
        rows = sum(some.rows for some in changes if some)
        total = self._summary.tuples
        for sink, some in zip(self.sinks, changes, strict=True):
            if isinstance(some, WrittenChanges):
                cast(PartitionedOutput, sink).commit(number, some.parts)
            else:
                sink.batch(number, some and some.deletes, some and some.inserts)
        more: dict[str, Any] = {"seconds": seconds, "rows": rows, "total_tuples": total, "sources": self._measure()}
        self.observer.on_query_progress(replace(report, number=number, **more))
        if self._profile:
            self._profile.add(number, {**report.profile, ("print",): perf_counter() - now})

    def _check_images(self, batch: int, images: Mapping[str, int]) -> None:
        """Raise SQ4005 if new rows of updates came without the old ones; unknown after a resume."""
        self._whole = self._whole or batch == 0
        for name, more in images.items() if self._whole else ():
            self._images[name] = self._images.get(name, 0) + more
            if self._images[name] < 0:
                message = f"{name} has new rows of updates (+U) before, or without, the old ones (-U)"
                raise SquallError("SQ4005", message, hint="write both, the old one first, or + and - in any order")

    def end(self, finals: Sequence[pa.Table]) -> None:
        """Pass the results on, and end the sinks."""
        self._check()
        for sink, final in zip(self.sinks, finals, strict=True):
            sink.final(final)
            sink.finish(stopped=self._stop.is_set())
        self.observer.on_query_terminated(self.summary)

    @property
    def summary(self) -> RunSummary:
        """The sums of the run so far."""
        return replace(self._summary, seconds=perf_counter() - self._start, stopped=self._stop.is_set())
