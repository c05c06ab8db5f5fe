"""Reports of batches for whoever shows them now."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport

if TYPE_CHECKING:
    from squallpy.runtime.sources.source_report import SourceReport


class BatchRelay(Observer):
    """An observer that passes reports on to another, while there is one, and counts rows."""

    def __init__(self) -> None:
        self.to: Observer | None = None
        self.tuples = 0

    def on_query_progress(self, report: BatchReport) -> None:
        self.tuples += report.tuples
        if to := self.to:
            to.on_query_progress(report)

    def on_query_idle(self, sources: "Mapping[str, SourceReport]") -> None:
        if to := self.to:
            to.on_query_idle(sources)
