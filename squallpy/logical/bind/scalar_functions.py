"""Functions of a row that are called by name."""

import re
from collections.abc import Callable
from functools import partial
from math import e, pi

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, INTERVAL, NULL, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.frontend.unsupported import AGGREGATES, FUNCTIONS
from squallpy.logical import functions
from squallpy.logical.bind.aggregates.calls import aggregate, grouping, head
from squallpy.logical.bind.aggregates.collect import collected
from squallpy.logical.bind.aggregates.collector import NAMES
from squallpy.logical.bind.datetime import calendar, intervals
from squallpy.logical.bind.datetime.patterns import parsed
from squallpy.logical.bind.expressions import Scalars, extract, note_lost_fraction
from squallpy.logical.bind.split_function import FIRST, SIZES, counted, is_split, item
from squallpy.logical.coercion import cast, coerce, unify
from squallpy.logical.expressions import Cast, Expr, Literal, conjunction, not_null
from squallpy.logical.functions import REALS, call, case, coalesce

Builder = Callable[..., Expr]
ZERO, SPACE, EMPTY = Literal(0, INT), Literal(" ", VARCHAR), Literal("", VARCHAR)
SECONDS = Literal("yyyy-MM-dd HH:mm:ss", VARCHAR)
TYPES = {
    "STRING": VARCHAR, "INT": INT, "BIGINT": BIGINT, "DOUBLE": DOUBLE, "FLOAT": DOUBLE, "BOOLEAN": BOOLEAN,
    "TIMESTAMP": TIMESTAMP, "DECIMAL": decimal(10, 0),
}  # fmt: skip
UNIT = "unit "  # before the name of one that was no text
WITH_UNIT = ("DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF")  # its first of three
WITH_OVER = (
    "RANK", "DENSE_RANK", "ROW_NUMBER", "NTILE", "PERCENT_RANK", "CUME_DIST", "LAG", "LEAD", "NTH_VALUE",
)  # fmt: skip
TIMES = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
TRUNCATIONS = {
    "year": ("YEAR", "YYYY", "YY"), "quarter": ("QUARTER",), "month": ("MONTH", "MM", "MON"), "week": ("WEEK",),
}  # fmt: skip


def direct(name: str) -> Builder:
    """A function that is one of FUNCTIONS."""
    return lambda *args: call(name, *args)


def concat(first: Expr, *rest: Expr) -> Expr:
    """CONCAT(a, b, c)  →  a || b || c"""
    return call("||", first, *rest) if rest else first


def null_if(value: Expr, other: Expr) -> Expr:
    return case([(call("=", value, other), Literal(None, NULL))], value)


