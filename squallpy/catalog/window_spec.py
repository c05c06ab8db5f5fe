"""Windows: the rows of a stream that a query reads, those above a bound that moves up with a clock.

RANGE 5 MIN                T − 5 min < t        T: the event time that all streams of the block have reached
RANGE 5 MIN SLIDE 1 MIN    T' − 5 min < t       T': T rounded down to a whole minute
TUMBLE 20 SEC              T' <= t              T': T rounded down to 20 s
ROWS 1000 …                the same with t as a row's number in its stream, T as the last number
"""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass

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

    def __str__(self) -> str:
        size, slide = (str(n) if self.rows else format_duration(n) for n in (self.size, self.slide))
        if self.rows:
            return f"ROWS {size}" + (" TUMBLE" if self.tumbling else f" SLIDE {slide}" if self.slide > 1 else "")
        if self.tumbling:
            return f"TUMBLE {size}"
        return f"RANGE {size}" + (f" SLIDE {slide}" if self.slide > 1 else "")


UNITS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MIN", 60_000_000), ("SEC", 1_000_000), ("MS", 1_000))


def format_duration(micros: int) -> str:
    """Write a duration in its largest whole unit: 90_000_000 → 90 SEC"""
    unit, factor = next(((u, f) for u, f in UNITS if micros % f == 0), ("US", 1))
    return f"{micros // factor} {unit}"


@dataclass(frozen=True, slots=True)
class Clock:
    """Clock of a stream: the greatest value of a field so far, less a delay; in microseconds, or rows.

    `is_timed`: processing time moves it, too, or makes it idle.
    """

    relation: str
    field: str
    unit: int = 1  # microseconds, or rows, of one step of the field
    delay: int = 0
    is_timed: bool = dataclasses.field(default=False, compare=False)

    @property
    def name(self) -> str:
        """Name that is shared by all windows that go by the same field."""
        return f"{self.relation}.{self.field}"


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """The window of a block over one of its streams. T is the least time of the `clocks`.

    `field` of the stream tells the time of a row, in `unit`s as those of clocks. `number` is that of the clause that it
    is from. `report_late`: late rows are not only counted.
    """

    stream: str
    frame: WindowExtent
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
        asked = [clock for clock in self.clocks if clock.name not in idle]
        times = [latest[c.name] * c.unit - c.delay for c in asked or self.clocks if c.name in latest]
        if len(times) < max(1, len(asked)):
            return UNBOUNDED
        now = min(times) if asked else max(times)
        return max(self.frame.lower_bound(now) // self.unit, UNBOUNDED)
