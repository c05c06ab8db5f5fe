"""Dates (days) and timestamps (µs) since 1970-01-01, both int64."""

from calendar import isleap
from collections.abc import Callable
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.types import RANGES, TIMESTAMP, Kind, Type
from squallpy.logical.expressions import Call, Literal
from squallpy.runtime.evaluate.evaluator_table import Evaluated, binary, evaluator, parameter, unary
from squallpy.runtime.evaluate.exact_arithmetic import first_chosen, masked
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid, full

DAY = 86_400_000_000
_FAR = 2**61  # NB: shifts every DATE or TIMESTAMP out of the years 1 to 9999, but not out of 64 bits
_MONTHS = 10_000 * 12  # the same in months
_UNITS = {"add_days": "days", "add_months": "months", "add_micros": "microseconds", "trunc_time": "microseconds"}


def days(values: Any, type: Type) -> Any:
    """Convert a date or timestamp to its day, as datetime64[D]."""
    number = values if type.kind is Kind.DATE else np.floor_divide(values, DAY)
    return np.asarray(number, np.int64).astype("datetime64[D]")


def extract(part: str, values: Any, type: Type) -> Any:
    """Extract the year, quarter, month or day of the month; the hour, minute or second of the day."""
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
            number = day.astype(np.int64)
            thursday = (number - (number + 3) % 7 + 3).astype("datetime64[D]")
            return (thursday - thursday.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) // 7 + 1
        case "year":
            return day.astype("datetime64[Y]").astype(np.int64) + 1970
        case "quarter":
            return month.astype(np.int64) % 12 // 3 + 1
        case "month":
            return month.astype(np.int64) % 12 + 1
    return (day - month.astype("datetime64[D]")).astype(np.int64) + 1


def move_moments(call: Call, move: Callable[[Any, Any], Any]) -> Callable[[Vec, Vec], Vec]:
    """Apply `move` to moments and amounts; SQ5001 where the result is outside the years 1 to 9999.

    moved(ADD_DAYS(d, n), add)([0], [1])  →  [1]        moved(ADD_DAYS(d, n), add)([0], [2147483647])  →  SQ5001
    """

    def run(a: Vec, b: Vec) -> Vec:
        moments, amounts = masked(a), masked(b)
        values, valid = move(moments, amounts), all_valid(a.valid, b.valid)
        if call.type.kind not in RANGES:  # a bound, see `temporal.unbounded`
            return Vec(values, valid)
        least, most = RANGES[call.type.kind]
        outside = np.logical_and(np.less(values, least) | np.greater(values, most), True if valid is None else valid)
        if np.any(outside):
            row = int(np.argmax(outside))
            moment, amount = (int(each[row] if np.ndim(each) else each) for each in (moments, amounts))
            sum = f"{Literal(moment, call.args[0].type)} + {amount} {_UNITS[call.name]}"
            raise SquallError("SQ5001", f"{call}: {sum} is outside the years 1 to 9999")
        return Vec(values, valid)

    return run


def add(values: Any, amounts: Any) -> Any:
    """Add days to dates, or microseconds to timestamps; a sum outside the years 1 to 9999 stays outside."""
    return np.add(values, np.clip(amounts, -_FAR, _FAR))


def add_months(values: Any, months: Any, type: Type) -> Any:
    """Add months and keep the day, or take the month's last: 31 January + 1 month → 28 February."""
    day = days(values, type)
    month = day.astype("datetime64[M]")
    ahead = month + np.clip(np.asarray(months, np.int64), -_MONTHS, _MONTHS).astype("timedelta64[M]")
    first = ahead.astype("datetime64[D]")
    last = (ahead + np.timedelta64(1, "M")).astype("datetime64[D]") - first - np.timedelta64(1, "D")
    move_moments = (first + np.minimum(day - month.astype("datetime64[D]"), last)).astype(np.int64)
    return move_moments if type.kind is Kind.DATE else move_moments * DAY + np.mod(values, DAY)


def last_day(values: Any, type: Type) -> Any:
    """Find the last day of the month."""
    following = days(values, type).astype("datetime64[M]") + np.timedelta64(1, "M")
    return following.astype("datetime64[D]").astype(np.int64) - 1


