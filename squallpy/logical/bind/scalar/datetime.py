"""Functions of dates and times."""

from functools import partial

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DATE, DOUBLE, INTERVAL, NULL, TIMESTAMP, VARCHAR
from squallpy.logical.bind.datetime import calendar, intervals
from squallpy.logical.bind.datetime.patterns import parse_moment
from squallpy.logical.bind.expressions import extract
from squallpy.logical.bind.scalar.expansion import ZERO, Builder, expands
from squallpy.logical.coercion import cast, coerce
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, Literal

SECONDS = Literal("yyyy-MM-dd HH:mm:ss", VARCHAR)
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
    return call("days_between", day, Literal(0, DATE))


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
    """Build DATE_ADD(d, 3), DATE_ADD(d, INTERVAL 1 MONTH)."""
    if days.type == INTERVAL:
        return intervals.arithmetic("+" if sign > 0 else "-", moment, days)
    return intervals.add_days(moment, days if sign > 0 else intervals.negate(days))


def by_unit(text_way: Builder, name_way: Builder) -> Builder:
    """Return the builder of a function whose unit may be a text, as in DuckDB, or a name, as in Spark."""

    def build(unit: Expr, *args: Expr) -> Expr:
        if isinstance(unit, Literal) and str(unit.value).startswith(UNIT):
            return name_way(Literal(str(unit.value).removeprefix(UNIT), VARCHAR), *args)
        return text_way(unit, *args)

    return build


def first_of_three(two: Builder, three: Builder) -> Builder:
    return lambda *args: (two if len(args) == 2 else three)(*args)


def days_between(end: Expr, start: Expr) -> Expr:
    return call("days_between", end, start)


expands("DATE_SUB")(partial(bind_date_add, sign=-1))
expands("DATE_ADD")(first_of_three(partial(bind_date_add, sign=1), by_unit(calendar.add_units, calendar.add_units)))
expands("TIMESTAMPADD")(by_unit(calendar.add_units, calendar.add_units))
expands("DATEDIFF")(first_of_three(days_between, by_unit(calendar.count_boundaries, calendar.complete)))
expands("TIMESTAMPDIFF")(by_unit(calendar.complete, calendar.complete))
