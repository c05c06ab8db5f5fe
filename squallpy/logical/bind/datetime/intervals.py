"""Intervals and arithmetic with dates and timestamps; what is constant is computed at once.

    DATE '1994-01-31' + INTERVAL '1' MONTH  →  DATE '1994-02-28'        d - INTERVAL 3 DAY  →  ADD_DAYS(d, -3)

DATE ± whole number counts days; DATE - DATE is a number of days (INT), where Spark gives an interval.

An INTERVAL that is computed is a call of `interval`, which stands in no plan: what adds, compares or takes apart an
INTERVAL reads its parts. One without months becomes a value of INTERVAL DAY TO SECOND where it is selected, grouped by,
aggregated or given to a function (`to_value`).

    a - b, of TIMESTAMPs    →  DAY_TO_SECOND(MICROS(a) - MICROS(b))         n * INTERVAL '1' MONTH  →  INTERVAL(n, 0, 0)
    a - b < INTERVAL 1 HOUR →  MICROS(a) - MICROS(b) < 3600000000           d + INTERVAL n MONTH    →  ADD_MONTHS(d, n)
"""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import (
    BIGINT,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INT,
    INTERVAL,
    NULL,
    RANGES,
    TIMESTAMP,
    Kind,
    decimal,
)
from squallpy.logical import expression_builders
from squallpy.logical.bind.context import Context
from squallpy.logical.coercion import cast, coerce
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import EPOCH, Call, Expr, Literal

DAY_MICROS = 86_400_000_000
ZERO = Literal(0, INT)
UNITS: dict[str, tuple[int, int, int]] = {  # months, days, microseconds
    "YEAR": (12, 0, 0), "QUARTER": (3, 0, 0), "MONTH": (1, 0, 0), "WEEK": (0, 7, 0), "DAY": (0, 1, 0),
    "HOUR": (0, 0, 3_600_000_000), "MINUTE": (0, 0, 60_000_000), "SECOND": (0, 0, 1_000_000),
    "MILLISECOND": (0, 0, 1_000), "MICROSECOND": (0, 0, 1),
}  # fmt: skip
LONGEST = (10_000 * 12, 10_000 * 366, 10_000 * 366 * DAY_MICROS)
YEAR_MONTH = (("YEAR", "MONTH"), ("-",))
DAY_TIME = (("DAY", "HOUR", "MINUTE", "SECOND"), (r"\s+", ":", ":"))
FRACTION = r"(?:\.[0-9]{1,9})?"
MONTHS = "add it to a DATE or TIMESTAMP, or count the months"
"""The hint where an INTERVAL with months would have to be a value."""
INTERVAL_WORD = re.compile(r"^\s*interval\s+", re.IGNORECASE)  # with which a text may begin
NUMBER = r"(?:[0-9]{1,40}(?:\.[0-9]{1,40})?|\.[0-9]{1,40})"
PART = re.compile(rf"\s*([+-]?\s*{NUMBER})\s*([a-zA-Z]+)")


def is_written(node: exp.Interval) -> bool:
    """True if an INTERVAL gives its length by digits or a text."""
    value = node.this.this if isinstance(node.this, exp.Neg) else node.this
    return isinstance(value, exp.Literal) or not isinstance(node.args.get("unit"), exp.Var)


def interval(ctx: Context, node: exp.Interval) -> Literal:
    """Bind an INTERVAL: INTERVAL 3 MONTHS, INTERVAL '1 day 12 hours' → (months, days, microseconds)"""
    value, unit = node.this, node.args.get("unit")
    negative = isinstance(value, exp.Neg)
    value = value.this if negative else value
    if not isinstance(value, exp.Literal):
        hint = "write INTERVAL '1' DAY, MONTH, HOUR …"
        raise SquallError("SQ3001", "this form of INTERVAL is not supported yet", ctx.span(node), hint)
    if isinstance(unit, exp.IntervalSpan):
        text = spell_units(ctx, value.name, unit)
    else:
        text = f"{value.name} {unit.name}" if unit else INTERVAL_WORD.sub("", value.name)
    total, position = (0, 0, 0), 0
    if not text.strip():
        raise ctx.error("SQ2005", f"'{value.name}' is not a valid INTERVAL", node)
    while position < len(text):
        part = PART.match(text, position)
        if part is None:
            raise ctx.error("SQ2005", f"'{text}' is not a valid INTERVAL", node)
        amount = Fraction("".join(part[1].split())) * (-1 if negative else 1)
        months, days, micros = (amount * each for each in unit_of(ctx, part[2], node))
        if any(each != int(each) for each in (months, days, micros)):
            raise ctx.error("SQ2005", f"'{text}' is not a whole number of {part[2].upper()}", node)
        total = (total[0] + int(months), total[1] + int(days), total[2] + int(micros))
        position = part.end() + len(text[part.end() :]) - len(text[part.end() :].lstrip())
    if any(abs(each) > most for each, most in zip(total, LONGEST, strict=True)):
        raise ctx.error("SQ2005", f"INTERVAL '{text}' is longer than all time", node, "the years are 1 to 9999")
    return Literal(total, INTERVAL)


