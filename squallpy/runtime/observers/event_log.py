"""The log of a run: what is worth a line of a batch's report, and where queries begin and end."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from squallpy.base.events import CHECKPOINT, DEBUG, INFO, JOINS, QUERY, SOURCES, SPARK, WARNING, LogEvent, log_event
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.observers.report import BatchReport, JoinReport, RunSummary

if TYPE_CHECKING:
    from squallpy.runtime.sources.source_report import SourceReport


class EventLog(Observer):
    """An observer that logs the events of a run, each once; where queries begin with what is said `about` the run.

    Args:
        log: Takes them, as `log_event` does.
    """

    def __init__(self, log: LogEvent = log_event, **about: object) -> None:
        self._log, self._about, self._join = log, about, JoinReport()
        self._waits_for = dict[str, str]()

    def on_query_started(self, start: QueryStart) -> None:
        self._join = JoinReport()
        about = {**self._about, "queries": len(start.queries), "batches": start.batches}
        if start.done:
            self._log(QUERY, INFO, "resume", **about, batch=start.done)
        else:
            self._log(QUERY, INFO, "start", **about)

    def on_query_progress(self, report: BatchReport) -> None:
        batch = report.number
        seconds, left_out = round(report.seconds, 6), report.left_out
        self._log(QUERY, DEBUG, "batch", batch=batch, tuples=report.tuples, rows=report.rows, seconds=seconds)
        if left_out:
            self._log(QUERY, WARNING, "left out", batch=batch, **left_out)
        if report.retries:
            self._log(SPARK, WARNING, "retry", batch=batch, attempts=report.retries)
        for rebuild in report.rebuilt:
            level = WARNING if rebuild["damaged"] else INFO
            self._log(CHECKPOINT, level, "rebuild", batch=batch, **rebuild)
        for snapshot in report.snapshots:
            self._log(CHECKPOINT, INFO, "snapshot", batch=batch, **snapshot)
        self._log_waiting(report.sources)
        self._log_migration(batch, report.join or JoinReport())

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        self._log_waiting(sources)

    def _log_waiting(self, sources: "Mapping[str, SourceReport]") -> None:
        """Log which streams wait for a place that is not there, and which do not any more."""
        for stream, about in sources.items():
            before = self._waits_for.get(stream, "")
            if about.waits_for and not before:
                self._log(SOURCES, WARNING, "waiting", stream=stream, path=about.waits_for)
            if before and not about.waits_for:
                self._log(SOURCES, INFO, "found", stream=stream, path=before)
            self._waits_for[stream] = about.waits_for

    def on_query_terminated(self, summary: RunSummary) -> None:
        why = "asked" if summary.stopped else "end of input"
        seconds = round(summary.seconds, 3)
        about = {"reason": why, "batches": summary.batches, "tuples": summary.tuples, "seconds": seconds}
        self._log(QUERY, INFO, "stop", **about)

    def _log_migration(self, batch: int, join: JoinReport) -> None:
        """Log where a migration of joiners begins and ends, and how many keys got or lost a grid."""
        before, self._join = self._join, join
        about = {"batch": batch, "mapping": join.mapping, "epoch": join.epoch}
        if None not in (before.epoch, join.epoch) and before.epoch != join.epoch:
            self._log(JOINS, INFO, "migration", state="finished", **about)
        elif before.migrated is not None and join.migrated is None:
            self._log(JOINS, INFO, "migration", state="abandoned", **about)
        if join.migrated is not None and before.migrated is None:
            self._log(JOINS, INFO, "migration", state="begun", **about)
        if (before.heavy_keys or 0) != (join.heavy_keys or 0):
            self._log(JOINS, INFO, "migration", state="keys", batch=batch, heavy_keys=join.heavy_keys)
