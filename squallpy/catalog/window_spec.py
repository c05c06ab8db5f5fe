"""Windows: the rows of a stream that a query reads, those above a bound that moves up with a clock.

RANGE 5 MIN                T − 5 min < t        T: the event time that all streams of the block have reached
RANGE 5 MIN SLIDE 1 MIN    T' − 5 min < t       T': T rounded down to a whole minute
TUMBLE 20 SEC              T' <= t              T': T rounded down to 20 s
SESSION 5 MIN              P < t                P: the last row before a pause of more than 5 min that ended before T
ROWS 1000 …                the same with t as a row's number in its stream, T as the last number
t > NOW() - INTERVAL …     T − … < t            T: the time of the batch
"""

import dataclasses
from collections.abc import Collection

from squallpy.base.records import dataclass
from squallpy.catalog.durations import format_duration
from squallpy.catalog.now_moments import NowBound

ARRIVAL = "__arrival"  # the number of a row in its stream, from 0: a field added by readers
UNBOUNDED = -(2**63)  # the bound of a window that has no clock yet: every value but NULL is above it


@dataclass(frozen=True, slots=True)
class WindowExtent:
    """Extent of a window: `size` and `slide` in microseconds of event time, or, with `rows`, in rows."""

    size: int
    slide: int = 1
    tumbling: bool = False
    rows: bool = False

    def __post_init__(self) -> None:
        assert 0 < self.slide <= self.size, f"{self} moves too far"

    def lower_bound(self, clock: int) -> int:
        """Compute the bound that a row's time has to exceed.

        WindowExtent(10).bound(25)             →   15
        WindowExtent(10, 10).bound(25)         →   10
        WindowExtent(10, 10, True).bound(25)   →   19
        """
        moved = clock // self.slide * self.slide
        return moved - 1 if self.tumbling else moved - self.size

    def upper_bound(self, clock: int) -> None:
        """Return nothing: rows that are ahead of the clock are visible."""

    def __str__(self) -> str:
        size, slide = (str(n) if self.rows else format_duration(n) for n in (self.size, self.slide))
        if self.rows:
            return f"ROWS {size}" + (" TUMBLE" if self.tumbling else f" SLIDE {slide}" if self.slide > 1 else "")
        if self.tumbling:
            return f"TUMBLE {size}"
        return f"RANGE {size}" + (f" SLIDE {slide}" if self.slide > 1 else "")


@dataclass(frozen=True, slots=True)
class SessionExtent:
    """Extent of the rows since a stream's last pause of more than `gap` microseconds."""

    gap: int
    rows = False
    tumbling = False

    def lower_bound(self, clock: int) -> int:
        """Return no bound: it follows from the times of rows, too (`runtime/time/pauses.py`)."""
        return UNBOUNDED

    def upper_bound(self, clock: int) -> None:
        """Return nothing: rows that are ahead of the clock are visible."""

    def __str__(self) -> str:
        return f"SESSION {format_duration(self.gap)}"


@dataclass(frozen=True, slots=True)
class NowExtent:
    """Extent of a temporal filter: the rows whose time is above `low` and below `high`, None where it is open."""

    low: NowBound | None = None
    high: NowBound | None = None
    rows = False
    tumbling = False

    def lower_bound(self, clock: int) -> int:
        """Compute the bound that a row's time has to exceed."""
        return UNBOUNDED if self.low is None else self.low.moment(clock) - self.low.is_closed

    def upper_bound(self, clock: int) -> int | None:
        """Compute the bound that a row's time may not exceed; None if there is none."""
        return None if self.high is None else self.high.moment(clock) - (not self.high.is_closed)

    def conditions(self, time: str) -> list[str]:
        """Write the conditions on a time: at > NOW() − 1 HOUR, at <= NOW()"""
        ends = (self.low, ">"), (self.high, "<")
        return [f"{time} {op}{'=' * end.is_closed} {end}" for end, op in ends if end is not None]

    def __str__(self) -> str:
        return "NOW() in WHERE"


@dataclass(frozen=True, slots=True)
class Clock:
    """Clock of a stream: the greatest value of a field so far, less a delay; in microseconds, or rows.

    `is_timed`: processing time moves it, too, or makes it idle. `gap`: a pause of the stream is more steps of the field
    without a row; 0 where pauses do not count.
    """

    relation: str
    field: str
    unit: int = 1  # microseconds, or rows, of one step of the field
    delay: int = 0
    is_timed: bool = dataclasses.field(default=False, compare=False)
    gap: int = 0

    @property
    def name(self) -> str:
        """Name that is shared by all windows that go by the same field, and the same pauses."""
        return f"{self.relation}.{self.field}" + (f" {self.gap}" if self.gap else "")


NOW = Clock("", "now", is_timed=True)
"""The clock whose time is that of the batch: of no stream, as relations have names."""


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """The window of a block over one of its streams. T is the least time of the `clocks`.

    `field` of the stream tells the time of a row, in `unit`s as those of clocks. `number` is that of the clause that it
    is from. `report_late`: late rows are not only counted.
    """

    stream: str
    frame: WindowExtent | SessionExtent | NowExtent
    field: str
    unit: int
    clocks: tuple[Clock, ...]
    number: int = 0
    report_late: bool = False

    def lower_bound(self, latest: dict[str, int], idle: Collection[str] = ()) -> int:
        """Compute the bound that the field has to exceed, given each clock's latest value by name; UNBOUNDED if one has
        none.

        Clocks that are `idle` do not count, or, if all of them are, the one that is ahead of the others does.
        """
        now = self.now(latest, idle)
        return UNBOUNDED if now is None else max(self.frame.lower_bound(now) // self.unit, UNBOUNDED)

    def upper_bound(self, latest: dict[str, int]) -> int | None:
        """Compute the bound that the field may not exceed, given each clock's latest value; None if there is none."""
        now = self.now(latest, ())
        return UNBOUNDED if now is None else self.frame.upper_bound(now)

    @property
    def is_ahead(self) -> bool:
        """True if rows may be ahead of the window, which they enter later."""
        return isinstance(self.frame, NowExtent) and self.frame.high is not None

    def now(self, latest: dict[str, int], idle: Collection[str]) -> int | None:
        """Compute the time that the window is at; None if a clock has none yet."""
        asked = [clock for clock in self.clocks if clock.name not in idle]
        times = [latest[c.name] * c.unit - c.delay for c in asked or self.clocks if c.name in latest]
        if len(times) < max(1, len(asked)):
            return None
        return min(times) if asked else max(times)