def spell_units(ctx: Context, text: str, span: exp.IntervalSpan) -> str:
    """Write the text of an INTERVAL of several units with their names; SQ2005 if it is none.

    '1-2' YEAR TO MONTH  →  1 YEAR 2 MONTH        '-3 04:05' DAY TO MINUTE  →  -3 DAY -04 HOUR -05 MINUTE
    """
    first, last = (unit_name(ctx, part.name, span) for part in (span.this, span.expression))
    for units, separators in (YEAR_MONTH, DAY_TIME):
        if first in units and last in units and units.index(first) < units.index(last):
            named = units[units.index(first) : units.index(last) + 1]
            between = separators[units.index(first) : units.index(last)]
            numbers = "".join(rf"{separator}([0-9]{{1,9}})" for separator in ("", *between[:-1]))
            tail = rf"{between[-1]}([0-9]{{1,9}}{FRACTION if last == 'SECOND' else ''})"
            found = re.fullmatch(rf"\s*([+-]?){numbers}{tail}\s*", text)
            if found is None:
                raise ctx.error("SQ2005", f"'{text}' is not a valid INTERVAL {first} TO {last}", span)
            return " ".join(f"{found[1]}{part} {unit}" for part, unit in zip(found.groups()[1:], named, strict=True))
    raise ctx.error("SQ2005", f"INTERVAL {first} TO {last} is none", span, "write YEAR TO MONTH, or DAY TO SECOND")


def unit_name(ctx: Context, name: str, node: exp.Expr) -> str:
    """Return the name of a unit of time as UNITS has it; SQ2005 for none."""
    unit = name.upper() if name.upper() in UNITS else name.upper().removesuffix("S")
    if unit not in UNITS:
        raise ctx.error("SQ2005", f'unknown unit "{name}"', node, nearest(name, UNITS))
    return unit


def unit_of(ctx: Context, name: str, node: exp.Expr) -> tuple[int, int, int]:
    return UNITS[unit_name(ctx, name, node)]


def involves_time(left: Expr, right: Expr) -> bool:
    """True if + or - of two expressions is arithmetic with dates."""
    return any(e.type.is_temporal or e.type.is_interval for e in (left, right))


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    """Build +, -, * or / where one side is a DATE, TIMESTAMP or INTERVAL; SQ2005 if they do not go together."""
    if op == "+" and right.type.is_temporal and not left.type.is_temporal:
        left, right = right, left
    sign = 1 if op == "+" else -1
    if op == "*" and left.type.is_interval:
        left, right = right, left
    if op == "*" and left.type.is_integer and right.type.is_interval:
        return length(*(product(part, left) for part in parts(right)))
    if left.type.is_interval and right.type.is_interval and op == "/":
        return call("/", *(coerce(micros_of(each), DOUBLE) for each in (left, right)))
    if op == "*" and left.type.is_numeric and right.type.is_interval:
        return scale(right, left, op)
    if op == "/" and left.type.is_interval and right.type.is_numeric:
        return scale(left, right, op)
    if op in "+-" and left.type.is_temporal and right.type.is_interval:
        return shift(left, *parts(right if sign > 0 else negate(right)))
    if op in "+-" and left.type.is_interval and right.type.is_interval:
        pairs = zip(parts(left), parts(right if sign > 0 else negate(right)), strict=True)
        months, days, micros = (total(*pair) for pair in pairs)
        found = length(months, days, micros)
        return to_value(found) if DAY_TO_SECOND in (left.type, right.type) and is_zero(months) else found
    if left.type == DATE and right.type.is_integer:
        return add_days(left, right if sign > 0 else negate(right))
    if op == "-" and left.type == right.type == DATE:
        return call("days_between", left, right)
    if op == "-" and left.type.is_temporal and right.type.is_temporal:
        return from_micros(call("-", *(call("micros", coerce(e, TIMESTAMP)) for e in (left, right))))
    hint = "add an INTERVAL, or days to a DATE"
    raise SquallError("SQ2005", f"{left.type} {op} {right.type} means nothing", hint=hint)


