"""Functions of DATEs and TIMESTAMPs, which have no time zone: those of moments are UTC's.

An argument that a syntax here names d, t, start or end is a moment: a text constant in its place is read as one.
"""

from squallpy.base.types import BIGINT, DATE, DAY_TO_SECOND, INT, TIMESTAMP
from squallpy.functions.entries import Function, Operation, declare_derived, native
from squallpy.functions.type_rules import DAYS, IN_MICROSECONDS, MOMENTS, TEXT, TIMES, WHOLE, months, takes


def _part(syntax: str, part: str, doc: str, result: int, aliases: str = "") -> Function:
    """Declare a function that extracts a part of a DATE or TIMESTAMP."""
    example = f"{syntax[: syntax.index('(')]}(DATE '2026-03-01') → {result}"
    return native(syntax, takes(INT, MOMENTS), doc, example, aliases, call=f"extract_{part}")


def _part_of_time(syntax: str, result: int) -> Function:
    """Declare a function that extracts a part of a TIMESTAMP's time."""
    name = syntax[: syntax.index("(")]
    example = f"{name}(TIMESTAMP '2026-03-01 14:05:59') → {result}"
    return native(syntax, takes(INT, TIMES), f"the {name.lower()}, whole", example, call=f"extract_{name.lower()}")


