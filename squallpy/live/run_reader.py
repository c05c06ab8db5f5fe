"""A run of a script as other threads read it: an observer, whose run waits between two batches while they do."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from squallpy.base.errors import SquallError, nearest
from squallpy.live.subscription import LIMIT, Subscription, ViewSink
from squallpy.logical.nodes import Query
from squallpy.runtime.observers.protocol import Observer, Observers, QueryStart
from squallpy.runtime.observers.report import BatchReport, RunSummary

if TYPE_CHECKING:
    from squallpy.runtime.sources.source_report import SourceReport

_PATIENCE = 30.0  # seconds that a reader waits for a batch to end


class _Reader:
    """Somebody who reads between two batches."""

    def __init__(self) -> None:
        self.begins, self.ends = threading.Event(), threading.Event()


class RunReader(Observer):
    """The queries of a run, from their beginning on.

    Attributes:
        observers: Others who are told what it is told, before anybody reads.
        start: The beginning of the run, if it has begun.
        batch: The number of the last batch; -1 before the first.
    """

    def __init__(self) -> None:
        self.observers = Observers()
        self.start: QueryStart | None = None
        self.batch = -1
        self.is_over, self.has_failed = False, False
        self._taps = dict[int, ViewSink]()
        self._lock, self._reading, self._waiting = threading.Lock(), threading.RLock(), list[_Reader]()

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries of the run; none before it begins."""
        return tuple(self.start.queries) if self.start else ()

    def usage(self) -> Mapping[str, Mapping[str, int]]:
        """Return records and bytes by view (`Store.usage`), between two batches."""
        return self.start.usage() if self.start else {}

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the run between two batches.

        Raises:
            SquallError: SQ7012 if the run has failed, SQ7010 if a batch takes too long.
        """
        reader = _Reader()
        with self._lock:
            if self.has_failed:
                raise _failed()
            if not self.is_over:
                self._waiting.append(reader)
            else:
                reader.begins.set()
        try:
            if not reader.begins.wait(_PATIENCE):
                hint = "ask again when it is done"
                raise SquallError("SQ7010", f"the batch in work takes more than {_PATIENCE:.0f} s", hint=hint)
            if self.has_failed:
                raise _failed()
            with self._reading:
                yield
        finally:
            reader.ends.set()

    def rows(self, name: str) -> tuple[int, pa.Table]:
        """Return the number of the last batch, and the rows of a query as of it; SQ2001 if there is no such query."""
        number = self.number(name)
        with self.hold():
            return self.batch, self.result(number)

    def result(self, number: int) -> pa.Table:
        """Return the rows of a query, under a hold; SQ3001 if they are not kept."""
        assert self.start and self.start.result
        if self.start.plan and not self.start.plan.keeps_results:
            message = f"the rows of {self.queries[number].name} are printed and not kept"
            raise SquallError("SQ3001", message, hint="--mode final keeps them")
        return self.start.result(number)

    def changes(self, name: str, limit: int = LIMIT) -> Subscription:
        """Return the changes of a query from now on; SQ3001 if they are not passed on."""
        query = self.queries[self.number(name)]
        tap = self._taps.get(query.number)
        if tap is None:
            message = f"the changes of {query.name} are not passed on by its run"
            hint = "read its rows" if query.view or query.sink else "run it with --mode changes --ui, or read its rows"
            raise SquallError("SQ3001", message, hint=hint)
        reader = Subscription(query.name, lambda: not self.is_over, limit)
        with self._lock:
            tap.subscribe(reader)
            if self.is_over:
                reader.close()
        return reader

    def tap(self, query: Query) -> ViewSink:
        """Make the sink that passes the changes of a query on."""
        return self._taps.setdefault(query.number, ViewSink(query.view or f"query {query.number}"))

    def number(self, name: str) -> int:
        """Return the place of a query; SQ2001 if there is no such query."""
        names = [query.name for query in self.queries]
        for number, each in enumerate(names):
            if each.lower() == name.lower():
                return number
        raise SquallError("SQ2001", f'unknown view "{name}"', hint=nearest(name, names))

    def end(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Take note that no batch will end any more, as a context manager is left."""
        self.has_failed = error is not None
        self._end()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            for tap in self._taps.values():
                tap.close()
        self._admit()

    def _admit(self) -> None:
        """Let those read who wait."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for reader in waiting:
            reader.begins.set()
            reader.ends.wait()

    def on_query_started(self, start: QueryStart) -> None:
        self.observers.on_query_started(start)
        self.batch = start.done - 1
        self.start = start

    def on_plan_changed(self, start: QueryStart) -> None:
        self.observers.on_plan_changed(start)
        self.start = start

    def on_query_progress(self, report: BatchReport) -> None:
        self.batch = report.number
        self.observers.on_query_progress(report)
        self._admit()

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        self.observers.on_query_idle(sources)
        self._admit()

    def on_query_terminated(self, summary: RunSummary) -> None:
        self.observers.on_query_terminated(summary)
        self._end()


def _failed() -> SquallError:
    return SquallError("SQ7012", "the run has failed", hint="start it again")