def length(months: Expr, days: Expr, micros: Expr) -> Expr:
    """Build an INTERVAL, a Literal where all of it is constant, one of DAY TO SECOND if it has microseconds alone."""
    given = (months, days, micros)
    if all(isinstance(part, Literal) and part.value is not None for part in given):
        return Literal(tuple(part.value for part in given if isinstance(part, Literal)), INTERVAL)
    if is_zero(months) and is_zero(days):
        return from_micros(micros)
    return Call("interval", given, INTERVAL, any(part.nullable for part in given))


def parts(interval: Expr) -> tuple[Expr, Expr, Expr]:
    """Return the months, days and microseconds of an INTERVAL."""
    match interval:
        case Literal((months, days, micros)):
            return Literal(months, INT), Literal(days, INT), Literal(micros, BIGINT)
        case Call("interval", (months, days, micros)):
            return months, days, micros
        case Literal(micros) if interval.type == DAY_TO_SECOND:
            return ZERO, ZERO, Literal(micros, BIGINT)
    return ZERO, ZERO, call("micros", interval)


def micros_of(interval: Expr) -> Expr:
    """Compute the length of an INTERVAL; SQ2005 where that depends on the month."""
    months, days, micros = parts(interval)
    if not is_zero(months):
        raise SquallError("SQ2005", "months have no fixed length", hint="compare the DATEs, or count days")
    return total(product(days, Literal(DAY_MICROS, BIGINT)), micros)


def from_micros(micros: Expr) -> Expr:
    """Build an INTERVAL DAY TO SECOND of a number of microseconds."""
    if not isinstance(micros, Literal):
        return call("day_to_second", micros)
    least, most = RANGES[Kind.DAY_TO_SECOND]
    if micros.value is not None and not least <= micros.value <= most:
        raise SquallError("SQ2005", f"an INTERVAL of {micros.value} microseconds is longer than all time")
    return Literal(micros.value, DAY_TO_SECOND)


def to_value(expr: Expr) -> Expr:
    """Convert an INTERVAL to a value of DAY TO SECOND, other expressions stay; SQ2005 for one with months."""
    if expr.type != INTERVAL:
        return expr
    if not is_zero(parts(expr)[0]):
        raise SquallError("SQ2005", "an INTERVAL with months is no value of a column", hint=MONTHS)
    return from_micros(micros_of(expr))


TAKING = {"DATE_ADD", "DATE_SUB", "TIME_BUCKET", "NEGATIVE", "POSITIVE"}
"""Functions that take an INTERVAL as it is written, with its months and days."""


def function_arguments(name: str, args: list[Expr]) -> list[Expr]:
    """Convert the INTERVALs that a function is given to values, except for one that takes them apart."""
    return args if name in TAKING else [to_value(arg) for arg in args]


OF_MICROS: dict[str, Callable[[Expr], Expr]] = {"ABS": from_micros, "SIGN": lambda sign: sign}
"""Functions of an INTERVAL that are those of its microseconds, and what is made of their results."""


def scale(interval: Expr, number: Expr, op: str) -> Expr:
    """Multiply or divide an INTERVAL by a number, rounded half away from zero; SQ2005 for one with months."""
    micros = coerce(micros_of(interval), decimal(19, 0) if number.type.is_exact and op == "*" else DOUBLE)
    return rounded_interval(expression_builders.arithmetic(op, micros, number))


def rounded_interval(micros: Expr) -> Expr:
    """Build the INTERVAL of a number of microseconds, rounded half away from zero."""
    return from_micros(rounded_to_whole(micros))


def rounded_to_whole(number: Expr) -> Expr:
    """Round a DECIMAL or DOUBLE to a BIGINT, half away from zero, where a cast to BIGINT alone cuts off."""
    return cast(cast(number, decimal(20, 0)), BIGINT)


def lengths(values: list[Expr]) -> list[Expr]:
    """Convert values that are compared: INTERVALs to microseconds, and numbers of days beside them, too."""
    day = Literal(DAY_MICROS, BIGINT)
    apart = [isinstance(value, Call) and value.name == "days_between" for value in values]
    known = all(
        is_days or value.type.is_interval or value.type == NULL for value, is_days in zip(values, apart, strict=True)
    )
    if not known or not any(value.type.is_interval for value in values):
        return values
    return [
        product(value, day) if is_days else micros_of(value) if value.type.is_interval else value
        for value, is_days in zip(values, apart, strict=True)
    ]


