"""Timing of nested spans, added up by their path.

with trace("publish"):
    with trace("log"): …                 trace.taken()   →   {("publish",): 0.012, ("publish", "log"): 0.002}
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter, time_ns

Way = tuple[str, ...]
Seconds = dict[Way, float]
"""Seconds by the path of a span, those of its inner spans included."""

_NOTHING: AbstractContextManager[None] = nullcontext()


class Trace:
    """Adds up spans of one thread; with `on` false it costs next to nothing and says nothing."""

    def __init__(self, on: bool = True) -> None:
        self.on, self._way = on, Way()
        self._seconds: Seconds = {}

    def __call__(self, name: str) -> AbstractContextManager[None]:
        """Time the block as a span within the current one."""
        return self._span(name) if self.on else _NOTHING

    @contextmanager
    def _span(self, name: str) -> Iterator[None]:
        outer, start = self._way, perf_counter()
        self._way = (*outer, name)
        try:
            yield
        finally:
            self._seconds[self._way] = self._seconds.get(self._way, 0.0) + perf_counter() - start
            self._way = outer

    def take_seconds(self) -> Seconds:
        """Take all seconds measured since the last call."""
        seconds, self._seconds = self._seconds, {}
        return seconds


SILENT = Trace(on=False)


def prefix_spans(head: Way, seconds: Seconds) -> Seconds:
    """Prefix the paths of spans with that of an outer span."""
    return {(*head, *way): value for way, value in seconds.items()}


def read_time() -> int:
    """Read the time of day, in microseconds since 1970 in UTC."""
    return time_ns() // 1000
