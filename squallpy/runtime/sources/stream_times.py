"""Processing time of streams: which are idle, and how far the event time of others has gone on without rows.

times = StreamTimes({"r": TimeLimits(idle_timeout=30.0)}, now=0.0)
times.decide(31.0, came=set())   →   {"r": StreamTime(is_idle=True)}

Only a clock that never jumps is asked, and what it decides is logged with the batch: who repeats that decides the same.
Time in which no run is there does not count.
"""

from collections.abc import Callable, Collection, Mapping

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.catalog.window_spec import NOW

MICROS = 1_000_000
TICK = 1 * MICROS  # of event time, after which windows are looked at though nothing has come


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds without rows after which a stream is idle, and its event time goes on; None: never."""

    idle_timeout: float | None = None
    close_after: float | None = None

    @staticmethod
    def of(relation: Relation) -> "TimeLimits | None":
        """Read the limits of a relation; None if it has none."""
        if not relation.is_timed:
            return None
        idle, close = (relation.options.get(name) for name in ("idle_timeout", "close_after"))
        return TimeLimits(parse_interval(idle) if idle else None, parse_interval(close) if close else None)


@dataclass(frozen=True, slots=True)
class StreamTime:
    """The processing time of a stream at a batch.

    Args:
        is_idle: It holds no window back.
        since: Microseconds by which its event time had gone on before the batch, since rows came.
        until: The same after the batch.
    """

    is_idle: bool = False
    since: int = 0
    until: int = 0


Times = Mapping[str, StreamTime]
"""Processing times by stream, of those that have limits, and under the name of NOW the time of the batch."""


def time_of_batch(micros: int) -> Times:
    """Give a batch a time, in microseconds since 1970: what NOW() is in it."""
    return {NOW.relation: StreamTime(until=micros)}


class StreamTimes:
    """The decisions on the processing time of streams, of which the last one made is known."""

    def __init__(
        self, limits: Mapping[str, TimeLimits], now: float, read_time: Callable[[], int] | None = None
    ) -> None:
        """Begin at a time of the clock that never jumps.

        Args:
            read_time: Gives the time of day in microseconds since 1970, if batches have one.
        """
        self._limits, self._came, self._read_time = limits, dict.fromkeys(limits, now), read_time
        self._last: Times = {**dict.fromkeys(limits, StreamTime()), **(time_of_batch(0) if read_time else {})}

    def decide(self, now: float, came: Collection[str]) -> Times:
        """Decide on a batch with rows of the streams that `came`."""
        times = dict[str, StreamTime]()
        if self._read_time:  # NB: the time of day may be set back
            times |= time_of_batch(max(self._last[NOW.relation].until, self._read_time()))
        for name, limits in self._limits.items():
            if name in came:
                self._came[name] = now
            silent, last = now - self._came[name], self._last[name]
            if name in came:
                times[name] = StreamTime()
                continue
            is_idle = limits.idle_timeout is not None and silent >= limits.idle_timeout
            gone_on = 0.0 if limits.close_after is None else silent - limits.close_after
            times[name] = StreamTime(is_idle, last.until, max(last.until, int(MICROS * gone_on)))
        return times

    def go_on(self, logged: Times) -> None:
        """Begin with the time of a batch that was logged, by a run before it may be, so that time never goes back."""
        if self._read_time and NOW.relation in logged:
            self._last = {**self._last, NOW.relation: logged[NOW.relation]}

    def is_due(self, times: Times) -> bool:
        """True if windows may close by a batch without rows."""
        moved = (times[name].until - last.until >= TICK for name, last in self._last.items())
        return any(moved) or any(times[name].is_idle and not last.is_idle for name, last in self._last.items())

    def note(self, times: Times) -> None:
        """Take note that a batch with these times is logged."""
        self._last = times