def is_zero(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == 0


def product(value: Expr, factor: Expr) -> Expr:
    """Multiply a part of an INTERVAL, at once if both are constant and their product is a BIGINT."""
    if isinstance(value, Literal) and isinstance(factor, Literal) and None not in (value.value, factor.value):
        made = value.value * factor.value
        if -(2**63) <= made < 2**63:
            return Literal(made, BIGINT)
    if is_zero(value) or is_zero(factor):
        return ZERO
    return factor if isinstance(value, Literal) and value.value == 1 else call("*", value, factor)


def total(a: Expr, b: Expr) -> Expr:
    if isinstance(a, Literal) and isinstance(b, Literal) and None not in (a.value, b.value):
        made = a.value + b.value
        if -(2**63) <= made < 2**63:
            return Literal(made, BIGINT)
    if is_zero(a):
        return b
    return a if is_zero(b) else call("+", a, b)


def shift(moment: Expr, months: Expr, days: Expr, micros: Expr) -> Expr:
    """Move a date or timestamp by an interval: first by months, then by days, then by the rest."""
    if moment.type == DATE and not is_zero(micros):
        moment = coerce(moment, TIMESTAMP)
    if isinstance(months, Literal):
        moment = add_months(moment, months.value) if months.value else moment
    else:
        moment = call("add_months", moment, months)
    if moment.type == DATE:
        return moment if is_zero(days) else add_days(moment, days)
    rest = total(product(days, Literal(DAY_MICROS, BIGINT)), micros)
    if is_zero(rest):
        return moment
    if isinstance(moment, Literal) and isinstance(rest, Literal) and moment.value is not None:
        return within_years(Literal(moment.value + rest.value, TIMESTAMP))
    return call("add_micros", moment, rest)


def add_days(day: Expr, days: Expr) -> Expr:
    match day, days:
        case Literal(int() as start, kind), Literal(int() as count) if kind == DATE and days.type.is_integer:
            return within_years(Literal(start + count, DATE))  # NB: other types are refused, or cast, by the call
    return call("add_days", day, days)


def convert_to_number(expr: Expr) -> Expr:
    """Convert a moved DATE or TIMESTAMP to a number of days or microseconds, which may be outside the years 1 to 9999.

    It is only good as a bound, which values are compared with.
    """
    match expr:
        case Call("add_days" | "add_micros" | "add_months", (moment, amount)):
            return replace(expr, args=(convert_to_number(moment), amount), type=BIGINT)
    return expr


def within_years(moment: Literal) -> Literal:
    """Return a moment; SQ2005 if it is too early or too late to be written."""
    try:
        str(moment)
    except OverflowError:
        raise SquallError("SQ2005", f"a {moment.type} outside the years 1 to 9999") from None
    return moment


def add_months(moment: Expr, months: int) -> Expr:
    """Add months to a day, which becomes at most the month's last; computed at once for a literal."""
    if not isinstance(moment, Literal) or moment.value is None:
        return call("add_months", moment, Literal(months, INT))
    days, rest = (moment.value, 0) if moment.type.kind is Kind.DATE else divmod(moment.value, DAY_MICROS)
    day = EPOCH + timedelta(days=days)
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise SquallError("SQ2005", f"{moment} shifted by {months} months is outside the years 1 to 9999")
    moved = (date(year, month + 1, min(day.day, monthrange(year, month + 1)[1])) - EPOCH).days
    return Literal(moved if moment.type == DATE else moved * DAY_MICROS + rest, moment.type)


def negate(expr: Expr) -> Expr:
    """Build -x; a literal is negated at once."""
    if expr.type.is_interval and not (isinstance(expr, Literal) and expr.type == INTERVAL):
        return length(*map(negate, parts(expr)))
    if isinstance(expr, Literal) and expr.value is not None:
        if expr.type == INTERVAL:
            return Literal(tuple(-part for part in expr.value), INTERVAL)
        if expr.type == decimal(19, 0) and expr.value == 2**63:
            return Literal(-expr.value, BIGINT)
        if expr.type.is_numeric and not (expr.type.is_integer and expr.value in (-(2**31), -(2**63))):
            return Literal(-expr.value, expr.type)
    return call("negate", expr)
