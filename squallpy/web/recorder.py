"""Figures of a run over time: a record for each second, the last events, and rows that were left out.

recorder.on_query_progress(report)     →  recorder.report()["seconds"][-1]
                                          {"at": 1767225600, "batches": 12, "tuples": 120000, "p95": 0.011, …}
"""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from squallpy.base.events import DEBUG
from squallpy.base.records import dataclass
from squallpy.runtime.observers.event_log import EventLog
from squallpy.runtime.observers.prometheus import Prometheus
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.observers.report import BatchReport, JoinReport, RunSummary

if TYPE_CHECKING:
    from squallpy.runtime.sources.source_report import SourceReport

SECONDS, EVENTS, ROWS = 900, 200, 100
"""The seconds, events and left out rows that are kept."""
_SAMPLE = 1.0  # seconds between two looks at the size of the state and at the sources
_ALIKE = 1024  # batches of a second whose times are kept
_PENDING = 512  # reports that wait to be taken in


@dataclass(slots=True)
class Second:
    """A second of a run."""

    at: int
    batches: int = 0
    tuples: int = 0
    changed: int = 0
    left_out: int = 0
    times: list[float] = field(default_factory=list)
    read: dict[str, int] = field(default_factory=dict)
    state_bytes: int | None = None
    lag_rows: int | None = None
    lag: float | None = None
    load: float | None = None
    migrated: float | None = None
    _known: dict[str, Any] = field(default_factory=dict)
    """Its record, if nothing has changed since it was asked for."""

    def add(self, report: BatchReport) -> None:
        """Add a batch."""
        self._known = {}
        self.batches += 1
        self.tuples += report.tuples
        self.changed += report.rows
        self.left_out += report.skipped + report.unmatched + report.duplicates + report.late
        for source, rows in report.read_rows.items():
            self.read[source] = self.read.get(source, 0) + rows
        if len(self.times) < _ALIKE:
            self.times.append(report.seconds)
        if report.join:
            self.load, self.migrated = report.join.ilf, report.join.migrated

    def note_state(self, size: int) -> None:
        """Note the bytes of the state."""
        self.state_bytes, self._known = size, {}

    def note_lag(self, rows: int, seconds: float) -> None:
        """Note what is unread, and the age of its first row."""
        self.lag_rows, self.lag, self._known = rows, seconds, {}

    def record(self) -> dict[str, Any]:
        """Return it as JSON: median, 95th percentile and greatest of the seconds of its batches."""
        if self._known:
            return self._known
        found: dict[str, Any] = {name: getattr(self, name) for name in _FIGURES}
        if ordered := sorted(self.times):
            last = len(ordered) - 1
            found |= {"p50": ordered[last // 2], "p95": ordered[-(-95 * last // 100)], "max": ordered[-1]}
        self._known = {**found, "read": dict(self.read)}
        return self._known


_FIGURES = ("at", "batches", "tuples", "changed", "left_out", "state_bytes", "lag_rows", "lag", "load", "migrated")


class Recorder(Observer):
    """An observer that keeps what the page shows of batches, beside the metrics of Prometheus.

    Args:
        usage: Returns records and bytes by view, between two batches.
        sources: Returns how far behind a batch, the last one, is by source.
    """

    def __init__(
        self,
        patience: float = 60.0,
        wall: Callable[[], float] = time,
        clock: Callable[[], float] = monotonic,
        usage: Callable[[], Mapping[str, Mapping[str, int]]] = dict,
        sources: "Callable[[int], Mapping[str, SourceReport]]" = lambda _: {},
    ) -> None:
        self.usage, self.sources = usage, sources
        self.batch, self.failed = -1, False
        self._wall, self._clock, self._sampled = wall, clock, clock() - _SAMPLE
        self._at = list[float]()  # the times of a report that is taken in now
        self._metrics = Prometheus(patience, lambda: self._times[0], lambda: self._times[1])
        self._log = EventLog(self.note)
        self._lock, self._pending = threading.RLock(), deque[tuple[float, float, BatchReport]]()
        self._seconds = deque[Second](maxlen=SECONDS)
        self._events, self._mappings = deque[dict[str, Any]](maxlen=EVENTS), deque[dict[str, Any]](maxlen=EVENTS)
        self._rows = deque[dict[str, Any]](maxlen=ROWS)
        self._join = JoinReport()
        self._received = dict[str, Counter[str]]()

    @property
    def _times(self) -> list[float]:
        """The times of what is taken in: that of day, and that of a clock that never jumps."""
        return self._at or [self._wall(), self._clock()]

    @property
    def metrics(self) -> Prometheus:
        """The metrics of all batches so far."""
        with self._lock:
            self._take_in()
        return self._metrics

    def note(self, logger: logging.Logger, level: int, event: str, **fields: object) -> None:
        """Keep an event, as `log_event` takes them."""
        if level > DEBUG:
            said = {name: value for name, value in fields.items() if value is not None}
            about = {"at": self._times[0], "level": logging.getLevelName(level).lower()}
            with self._lock:
                self._events.append({**about, "logger": logger.name, "event": event, "fields": said})

    def fail(self, reason: str) -> None:
        """Take note that the run has failed."""
        with self._lock:
            self._take_in()
            self._metrics.fail(reason)
            self.failed = True

    def on_query_started(self, start: QueryStart) -> None:
        with self._lock:
            self._take_in()
            self._metrics.on_query_started(start)
            self.batch = start.done - 1
            self._log.on_query_started(start)

    def on_plan_changed(self, start: QueryStart) -> None:
        with self._lock:
            self._take_in()
            self._metrics.on_plan_changed(start)

    def on_query_progress(self, report: BatchReport) -> None:
        """Keep the report until somebody looks, which costs a batch less than to take it in now."""
        if self.is_due:
            self._sampled = self._clock()
            views, sources = report.views or self.usage(), report.sources or self.sources(report.number)
            report = replace(report, views=views or None, sources=sources)
        self.batch = report.number
        self._pending.append((self._wall(), self._clock(), report))
        if len(self._pending) >= _PENDING:
            with self._lock:
                self._take_in()

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        with self._lock:
            self._take_in()
            self._metrics.on_query_idle(sources)
            self._log.on_query_idle(sources)
            self._note_lag(sources)

    def on_query_terminated(self, summary: RunSummary) -> None:
        with self._lock:
            self._take_in()
            self._metrics.on_query_terminated(summary)
            self._log.on_query_terminated(summary)

    def _take_in(self) -> None:
        """Take in the reports that wait."""
        taken = list[BatchReport]()
        while self._pending:
            *self._at, report = self._pending.popleft()
            taken.append(report)
            self._add(report)
            if _is_notable(report) or not self._pending:
                self._metrics.on_batches(taken)
                taken = []
            if _is_notable(report):
                self._log.on_query_progress(report)
            self._at = []

    def _add(self, report: BatchReport) -> None:
        second = self._second()
        second.add(report)
        self._join = report.join or self._join
        for stage, rows in report.received.items():
            self._received.setdefault(stage, Counter()).update(rows)
        self._note_mapping(report.number, self._join)
        self._note_rows("late", report.number, report.late_rows)
        self._note_rows("dead letter", report.number, report.dead_letters)
        if report.state_bytes is not None:
            second.note_state(report.state_bytes)
        self._note_lag(report.sources)

    @property
    def is_due(self) -> bool:
        """True if the size of the state and the sources have not been looked at for a while."""
        return self._clock() - self._sampled >= _SAMPLE

    def sample(self, batch: int) -> None:
        """Look at the size of the state and at the sources after the last batch, before there is another."""
        self._sampled = self._clock()
        if usage := self.usage():
            self.metrics.note_usage(usage)
            with self._lock:
                self._second().note_state(sum(view["bytes"] for view in usage.values()))
        self.on_query_idle(self.sources(batch))

    def report(self, since: int = 0) -> dict[str, Any]:
        """Return the figures as JSON.

        Args:
            since: The first second, in Unix time, of those in the answer.
        """
        with self._lock:
            self._take_in()
            values = self._metrics.values()
            return {
                "now": self._wall(),
                "batch": self.batch,
                "values": {name.removeprefix("squallpy_"): samples for name, samples in values.items()},
                "seconds": [second.record() for second in self._seconds if second.at >= since],
                "events": [event for event in self._events if event["at"] >= since],
                "rows": [row for row in self._rows if row["at"] >= since],
                "join": {name: getattr(self._join, name) for name in JoinReport.__slots__},
                "mappings": [*self._mappings],
                "received": {stage: dict(rows) for stage, rows in self._received.items()},
            }

    def _second(self) -> Second:
        """Return the record of this second."""
        at = int(self._times[0])
        if not self._seconds or self._seconds[-1].at < at:
            self._seconds.append(Second(at))
        return self._seconds[-1]

    def _note_lag(self, sources: "Mapping[str, SourceReport]") -> None:
        backlogs = [about.backlog for about in sources.values() if about.backlog]
        if backlogs:
            since = [each.since for each in backlogs if each.since is not None and each.rows]
            age = max(0.0, self._times[0] - min(since)) if since else 0.0
            self._second().note_lag(sum(each.rows for each in backlogs), age)

    def _note_mapping(self, batch: int, join: JoinReport) -> None:
        """Note where joiners get another mapping."""
        if join.mapping and (not self._mappings or self._mappings[-1]["mapping"] != join.mapping):
            about = {"at": self._times[0], "batch": batch, "epoch": join.epoch}
            self._mappings.append({**about, "mapping": join.mapping, "load": join.ilf})

    def _note_rows(self, why: str, batch: int, rows: Mapping[str, Sequence[str]]) -> None:
        for stream, each in rows.items():
            about = {"at": self._times[0], "why": why, "batch": batch, "stream": stream}
            self._rows.extend({**about, "row": row} for row in each[:ROWS])


def _is_notable(report: BatchReport) -> bool:
    """True if a report has what events tell of (`EventLog`)."""
    figures = report.skipped or report.unmatched or report.duplicates or report.late or report.retries
    return bool(figures or report.join or report.sources or report.rebuilt or report.snapshots)
