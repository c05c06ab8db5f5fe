"""Functions of DATEs and TIMESTAMPs, printed: parts of them, beginnings of units of time, months later.

EXTRACT(HOUR FROM at)         →   at % 86400000000 // 3600000000
DATE_TRUNC('hour', at)        →   at - at % 3600000000
"""

from typing import TYPE_CHECKING, Final

from squallpy.base.types import RANGES, Kind
from squallpy.catalog.durations import DAY
from squallpy.codegen.names import NotCompilable
from squallpy.codegen.values import Value
from squallpy.logical.expressions import Call, Literal

if TYPE_CHECKING:
    from squallpy.codegen.expressions import RowExpressions

_OF_DATE: Final = {  # the part of a day, and its greatest value
    "year": ("part_of_date({}, 0)", 9999),
    "quarter": ("(part_of_date({}, 1) - 1) // 3 + 1", 4),
    "month": ("part_of_date({}, 1)", 12),
    "day": ("part_of_date({}, 2)", 31),
    "week": ("week_of_year({})", 53),
    "dayofweek": ("({} + 4) % 7 + 1", 7),  # Sunday is 1
    "weekday": ("({} + 3) % 7", 6),  # Monday is 0
    "dayofyear": ("day_of_year({})", 366),
}
_OF_TIME: Final = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}
_MONTHS: Final = {"year": 12, "quarter": 3, "month": 1}
_MOST_MONTHS: Final = 12 * 10_000


def print_moment(call: Call, row: "RowExpressions") -> Value:
    """Print a function of a DATE or a TIMESTAMP; raises NotCompilable."""
    name, arg = call.name, next(iter(call.args), None)
    if arg is None or arg.type.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise NotCompilable(f"{name} in {call}")
    value, is_date = row.value(arg), arg.type.kind is Kind.DATE
    day = value.code if is_date else f"({value.code} // {DAY})"
    match call:
        case Call("trunc_time", (_, Literal(int(size)))) if size > 0 and not is_date:
            return _moment(f"{value.code} - {value.code} % {size}", value, call, row)
        case Call("trunc", (_, Literal("week"))):
            return _moment(f"{day} - ({day} + 3) % 7", value, call, row)
        case Call("trunc", (_, Literal(str(unit)))) if unit in _MONTHS:
            return _moment(f"first_of_months({day}, {_MONTHS[unit]})", value, call, row)
        case Call("last_day", (_,)):
            return _moment(f"first_of_month_after({day}, 1) - 1", value, call, row)
        case Call("add_months", (_, Literal(int(months)))) if abs(months) <= _MOST_MONTHS:
            later = f"months_after({day}, {months})"
            return _moment(later if is_date else f"{later} * {DAY} + {value.code} % {DAY}", value, call, row)
    part = name.removeprefix("extract_")
    if part in _OF_TIME:
        size, most = _OF_TIME[part]
        code = "0" if is_date else f"{value.code} % {DAY} // {size} % {most}"
        return row.let(code, value.known, call, 0, most - 1)
    if part in _OF_DATE:
        code, most = _OF_DATE[part]
        return row.let(code.format(day), value.known, call, 0, most)
    raise NotCompilable(f"{name} in {call}")


def _moment(code: str, value: Value, call: Call, row: "RowExpressions") -> Value:
    """Print a moment, which is within the years 1 to 9999 or has no answer."""
    if call.type.kind not in RANGES:
        raise NotCompilable(f"{call.name} in {call}")
    return row.within(row.let(code, value.known, call, -(2**63), 2**63 - 1), *RANGES[call.type.kind])
