"""EXTRACT(part FROM d): one operation for each part of a DATE or TIMESTAMP, and what is made of others.

EXTRACT(YEAR FROM d)   →   EXTRACT_YEAR(d)        EXTRACT(ISODOW FROM d)   →   EXTRACT_WEEKDAY(d) + 1
"""

from collections.abc import Callable

from squallpy.base.errors import SquallError
from squallpy.logical.bind.datetime import calendar, intervals
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Call, Expr

PARTS = {
    **{name: name for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    "dayofweek": "dayofweek",
    "dow": "dayofweek",
    "dayofyear": "dayofyear",
    "doy": "dayofyear",
}

MADE: dict[str, Callable[[Expr], Expr]] = {
    "epoch": calendar.epoch,
    "isoyear": calendar.iso_year,
    "yearofweek": calendar.iso_year,
    **dict.fromkeys(
        ("isodow", "dayofweek_iso"), lambda moment: call("+", call("extract_weekday", moment), calendar.number(1))
    ),
}


def extract(part: str, moment: Expr) -> Expr:
    """Make EXTRACT(part FROM moment)."""
    if isinstance(moment, Call) and moment.name == "days_between":
        moment = intervals.length(intervals.ZERO, moment, intervals.ZERO)
    if moment.type.is_interval:
        return calendar.part_of(part, moment)
    if part.lower() in MADE:
        return MADE[part.lower()](moment)
    known = PARTS.get(part.lower()) or PARTS.get(part.lower().removesuffix("s"))
    if known is None:
        raise SquallError("SQ3001", f"EXTRACT({part.upper()} FROM …) is not supported yet")
    return call(f"extract_{known}", moment)
