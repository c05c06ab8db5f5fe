"""Steps of compiled triggers over DATEs, as days since 1970-01-01 in the Gregorian calendar.

Source: Howard Hinnant, *chrono-compatible low-level date algorithms*, days_from_civil.
"""

from squallpy.runtime.kernels.batch_expressions import part_of_date
from squallpy.runtime.kernels.kernel_compiler import called

_YEAR, _MONTH, _DAY = range(3)  # for `part_of_date`


@called
def day_of(year: int, month: int, day: int) -> int:
    """Count the days to a date."""
    since_march = (month + 9) % 12
    year -= 1 if month <= 2 else 0
    of_era = year % 400
    days = 365 * of_era + of_era // 4 - of_era // 100 + (153 * since_march + 2) // 5 + day - 1
    return year // 400 * 146097 + days - 719468


@called
def day_of_year(day: int) -> int:
    """Number the days of a year from 1."""
    return day - day_of(part_of_date(day, _YEAR), 1, 1) + 1


@called
def week_of_year(day: int) -> int:
    """Number the weeks of a year as ISO 8601 does: a week is of the year of its Thursday."""
    thursday = day - (day + 3) % 7 + 3
    return (thursday - day_of(part_of_date(thursday, _YEAR), 1, 1)) // 7 + 1


@called
def first_of_months(day: int, months: int) -> int:
    """Find the first day of the 1, 3 or 12 months that a day is in."""
    return day_of(part_of_date(day, _YEAR), (part_of_date(day, _MONTH) - 1) // months * months + 1, 1)


@called
def first_of_month_after(day: int, months: int) -> int:
    """Find the first day of the month so many months after that of a day."""
    month = part_of_date(day, _MONTH) - 1 + months
    return day_of(part_of_date(day, _YEAR) + month // 12, month % 12 + 1, 1)


@called
def months_after(day: int, months: int) -> int:
    """Add months to a date; where the month has no such day it is its last."""
    first = first_of_month_after(day, months)
    return first + min(part_of_date(day, _DAY), first_of_month_after(first, 1) - first) - 1
