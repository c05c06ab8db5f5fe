"""Moments of temporal filters: the time of the batch, NOW(), shifted and cut to whole units.

    NOW() - INTERVAL '1' HOUR                     Shift(micros=−1 hour)
    CURRENT_DATE - INTERVAL '7' DAY               Truncation('DAY'), Shift(micros=−7 days)
    DATE_TRUNC('MONTH', NOW() - INTERVAL 1 DAY)   Shift(micros=−1 day), Truncation('MONTH')

Each step moves a later moment to one that is not before that of an earlier one, so rows enter and leave but once.
"""

from calendar import monthrange
from datetime import datetime, timedelta
from functools import reduce

from squallpy.base.records import dataclass
from squallpy.catalog.durations import DAY, format_duration

_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MONDAY = 3 * DAY  # 1970 began on a Thursday
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Shift:
    """The moment some months, then some microseconds later; months as ADD_MONTHS adds them."""

    months: int = 0
    micros: int = 0

    def __call__(self, moment: int) -> int:
        return (_add_months(moment, self.months) if self.months else moment) + self.micros

    def text(self, moment: str) -> str:
        """Write what it makes of a moment."""
        parts = ((f"{abs(self.months)} MONTH", self.months), (format_duration(abs(self.micros)), self.micros))
        return moment + "".join(f" {'−' if sign < 0 else '+'} {text}" for text, sign in parts if sign)


@dataclass(frozen=True, slots=True)
class Truncation:
    """The last moment that begins a YEAR, QUARTER, MONTH or WEEK, or a multiple of `micros` since 1970."""

    unit: str
    micros: int = 0

    def __call__(self, moment: int) -> int:
        if self.unit == "WEEK":
            return moment - (moment + _MONDAY) % (7 * DAY)
        if self.unit not in _MONTHS:
            return moment - moment % self.micros
        at, size = _EPOCH + timedelta(microseconds=moment), _MONTHS[self.unit]
        first = datetime(at.year, (at.month - 1) // size * size + 1, 1)
        return (first - _EPOCH) // timedelta(microseconds=1)

    def text(self, moment: str) -> str:
        """Write what it makes of a moment."""
        return f"DATE_TRUNC('{self.unit}', {moment})"


@dataclass(frozen=True, slots=True)
class NowBound:
    """A moment that is some steps from the time of the batch; if it is closed, rows at it are inside."""

    steps: tuple[Shift | Truncation, ...] = ()
    is_closed: bool = False

    def moment(self, now: int) -> int:
        """Compute the moment by the time of the batch, in microseconds."""
        return reduce(lambda moment, step: step(moment), self.steps, now)

    def __str__(self) -> str:
        return reduce(lambda text, step: step.text(text), self.steps, "NOW()")


def _add_months(moment: int, months: int) -> int:
    """Add months to a number of microseconds since 1970, as ADD_MONTHS does."""
    before = _EPOCH + timedelta(microseconds=moment)
    year, month = divmod(before.year * 12 + before.month - 1 + months, 12)
    day = min(before.day, monthrange(year, month + 1)[1])
    return (before.replace(year=year, month=month + 1, day=day) - _EPOCH) // timedelta(microseconds=1)
