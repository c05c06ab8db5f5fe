"""Functions of dates and timestamps that are made of others.

DATE_FORMAT(d, 'yyyy-MM')    →  LPAD(CAST(YEAR(d) AS VARCHAR), 4, '0') || '-' || LPAD(CAST(MONTH(d) AS VARCHAR), 2, '0')
TIMESTAMPDIFF(HOUR, a, b)    →  (micros of b − those of a) DIV 3600000000
"""

from collections.abc import Callable

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT, DATE, DOUBLE, INT, RANGES, TIMESTAMP, VARCHAR, Kind, Type, decimal
from squallpy.logical.bind.datetime.intervals import DAY_MICROS, UNITS, is_zero, micros_of, negate, parts, total
from squallpy.logical.bind.datetime.patterns import pieces
from squallpy.logical.coercion import cast, coerce
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Expr, Literal, conjunction, disjunction

MONTHS = "January,February,March,April,May,June,July,August,September,October,November,December"
DAYS = "Sunday,Monday,Tuesday,Wednesday,Thursday,Friday,Saturday"
MICROS = 1_000_000
PARTS = {
    "y": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "m": "minute",
    "s": "second",
    "D": "dayofyear",
    "Q": "quarter",
}
LARGER = {"HOUR": DAY_MICROS, "MINUTE": UNITS["HOUR"][2], "SECOND": UNITS["MINUTE"][2]}
TIMES = "HhKkmsSa"  # what a DATE has at midnight


def number(value: int) -> Literal:
    return Literal(value, INT if abs(value) < 2**31 else BIGINT)


def micros(moment: Expr) -> Expr:
    """Compute the microseconds since 1970."""
    return call("micros", cast(moment, TIMESTAMP))


def seconds(moment: Expr) -> Expr:
    """Build UNIX_SECONDS(t), rounded down, also before 1970."""
    return whole_of(micros(moment), MICROS)


