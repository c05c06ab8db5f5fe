"""Protocol of observers, in the shape of Spark's StreamingQueryListener: they are told of a run, and get no rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from squallpy.base.records import dataclass
from squallpy.runtime.observers.report import BatchReport, RunSummary

if TYPE_CHECKING:  # EXPLAIN starts at once
    import pyarrow as pa

    from squallpy.logical.nodes import Query
    from squallpy.physical.plan import Plan
    from squallpy.runtime.sources.source_report import SourceReport


@dataclass(frozen=True, slots=True)
class QueryStart:
    """A run of queries that begins.

    Args:
        batches: The number of its batches; None for input without end.
        results: The printed result of each query as of the last batch.
        done: The number of batches that an earlier run has committed.
        plan: The plan that runs.
        result: The printed result of one query as of the last batch, by its place.
        usage: Records and bytes by view (`Store.usage`), between two batches.
    """

    queries: "Sequence[Query]"
    batches: int | None
    results: "Callable[[], Sequence[pa.Table]]"
    done: int = 0
    plan: "Plan | None" = None
    result: "Callable[[int], pa.Table] | None" = None
    usage: Callable[[], Mapping[str, Mapping[str, int]]] = dict


class Observer:
    """An observer that ignores all that it is told; others override what they look at.

    Calls come in this order: on_query_started, (on_query_progress | on_query_idle | on_plan_changed)*,
    on_query_terminated. The queries of a script run together, as one.
    """

    def on_query_started(self, start: QueryStart) -> None:
        """Take note that a run begins; its sinks have begun."""

    def on_query_progress(self, report: BatchReport) -> None:
        """Take the report of a batch whose rows the sinks have. NB: after a crash the same batch may come again."""

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        """Take note that there is nothing to read, at most once a second, with how far behind the last batch is."""

    def on_plan_changed(self, start: QueryStart) -> None:
        """Take note that a run goes on with another plan, behind its last batch."""

    def on_query_terminated(self, summary: RunSummary) -> None:
        """Take note that a run has ended, with its sums."""


class Observers(Observer):
    """Several observers as one; others may come and go between two calls."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def add(self, observer: Observer) -> None:
        """Let another observer be told from now on."""
        self._observers = (*self._observers, observer)

    def remove(self, observer: Observer) -> None:
        """Let an observer be told no more."""
        self._observers = tuple(each for each in self._observers if each is not observer)

    def on_query_started(self, start: QueryStart) -> None:
        for observer in self._observers:
            observer.on_query_started(start)

    def on_query_progress(self, report: BatchReport) -> None:
        for observer in self._observers:
            observer.on_query_progress(report)

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        for observer in self._observers:
            observer.on_query_idle(sources)

    def on_plan_changed(self, start: QueryStart) -> None:
        for observer in self._observers:
            observer.on_plan_changed(start)

    def on_query_terminated(self, summary: RunSummary) -> None:
        for observer in self._observers:
            observer.on_query_terminated(summary)
