"""Intervals and arithmetic with dates and timestamps; what is constant is computed at once.

    DATE '1994-01-31' + INTERVAL '1' MONTH  →  DATE '1994-02-28'        d - INTERVAL 3 DAY  →  ADD_DAYS(d, -3)

DATE ± whole number counts days; DATE - DATE is a number of days (INT), where Spark gives an interval.
"""

import re
from calendar import monthrange
from datetime import date, timedelta
from fractions import Fraction

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT, DATE, INT, INTERVAL, TIMESTAMP, Kind
from squallpy.logical.bind.context import Context
from squallpy.logical.coerce import coerce
from squallpy.logical.expressions import EPOCH, Expr, Literal
from squallpy.logical.functions import call

DAY_MICROS = 86_400_000_000
UNITS: dict[str, tuple[int, int, int]] = {  # months, days, microseconds
    "YEAR": (12, 0, 0), "QUARTER": (3, 0, 0), "MONTH": (1, 0, 0), "WEEK": (0, 7, 0), "DAY": (0, 1, 0),
    "HOUR": (0, 0, 3_600_000_000), "MINUTE": (0, 0, 60_000_000), "SECOND": (0, 0, 1_000_000),
    "MILLISECOND": (0, 0, 1_000), "MICROSECOND": (0, 0, 1),
}  # fmt: skip
PART = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s*([a-zA-Z]+)")


def interval(ctx: Context, node: exp.Interval) -> Literal:
    """INTERVAL '1' YEAR, INTERVAL 3 MONTHS, INTERVAL '1 day 12 hours' → (months, days, microseconds)."""
    value, unit = node.this, node.args.get("unit")
    negative = isinstance(value, exp.Neg)
    value = value.this if negative else value
    if not isinstance(value, exp.Literal) or isinstance(unit, exp.IntervalSpan):
        hint = "write INTERVAL '1' DAY, MONTH, HOUR …"
        raise SquallError("SQ3001", "this form of INTERVAL is not supported yet", ctx.span(node), hint)
    text = f"{value.name} {unit.name}" if unit else value.name
    total, position = (0, 0, 0), 0
    while position < len(text):
        part = PART.match(text, position)
        if part is None:
            raise ctx.error("SQ2005", f"'{text}' is not a valid INTERVAL", node)
        amount = Fraction(part[1].replace(" ", "")) * (-1 if negative else 1)
        months, days, micros = (amount * each for each in unit_of(ctx, part[2], node))
        if any(each != int(each) for each in (months, days, micros)):
            raise ctx.error("SQ2005", f"'{text}' is not a whole number of {part[2].upper()}", node)
        total = (total[0] + int(months), total[1] + int(days), total[2] + int(micros))
        position = part.end() + len(text[part.end() :]) - len(text[part.end() :].lstrip())
    return Literal(total, INTERVAL)


def unit_of(ctx: Context, name: str, node: exp.Expr) -> tuple[int, int, int]:
    unit = name.upper() if name.upper() in UNITS else name.upper().removesuffix("S")
    if unit not in UNITS:
        raise ctx.error("SQ2005", f'unknown unit "{name}"', node, nearest(name, UNITS))
    return UNITS[unit]


def involves_time(left: Expr, right: Expr) -> bool:
    """Whether + or - of these two is arithmetic with dates."""
    return any(e.type.is_temporal or e.type == INTERVAL for e in (left, right))


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    """left ± right where one is a DATE, TIMESTAMP or INTERVAL; SQ2005 if they do not go together."""
    if op == "+" and right.type.is_temporal and not left.type.is_temporal:
        left, right = right, left
    sign = 1 if op == "+" else -1
    if left.type.is_temporal and right.type == INTERVAL and isinstance(right, Literal):
        return shift(left, tuple(sign * part for part in right.value))
    if left.type == right.type == INTERVAL and isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(tuple(a + sign * b for a, b in zip(left.value, right.value, strict=True)), INTERVAL)
    if left.type == DATE and right.type.is_integer:
        return add_days(left, right if sign > 0 else negate(right))
    if op == "-" and left.type == right.type == DATE:
        return call("days_between", left, right)
    hint = "add an INTERVAL, or days to a DATE"
    raise SquallError("SQ2005", f"{left.type} {op} {right.type} means nothing", hint=hint)


def shift(moment: Expr, by: tuple[int, ...]) -> Expr:
    """A date or timestamp moved by an interval: first months, then days, then the rest."""
    months, days, micros = by
    if micros and moment.type == DATE:
        moment = coerce(moment, TIMESTAMP)
    if months:
        moment = add_months(moment, months)
    if moment.type == DATE:
        return add_days(moment, Literal(days, INT)) if days else moment
    rest = days * DAY_MICROS + micros
    if not rest:
        return moment
    if isinstance(moment, Literal) and moment.value is not None:
        return within_years(Literal(moment.value + rest, TIMESTAMP))
    return call("add_micros", moment, Literal(rest, BIGINT))


def add_days(day: Expr, days: Expr) -> Expr:
    if isinstance(day, Literal) and isinstance(days, Literal) and None not in (day.value, days.value):
        return within_years(Literal(day.value + days.value, DATE))
    return call("add_days", day, days)


def within_years(moment: Literal) -> Literal:
    """The same, unless it is too early or too late to be written."""
    try:
        str(moment)
    except OverflowError:
        raise SquallError("SQ2005", f"a {moment.type} outside the years 1 to 9999") from None
    return moment


def add_months(moment: Expr, months: int) -> Expr:
    """The same day months later, at most the month's last; computed at once for a literal."""
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
    """-x; a literal is negated at once."""
    if isinstance(expr, Literal) and expr.value is not None:
        if expr.type == INTERVAL:
            return Literal(tuple(-part for part in expr.value), INTERVAL)
        if expr.type.is_numeric:
            return Literal(-expr.value, expr.type)
    return call("negate", expr)