def convert(value: Expr, target: Type, *, tries: bool = False) -> Expr:
    """Build a CAST; between numbers and TIMESTAMPs it is by the seconds since 1970, as in Spark.

    CAST(1.5 AS TIMESTAMP)  →  1970-01-01 00:00:01.5        CAST(t AS BIGINT)  →  UNIX_SECONDS(t), rounded down

    Args:
        tries: A number that is no TIMESTAMP gives NULL.
    """
    source = value.type
    if source.is_numeric and target == TIMESTAMP:
        count = value if source.is_integer else cast(call("*", value, number(MICROS)), BIGINT)
        made = timestamp_from(MICROS if source.is_integer else 1)(count)
        first, last = (end // MICROS for end in RANGES[Kind.TIMESTAMP])
        is_time = conjunction((call(">=", value, number(first)), call("<", value, number(last + 1))))
        return case([(is_time, made)], Literal(None, TIMESTAMP)) if tries else made
    if source == TIMESTAMP and target.is_integer:
        return cast(seconds(value), target)
    if source == TIMESTAMP and target == DOUBLE:
        return call("/", coerce(micros(value), DOUBLE), Literal(float(MICROS), DOUBLE))
    if source == TIMESTAMP and target.is_numeric:
        return cast(call("*", micros(value), Literal(1, decimal(7, 6))), target)
    return cast(value, target)


def whole_of(value: Expr, size: int) -> Expr:
    """Divide and round down to a whole number."""
    rest = call("%", call("+", call("%", value, number(size)), number(size)), number(size))
    return call("div", call("-", value, rest), number(size))


def last_multiple(time: Expr, length: int, offset: int = 0) -> Expr:
    """Round a TIMESTAMP down to when so many microseconds, counted from 1970 and an offset, have last passed whole."""
    offset %= length
    if not offset:
        return call("trunc_time", time, Literal(length, BIGINT))
    moved = call("add_micros", time, Literal(-offset, BIGINT))
    return call("add_micros", call("trunc_time", moved, Literal(length, BIGINT)), Literal(offset, BIGINT))


def multiple_of(value: Expr, size: int, upwards: bool = False) -> Expr:
    """Compute the next multiple of a whole number down from an integer, or up from it."""
    if upwards:
        return negate(multiple_of(negate(value), size))
    return call("*", whole_of(value, size), number(size))


def epoch(moment: Expr) -> Expr:
    """Build EXTRACT(EPOCH FROM t): seconds since 1970, with decimals."""
    return call("/", coerce(micros(moment), DOUBLE), Literal(float(MICROS), DOUBLE))


def part_of(part: str, interval: Expr) -> Expr:
    """Build EXTRACT(HOUR FROM a - b): the hours beside the days, as an INTERVAL is written."""
    name = part.upper().removesuffix("S")
    if name == "EPOCH":
        return call("/", coerce(micros_of(interval), DOUBLE), Literal(float(MICROS), DOUBLE))
    _, days, rest = parts(interval)
    if name == "DAY":
        return days if is_zero(rest) else total(days, call("div", rest, number(DAY_MICROS)))
    if name not in LARGER:
        raise SquallError("SQ3001", f"EXTRACT({part.upper()} FROM …) of an INTERVAL is not supported yet")
    return call("div", call("%", rest, number(LARGER[name])), number(UNITS[name][2]))


def timestamp_from(size: int) -> Callable[[Expr], Expr]:
    """Return the builder of TIMESTAMP_SECONDS(n), TIMESTAMP_MILLIS(n) …"""

    def build(count: Expr) -> Expr:
        return call("add_micros", Literal(0, TIMESTAMP), call("*", count, number(size)))

    return build


def iso_year(moment: Expr) -> Expr:
    """Compute the ISO year, which is that of the week's Thursday."""
    day = cast(moment, DATE)
    return call("extract_year", call("add_days", day, call("-", number(3), call("extract_weekday", day))))


def unit_name(unit: Expr, function: str) -> str:
    """Return the name of a unit in the singular; SQ2005 if it is none."""
    text = str(unit.value).upper() if isinstance(unit, Literal) else ""
    name = text if text in UNITS else text.removesuffix("S")
    if name not in UNITS:
        raise SquallError("SQ2005", f'{function} takes a unit, not "{text.lower()}"', hint=nearest(text, UNITS))
    return name


def add_units(unit: Expr, count: Expr, moment: Expr) -> Expr:
    """Build DATEADD(HOUR, n, t); a DATE stays one where it can."""
    months, days, size = UNITS[unit_name(unit, "DATEADD")]
    if months:
        return call("add_months", moment, scale_count(count, months))
    if days and moment.type.kind is Kind.DATE:
        return call("add_days", moment, scale_count(count, days))
    return call("add_micros", cast(moment, TIMESTAMP), scale_count(count, size or days * DAY_MICROS))


def scale_count(count: Expr, size: int) -> Expr:
    return count if size == 1 else call("*", count, number(size))


def complete(unit: Expr, start: Expr, end: Expr) -> Expr:
    """Count the whole units between two moments: TIMESTAMPDIFF(MONTH, a, b), DATEDIFF(MONTH, a, b)"""
    months, days, size = UNITS[unit_name(unit, "DATEDIFF")]
    if not months:
        return call("div", call("-", micros(end), micros(start)), number(size or days * DAY_MICROS))
    crossed = call("-", month_number(end), month_number(start))
    more, less = (call(op, since_month(end), since_month(start)) for op in (">", "<"))
    whole = case(
        [
            (conjunction((call(">", crossed, number(0)), less)), call("-", crossed, number(1))),
            (conjunction((call("<", crossed, number(0)), more)), call("+", crossed, number(1))),
        ],
        crossed,
    )
    return whole if months == 1 else call("div", whole, number(months))


def month_number(moment: Expr) -> Expr:
    return call("+", call("*", call("extract_year", moment), number(12)), call("extract_month", moment))


def since_month(moment: Expr) -> Expr:
    """Compute the microseconds since the month began."""
    return call("-", micros(moment), micros(call("trunc", moment, Literal("month", VARCHAR))))


def count_boundaries(unit: Expr, start: Expr, end: Expr) -> Expr:
    """Count how often a unit begins between two moments, DATE_DIFF('month', a, b); weeks are of seven days from the
    start."""
    name = unit_name(unit, "DATE_DIFF")
    months, days, size = UNITS[name]
    if months:
        return call("-", *(whole_of(call("-", month_number(m), number(1)), months) for m in (end, start)))
    if name == "WEEK":
        return call("div", call("days_between", cast(end, DATE), cast(start, DATE)), number(7))
    return call("-", *(whole_of(micros(moment), size or days * DAY_MICROS) for moment in (end, start)))


def format_moment(moment: Expr, pattern: Expr) -> Expr:
    """Build DATE_FORMAT(t, 'yyyy-MM-dd'), by Spark's patterns."""
    found = pieces(pattern, "DATE_FORMAT")
    if moment.type.kind is Kind.VARCHAR:
        moment = cast(moment, TIMESTAMP)
    if not moment.type.is_temporal:
        raise SquallError("SQ2005", f"DATE_FORMAT does not take ({moment.type}, VARCHAR)")
    parts = [piece(text, moment) if is_letters else Literal(text, VARCHAR) for text, is_letters in found]
    if not parts:
        return case([(call("is_null", moment), Literal(None, VARCHAR))], Literal("", VARCHAR))
    value = cast(parts[0], VARCHAR)
    for part in parts[1:]:
        value = call("||", value, part)
    if all(isinstance(part, Literal) for part in parts):
        return case([(call("is_null", moment), Literal(None, VARCHAR))], value)
    return value


def piece(letters: str, moment: Expr) -> Expr:
    """Build the text for letters of a pattern."""
    letter, width = letters[0], len(letters)
    if letter in TIMES:
        moment = cast(moment, TIMESTAMP)
    if letter in PARTS and width in {"y": (1, 2, 4), "D": (1, 3)}.get(letter, (1, 2)):
        value = call(f"extract_{PARTS[letter]}", moment)
        return pad_digits(call("%", value, number(100)) if letters == "yy" else value, width)
    match letters:
        case "MMM" | "MMMM":
            return name_of(MONTHS, call("extract_month", moment), width)
        case "E" | "EE" | "EEE" | "EEEE":
            return name_of(DAYS, call("extract_dayofweek", moment), width)
        case "h" | "hh":
            hour = call("+", call("%", call("+", call("extract_hour", moment), number(11)), number(12)), number(1))
            return pad_digits(hour, width)
        case "a":
            afternoon = call(">=", call("extract_hour", moment), number(12))
            return case(
                [(afternoon, Literal("PM", VARCHAR)), (call("not", afternoon), Literal("AM", VARCHAR))],
                Literal(None, VARCHAR),
            )
    if letter == "S" and width <= 6:
        rest = call("-", micros(moment), call("*", seconds(moment), number(MICROS)))
        return pad_digits(call("div", rest, number(10 ** (6 - width))), width)
    raise SquallError("SQ3001", f"DATE_FORMAT with {letters} is not supported yet")


def pad_digits(value: Expr, width: int) -> Expr:
    text = cast(value, VARCHAR)
    if width == 1:
        return text
    return call("lpad", text, number(width), Literal("0", VARCHAR))


def name_of(names: str, position: Expr, width: int) -> Expr:
    """Select a name of a list by its place, or the name's first three letters."""
    name = call("split_part", Literal(names, VARCHAR), Literal(",", VARCHAR), position)
    return name if width == 4 else call("substring", name, number(1), number(3))


def months_between(end: Expr, start: Expr) -> Expr:
    """Build MONTHS_BETWEEN(a, b): whole between equal days and between last days of months; a day is 1 / 31."""
    months = call("-", month_number(end), month_number(start))
    same = call("=", *(call("extract_day", moment) for moment in (end, start)))
    last = (call("=", cast(moment, DATE), call("last_day", moment)) for moment in (end, start))
    rest = call("/", call("-", since_month(end), since_month(start)), number(31 * DAY_MICROS))
    apart = call("round", call("+", coerce(months, DOUBLE), rest), number(8))
    return case([(disjunction((same, conjunction(last))), coerce(months, DOUBLE))], apart)


def next_day(moment: Expr, name: Expr) -> Expr:
    """Build NEXT_DAY(d, 'Mon'), the first such day behind."""
    text = str(name.value).upper() if isinstance(name, Literal) else ""
    found = [n for n, day in enumerate(DAYS.upper().split(",")) if len(text) > 1 and text in (day, day[:3], day[:2])]
    if not found:
        raise SquallError("SQ2005", "NEXT_DAY takes a constant day of the week")
    day = cast(moment, DATE)
    ahead = call("%", call("-", number(found[0] + 7), call("extract_dayofweek", day)), number(7))  # Sunday is 1
    return call("add_days", day, call("+", ahead, number(1)))


def make_date(year: Expr, month: Expr, day: Expr) -> Expr:
    """Build MAKE_DATE(y, m, d), NULL where there is no such day."""
    first = call(
        "add_months",
        Literal(0, DATE),
        call("+", call("*", call("-", year, number(1970)), number(12)), call("-", month, number(1))),
    )
    found = call("add_days", first, call("-", day, number(1)))
    same = conjunction(
        call("=", call(f"extract_{part}", found), value)
        for part, value in (("year", year), ("month", month), ("day", day))
    )
    within = conjunction((call(">=", year, number(1)), call("<=", year, number(9999))))
    sane = conjunction(
        (
            call(">=", day, number(1)),
            call("<=", day, number(31)),
            call(">=", month, number(1)),
            call("<=", month, number(12)),
        )
    )
    return case([(conjunction((within, sane, same)), found)], Literal(None, DATE))
