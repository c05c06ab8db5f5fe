"""Functions of dates and times."""

import re
from functools import partial
from zoneinfo import available_timezones

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT, DATE, DOUBLE, INT, INTERVAL, NULL, TIMESTAMP, VARCHAR
from squallpy.logical.bind.datetime import calendar, intervals
from squallpy.logical.bind.datetime.extraction import extract
from squallpy.logical.bind.datetime.patterns import parse_moment
from squallpy.logical.bind.scalar.expansion import EXPANSIONS, ZERO, Builder, expands
from squallpy.logical.coercion import cast, coerce
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Expr, Literal, conjunction

SECONDS = Literal("yyyy-MM-dd HH:mm:ss", VARCHAR)
UTC = Literal("UTC", VARCHAR)
UNIT = "unit "  # before the name of one that was no text
TIMES = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
TRUNCATIONS = {
    "year": ("YEAR", "YYYY", "YY"), "quarter": ("QUARTER",), "month": ("MONTH", "MM", "MON"), "week": ("WEEK",),
}  # fmt: skip

expands("MONTHS_BETWEEN")(calendar.months_between)
expands("NEXT_DAY")(calendar.next_day)
expands("MAKE_DATE")(calendar.make_date)
expands("DATE_FORMAT")(calendar.format_moment)
expands("UNIX_SECONDS")(calendar.seconds)
expands("UNIX_MICROS")(calendar.micros)
expands("TIMESTAMP_SECONDS")(calendar.timestamp_from(calendar.MICROS))
expands("TIMESTAMP_MILLIS")(calendar.timestamp_from(1000))
expands("TIMESTAMP_MICROS")(calendar.timestamp_from(1))
for _prefix in ("", "TRY_"):
    for _name, _type in (("TO_DATE", DATE), ("TO_TIMESTAMP", TIMESTAMP)):
        expands(f"{_prefix}{_name}")(partial(parse_moment, _type, f"{_prefix}{_name}", bool(_prefix)))


@expands("TRUNC")
def bind_trunc(value: Expr, to: Expr = ZERO) -> Expr:
    """Build TRUNC(d, 'MONTH') of a DATE or TIMESTAMP as in Spark, TRUNC(x), TRUNC(x, n) of numbers as in PostgreSQL."""
    if not value.type.is_numeric and (value.type != NULL or to.type == VARCHAR):
        return to_unit(value, to)
    value = coerce(value, DOUBLE) if value.type == NULL else value
    if not isinstance(to, Literal) or not to.type.is_integer or to.value is None:
        raise SquallError("SQ3001", "TRUNC to anything but a constant number of digits is not supported yet")
    return value if value.type.is_exact and to.value >= value.type.scale else call("truncate", value, to)


def to_unit(day: Expr, unit: Expr) -> Expr:
    """Compute the first day of a DATE's or TIMESTAMP's YEAR, QUARTER, MONTH or WEEK; the names of units are Spark's."""
    name = str(unit.value).upper() if isinstance(unit, Literal) else ""
    known = {n: unit for unit, names in TRUNCATIONS.items() for n in names}
    if name not in known:
        raise SquallError("SQ2005", "TRUNC takes the constant 'YEAR', 'QUARTER', 'MONTH' or 'WEEK'")
    return call("trunc", cast(day, DATE) if isinstance(day, Literal) else day, Literal(known[name], VARCHAR))


@expands("DATE_TRUNC")
def date_trunc(unit: Expr, moment: Expr) -> Expr:
    """Build DATE_TRUNC('MONTH', t), a TIMESTAMP."""
    name = str(unit.value).upper() if isinstance(unit, Literal) else ""
    if name in ("DAY", "DD"):
        return cast(cast(moment, DATE), TIMESTAMP)
    if name in TIMES:
        return call("trunc_time", cast(moment, TIMESTAMP), Literal(intervals.UNITS[name][2], BIGINT))
    return cast(to_unit(moment, unit), TIMESTAMP)


