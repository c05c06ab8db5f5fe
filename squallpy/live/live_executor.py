"""Executors of a session's plan, as the session drives them."""

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from squallpy.runtime.local_executor import Printed
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.result.result import NO_TESTS, Equal
from squallpy.runtime.result.result_scan import RowScan
from squallpy.runtime.sources.input import BatchSpans


class LiveExecutor(Protocol):
    """An executor of a session's plan, batch by batch."""

    next: int
    schemas: tuple[pa.Schema, ...]

    def step(self, step: BatchSpans | None = None) -> tuple[Printed, BatchReport]:
        """Apply a batch."""
        ...

    def commit(self) -> None:
        """Note that the batch has reached its sinks."""
        ...

    def close(self) -> None:
        """End what runs for it; its state stays where it is."""
        ...

    def result(self, query: int, equal: Equal = NO_TESTS) -> pa.Table:
        """Return the printed result of a query as of the last batch (`Results.table`)."""
        ...

    def scan(self, query: int, equal: Equal = NO_TESTS) -> RowScan:
        """Begin to list the rows of one query as of the last batch (`Results.scan`)."""
        ...

    def end_scans(self) -> None:
        """End scans, whose rows cannot be had any more."""
        ...

    @property
    def usage(self) -> Mapping[str, Mapping[str, int]]:
        """Records and bytes by pool."""
        ...
