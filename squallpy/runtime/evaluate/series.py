"""The values of series, SEQUENCE(a, b, step) and the like, of many rows at once.

starts [1, 5], stops [3, 6], steps [1, 1]   →   counts [3, 2], values [1, 2, 3, 5, 6]
"""

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.types import DATE, Type
from squallpy.catalog.relation import Series
from squallpy.runtime.evaluate.scalar import datetime as dates
from squallpy.runtime.kernels.memory_regions import Words

MOST_VALUES = 1_000_000  # of a series
MOST_ROWS = 50_000_000  # that series make of a batch
MOST_DAYS = 100_000_000  # of a step, which have room in microseconds


def expand_series(arguments: list[Words], series: Series, type: Type) -> tuple[Words, Words]:
    """Compute how many values each series has, and all values; SQ5001 for too many, and for a step that is none."""
    start, stop, *step = arguments
    counts = _counts(start, stop, step, series, type)
    if np.any(counts > MOST_VALUES):
        message = f"{series.function} of {int(counts.max()):,} values"
        raise SquallError("SQ5001", message, hint=f"{MOST_VALUES:,} are the most for a row")
    if (total := int(counts.sum())) > MOST_ROWS:
        raise SquallError(
            "SQ5001", f"{series.function} makes {total:,} rows of a batch", hint="make the batches smaller"
        )
    which = np.repeat(np.arange(len(counts)), counts)
    return counts, _value(start[which], positions_within(counts), [part[which] for part in step], type)


def positions_within(counts: Words) -> Words:
    """Number what each of several rows has from 0 on: [2, 1]  →  [0, 1, 0]"""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _counts(start: Words, stop: Words, step: list[Words], series: Series, type: Type) -> Words:
    """Count the values of each series; SQ5001 for steps that never reach the stop."""
    months, even = _step(step, type)
    if np.any((months != 0) & (even != 0)):
        raise SquallError("SQ5001", f"a step of {series.function} is of months and of days", hint="use one of them")
    way, ahead = np.sign(months + np.sign(even)), (stop > start).astype(np.int64) - (stop < start)
    if np.any((way == 0) & ((ahead != 0) | np.bool_(not series.strict))):
        raise SquallError("SQ5001", f"a step of {series.function} is 0", hint="write 1, or -1 to go down")
    if series.strict and np.any(way * ahead < 0):
        raise SquallError("SQ5001", f"a step of {series.function} leads away from its stop", hint="use GENERATE_SERIES")
    # NB: without a sign, 64 bits have room for what is between any two numbers
    apart = np.maximum(start, stop).view(np.uint64) - np.minimum(start, stop).view(np.uint64)
    width = np.maximum(np.abs(even).view(np.uint64), np.uint64(1))
    counts = np.minimum(apart // width, np.uint64(2**62)).astype(np.int64) + 1
    if not series.includes_stop:
        counts -= apart % width == 0
    if np.any(by_month := months != 0):
        first, last = (dates.days(bound, type).astype("datetime64[M]").astype(np.int64) for bound in (start, stop))
        steps = np.abs(last - first) // np.maximum(np.abs(months), 1)
        final = dates.add_months(start, steps * months, type)  # which is in the month of the stop, or before
        inside = (stop - final) * way >= int(not series.includes_stop)
        counts = np.where(by_month, steps + inside, counts)
    return np.where(way * ahead < 0, 0, counts)


def _step(step: list[Words], type: Type) -> tuple[Words, Words]:
    """Read a step as months, and as days of DATEs, microseconds of TIMESTAMPs or a number."""
    if len(step) == 1:
        return np.zeros(len(step[0]), np.int64), step[0]
    months, days, micros = step
    if np.any(np.abs(days) > MOST_DAYS):
        raise SquallError("SQ5001", f"a step of {np.abs(days).max():,} days", hint=f"{MOST_DAYS:,} are the most")
    return months, days if type == DATE else days * dates.DAY + micros


def _value(start: Words, positions: Words, step: list[Words], type: Type) -> Words:
    """Compute the values of a series at positions."""
    months, even = _step(step, type)
    values = start + positions * even
    return (
        np.where(months != 0, dates.add_months(start, positions * months, type), values) if np.any(months) else values
    )
