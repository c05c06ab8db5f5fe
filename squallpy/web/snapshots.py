"""Rows of views as the page shows them, taken so seldom that batches lose little of their time."""

import threading
from collections.abc import Callable
from time import monotonic

from squallpy.base.records import dataclass
from squallpy.web.protocol import Monitored, MonitoredRows

_SHARE = 100  # the least time until rows are taken again, as a multiple of what it took
KEPT = 30.0
"""Seconds for which rows are kept that nobody asks for."""
_QUIET = 1.0  # seconds without a batch after which nobody waits for one


@dataclass(slots=True)
class _Taken:
    """Rows that were taken, until when they are new enough, and when they were last asked for."""

    rows: MonitoredRows
    until: float
    asked: float


class Snapshots:
    """The rows of views, each as of the end of one batch."""

    def __init__(self, monitored: Callable[[], Monitored], clock: Callable[[], float] = monotonic) -> None:
        self._monitored, self._clock = monitored, clock
        self._lock, self._taken = threading.Lock(), dict[str, _Taken]()
        self._batch, self._since = -1, clock()

    def rows(self, view: str, fresh: bool = True) -> MonitoredRows:
        """Return the rows of a view.

        Args:
            fresh: They are those of the last batch; else they may be older where it takes long to list them.
        """
        with self._lock:
            now, monitored = self._clock(), self._monitored()
            if (batch := monitored.batch) != self._batch:
                self._batch, self._since = batch, now
            known = self._taken.get(view)
            is_due = fresh or now >= min(known.until, self._since + _QUIET) if known else True
            if known and (known.rows.batch == batch or not is_due):
                known.asked = now
                return known.rows
            rows = monitored.rows(view)
            end = self._clock()
            self._taken[view] = _Taken(rows, end + _SHARE * (end - now), end)
            return rows

    def prune(self) -> None:
        """Forget rows that nobody has asked for, for a while."""
        with self._lock:
            now = self._clock()
            self._taken = {name: each for name, each in self._taken.items() if each.asked > now - KEPT}

    def forget(self) -> None:
        """Forget all rows: views of the same names may be others now."""
        with self._lock:
            self._taken.clear()
