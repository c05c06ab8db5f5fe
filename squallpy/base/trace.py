"""Where time goes: spans within spans, added up by the way down to them.

with trace("publish"):
    with trace("log"): …                 trace.taken()   →   {("publish",): 0.012, ("publish", "log"): 0.002}
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter

Way = tuple[str, ...]
Seconds = dict[Way, float]
"""By way down to a span, what is within a span included."""

_NOTHING: AbstractContextManager[None] = nullcontext()


class Trace:
    """Adds up spans of one thread; with `on` false it costs next to nothing and says nothing."""

    def __init__(self, on: bool = True) -> None:
        self.on, self._way = on, Way()
        self._seconds: Seconds = {}

    def __call__(self, name: str) -> AbstractContextManager[None]:
        """A span: what the block takes, within the span around it."""
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

    def taken(self) -> Seconds:
        """All since it was last asked."""
        seconds, self._seconds = self._seconds, {}
        return seconds


SILENT = Trace(on=False)


def below(head: Way, seconds: Seconds) -> Seconds:
    """The same as part of another span."""
    return {(*head, *way): value for way, value in seconds.items()}
