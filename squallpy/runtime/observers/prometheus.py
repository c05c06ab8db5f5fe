"""Metrics of a run for Prometheus: what the reports of its batches add up to, and whether it lives.

docs/operations.md lists them. Counters begin at 0 with the process.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, time
from typing import TYPE_CHECKING

from squallpy import __version__
from squallpy.runtime.observers.join_loads import JoinLoads
from squallpy.runtime.observers.prometheus_text import Family, Histogram, exposition
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.observers.report import LEFT_OUT, BatchReport, RunSummary

if TYPE_CHECKING:
    from squallpy.runtime.sources.source_report import SourceReport

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Prometheus(Observer):
    """An observer whose metrics a server reads from another thread.

    Args:
        patience: Seconds without a batch or a look at the input after which a run does not count as alive.
        wall: The time of day in Unix time, with which commits at sources are compared.
        clock: A clock that never jumps.
    """

    def __init__(
        self, patience: float = 60.0, wall: Callable[[], float] = time, clock: Callable[[], float] = monotonic
    ) -> None:
        self._patience, self._wall, self._clock = patience, wall, clock
        self._lock = threading.Lock()
        self._seen, self._failed, self._ended = clock(), "", False
        self._unread_since = dict[str, float]()
        self._joins = JoinLoads(None)
        self._epoch: int | None = None
        self._families: list[Family | Histogram] = []
        self._make_families()

    def _make_families(self) -> None:
        def family(kind: str, name: str, help: str) -> Family:
            made = Family(f"squallpy_{name}", kind, help)
            self._families.append(made)
            return made

        family("gauge", "build_info", "The version of squallpy.").set(1, version=__version__)
        self._batches = family("counter", "batches_total", "Batches that are done.")
        self._last = family("gauge", "last_batch_timestamp_seconds", "When the last batch was visible.")
        self._read = family("counter", "rows_read_total", "Rows read, by source.")
        self._left_out = family("counter", "rows_left_out_total", "Rows skipped, unmatched, duplicate or late.")
        self._printed = family("counter", "rows_changed_total", "Rows of the answer that were deleted or inserted.")
        self._latency = Histogram("squallpy_batch_seconds", "Seconds of a batch, its output included.", BUCKETS)
        self._families.append(self._latency)
        self._stages = family("counter", "stage_seconds_total", "Seconds of batches, by stage.")
        self._freshness = family(
            "gauge", "freshness_seconds", "From the commit of the last batch's first row at the source until it showed."
        )
        self._lag_rows = family("gauge", "lag_rows", "Rows that are at the source and unread.")
        self._lag_seconds = family("gauge", "lag_seconds", "Age of the first row that is at the source and unread.")
        self._watermark = family("gauge", "watermark_timestamp_seconds", "Event time that a stream has reached.")
        self._bytes = family("gauge", "state_bytes", "Bytes in use, by view.")
        self._records = family("gauge", "state_records", "Records, by view.")
        self._mapping = family(
            "gauge", "join_mapping", "Rows and columns of a join's grid of joiners, or parts of a hypercube."
        )
        self._load = family(
            "gauge", "join_input_load_factor", "Load of the most loaded joiner by that of the best mapping, by stage."
        )
        self._migrations = family("counter", "join_migrations_total", "Completed migrations of joiners.")
        self._checkpoint = family("counter", "checkpoint_seconds_total", "Seconds in which state was written.")
        self._snapshots = family("counter", "snapshots_total", "Snapshots of partitions.")
        self._rebuilds = family("counter", "rebuilds_total", "Partitions whose state was rebuilt.")
        self._retries = family("counter", "task_retries_total", "Attempts at tasks that failed.")
        for reason in LEFT_OUT:  # NB: a counter is there before there is anything to count
            self._left_out.add(0, reason=reason)
        for each in (self._checkpoint, self._snapshots, self._rebuilds, self._retries):
            each.add(0)

    def exposition(self) -> str:
        """Write all metrics as text."""
        with self._lock:
            now = self._wall()
            for source, since in self._unread_since.items():
                self._lag_seconds.set(max(0.0, now - since), source=source)
            return exposition(self._families)

    def values(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Return the samples of gauges and counters, each with its labels, by the name of their family."""
        with self._lock:
            families = [each for each in self._families if isinstance(each, Family)]
            return {f.name: [(dict(labels), value) for labels, value in f.values.items()] for f in families}

    @property
    def trouble(self) -> str:
        """The trouble of the run, in words; empty while it lives."""
        silent = self._clock() - self._seen
        if self._failed:
            return self._failed
        if not self._ended and silent > self._patience:
            return f"no batch and no look at the input for {silent:.0f} s"
        return ""

    def fail(self, reason: str) -> None:
        """Take note that the run has failed."""
        self._failed = reason

    def on_query_started(self, start: QueryStart) -> None:
        with self._lock:
            self._joins = JoinLoads(start.plan)
            self._seen, self._epoch = self._clock(), None
            self._note_joins(BatchReport())

    def on_plan_changed(self, start: QueryStart) -> None:
        with self._lock:
            self._joins = JoinLoads(start.plan)

    def on_query_progress(self, report: BatchReport) -> None:
        self.on_batches((report,))

    def on_batches(self, reports: Sequence[BatchReport]) -> None:
        """Take in batches one after the other, of which the last is visible now."""
        read, stages, watermarks = dict[str, int](), dict[str, float](), dict[str, float]()
        with self._lock:
            self._seen = self._clock()
            self._batches.add(len(reports))
            self._last.set(self._wall())
            self._printed.add(sum([report.rows for report in reports]))
            self._latency.observe([report.seconds for report in reports])
            for report in reports:
                for source, rows in report.read_rows.items():
                    read[source] = read.get(source, 0) + rows
                for stage, seconds in report.stages.items():
                    stages[stage] = stages.get(stage, 0.0) + seconds
                watermarks.update(report.watermarks)
                if report.skipped or report.unmatched or report.duplicates or report.late:
                    for reason, count in report.left_out.items():
                        self._left_out.add(count, reason=reason)
                if report.views:
                    self._note_views(report.views)
                if report.sources:
                    self._note_sources(report.sources)
                if report.checkpoint or report.snapshots or report.rebuilt or report.retries:
                    self._note_checkpoint(report)
                if report.join or self._joins.has_joins:
                    self._note_joins(report)
            for source, rows in read.items():
                self._read.add(rows, source=source)
            for stage, seconds in stages.items():
                self._stages.add(seconds, stage=stage)
            for stream, moment in watermarks.items():
                self._watermark.set(moment, stream=stream)

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        with self._lock:
            self._seen = self._clock()
            self._note_backlogs(sources)

    def note_usage(self, views: Mapping[str, Mapping[str, int]]) -> None:
        """Take note of records and bytes by view, where no batch reports them."""
        with self._lock:
            self._note_views(views)

    def on_query_terminated(self, summary: RunSummary) -> None:
        self._seen, self._ended = self._clock(), True

    def _note_views(self, views: Mapping[str, Mapping[str, int]]) -> None:
        for view, usage in views.items():
            self._bytes.set(usage["bytes"], view=view)
            self._records.set(usage["records"], view=view)

    def _note_sources(self, sources: "Mapping[str, SourceReport]") -> None:
        for source, about in sources.items():
            if about.committed is not None:
                self._freshness.set(max(0.0, self._wall() - about.committed), source=source)
        self._note_backlogs(sources)

    def _note_checkpoint(self, report: BatchReport) -> None:
        counts = len(report.snapshots), len(report.rebuilt), report.retries
        families = self._snapshots, self._rebuilds, self._retries
        for family, more in zip((self._checkpoint, *families), (report.checkpoint, *counts), strict=True):
            if more:
                family.add(more)

    def _note_backlogs(self, sources: "Mapping[str, SourceReport]") -> None:
        for source, about in sources.items():
            if about.backlog is None:
                continue
            self._lag_rows.set(about.backlog.rows, source=source)
            if about.backlog.since is not None:
                self._unread_since[source] = about.backlog.since
            elif not about.backlog.rows:
                self._unread_since.pop(source, None)
                self._lag_seconds.set(0, source=source)

    def _note_joins(self, report: BatchReport) -> None:
        """Note the load of each join."""
        for join in self._joins.note(report):
            labels = {"stage": join.stage, "kind": join.kind}
            self._load.set(join.ratio, **labels)
            for group, parts in enumerate(join.mapping):
                for side, count in zip(join.axes, parts, strict=True):
                    self._mapping.set(count, **labels, group=group, side=side)
        epoch = report.join.epoch if report.join else None
        if epoch is not None:
            before, self._epoch = self._epoch, epoch
            self._migrations.add(epoch - before if before is not None else 0)