def if_else(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return case([(condition, yes)], no)


def left(text: Expr, length: Expr) -> Expr:
    return call("substring", text, Literal(1, INT), length)


def right(text: Expr, length: Expr) -> Expr:
    return call("substring", text, intervals.negate(length), length)


def padded(name: str) -> Builder:
    def build(text: Expr, length: Expr, fill: Expr = SPACE) -> Expr:
        return call(name, text, length, fill)

    return build


def rounded(x: Expr, places: Expr = ZERO) -> Expr:
    """ROUND(x, n), half away from zero: a cast to fewer decimals where x is exact."""
    if not isinstance(places, Literal) or not places.type.is_integer or places.value is None:
        raise SquallError("SQ3001", "ROUND to anything but a constant number of digits is not supported yet")
    if not x.type.is_exact or places.value < 0:
        return call("round", x, places)
    if places.value >= x.type.scale:
        return x
    return cast(x, decimal(x.type.precision - x.type.scale + places.value + 1, places.value))


def nvl2(tested: Expr, there: Expr, missing: Expr) -> Expr:
    return case([(not_null(tested), there)], missing)


def replaced(text: Expr, old: Expr, new: Expr = EMPTY) -> Expr:
    return call("replace", text, old, new)


def truncated(value: Expr, to: Expr = ZERO) -> Expr:
    """TRUNC(d, 'MONTH') of a DATE or TIMESTAMP as in Spark, TRUNC(x) and TRUNC(x, n) of numbers as in PostgreSQL."""
    if not value.type.is_numeric and (value.type != NULL or to.type == VARCHAR):
        return to_unit(value, to)
    value = coerce(value, DOUBLE) if value.type == NULL else value
    if not isinstance(to, Literal) or not to.type.is_integer or to.value is None:
        raise SquallError("SQ3001", "TRUNC to anything but a constant number of digits is not supported yet")
    return value if value.type.is_exact and to.value >= value.type.scale else call("truncate", value, to)


def to_unit(day: Expr, unit: Expr) -> Expr:
    """The first day of a DATE's or TIMESTAMP's YEAR, QUARTER, MONTH or WEEK; the names of units are Spark's."""
    name = str(unit.value).upper() if isinstance(unit, Literal) else ""
    known = {n: unit for unit, names in TRUNCATIONS.items() for n in names}
    if name not in known:
        raise SquallError("SQ2005", "TRUNC takes the constant 'YEAR', 'QUARTER', 'MONTH' or 'WEEK'")
    return call("trunc", cast(day, DATE) if isinstance(day, Literal) else day, Literal(known[name], VARCHAR))


def date_trunc(unit: Expr, moment: Expr) -> Expr:
    """DATE_TRUNC('MONTH', t), a TIMESTAMP."""
    name = str(unit.value).upper() if isinstance(unit, Literal) else ""
    if name in ("DAY", "DD"):
        return cast(cast(moment, DATE), TIMESTAMP)
    if name in TIMES:
        return call("trunc_time", cast(moment, TIMESTAMP), Literal(intervals.UNITS[name][2], BIGINT))
    return cast(to_unit(moment, unit), TIMESTAMP)


def date_part(part: Expr, moment: Expr) -> Expr:
    """DATE_PART('MONTH', d), which is EXTRACT(MONTH FROM d)"""
    if not isinstance(part, Literal):
        raise SquallError("SQ3001", "DATE_PART of a computed part is not supported yet")
    return extract(str(part.value), moment)


def decode(value: Expr, *rest: Expr) -> Expr:
    """DECODE(x, 1, 'a', 2, 'b', 'c')  →  CASE WHEN x <=> 1 THEN 'a' WHEN x <=> 2 THEN 'b' ELSE 'c' END"""
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    otherwise = rest[-1] if len(rest) % 2 else Literal(None, NULL)
    return case([(call("<=>", value, key), result) for key, result in pairs], otherwise)


def logarithm(base: Expr, x: Expr | None = None) -> Expr:
    """LOG(x), LOG(base, x)"""
    return call("ln", base) if x is None else call("/", call("ln", x), call("ln", base))


def positive(a: Expr, b: Expr) -> Expr:
    """PMOD(a, b), the remainder that is not negative where the divisor is not: PMOD(-10, 3) → 2, PMOD(-10, -3) → -1"""
    rest = call("%", a, b)
    lacks = call("and", call("<", rest, ZERO), call(">", b, ZERO))
    return case([(lacks, call("%", call("+", rest, b), b))], rest)


def joined(separator: Expr, *parts: Expr) -> Expr:
    """CONCAT_WS(',', a, b)"""
    if not isinstance(separator, Literal):
        raise SquallError("SQ3001", "CONCAT_WS with a computed separator is not supported yet")
    if separator.value is None:
        return Literal(None, VARCHAR)
    return call("concat_ws", separator, *parts) if parts else EMPTY


def part(text: Expr, separator: Expr, position: Expr) -> Expr:
    if isinstance(position, Literal) and position.value == 0:
        raise SquallError("SQ2005", "SPLIT_PART counts from 1, or from -1 at the end")
    return call("split_part", text, separator, position)


def located(sought: Expr, text: Expr, start: Expr | None = None) -> Expr:
    """LOCATE('b', 'abcb', 3)  →  4: the first place from there on, 0 if there is none."""
    if start is None:
        return call("instr", text, sought)
    before = call("-", start, Literal(1, INT))
    found = call("instr", call("substring", text, start), sought)
    is_there = conjunction((call(">", start, ZERO), call(">", found, ZERO)))
    return case([(is_there, call("+", found, before)), (not_null(found), ZERO)], Literal(None, INT))


def of_spaces(name: str) -> Builder:
    """TRIM(x) is TRIM(' ' FROM x)."""
    return lambda text: call(name, text, SPACE)


def from_unixtime(count: Expr, pattern: Expr = SECONDS) -> Expr:
    """FROM_UNIXTIME(n), a text; there are no time zones."""
    return calendar.formatted(calendar.since(calendar.MICROS)(count), pattern)


def to_type(type: Type, value: Expr) -> Expr:
    """INT(x)  →  CAST(x AS INT)"""
    return cast(value, type)


def moved(moment: Expr, days: Expr, sign: int) -> Expr:
    """DATE_ADD(d, 3), DATE_ADD(d, INTERVAL 1 MONTH)"""
    if days.type == INTERVAL:
        return intervals.arithmetic("+" if sign > 0 else "-", moment, days)
    return intervals.add_days(moment, days if sign > 0 else intervals.negate(days))


def to_digits(name: str) -> Builder:
    """CEIL(x, n)  →  CEIL(x · 10ⁿ) · 10⁻ⁿ"""

    def build(x: Expr, places: Expr = ZERO) -> Expr:
        if not isinstance(places, Literal) or not places.type.is_integer or not 0 <= (places.value or 0) <= 18:
            raise SquallError("SQ3001", f"{name.upper()} to anything but 0 to 18 constant digits is not supported yet")
        if not places.value or (x.type.is_exact and x.type.scale <= places.value):
            return call(name, x) if not places.value else x
        if x.type == DOUBLE:
            power = Literal(10.0**places.value, DOUBLE)
            return call("/", coerce(call(name, call("*", x, power)), DOUBLE), power)
        up, down = Literal(10**places.value, BIGINT), Literal(1, decimal(places.value, places.value))
        return call("*", call(name, call("*", x, up)), down)

    return build


def overlaid(text: Expr, other: Expr, start: Expr, length: Expr | None = None) -> Expr:
    """OVERLAY('abcdef', 'XY', 2, 3)  →  'aXYef'"""
    rest = call("+", start, call("length", other) if length is None else length)
    return concat(left(text, call("-", start, Literal(1, INT))), other, call("substring", text, rest))


def element(place: Expr, *values: Expr) -> Expr:
    """ELT(n, a, b)"""
    numbered = enumerate(values, 1)
    return case([(call("=", place, Literal(n, INT)), value) for n, value in numbered], Literal(None, NULL))


def extracted(text: Expr, expression: Expr, group: Expr | None = None) -> Expr:
    """REGEXP_EXTRACT(x, p): the first group, or all if there is none."""
    if group is None:
        has_group = isinstance(expression, Literal) and re.search(r"(?<!\\)\((?!\?)", str(expression.value))
        group = Literal(int(bool(has_group)), INT)
    return call("regexp_extract", text, expression, group)


def with_flags(expression: Expr, flags: Expr | None, known: str) -> Expr:
    """A regular expression as 'i' asks for it; the other known flags change nothing."""
    given = "" if flags is None else flags.value if isinstance(flags, Literal) else None
    if (
        not isinstance(given, str)
        or set(given) - set(known)
        or (flags is not None and "g" in known and "g" not in given)
    ):
        told = f"a regular expression with the flags {flags} is not supported yet"
        raise SquallError("SQ3001", told, hint=f"there are {' and '.join(map(repr, known))}")
    if "i" not in given:
        return expression
    if not isinstance(expression, Literal):
        raise SquallError("SQ3001", "flags of a computed regular expression are not supported yet")
    return Literal(f"(?i){expression.value}", VARCHAR)


def matching(text: Expr, expression: Expr, flags: Expr | None = None) -> Expr:
    """REGEXP_LIKE(x, p, 'i')"""
    return call("rlike", text, with_flags(expression, flags, "ic"))


def all_replaced(text: Expr, expression: Expr, new: Expr, flags: Expr | None = None) -> Expr:
    """REGEXP_REPLACE(x, p, y), of all matches, as 'g' says elsewhere."""
    return call("regexp_replace", text, with_flags(expression, flags, "gi"), new)


def is_nan(x: Expr) -> Expr:
    """ISNAN(x), which is FALSE of NULL."""
    return call("<=>", coerce(x, DOUBLE), Literal(float("nan"), DOUBLE))


def by_unit(text_way: Builder, name_way: Builder) -> Builder:
    """A function whose unit may be a text, as in DuckDB, or a name, as in Spark."""

    def build(unit: Expr, *args: Expr) -> Expr:
        if isinstance(unit, Literal) and str(unit.value).startswith(UNIT):
            return name_way(Literal(str(unit.value).removeprefix(UNIT), VARCHAR), *args)
        return text_way(unit, *args)

    return build


def digest(algorithm: str) -> Builder:
    """MD5(x), SHA1(x)"""
    return lambda text: call("digest", text, Literal(algorithm, VARCHAR))


def sha2(text: Expr, bits: Expr) -> Expr:
    """SHA2(x, 256), of 224, 256, 384 or 512 bits; 0 is 256, and of others there is none."""
    if not isinstance(bits, Literal) or not bits.type.is_integer:
        raise SquallError("SQ3001", "SHA2 of a computed number of bits is not supported yet")
    if bits.value not in (0, 224, 256, 384, 512):
        return Literal(None, VARCHAR)
    return call("digest", text, Literal(f"sha{bits.value or 256}", VARCHAR))


def json_at(text: Expr, path: Expr) -> Expr:
    """GET_JSON_OBJECT(x, '$.a[0]')"""
    if not isinstance(path, Literal) or "*" in str(path.value):
        raise SquallError("SQ3001", "GET_JSON_OBJECT with * in its path, or a computed one, is not supported yet")
    return call("json_at", text, path)


def hexadecimal(value: Expr) -> Expr:
    return call("hex_number" if value.type.is_integer else "hex", value)


def attempted(name: str) -> Builder:
    """TRY_ADD(a, b), NULL where whole numbers have no sum"""

    def build(a: Expr, b: Expr) -> Expr:
        if not (a.type.is_integer and b.type.is_integer):
            return functions.arithmetic(name, a, b)
        return call("tried", Cast(call(name, *(cast(x, decimal(19, 0)) for x in (a, b))), BIGINT))

    return build


def bucket(x: Expr, low: Expr, high: Expr, count: Expr) -> Expr:
    """WIDTH_BUCKET(x, low, high, n): in which of n equal parts x is, from 1; 0 before and n + 1 behind them."""
    x, low, high, count = coerce(x, DOUBLE), coerce(low, DOUBLE), coerce(high, DOUBLE), coerce(count, BIGINT)
    behind, size = call("+", count, Literal(1, BIGINT)), coerce(count, DOUBLE)

    def among(a: Expr, b: Expr, whole: Expr) -> Expr:
        part = cast(call("floor", call("/", call("*", size, call("-", a, b)), whole)), BIGINT)
        return call("+", part, Literal(1, BIGINT))

    rising, falling = among(x, low, call("-", high, low)), among(low, x, call("-", low, high))
    is_some, up, down = call(">", count, ZERO), call("<", low, high), call(">", low, high)
    return case(
        [
            (call("and", is_some, up, call("<", x, low)), Literal(0, BIGINT)),
            (call("and", is_some, up, call(">=", x, high)), behind),
            (call("and", is_some, up), rising),
            (call("and", is_some, down, call(">", x, low)), Literal(0, BIGINT)),
            (call("and", is_some, down, call("<=", x, high)), behind),
            (call("and", is_some, down), falling),
        ],
        Literal(None, BIGINT),
    )


def first_of_three(two: Builder, three: Builder) -> Builder:
    return lambda *args: (two if len(args) == 2 else three)(*args)


# name → (least arguments, most, builder)
NAMED: dict[str, tuple[int, int | None, Builder]] = {
    **{
        name: (1, 1, direct(f"extract_{part}"))
        for part in ("year", "quarter", "month", "day", "hour", "minute", "second")
        for name in (part.upper(), *(["DAYOFMONTH"] if part == "day" else []))
    },
    **{name: (1, 1, direct("upper")) for name in ("UPPER", "UCASE")},
    **{name: (1, 1, direct("lower")) for name in ("LOWER", "LCASE")},
    **{name: (1, 1, direct("length")) for name in ("LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH")},
    **dict.fromkeys(("IFNULL", "NVL"), (2, 2, coalesce)),
    **dict.fromkeys(("IF", "IFF", "IIF"), (3, 3, if_else)),
    "ABS": (1, 1, direct("abs")),
    "DIV": (2, 2, direct("div")),
    "PMOD": (2, 2, positive),
    "TRY_DIVIDE": (2, 2, direct("/")),
    **dict(zip(("TRY_ADD", "TRY_SUBTRACT", "TRY_MULTIPLY"), ((2, 2, attempted(name)) for name in "+-*"), strict=True)),
    "WIDTH_BUCKET": (4, 4, bucket),
    "LOG": (1, 2, logarithm),
    "PI": (0, 0, lambda: Literal(pi, DOUBLE)),
    "E": (0, 0, lambda: Literal(e, DOUBLE)),
    **{name.upper(): (1, 1, direct(name)) for name in REALS},
    "ISNULL": (1, 1, direct("is_null")),
    "ISNOTNULL": (1, 1, not_null),
    "EQUAL_NULL": (2, 2, direct("<=>")),
    "NULLIFZERO": (1, 1, lambda x: null_if(x, ZERO)),
    "ZEROIFNULL": (1, 1, lambda x: coalesce(x, ZERO)),
    "DECODE": (3, None, decode),
    **{name: (1, 1, direct(name.lower())) for name in ("SQRT", "SIGN", "EXP", "LN", "LOG10", "LOG2", "BIT_COUNT")},
    "FLOOR": (1, 2, to_digits("floor")),
    **dict.fromkeys(("CEIL", "CEILING"), (1, 2, to_digits("ceil"))),
    "COT": (1, 1, lambda x: call("/", Literal(1.0, DOUBLE), call("tan", x))),
    "SHIFTLEFT": (2, 2, direct("shift_left")),
    "SHIFTRIGHT": (2, 2, direct("shift_right")),
    "ISNAN": (1, 1, is_nan),
    "NANVL": (2, 2, lambda x, other: case([(is_nan(x), other)], x)),
    "ELT": (2, None, element),
    **{name: (1, 1, partial(to_type, type)) for name, type in TYPES.items()},
    **dict.fromkeys(("POWER", "POW"), (2, 2, direct("power"))),
    "ATAN2": (2, 2, direct("atan2")),
    "HYPOT": (2, 2, direct("hypot")),
    "UNIX_DATE": (1, 1, lambda day: call("days_between", day, Literal(0, DATE))),
    "ROUND": (1, 2, rounded),
    "GREATEST": (2, None, direct("greatest")),
    "LEAST": (2, None, direct("least")),
    "MOD": (2, 2, partial(functions.arithmetic, "%")),
    "SUBSTRING": (2, 3, direct("substring")),
    "LEFT": (2, 2, left),
    "RIGHT": (2, 2, right),
    "LPAD": (2, 3, padded("lpad")),
    "RPAD": (2, 3, padded("rpad")),
    "REPLACE": (2, 3, replaced),
    "LTRIM": (1, 1, of_spaces("ltrim")),
    "RTRIM": (1, 1, of_spaces("rtrim")),
    "BTRIM": (1, 2, lambda text, characters=SPACE: call("trim", text, characters)),
    "REVERSE": (1, 1, direct("reverse")),
    "REPEAT": (2, 2, direct("repeat")),
    "INITCAP": (1, 1, direct("initcap")),
    "TRANSLATE": (3, 3, direct("translate")),
    "CONCAT_WS": (1, None, joined),
    "SPLIT_PART": (3, 3, part),
    **dict.fromkeys(("INSTR", "STRPOS"), (2, 2, direct("instr"))),
    "OVERLAY": (3, 4, overlaid),
    "SPACE": (1, 1, lambda times: call("repeat", SPACE, times)),
    "ASCII": (1, 1, direct("ascii")),
    **dict.fromkeys(("CHR", "CHAR"), (1, 1, direct("chr"))),
    "OCTET_LENGTH": (1, 1, direct("octets")),
    "BIT_LENGTH": (1, 1, lambda text: call("*", call("octets", text), Literal(8, INT))),
    "REGEXP_EXTRACT": (2, 3, extracted),
    "REGEXP_COUNT": (2, 2, direct("regexp_count")),
    "REGEXP_SUBSTR": (
        2,
        2,
        lambda text, p: case([(call("rlike", text, p), extracted(text, p, ZERO))], Literal(None, NULL)),
    ),
    "SUBSTRING_INDEX": (3, 3, direct("substring_index")),
    **dict.fromkeys(("LOCATE", "POSITION", "CHARINDEX"), (2, 3, located)),
    **dict.fromkeys(("RLIKE", "REGEXP"), (2, 2, direct("rlike"))),
    **dict.fromkeys(("REGEXP_LIKE", "REGEXP_MATCHES"), (2, 3, matching)),
    "REGEXP_REPLACE": (3, 4, all_replaced),
    **{name: (2, 2, direct(name.lower())) for name in ("STARTSWITH", "ENDSWITH", "CONTAINS")},
    **{name: (2, 2, direct(name.lower().replace("_", ""))) for name in ("STARTS_WITH", "ENDS_WITH")},
    "MD5": (1, 1, digest("md5")),
    **dict.fromkeys(("SHA", "SHA1"), (1, 1, digest("sha1"))),
    "SHA2": (2, 2, sha2),
    "HEX": (1, 1, hexadecimal),
    **{name: (1, 1, direct(name.lower())) for name in ("CRC32", "BASE64", "SOUNDEX")},
    "GET_JSON_OBJECT": (2, 2, json_at),
    "LEVENSHTEIN": (2, 2, direct("levenshtein")),
    "CONCAT": (1, None, concat),
    "COALESCE": (1, None, coalesce),
    "NULLIF": (2, 2, null_if),
    "DATE": (1, 1, lambda value: cast(value, DATE)),
    **{name: (1, 1, direct(f"extract_{name.lower()}")) for name in ("DAYOFWEEK", "WEEKDAY", "DAYOFYEAR")},
    **dict.fromkeys(("WEEKOFYEAR", "WEEK"), (1, 1, direct("extract_week"))),
    **dict.fromkeys(("DATE_PART", "DATEPART"), (2, 2, date_part)),
    **{
        f"{prefix}{name}": (1, 2, partial(parsed, type, f"{prefix}{name}", bool(prefix)))
        for name, type in (("TO_DATE", DATE), ("TO_TIMESTAMP", TIMESTAMP))
        for prefix in ("", "TRY_")
    },
    "LAST_DAY": (1, 1, direct("last_day")),
    "TRUNC": (1, 2, truncated),
    "DATE_TRUNC": (2, 2, date_trunc),
    "NVL2": (3, 3, nvl2),
    "ADD_MONTHS": (2, 2, direct("add_months")),
    **dict.fromkeys(
        ("DATE_ADD", "DATEADD"), (2, 3, first_of_three(partial(moved, sign=1), by_unit(calendar.added, calendar.added)))
    ),
    "TIMESTAMPADD": (3, 3, by_unit(calendar.added, calendar.added)),
    "DATE_SUB": (2, 2, partial(moved, sign=-1)),
    **dict.fromkeys(
        ("DATEDIFF", "DATE_DIFF"),
        (2, 3, first_of_three(direct("days_between"), by_unit(calendar.crossed, calendar.complete))),
    ),
    "TIMESTAMPDIFF": (3, 3, by_unit(calendar.complete, calendar.complete)),
    "MONTHS_BETWEEN": (2, 2, calendar.months_between),
    "NEXT_DAY": (2, 2, calendar.next_day),
    "MAKE_DATE": (3, 3, calendar.made),
    **dict.fromkeys(("DATE_FORMAT", "TO_CHAR"), (2, 2, calendar.formatted)),
    "MONTHNAME": (1, 1, lambda day: calendar.formatted(day, Literal("MMM", VARCHAR))),
    "DAYNAME": (1, 1, lambda day: calendar.formatted(day, Literal("EEE", VARCHAR))),
    "FROM_UNIXTIME": (1, 2, from_unixtime),
    "UNIX_SECONDS": (1, 1, calendar.seconds),
    **dict.fromkeys(
        ("UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP"),
        (1, 2, lambda text, *pattern: calendar.seconds(parsed(TIMESTAMP, "UNIX_TIMESTAMP", False, text, *pattern))),
    ),
    "UNIX_MILLIS": (1, 1, lambda moment: calendar.whole_of(calendar.micros(moment), 1000)),
    "UNIX_MICROS": (1, 1, calendar.micros),
    "TIMESTAMP_SECONDS": (1, 1, calendar.since(calendar.MICROS)),
    "TIMESTAMP_MILLIS": (1, 1, calendar.since(1000)),
    "TIMESTAMP_MICROS": (1, 1, calendar.since(1)),
}

# the argument that has to be constant, by its place: any expression that reads no column is
SETTINGS = {
    "CONCAT_WS": 0, "DATE_TRUNC": 0, "DATE_PART": 0, "DATEPART": 0, "ROUND": 1, "FLOOR": 1, "CEIL": 1, "CEILING": 1,
    "TRUNC": 1, "SHA2": 1, "GET_JSON_OBJECT": 1, "NEXT_DAY": 1, "DATE_FORMAT": 1, "TO_CHAR": 1, "FROM_UNIXTIME": 1,
    "TO_DATE": 1, "TRY_TO_DATE": 1, "TO_TIMESTAMP": 1, "TRY_TO_TIMESTAMP": 1, "UNIX_TIMESTAMP": 1,
    "TO_UNIX_TIMESTAMP": 1, "SPLIT_PART": 2,
}  # fmt: skip


def of_decode(count: int) -> list[list[int]]:
    """DECODE(x, key, value, …, default): x and the keys; the values."""
    default = [count - 1] if count % 2 == 0 else []
    return [[0, *range(1, count - 1, 2)], [*range(2, count, 2), *default]]


# name → the positions of arguments that have one type, of so many
ALIKE: dict[str, Callable[[int], list[list[int]]]] = {
    **dict.fromkeys(
        ("COALESCE", "IFNULL", "NVL", "NULLIF", "NANVL", "EQUAL_NULL", "GREATEST", "LEAST"),
        lambda count: [list(range(count))],
    ),
    **dict.fromkeys(("IF", "IFF", "IIF", "NVL2", "ELT"), lambda count: [list(range(1, count))]),
    "DECODE": of_decode,
}


def function(s: Scalars, node: exp.Anonymous) -> Expr:
    """A call by name: an aggregate, one of NAMED, or refused."""
    name = node.name.upper()
    if name in NAMES:
        return aggregate(s, name, node)
    if name in ("GROUPING", "GROUPING_ID"):
        return grouping(s, node)
    if name in WITH_OVER:
        raise SquallError("SQ2009", f"{name} needs OVER", head(s, node), "write OVER (… ORDER BY …)")
    if node.expressions and is_split(node.expressions[0]):
        if name in SIZES and len(node.expressions) == 1:
            return counted(s, node.expressions[0])
        if name in FIRST and len(node.expressions) == 2:
            return item(s, node.expressions[0], node.expressions[1], FIRST[name])
    if (spelled := collected(s, node)) is not None:
        return spelled
    if name in AGGREGATES:
        raise SquallError("SQ3001", f"{name} is not supported yet", head(s, node), AGGREGATES[name])
    if name in FUNCTIONS:
        raise SquallError("SQ3001", f"{name} is not supported yet", head(s, node), FUNCTIONS[name])
    if name not in NAMED:
        known = (*NAMED, *NAMES, "CAST", "EXTRACT", "TRIM")
        raise SquallError("SQ2004", f'unknown function "{node.name}"', head(s, node), nearest(name, known))
    least, most, build = NAMED[name]
    count = len(node.expressions)
    if count < least or (most is not None and count > most):
        wanted = f"{least} or more" if most is None else " to ".join(map(str, sorted({least, most})))
        raise SquallError(
            "SQ2005", f"{name} takes {wanted} argument{'s' * (wanted != '1')}, not {count}", head(s, node)
        )
    if name in WITH_UNIT and count == 3 and isinstance(unit := node.expressions[0], exp.Column | exp.Var):
        return build(Literal(UNIT + unit.name, VARCHAR), *(s.bind(arg) for arg in node.expressions[1:]))
    args = [s.bind(arg) for arg in node.expressions]
    if (place := SETTINGS.get(name, count)) < count:
        args[place] = s.ctx.folded(args[place])
    if name == "DECIMAL":
        note_lost_fraction(s, node, args[0], TYPES[name])
    return build(*fitting(s, name, node, args))


def fitting(s: Scalars, name: str, node: exp.Anonymous, args: list[Expr]) -> list[Expr]:
    """Arguments of a call, text constants read as moments where they have one type with a DATE or TIMESTAMP; SQ2005 for
    those that have no common type."""
    fitted = list(args)
    for places in ALIKE[name](len(args)) if name in ALIKE else ():
        some = s.as_moments([args[i] for i in places], [node.expressions[i] for i in places])
        if unify([value.type for value in some]) is None:
            types = " and ".join(dict.fromkeys(str(value.type) for value in some))
            raise SquallError("SQ2005", f"{name} of {types}, which have no common type", head(s, node), "CAST one side")
        for i, value in zip(places, some, strict=True):
            fitted[i] = value
    return fitted
