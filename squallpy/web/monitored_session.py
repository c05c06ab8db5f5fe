"""A session in this process as the page reads it."""

from collections.abc import Mapping
from typing import Any

from squallpy.base.events import first_line
from squallpy.live.live_session import LiveSession
from squallpy.live.subscription import Subscription
from squallpy.logical.nodes import Query
from squallpy.runtime.observers.protocol import QueryStart
from squallpy.runtime.sources.source_report import SourceReport, measure_sources
from squallpy.web.catalogue import describe
from squallpy.web.protocol import MonitoredRows
from squallpy.web.recorder import Recorder

LIMIT = 64
"""Batches of changes that wait to be sent."""
_FOREVER = float("inf")  # NB: a session waits for statements as long as people think


class MonitoredSession:
    """A live session whose batches are recorded from now on, until it is closed."""

    def __init__(self, session: LiveSession, name: str = "session") -> None:
        self._session, self._name, self._edition = session, name, 0
        self._known: tuple[object, ...] = ()
        self._described: dict[str, Any] = {}
        self.recorder = Recorder(_FOREVER, usage=self._usage, sources=self._sources)
        session.observers.add(self.recorder)

    def close(self) -> None:
        """Record no more."""
        self._session.observers.remove(self.recorder)

    @property
    def edition(self) -> int:
        session = self._session
        known = (session.program.running, session.settings, session.version)
        if known != self._known:
            if session.program.running is not (self._known or (None,))[0] and session.program.running:
                self.recorder.metrics.on_query_started(QueryStart((), None, tuple, plan=session.program.running.plan))
            self._known, self._edition = known, self._edition + 1
        return self._edition

    @property
    def batch(self) -> int:
        return self._session.program.batches - 1

    @property
    def trouble(self) -> str:
        failure = self._session.failure
        return first_line(failure) if failure else ""

    def catalogue(self) -> Mapping[str, Any]:
        session, edition = self._session, self.edition
        if self._described.get("edition") != edition:
            running, queries = session.program.running, tuple[Query, ...](session.program.queries)
            checkpoint = session.program.checkpoint
            about = {"checkpoint": checkpoint.folder if checkpoint else None, "base": str(session.base)}
            plan = running.plan if running else None
            found = describe(self._name, [*session.catalog.entries.values()], queries, plan, session.settings, **about)
            self._described = {**found, "edition": edition}
        return self._described

    def report(self, since: int = 0) -> Mapping[str, Any]:
        session = self._session
        if self.recorder.is_due and not session.failure and session.lock.acquire(blocking=False):
            try:
                self.recorder.sample(self.batch)
            finally:
                session.lock.release()
        state = "paused" if session.is_paused else "running"
        return {**self.recorder.report(since), "edition": self.edition, "state": state, "trouble": self.trouble}

    def metrics(self) -> str:
        return self.recorder.metrics.exposition()

    def rows(self, view: str) -> MonitoredRows:
        return MonitoredRows(*self._session.numbered_table(view))

    def changes(self, view: str) -> Subscription:
        return self._session.subscribe(view, limit=LIMIT)

    def _usage(self) -> Mapping[str, Mapping[str, int]]:
        return self._session.program.usage

    def _sources(self, batch: int) -> Mapping[str, SourceReport]:
        running = self._session.program.running
        return measure_sources(running.input, batch) if running else {}
