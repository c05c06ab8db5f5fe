"""Texts as values of a type: CAST from VARCHAR as Spark 4 does it in ANSI mode, with a session in UTC.

'+5' INT → 5        '1e3' DOUBLE → 1000.0        '2.345' DECIMAL(4,2) → 235        '2026-1-2 3:4:5+02:00' TIMESTAMP → µs

One rule for constants, columns and fields of files; `runtime/evaluate/text_column_casts.py` applies it to columns. It
differs from Spark where an answer would depend on the day ('10:20' is no TIMESTAMP), and for years outside 1 to 9999.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from squallpy.base.types import RANGES, Kind, Type

Value = bool | int | float | str  # in the physical form of its type (`base/types.py`)

BLANKS = "".join(map(chr, range(0x21)))  # what Java's String.trim removes
CONTROLS = BLANKS + "\x7f"  # what Spark's UTF8String.trimAll removes
BOOLEANS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(("f", "false", "n", "no", "0"), False)
INFINITIES = {sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in ("inf", "infinity")}
SPECIAL = INFINITIES | {"nan": float("nan")}  # in any case
EPOCH = datetime(1970, 1, 1)
EARLIEST, LATEST = datetime.min - EPOCH, datetime.max - EPOCH
MAX_OFFSET = timedelta(hours=18)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?")
_DECIMAL = re.compile(r"([+-]?)(?:([0-9]+)\.?([0-9]*)|\.([0-9]+))(?:[eE]([+-]?)0*([0-9]{1,10}))?")
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_CLOCK = r"([0-9]{1,9}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,9}))?"
_DAY_TO_SECOND = re.compile(  # as Spark writes it, and as PostgreSQL and DuckDB do
    rf"(?P<named>INTERVAL\s+(?P<minus>-?)')?(?P<sign>[+-]?)([0-9]{{1,9}}) {_CLOCK}(?(named)'\s+DAY\s+TO\s+SECOND)",
    re.IGNORECASE,
)
_DAYS_AND_CLOCK = re.compile(rf"(?:([+-]?[0-9]{{1,9}}) days?)?(?:(?:^| )([+-]?){_CLOCK})?")
_OFFSET = re.compile(r"([+-])([0-9]{2})(?:([0-9]{2})([0-9]{2})?|:([0-9]{2})(?::([0-9]{2}))?)?")
SHORT_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip  # Java's ZoneId.SHORT_IDS


def parse(text: str, type: Type) -> Value:
    """Read a text as a value of a type; ValueError if it has none."""
    return text if type.kind is Kind.VARCHAR else _PARSERS[type.kind](text, type)


def _integer(text: str, type: Type) -> int:
    digits = text.strip(CONTROLS)
    limit = 2**31 if type.kind is Kind.INT else 2**63
    if _INTEGER.fullmatch(digits) is None:
        raise ValueError(text)
    significant = digits.lstrip("+-").lstrip("0")
    if len(significant) > 19:  # NB: int() refuses texts of thousands of digits by itself
        raise ValueError(text)
    value = -int(significant or "0") if digits.startswith("-") else int(significant or "0")
    if not -limit <= value < limit:
        raise ValueError(text)
    return value


def _double(text: str, type: Type) -> float:
    trimmed = text.strip(BLANKS)
    if match := _DOUBLE.fullmatch(trimmed):
        return float(match[1])
    if match := _HEXADECIMAL.fullmatch(trimmed):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return float("-inf" if trimmed.startswith("-") else "inf")
    if trimmed in ("+NaN", "-NaN"):
        return float("nan")
    try:
        return SPECIAL[trimmed.lower()]
    except KeyError:
        raise ValueError(text) from None


def _decimal(text: str, type: Type) -> int:
    """Read an integer scaled by 10^scale, rounded half away from zero."""
    match = _DECIMAL.fullmatch(_ascii_digits(text.strip(BLANKS)))
    if match is None:
        raise ValueError(text)
    sign, whole, fraction, bare, negative, exponent = match.groups(default="")
    fraction = fraction or bare
    shift = int(negative + (exponent or "0"))
    if max(abs(shift), len(fraction) - shift) >= 2**31:  # Java's BigDecimal holds no such scale
        raise ValueError(text)
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0
    length = len(digits) - len(fraction) + shift + type.scale  # of the digits that are left after rounding
    if length > type.precision:
        raise ValueError(text)
    if length < 0:
        return 0
    value = int(digits[:length].ljust(length, "0") or "0") + (digits[length : length + 1] >= "5")
    if value >= 10**type.precision:
        raise ValueError(text)
    return -value if sign == "-" else value


def _ascii_digits(text: str) -> str:
    """Replace the digits of any script by 0 to 9, as Java's BigDecimal reads them."""
    return text if text.isascii() else "".join(str(int(c)) if c.isdecimal() else c for c in text)


