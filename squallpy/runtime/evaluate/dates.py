"""Dates (days) and timestamps (µs) since 1970-01-01, both int64."""

from typing import Any

import numpy as np

from squallpy.base.types import Kind, Type

DAY = 86_400_000_000


def days(values: Any, type: Type) -> Any:
    """The day of a date or timestamp, as datetime64[D]."""
    number = values if type.kind is Kind.DATE else np.floor_divide(values, DAY)
    return np.asarray(number, np.int64).astype("datetime64[D]")


def extract(part: str, values: Any, type: Type) -> Any:
    """Year, quarter, month and day of the month; hour, minute and second of the day."""
    if part in ("hour", "minute", "second"):
        micros = np.mod(values, DAY) if type.kind is Kind.TIMESTAMP else np.zeros_like(values)
        size = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}[part]
        return micros // size % {"hour": 24, "minute": 60, "second": 60}[part]
    day = days(values, type)
    month = day.astype("datetime64[M]")
    match part:
        case "dayofweek":  # Sunday is 1
            return (day.astype(np.int64) + 4) % 7 + 1
        case "weekday":  # Monday is 0
            return (day.astype(np.int64) + 3) % 7
        case "dayofyear":
            return (day - day.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1
        case "week":  # ISO's: that of its Thursday
            thursday = day - (day.astype(np.int64) + 3) % 7 + 3
            return (thursday - thursday.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) // 7 + 1
        case "year":
            return day.astype("datetime64[Y]").astype(np.int64) + 1970
        case "quarter":
            return month.astype(np.int64) % 12 // 3 + 1
        case "month":
            return month.astype(np.int64) % 12 + 1
    return (day - month.astype("datetime64[D]")).astype(np.int64) + 1


def add_months(values: Any, months: Any, type: Type) -> Any:
    """The same day of a later month, or its last day: 31 January + 1 month → 28 February."""
    day = days(values, type)
    month = day.astype("datetime64[M]")
    ahead = month + np.asarray(months, np.int64).astype("timedelta64[M]")
    first = ahead.astype("datetime64[D]")
    last = (ahead + np.timedelta64(1, "M")).astype("datetime64[D]") - first - np.timedelta64(1, "D")
    moved = (first + np.minimum(day - month.astype("datetime64[D]"), last)).astype(np.int64)
    return moved if type.kind is Kind.DATE else moved * DAY + np.mod(values, DAY)


def last_day(values: Any, type: Type) -> Any:
    """The last day of the month."""
    following = days(values, type).astype("datetime64[M]") + np.timedelta64(1, "M")
    return following.astype("datetime64[D]").astype(np.int64) - 1


def truncate(unit: str, values: Any, type: Type) -> Any:
    """The first day of the year, quarter, month or week, which begins on Monday."""
    day = days(values, type)
    if unit == "week":
        return day.astype(np.int64) - (day.astype(np.int64) + 3) % 7
    month = day.astype("datetime64[M]").astype(np.int64)
    size = {"year": 12, "quarter": 3, "month": 1}[unit]
    return (month // size * size).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