@expands("TIME_BUCKET")
def time_bucket(width: Expr, moment: Expr, origin: Expr | None = None) -> Expr:
    """Build TIME_BUCKET(INTERVAL '90' MINUTE, t [, origin]), of time or of months."""
    if width.type != INTERVAL or not isinstance(width, Literal) or not (moment.type.is_temporal or moment.type == NULL):
        hint = "write TIME_BUCKET(INTERVAL '15' MINUTE, t)"
        raise SquallError("SQ2005", f"TIME_BUCKET does not take ({width.type}, {moment.type})", hint=hint)
    months, days, micros = width.value
    time, length = cast(moment, TIMESTAMP), days * intervals.DAY_MICROS + micros
    if min(months, length) < 0 or bool(months) == bool(length):
        raise SquallError("SQ2004", "TIME_BUCKET takes a positive INTERVAL, of months or of days and time")
    if months:
        return _months(time, months, origin)
    start = coerce(origin, TIMESTAMP) if origin is not None else Literal(0, TIMESTAMP)
    if not isinstance(start, Literal) or start.value is None or start.type != TIMESTAMP:
        raise SquallError("SQ2005", "TIME_BUCKET begins at a constant TIMESTAMP")
    return calendar.last_multiple(time, length, start.value)


def _months(time: Expr, count: int, origin: Expr | None) -> Expr:
    """Build the first day of every so many months since 1970."""
    if origin is not None:
        raise SquallError("SQ3001", "TIME_BUCKET of months with an origin is not supported yet")
    if count == 1:
        return date_trunc(Literal("MONTH", VARCHAR), time)
    years = call("-", call("extract_year", time), Literal(1970, INT))
    number = call("-", call("+", call("*", years, Literal(12, INT)), call("extract_month", time)), Literal(1, INT))
    within = EXPANSIONS["PMOD"](number, Literal(count, INT))
    return cast(call("add_months", Literal(0, DATE), call("-", number, within)), TIMESTAMP)


@expands("DATE_PART")
def date_part(part: Expr, moment: Expr) -> Expr:
    """Build DATE_PART('MONTH', d), which is EXTRACT(MONTH FROM d)."""
    if not isinstance(part, Literal):
        raise SquallError("SQ3001", "DATE_PART of a computed part is not supported yet")
    return extract(str(part.value), moment)


@expands("MONTHNAME")
def month_name(day: Expr) -> Expr:
    return calendar.format_moment(day, Literal("MMM", VARCHAR))


@expands("DAYNAME")
def day_name(day: Expr) -> Expr:
    return calendar.format_moment(day, Literal("EEE", VARCHAR))


@expands("UNIX_DATE")
def unix_date(day: Expr) -> Expr:
    return days_between(day, Literal(0, DATE))


@expands("UNIX_MILLIS")
def unix_millis(moment: Expr) -> Expr:
    return calendar.whole_of(calendar.micros(moment), 1000)


@expands("UNIX_TIMESTAMP")
def unix_timestamp(moment: Expr, *pattern: Expr) -> Expr:
    return calendar.seconds(parse_moment(TIMESTAMP, "UNIX_TIMESTAMP", False, moment, *pattern))


@expands("FROM_UNIXTIME")
def from_unixtime(count: Expr, pattern: Expr = SECONDS) -> Expr:
    """Build FROM_UNIXTIME(n), a text; there are no time zones."""
    return calendar.format_moment(calendar.timestamp_from(calendar.MICROS)(count), pattern)


def bind_date_add(moment: Expr, days: Expr, sign: int) -> Expr:
    """Build DATE_ADD(d, 3), a DATE, and DATE_ADD(d, INTERVAL 1 MONTH)."""
    if days.type.is_interval:
        return intervals.arithmetic("+" if sign > 0 else "-", moment, days)
    return intervals.add_days(day_of(moment), days if sign > 0 else intervals.negate(days))


def by_unit(text_way: Builder, name_way: Builder) -> Builder:
    """Return the builder of a function whose unit may be a text, as in DuckDB, or a name, as in Spark."""

    def build(unit: Expr, *args: Expr) -> Expr:
        if isinstance(unit, Literal) and str(unit.value).startswith(UNIT):
            return name_way(Literal(str(unit.value).removeprefix(UNIT), VARCHAR), *args)
        return text_way(unit, *args)

    return build


def first_of_three(two: Builder, three: Builder) -> Builder:
    return lambda *args: (two if len(args) == 2 else three)(*args)


def day_of(moment: Expr) -> Expr:
    return cast(moment, DATE) if moment.type == TIMESTAMP else moment


