"""Protocol of what has a page: a run, a session, or one in another process.

All that is passed is plain: JSON, and rows as Arrow.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.live.subscription import ChangeReader


@dataclass(frozen=True, slots=True)
class MonitoredRows:
    """The rows of a view as of the end of a batch."""

    batch: int
    table: pa.Table


class Monitored(Protocol):
    """A run or a session as the page reads it, from any thread."""

    @property
    def edition(self) -> int:
        """The number of times that the catalogue has changed."""
        ...

    @property
    def batch(self) -> int:
        """The number of the last batch; -1 before the first."""
        ...

    @property
    def trouble(self) -> str:
        """The trouble that it is in, in words; empty while it lives."""
        ...

    def catalogue(self) -> Mapping[str, Any]:
        """Describe streams, tables, views, plan, triggers and settings (`describe`)."""
        ...

    def report(self, since: int = 0) -> Mapping[str, Any]:
        """Return the figures as of now, and the seconds and events from a time on (`Recorder.report`)."""
        ...

    def metrics(self) -> str:
        """Write the metrics for Prometheus."""
        ...

    def rows(self, view: str) -> MonitoredRows:
        """Return the rows of a view; SQ2001 if there is none."""
        ...

    def changes(self, view: str) -> ChangeReader:
        """Return the changes of a view from now on; SQ2001 if there is none."""
        ...
