"""Delivery of batches: the rows to a sink, then a report to observers."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter

from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint.lease import Lease
from squallpy.runtime.observers.profile import Profile
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport, RunSummary
from squallpy.runtime.result.result import Changes
from squallpy.runtime.sinks.protocol import Sink


class Delivery:
    """The way of batches to the sink and the observer, which get each by its `number` in the replay.

    The `lease` is checked before the sink gets a batch, and again before the batch is committed.
    """

    def __init__(
        self,
        sink: Sink,
        observer: Observer,
        stop: threading.Event,
        number: Callable[[int], int | None],
        profile: Profile | None = None,
        lease: Lease | None = None,
    ) -> None:
        self._sink, self._observer, self._stop, self._number = sink, observer, stop, number
        self._profile, self._lease = profile, lease
        self._start = self._last = perf_counter()
        self._images, self._whole = dict[str, int](), False
        self._summary = RunSummary()

    def batch(self, batch: int, changes: Changes | None, report: BatchReport) -> bool:
        """Pass a batch on, unless it has been before; whether to go on after it."""
        self._check()
        self._check_images(batch, report.images)
        if (number := self._number(batch)) is not None:
            self._pass(number, changes, report)
        self._check()
        return not self._stop.is_set()

    def _check(self) -> None:
        if self._lease:
            self._lease.check()

    def _pass(self, number: int, changes: Changes | None, report: BatchReport) -> None:
        now = perf_counter()
        seconds, self._last = now - self._last, now
        self._summary = self._summary.with_batch(report)
        deletes, inserts = (changes.deletes, changes.inserts) if changes else (None, None)
        rows = len(changes.deletes) + len(changes.inserts) if changes else 0
        total = self._summary.tuples
        self._sink.batch(number, deletes, inserts)
        self._observer.on_query_progress(replace(report, number=number, seconds=seconds, rows=rows, total_tuples=total))
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

    @property
    def summary(self) -> RunSummary:
        """The sums of the run so far."""
        return replace(self._summary, seconds=perf_counter() - self._start, stopped=self._stop.is_set())