def days_between(end: Expr, start: Expr) -> Expr:
    return call("days_between", day_of(end), day_of(start))


expands("DATE_SUB")(partial(bind_date_add, sign=-1))
expands("DATE_ADD")(first_of_three(partial(bind_date_add, sign=1), by_unit(calendar.add_units, calendar.add_units)))
expands("TIMESTAMPADD")(by_unit(calendar.add_units, calendar.add_units))
expands("DATEDIFF")(first_of_three(days_between, by_unit(calendar.count_boundaries, calendar.complete)))
expands("TIMESTAMPDIFF")(by_unit(calendar.complete, calendar.complete))


def in_zone(name: str, operation: str) -> Builder:
    """Return the builder of FROM_UTC_TIMESTAMP and TO_UTC_TIMESTAMP."""

    def build(moment: Expr, zone: Expr) -> Expr:
        if not isinstance(zone, Literal):
            raise SquallError("SQ3001", f"{name} with a computed zone is not supported yet")
        return call(operation, cast(moment, TIMESTAMP), _zone(zone))

    return build


def _zone(zone: Literal) -> Literal:
    """Check the name of a time zone, or how far it is from UTC; SQ2004 for neither."""
    text = str(zone.value or "")
    fixed = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", text)
    if zone.value is None or zone.type != VARCHAR:
        return Literal(None, VARCHAR)
    if fixed and int(fixed[2]) <= 18:
        return Literal(f"{fixed[1]}{int(fixed[2]):02}:{fixed[3] or '00'}", VARCHAR)
    if text in ("Z", "UT") or text in available_timezones():
        return Literal("UTC" if text in ("Z", "UT") else text, VARCHAR)
    hint = nearest(text, sorted(available_timezones()))
    raise SquallError("SQ2004", f"'{text[:40]}' is no time zone", hint=hint or "write 'Europe/Zurich' or '+01:00'")


expands("FROM_UTC_TIMESTAMP")(in_zone("FROM_UTC_TIMESTAMP", "from_utc"))
expands("TO_UTC_TIMESTAMP")(in_zone("TO_UTC_TIMESTAMP", "to_utc"))


@expands("CONVERT_TIMEZONE")
def convert_timezone(*args: Expr) -> Expr:
    *source, target, moment = args
    return EXPANSIONS["FROM_UTC_TIMESTAMP"](EXPANSIONS["TO_UTC_TIMESTAMP"](moment, *source or [UTC]), target)


@expands("DATE_FROM_UNIX_DATE")
def date_of_days(days: Expr) -> Expr:
    return call("add_days", Literal(0, DATE), days)


@expands("MAKE_DT_INTERVAL")
def make_interval(*parts: Expr) -> Expr:
    """Build MAKE_DT_INTERVAL(days, hours, minutes, seconds); seconds may have decimals."""
    lengths = (intervals.DAY_MICROS, *(intervals.UNITS[unit][2] for unit in ("HOUR", "MINUTE", "SECOND")))
    found: Expr = Literal(0, BIGINT)
    for part, length in zip(parts, lengths, strict=False):
        made = call("*", part, Literal(length, BIGINT))
        found = call("+", found, made if part.type.is_integer else intervals.rounded_to_whole(made))
    return intervals.from_micros(found)


@expands("MAKE_TIMESTAMP")
def make_timestamp(
    year: Expr, month: Expr, day: Expr, hour: Expr, minute: Expr, second: Expr, zone: Expr = UTC
) -> Expr:
    """Build MAKE_TIMESTAMP(y, m, d, h, m, s), NULL where there is no such time; second 60 begins the next minute."""
    micros = cast(call("*", second, Literal(1_000_000, INT)), BIGINT)
    clock = call("+", call("*", hour, Literal(60, INT)), minute)
    time = call("+", call("*", clock, Literal(60_000_000, INT)), micros)
    found = call("add_micros", cast(calendar.make_date(year, month, day), TIMESTAMP), time)
    ranges = ((hour, 23), (minute, 59), (micros, 60_000_000))
    known = conjunction(
        call(name, value, Literal(bound, BIGINT)) for value, last in ranges for name, bound in ((">=", 0), ("<=", last))
    )
    made = case([(known, found)], Literal(None, TIMESTAMP))
    return made if zone == UTC else EXPANSIONS["TO_UTC_TIMESTAMP"](made, zone)