FUNCTIONS = (
    _part("YEAR(d)", "year", "the year", 2026),
    _part("QUARTER(d)", "quarter", "the quarter of the year, from 1", 1),
    _part("MONTH(d)", "month", "the month of the year, from 1", 3),
    _part("WEEK(d)", "week", "the week of the year by ISO 8601", 9, "WEEKOFYEAR"),
    _part("DAY(d)", "day", "the day of the month", 1, "DAYOFMONTH"),
    _part("DAYOFWEEK(d)", "dayofweek", "the day of the week; Sunday is 1", 1),
    _part("WEEKDAY(d)", "weekday", "the day of the week; Monday is 0", 6),
    _part("DAYOFYEAR(d)", "dayofyear", "the day of the year", 60),
    _part_of_time("HOUR(t)", 14),
    _part_of_time("MINUTE(t)", 5),
    _part_of_time("SECOND(t)", 59),
    declare_derived(
        "DATE_PART(part, d)",
        "EXTRACT(part FROM d), the part being a constant text",
        "DATE_PART('MONTH', DATE '2026-03-01') → 3",
        "DATEPART",
        constant=0,
    ),
    declare_derived("MONTHNAME(d)", "the month's name in three letters", "MONTHNAME(DATE '2026-03-01') → Mar"),
    declare_derived("DAYNAME(d)", "the day's name in three letters", "DAYNAME(DATE '2026-03-01') → Sun"),
    declare_derived(
        "DATE_FORMAT(d, pattern)",
        "as a constant pattern of Spark writes it",
        "DATE_FORMAT(DATE '2026-03-01', 'dd.MM.yyyy') → 01.03.2026",
        "TO_CHAR TO_VARCHAR",
        constant=1,
    ),
    declare_derived(
        "TO_DATE(s [, pattern])",
        "the DATE that a text says, as ISO 8601 or a constant pattern of Spark writes it",
        "TO_DATE('01.03.2026', 'dd.MM.yyyy') → 2026-03-01",
        constant=1,
    ),
    declare_derived(
        "TRY_TO_DATE(s [, pattern])",
        "the DATE that a text says; NULL where it says none",
        "TRY_TO_DATE('x') → NULL",
        constant=1,
    ),
    declare_derived(
        "TO_TIMESTAMP(s [, pattern])",
        "the TIMESTAMP that a text says, as ISO 8601 or a constant pattern of Spark writes it",
        "TO_TIMESTAMP('01.03.2026 10:30', 'dd.MM.yyyy HH:mm') → 2026-03-01 10:30:00",
        "TO_TIMESTAMP_NTZ TO_TIMESTAMP_LTZ",
        constant=1,
    ),
    declare_derived(
        "TRY_TO_TIMESTAMP(s [, pattern])",
        "the TIMESTAMP that a text says; NULL where it says none",
        "TRY_TO_TIMESTAMP('x') → NULL",
        constant=1,
    ),
    declare_derived("MAKE_DATE(year, month, day)", "the DATE; NULL if there is none", "MAKE_DATE(2026, 2, 30) → NULL"),
    declare_derived(
        "MAKE_TIMESTAMP(year, month, day, hour, minute, second [, zone])",
        "the TIMESTAMP, NULL if there is none; that of UTC, of one in a constant zone",
        "MAKE_TIMESTAMP(2026, 3, 1, 14, 5, 7.5) → 2026-03-01 14:05:07.5",
        "MAKE_TIMESTAMP_NTZ MAKE_TIMESTAMP_LTZ TRY_MAKE_TIMESTAMP TRY_MAKE_TIMESTAMP_NTZ TRY_MAKE_TIMESTAMP_LTZ",
    ),
    declare_derived(
        "FROM_UTC_TIMESTAMP(t, zone)",
        "the time of a constant zone at a moment of UTC",
        "FROM_UTC_TIMESTAMP(TIMESTAMP '2026-07-01 10:00:00', 'Europe/Zurich') → 2026-07-01 12:00:00",
        constant=1,
    ),
    declare_derived(
        "TO_UTC_TIMESTAMP(t, zone)",
        "the moment of UTC at a time of a constant zone; an hour that is left out counts from its start, of one that "
        "comes twice it is the first",
        "TO_UTC_TIMESTAMP(TIMESTAMP '2026-01-01 10:00:00', 'Asia/Tokyo') → 2026-01-01 01:00:00",
        constant=1,
    ),
    declare_derived(
        "CONVERT_TIMEZONE(from, to, t) or CONVERT_TIMEZONE(to, t)",
        "the time of a constant zone at a time of another, or of UTC",
        "CONVERT_TIMEZONE('Asia/Tokyo', 'UTC', TIMESTAMP '2026-01-01 10:00:00') → 2026-01-01 01:00:00",
    ),
    declare_derived(
        "DATE_FROM_UNIX_DATE(n)", "the DATE n days after 1970 began", "DATE_FROM_UNIX_DATE(30) → 1970-01-31"
    ),
    declare_derived(
        "DATE_ADD(d, n) or DATE_ADD(unit, n, t)",
        "n days or an INTERVAL later; or n units later",
        "DATE_ADD(DATE '2026-02-27', 3) → 2026-03-02",
        "DATEADD",
        has_unit=True,
    ),
    declare_derived("DATE_SUB(d, n)", "n days or an INTERVAL earlier", "DATE_SUB(DATE '2026-03-02', 3) → 2026-02-27"),
    declare_derived(
        "TIMESTAMPADD(unit, n, t)",
        "n units later",
        "TIMESTAMPADD(HOUR, 2, TIMESTAMP '2026-03-01 23:00:00') → 2026-03-02 01:00:00",
        has_unit=True,
    ),
    native(
        "ADD_MONTHS(d, n)",
        months,
        "n months later; the day is cut to the last of the month",
        "ADD_MONTHS(DATE '2026-01-31', 1) → 2026-02-28",
    ),
    declare_derived(
        "DATEDIFF(end, start) or DATEDIFF(unit, start, end)",
        "the days between two dates; or units: complete ones, of a unit in quotes the boundaries between",
        "DATEDIFF(DATE '2026-03-01', DATE '2026-02-27') → 2",
        "DATE_DIFF",
        has_unit=True,
    ),
    declare_derived(
        "TIMESTAMPDIFF(unit, start, end)",
        "the complete units between two moments",
        "TIMESTAMPDIFF(HOUR, TIMESTAMP '2026-03-01 10:00:00', TIMESTAMP '2026-03-01 12:59:00') → 2",
        has_unit=True,
    ),
    declare_derived(
        "MONTHS_BETWEEN(end, start)",
        "the months between two moments, a day being 1/31",
        "MONTHS_BETWEEN(DATE '2026-03-15', DATE '2026-01-15') → 2.0",
    ),
    native(
        "LAST_DAY(d)", takes(DATE, MOMENTS), "the last day of the month", "LAST_DAY(DATE '2026-02-01') → 2026-02-28"
    ),
    declare_derived(
        "NEXT_DAY(d, day)",
        "the next day of the week with a constant name",
        "NEXT_DAY(DATE '2026-03-01', 'Mon') → 2026-03-02",
        constant=1,
    ),
    declare_derived(
        "TRUNC(d, unit) or TRUNC(x [, n])",
        "the first day of the YEAR, QUARTER, MONTH or WEEK; a number cut to n digits after the point",
        "TRUNC(DATE '2026-03-15', 'MONTH') → 2026-03-01",
        constant=1,
    ),
    declare_derived(
        "DATE_TRUNC(unit, t)",
        "the TIMESTAMP at which a constant unit begins, from YEAR to MICROSECOND",
        "DATE_TRUNC('HOUR', TIMESTAMP '2026-03-01 14:05:59') → 2026-03-01 14:00:00",
        constant=0,
    ),
    declare_derived(
        "TIME_BUCKET(width, t [, origin])",
        "the start of the bucket that a moment is in, of a constant INTERVAL, from 1970 or a constant TIMESTAMP on",
        "TIME_BUCKET(INTERVAL '90' MINUTE, TIMESTAMP '2026-03-01 14:05:59') → 2026-03-01 13:30:00",
        "DATE_BIN",
    ),
    declare_derived("UNIX_DATE(d)", "the days since 1970-01-01", "UNIX_DATE(DATE '1970-01-31') → 30"),
    declare_derived(
        "UNIX_SECONDS(t)", "the seconds since 1970, whole", "UNIX_SECONDS(TIMESTAMP '1970-01-01 00:01:00') → 60"
    ),
    declare_derived(
        "UNIX_MILLIS(t)", "the milliseconds since 1970, whole", "UNIX_MILLIS(TIMESTAMP '1970-01-01 00:00:01') → 1000"
    ),
    declare_derived(
        "UNIX_MICROS(t)", "the microseconds since 1970", "UNIX_MICROS(TIMESTAMP '1970-01-01 00:00:01') → 1000000"
    ),
    declare_derived(
        "UNIX_TIMESTAMP(s [, pattern])",
        "the seconds since 1970 of a moment, or of the text of one",
        "UNIX_TIMESTAMP('1970-01-01 00:01:00') → 60",
        "TO_UNIX_TIMESTAMP",
        constant=1,
    ),
    declare_derived(
        "FROM_UNIXTIME(n [, pattern])",
        "the text of the moment n seconds after 1970 began",
        "FROM_UNIXTIME(60) → 1970-01-01 00:01:00",
        constant=1,
    ),
    declare_derived(
        "TIMESTAMP_SECONDS(n)", "n seconds after 1970 began", "TIMESTAMP_SECONDS(60) → 1970-01-01 00:01:00"
    ),
    declare_derived(
        "MAKE_DT_INTERVAL([days [, hours [, minutes [, seconds]]]])",
        "the INTERVAL DAY TO SECOND",
        "MAKE_DT_INTERVAL(1, 2, 3, 4.5) → INTERVAL '1 02:03:04.5' DAY TO SECOND",
    ),
    declare_derived(
        "TIMESTAMP_MILLIS(n)", "n milliseconds after 1970 began", "TIMESTAMP_MILLIS(1000) → 1970-01-01 00:00:01"
    ),
    declare_derived(
        "TIMESTAMP_MICROS(n)", "n microseconds after 1970 began", "TIMESTAMP_MICROS(1000000) → 1970-01-01 00:00:01"
    ),
)

INTERNAL = (
    Operation("from_utc", 2, 2, takes(TIMESTAMP, TIMES, TEXT), "the time of a zone at a moment of UTC", settings=1),
    Operation("to_utc", 2, 2, takes(TIMESTAMP, TIMES, TEXT), "the moment of UTC at a time of a zone", settings=1),
    Operation("micros", 1, 1, takes(BIGINT, IN_MICROSECONDS), "the microseconds since 1970, or of an interval"),
    Operation("day_to_second", 1, 1, takes(DAY_TO_SECOND, WHOLE), "the interval of so many microseconds"),
    Operation("trunc", 2, 2, takes(DATE, MOMENTS, TEXT), "the first day of the year, quarter, month or week"),
    Operation("trunc_time", 2, 2, takes(TIMESTAMP, TIMES, WHOLE), "the last multiple of so many microseconds"),
    Operation("add_days", 2, 2, takes(DATE, DAYS, WHOLE), "days later"),
    Operation("add_micros", 2, 2, takes(TIMESTAMP, TIMES, WHOLE), "microseconds later"),
    Operation("days_between", 2, 2, takes(INT, DAYS), "the first date minus the second, in days"),
)