def _boolean(text: str, type: Type) -> bool:
    try:
        return BOOLEANS[text.strip(CONTROLS).lower()]
    except KeyError:
        raise ValueError(text) from None


def _date(text: str, type: Type) -> int:
    """Read days since 1970; what follows the day after a blank or a T is ignored."""
    match = _DATE.fullmatch(text.strip(CONTROLS))
    if match is None:
        raise ValueError(text)
    year, month, day = (int(part or 1) for part in match.groups())
    return (datetime(year, month, day) - EPOCH).days


def _timestamp(text: str, type: Type) -> int:
    """Read microseconds since 1970 in UTC; digits after the sixth of a second are cut off."""
    match = _TIMESTAMP.fullmatch(text.strip(CONTROLS))
    if match is None:
        raise ValueError(text)
    year, month, day = (int(part or 1) for part in match.groups()[:3])
    hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
    fraction, zone = match.groups(default="")[6:]
    local = datetime(year, month, day, hour, minute, second, int(fraction[:6].ljust(6, "0")))
    since = local - EPOCH
    if zone:
        since -= _zone(zone.strip(BLANKS)).utcoffset(local) or timedelta()
    if not EARLIEST <= since <= LATEST:
        raise ValueError(text)
    return since // timedelta(microseconds=1)


def _day_to_second(text: str, type: Type) -> int:
    """Read microseconds; digits after the sixth of a second are cut off.

    INTERVAL '-1 02:00:00' DAY TO SECOND, -1 02:00:00, -1 days -02:00:00, -26:00:00   →   −26 hours
    """
    bare = text.strip(CONTROLS)
    if match := _DAY_TO_SECOND.fullmatch(bare):
        days, clock = int(match[4]), match.groups(default="0")[4:]
        found = days * 86_400_000_000 + _clock_micros(text, clock, 23)
        found = -found if (match["minus"] == "-") != (match["sign"] == "-") else found
    elif bare and (match := _DAYS_AND_CLOCK.fullmatch(bare)):
        time = _clock_micros(text, match.groups(default="0")[2:], 10**9)
        found = int(match[1] or 0) * 86_400_000_000 + (-time if match[2] == "-" else time)
    else:
        raise ValueError(text)
    least, most = RANGES[type.kind]
    if not least <= found <= most:
        raise ValueError(text)
    return found


def _clock_micros(text: str, parts: Sequence[str], most: int) -> int:
    """Compute the microseconds of hours, at most so many, minutes, seconds and a fraction; ValueError for more."""
    hours, minutes, seconds = map(int, parts[:3])
    if hours > most or minutes > 59 or seconds > 59:
        raise ValueError(text)
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(parts[3][:6].ljust(6, "0"))


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    """Read a time zone: Z, +h, +hh, +[h]h:[m]m, +hhmm, +hh:mm:ss, the same after UTC, GMT or UT, or a region's name."""
    name = re.sub(r"([+-])([0-9]):", r"\g<1>0\2:", name, count=1)
    name = re.sub(r"([+-][0-9]{2}):([0-9])$", r"\1:0\2", name)
    name = SHORT_ZONES.get(name, name)
    prefix = next((p for p in ("UTC", "GMT", "UT") if name == p or name.startswith((p + "+", p + "-"))), "")
    offset = name.removeprefix(prefix)
    if (prefix and not offset) or name == "Z":
        return UTC
    if offset.startswith(("+", "-")):
        match = _OFFSET.fullmatch(re.sub(r"^([+-])([0-9])$", r"\g<1>0\2", offset))
        if match is None:
            raise ValueError(name)
        hours, *parts = (int(part or 0) for part in match.groups()[1:])
        minutes, seconds = parts[0] + parts[2], parts[1] + parts[3]
        distance = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if distance > MAX_OFFSET or minutes > 59 or seconds > 59:
            raise ValueError(name)
        return timezone(-distance if match[1] == "-" else distance)
    return _region(name)


def _region(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, available_timezones

    if name not in available_timezones():  # NB: ZoneInfo itself takes names in any case where the file system does
        raise ValueError(name)
    return ZoneInfo(name)


_PARSERS: dict[Kind, Callable[[str, Type], Value]] = {
    Kind.BOOLEAN: _boolean, Kind.INT: _integer, Kind.BIGINT: _integer, Kind.DECIMAL: _decimal, Kind.DOUBLE: _double,
    Kind.DATE: _date, Kind.TIMESTAMP: _timestamp, Kind.DAY_TO_SECOND: _day_to_second,
}  # fmt: skip
