"""A run of a script as the page reads it: an observer, whose thread lists rows between two batches."""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from squallpy.base.errors import SquallError, nearest
from squallpy.base.events import first_line
from squallpy.base.settings import Settings
from squallpy.catalog.catalog import Entry
from squallpy.live.subscription import ChangeReader, Subscription, ViewSink
from squallpy.logical.nodes import Query
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.observers.report import BatchReport, RunSummary
from squallpy.runtime.sources.source_report import SourceReport
from squallpy.web.catalogue import describe
from squallpy.web.monitored import Rows
from squallpy.web.recorder import Recorder

LIMIT = 64
"""Batches of changes that wait to be sent."""
_PATIENCE = 30.0  # seconds that somebody waits for a batch to end


class MonitoredRun(Observer):
    """A run, from the beginning of its queries on.

    Args:
        about: Facts that are shown beside the settings.
    """

    def __init__(self, name: str, entries: Iterable[Entry], settings: Settings, **about: object) -> None:
        self._name, self._entries, self._settings, self._about = name, tuple(entries), settings, about
        self.recorder = Recorder(settings.health_seconds)
        self._start: QueryStart | None = None
        self._queries, self._names = tuple[Query, ...](), list[str]()
        self._described = dict[str, Any]()
        self._taps = dict[int, ViewSink]()
        self._lock, self._asked = threading.Lock(), list[tuple[int, Future[Rows]]]()
        self._ended = False

    # what the page asks, from its threads

    @property
    def edition(self) -> int:
        return int(self._start is not None)

    @property
    def batch(self) -> int:
        return self.recorder.batch

    @property
    def trouble(self) -> str:
        return self.recorder.metrics.trouble

    def catalogue(self) -> Mapping[str, Any]:
        if self._described.get("edition") != (edition := self.edition):
            start = self._start
            queries, plan = (tuple(start.queries), start.plan) if start else ((), None)
            found = describe(self._name, self._entries, queries, plan, self._settings, **self._about)
            self._described = {**found, "edition": edition}
        return self._described

    def report(self, since: int = 0) -> Mapping[str, Any]:
        state = "starting" if self._start is None else "ended" if self._ended else "running"
        return {**self.recorder.report(since), "edition": self.edition, "state": state, "trouble": self.trouble}

    def metrics(self) -> str:
        return self.recorder.metrics.exposition()

    def rows(self, view: str) -> Rows:
        number, asked = self._number(view), Future[Rows]()
        with self._lock:
            if self.recorder.failed:
                raise SquallError("SQ7012", "the run has failed", hint="start it again")
            if self._ended:
                return self._rows(number)
            self._asked.append((number, asked))
        try:
            return asked.result(_PATIENCE)
        except TimeoutError:
            hint = "ask again when it is done"
            raise SquallError("SQ7010", f"the batch in work takes more than {_PATIENCE:.0f} s", hint=hint) from None

    def changes(self, view: str) -> ChangeReader:
        number = self._number(view)
        tap = self._taps.get(self._queries[number].number)
        if tap is None:
            message = f"the changes of {self._names[number]} are not computed, for the run writes the final result"
            raise SquallError("SQ3001", message, hint="run it with --mode changes")
        reader = Subscription(self._names[number], lambda: not self._ended, LIMIT)
        with self._lock:
            tap.subscribe(reader)
            if self._ended:
                reader.close()
        return reader

    def tap(self, query: Query) -> ViewSink:
        """Make the sink that passes the changes of a query on."""
        return self._taps.setdefault(query.number, ViewSink(query.view or f"query {query.number}"))

    def _number(self, view: str) -> int:
        """Find a query by its name; SQ2001 if there is none."""
        lowered = [name.lower() for name in self._names]
        if view.lower() not in lowered:
            raise SquallError("SQ2001", f'unknown view "{view}"', hint=nearest(view, self._names))
        return lowered.index(view.lower())

    def _rows(self, number: int) -> Rows:
        assert self._start
        if self._start.plan and not self._start.plan.keeps_results:
            message = f"the rows of {self._names[number]} are printed and not kept"
            raise SquallError("SQ3001", message, hint="--mode final keeps them")
        assert self._start.result
        return Rows(self.batch, self._start.result(number))

    # what the run tells, in its thread

    def on_query_started(self, start: QueryStart) -> None:
        self.recorder.usage = start.usage
        self.recorder.on_query_started(start)
        self._queries, self._names = tuple(start.queries), [query.name for query in start.queries]
        self._start = start

    def on_query_progress(self, report: BatchReport) -> None:
        self.recorder.on_query_progress(report)
        self._answer()

    def on_query_idle(self, sources: Mapping[str, SourceReport]) -> None:
        self.recorder.on_query_idle(sources)
        self._answer()

    def on_query_terminated(self, summary: RunSummary) -> None:
        self.recorder.on_query_terminated(summary)
        self._end()
        self._answer()

    def fail(self, error: BaseException) -> None:
        """Take note that the run has failed, and that no batch will end any more."""
        self.recorder.fail(first_line(error))
        self._end()
        with self._lock:
            asked, self._asked = self._asked, []
        for _, future in asked:
            future.set_exception(SquallError("SQ7012", "the run has failed", hint="start it again"))

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            for tap in self._taps.values():
                tap.close()

    def _answer(self) -> None:
        """List rows for those who wait for them."""
        with self._lock:
            asked, self._asked = self._asked, []
        for number, future in asked:
            _settle(future, lambda number=number: self._rows(number))  # type: ignore[misc]


def _settle(future: "Future[Rows]", work: Callable[[], Rows]) -> None:
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