def truncate(unit: str, values: Any, type: Type) -> Any:
    """Find the first day of the year, quarter, month or week, which begins on Monday."""
    day = days(values, type)
    if unit == "week":
        return day.astype(np.int64) - (day.astype(np.int64) + 3) % 7
    month = day.astype("datetime64[M]").astype(np.int64)
    size = {"year": 12, "quarter": 3, "month": 1}[unit]
    return (month // size * size).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


_PARTS = ("year", "quarter", "month", "week", "day", "dayofweek", "weekday", "dayofyear", "hour", "minute", "second")


@evaluator(*(f"extract_{part}" for part in _PARTS))
def part_of(call: Call, args: Evaluated) -> VectorFunction:
    part, type = call.name.removeprefix("extract_"), call.args[0].type
    return unary(args[0], lambda x: extract(part, x, type))


@evaluator("micros")
def micros(call: Call, args: Evaluated) -> VectorFunction:
    return args[0]


@evaluator("day_to_second")
def day_to_second(call: Call, args: Evaluated) -> VectorFunction:
    least, most = RANGES[Kind.DAY_TO_SECOND]

    def run(frame: VectorFrame) -> Vec:
        vec = args[0](frame)
        micros = masked(vec)
        if np.any(wrong := np.less(micros, least) | np.greater(micros, most)):
            raise SquallError("SQ5001", f"{call}: {first_chosen(micros, wrong)} microseconds are longer than all time")
        return vec

    return run


@evaluator("last_day")
def last_of_month(call: Call, args: Evaluated) -> VectorFunction:
    return unary(args[0], lambda x: last_day(x, call.args[0].type))


@evaluator("trunc")
def first_of_unit(call: Call, args: Evaluated) -> VectorFunction:
    unit = parameter(call, 1)
    return unary(args[0], lambda x: truncate(unit, x, call.args[0].type))


@evaluator("trunc_time")
def start_of_unit(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, move_moments(call, lambda x, size: x - np.mod(x, size)))


@evaluator("add_months")
def months_later(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, move_moments(call, lambda x, months: add_months(x, months, call.args[0].type)))


@evaluator("add_days", "add_micros")
def later(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, move_moments(call, add))


@evaluator("days_between")
def days_between(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, lambda a, b: Vec(np.subtract(a.values, b.values), all_valid(a.valid, b.valid)))


LAST_YEAR = 2037  # to which Arrow knows the clocks of zones


def local_times(values: Any, zone: str) -> Any:
    """Convert moments of UTC to the times of a zone, both in µs."""
    later = _cycles(values)
    moments = pa.array(values - later).cast(pa.timestamp("us", tz=zone))
    return np.asarray(pc.local_timestamp(moments).cast(pa.int64())) + later


def _cycles(times: Any) -> Any:
    """Compute how much later times are than in the last known year that begins on the same day and is as long.

    The rules by which clocks change are the same there.
    """
    years = times.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    known, of = np.unique(years, return_inverse=True)
    return np.array([_cycle(year) for year in known.tolist()], np.int64)[of]


@cache
def _cycle(year: int) -> int:
    alike = next(
        y
        for y in range(min(year, LAST_YEAR), 0, -1)
        if (date(y, 1, 1).weekday(), isleap(y)) == (date(year, 1, 1).weekday(), isleap(year))
    )
    return (date(year, 1, 1) - date(alike, 1, 1)).days * DAY


@evaluator("from_utc")
def from_utc(call: Call, args: Evaluated) -> VectorFunction:
    zone = parameter(call, 1)
    return _of_times(args[0], lambda values: local_times(values, zone))


@evaluator("to_utc")
def to_utc(call: Call, args: Evaluated) -> VectorFunction:
    zone = parameter(call, 1)

    def moments(values: Any) -> Any:
        """Take the offset of the zone from times; where clocks were put forward it is the one before."""
        later = _cycles(values)
        times = pa.array(values - later).cast(pa.timestamp("us"))
        known = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="earliest").cast(pa.int64())
        before = np.asarray(known) + later
        return values - (local_times(before, zone) - before)

    return _of_times(args[0], moments)


def _of_times(arg: VectorFunction, operate: Callable[[Any], Any]) -> VectorFunction:
    """Make an evaluator from a function of times; SQ5001 for a result outside of the years 1 to 9999."""

    def run(frame: VectorFrame) -> Vec:
        values, valid = full(arg(frame), TIMESTAMP, frame.rows)
        known = values if valid is None else np.where(valid, values, 0)
        found = operate(known)
        least, most = RANGES[Kind.TIMESTAMP]
        if np.any(wrong := (found < least) | (found > most)):
            moment = Literal(int(known[np.argmax(wrong)]), TIMESTAMP)
            raise SquallError("SQ5001", f"{moment} is outside the years 1 to 9999 in another time zone")
        return Vec(found, valid)

    return run
