"""A run of a script as the page reads it, recorded by what its reader is told."""

from collections.abc import Mapping
from typing import Any

from squallpy.live.hosted_run import HostedRun
from squallpy.live.subscription import ChangeReader
from squallpy.web.catalogue import describe
from squallpy.web.protocol import MonitoredRows
from squallpy.web.recorder import Recorder

LIMIT = 64
"""Batches of changes that wait to be sent."""


class MonitoredRun:
    """A run, recorded from now on."""

    def __init__(self, run: HostedRun) -> None:
        self._run, self._reader = run, run.reader
        self.recorder = Recorder(run.settings.health_seconds, usage=self._reader.usage)
        self._described = dict[str, Any]()
        self._reader.observers.add(self.recorder)
        if self._reader.start:
            self.recorder.on_query_started(self._reader.start)
            self.recorder.batch = self._reader.batch

    @property
    def edition(self) -> int:
        return int(self._reader.start is not None)

    @property
    def batch(self) -> int:
        return self.recorder.batch

    @property
    def trouble(self) -> str:
        return self.recorder.metrics.trouble

    def catalogue(self) -> Mapping[str, Any]:
        if self._described.get("edition") != (edition := self.edition):
            start = self._reader.start
            queries, plan = (tuple(start.queries), start.plan) if start else ((), None)
            run = self._run
            entries = tuple(run.script.relations.values())
            found = describe(run.path.name, entries, queries, plan, run.settings, **run.about)
            self._described = {**found, "edition": edition}
        return self._described

    def report(self, since: int = 0) -> Mapping[str, Any]:
        state = "starting" if self._reader.start is None else "ended" if self._reader.is_over else "running"
        return {**self.recorder.report(since), "edition": self.edition, "state": state, "trouble": self.trouble}

    def metrics(self) -> str:
        return self.recorder.metrics.exposition()

    def rows(self, view: str) -> MonitoredRows:
        return MonitoredRows(*self._reader.rows(view))

    def changes(self, view: str) -> ChangeReader:
        return self._reader.changes(view, LIMIT)

    def fail(self, reason: str) -> None:
        """Take note that the run has failed."""
        self.recorder.fail(reason)
