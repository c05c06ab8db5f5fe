"""What leaves the ends of its type is an error or right, wherever it stands: never another value, never a lost row."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.testing.engines import VolatileEngine
from squallpy.testing.step_tests import table

TYPES = {
    "d": "DATE",
    "t": "TIMESTAMP",
    "i": "INT",
    "b": "BIGINT",
    "f": "DOUBLE",
    "c": "DECIMAL(12,2)",
    "w": "DECIMAL(38,0)",
}
FIRST, LAST = "0001-01-01", "9999-12-31"
START, END = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
LEAST, MOST = -(2**63), 2**63 - 1
ERROR = "an error"
NINES = "9" * 38

CASES: list[tuple[str, dict[str, object], object]] = [
    # days and dates
    ("d + i", {"d": LAST, "i": 0}, LAST),
    ("d + i", {"d": LAST, "i": 1}, ERROR),
    ("d + i", {"d": "2000-01-01", "i": 2**31 - 1}, ERROR),
    ("d + b", {"d": LAST, "b": MOST}, ERROR),
    ("d + b", {"d": FIRST, "b": 2**32}, ERROR),
    ("d - i", {"d": FIRST, "i": 1}, ERROR),
    ("d - i", {"d": FIRST, "i": -(2**31)}, ERROR),
    ("d - b", {"d": LAST, "b": LEAST}, ERROR),
    ("DATE_ADD(d, i)", {"d": LAST, "i": -1}, "9999-12-30"),
    ("DATE_ADD(d, i)", {"d": FIRST, "i": -1}, ERROR),
    ("DATE_SUB(d, i)", {"d": LAST, "i": -(2**31)}, ERROR),
    ("DATEADD(DAY, b, d)", {"d": LAST, "b": 2**40}, ERROR),
    ("DATEADD(WEEK, i, d)", {"d": LAST, "i": 2**31 - 1}, ERROR),
    ("DATEADD(MONTH, i, d)", {"d": LAST, "i": 1}, ERROR),
    ("DATEADD(YEAR, i, d)", {"d": "2000-02-29", "i": 2**31 - 1}, ERROR),
    ("DATEADD(YEAR, i, d)", {"d": "9998-02-28", "i": 1}, "9999-02-28"),
    ("DATEADD(HOUR, i, d)", {"d": LAST, "i": 24}, ERROR),
    ("ADD_MONTHS(d, i)", {"d": "9999-11-30", "i": 1}, "9999-12-30"),
    ("ADD_MONTHS(d, i)", {"d": "9999-11-30", "i": 2}, ERROR),
    ("ADD_MONTHS(d, b)", {"d": "2000-01-31", "b": 2**32}, ERROR),
    ("ADD_MONTHS(d, b)", {"d": "2000-01-31", "b": LEAST}, ERROR),
    ("ADD_MONTHS(t, i)", {"t": START, "i": -1}, ERROR),
    ("d + INTERVAL '1' DAY", {"d": LAST}, ERROR),
    ("d - INTERVAL '1' MONTH", {"d": FIRST}, ERROR),
    ("d + INTERVAL '1' YEAR", {"d": LAST}, ERROR),
    ("d - INTERVAL '1' SECOND", {"d": FIRST}, ERROR),
    ("NEXT_DAY(d, 'Sat')", {"d": LAST}, ERROR),
    ("NEXT_DAY(d, 'Fri')", {"d": "9999-12-30"}, LAST),
    ("LAST_DAY(d)", {"d": LAST}, LAST),
    ("LAST_DAY(d)", {"d": FIRST}, "0001-01-31"),
    ("TRUNC(d, 'YEAR')", {"d": FIRST}, FIRST),
    ("TRUNC(d, 'WEEK')", {"d": FIRST}, FIRST),
    ("MAKE_DATE(i, 12, 31)", {"i": 9999}, LAST),
    ("MAKE_DATE(i, 12, 31)", {"i": 10000}, None),
    ("MAKE_DATE(i, 1, 1)", {"i": 2**31 - 1}, None),
    ("d - DATE '0001-01-01'", {"d": LAST}, 3652058),
    ("DATEDIFF(d, DATE '9999-12-31')", {"d": FIRST}, -3652058),
    ("YEAR(d + i)", {"d": "2000-01-01", "i": 2**31 - 1}, ERROR),
    ("CAST(d + i AS VARCHAR)", {"d": "2000-01-01", "i": 2**31 - 1}, ERROR),
    ("DATE_FORMAT(d + i, 'yyyy-MM-dd')", {"d": "2000-01-01", "i": 2**31 - 1}, ERROR),
    ("CAST(d AS TIMESTAMP)", {"d": FIRST}, START),
    # moments
    ("t + INTERVAL '1' MICROSECOND", {"t": END}, ERROR),
    ("t - INTERVAL '1' MICROSECOND", {"t": START}, ERROR),
    ("t + INTERVAL '1' MONTH", {"t": END}, ERROR),
    ("t - INTERVAL '9998' YEAR", {"t": END}, "0001-12-31 23:59:59.999999"),
    ("t + i * INTERVAL '1' DAY", {"t": END, "i": 1}, ERROR),
    ("t + b * INTERVAL '1' DAY", {"t": END, "b": MOST}, ERROR),
    ("t + b * INTERVAL '1' MONTH", {"t": START, "b": 2**40}, ERROR),
    ("DATEADD(SECOND, b, t)", {"t": START, "b": -1}, ERROR),
    ("DATEADD(MICROSECOND, b, t)", {"t": START, "b": MOST}, ERROR),
    ("TIMESTAMPADD(DAY, b, t)", {"t": START, "b": 2**50}, ERROR),
    ("TIMESTAMP_SECONDS(b)", {"b": 253402300799}, "9999-12-31 23:59:59"),
    ("TIMESTAMP_SECONDS(b)", {"b": 253402300800}, ERROR),
    ("TIMESTAMP_SECONDS(b)", {"b": MOST}, ERROR),
    ("TIMESTAMP_SECONDS(b)", {"b": -62135596801}, ERROR),
    ("TIMESTAMP_MILLIS(b)", {"b": MOST}, ERROR),
    ("TIMESTAMP_MICROS(b)", {"b": MOST}, ERROR),
    ("TIMESTAMP_MICROS(b)", {"b": -(2**62)}, ERROR),
    ("FROM_UNIXTIME(b)", {"b": 253402300800}, ERROR),
    ("YEAR(TIMESTAMP_SECONDS(b))", {"b": 9223372036854}, ERROR),
    ("TIMESTAMP_MICROS(b) + INTERVAL '1' DAY", {"b": MOST}, ERROR),
    ("CAST(TIMESTAMP_MICROS(b) AS DATE)", {"b": MOST}, ERROR),
    ("CAST(t AS DATE)", {"t": END}, LAST),
    ("CAST(t AS DATE)", {"t": START}, FIRST),
    ("DATE_TRUNC('WEEK', t)", {"t": START}, START),
    ("DATE_TRUNC('HOUR', t)", {"t": END}, "9999-12-31 23:00:00"),
    ("UNIX_MICROS(t)", {"t": END}, 253402300799999999),
    ("UNIX_SECONDS(t)", {"t": START}, -62135596800),
    ("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '0001-01-01', t)", {"t": END}, 315537897599999999),
    ("EXTRACT(DAY FROM t)", {"t": END}, 31),
    # whole numbers
    ("-i", {"i": -(2**31)}, 2**31),
    ("ABS(i)", {"i": -(2**31)}, 2**31),
    ("i + 1", {"i": 2**31 - 1}, 2**31),
    ("i * i", {"i": -(2**31)}, 2**62),
    ("i DIV -1", {"i": -(2**31)}, 2**31),
    ("i % -1", {"i": -(2**31)}, 0),
    ("-b", {"b": MOST}, -MOST),
    ("-b", {"b": LEAST}, ERROR),
    ("ABS(b)", {"b": LEAST}, ERROR),
    ("b DIV -1", {"b": LEAST}, ERROR),
    ("b % -1", {"b": LEAST}, 0),
    ("b + 1", {"b": LEAST}, -MOST),
    ("b - 1", {"b": -MOST}, LEAST),
    ("b - 1", {"b": LEAST}, ERROR),
    ("b + 1", {"b": MOST}, ERROR),
    ("b * -1", {"b": LEAST}, ERROR),
    ("b * 1", {"b": LEAST}, LEAST),
    ("b + 0", {"b": LEAST}, LEAST),
    ("b | 0", {"b": LEAST}, LEAST),
    ("~b", {"b": MOST}, LEAST),
    ("SHIFTLEFT(b, 63)", {"b": 1}, LEAST),
    ("SHIFTRIGHT(b, 63)", {"b": LEAST}, -1),
    ("ROUND(b, -1)", {"b": MOST}, ERROR),
    ("ROUND(i, -1)", {"i": 2**31 - 1}, 2147483650),
    ("FLOOR(b)", {"b": LEAST}, LEAST),
    ("CEIL(b)", {"b": LEAST}, LEAST),
    ("SIGN(b)", {"b": LEAST}, -1.0),
    ("GREATEST(b, -9223372036854775807)", {"b": LEAST}, -MOST),
    ("LEAST(b, -9223372036854775807)", {"b": LEAST}, LEAST),
    ("COALESCE(b, 0)", {"b": LEAST}, LEAST),
    ("NULLIF(b, 0)", {"b": LEAST}, LEAST),
    ("NULLIF(b, -9223372036854775808)", {"b": LEAST}, None),
    ("b IS NULL", {"b": LEAST}, False),
    ("b = -9223372036854775808", {"b": LEAST}, True),
    ("b < -9223372036854775807", {"b": LEAST}, True),
    ("b IN (-9223372036854775808, 1)", {"b": LEAST}, True),
    ("CASE WHEN b < 0 THEN b END", {"b": LEAST}, LEAST),
    # casts
    ("CAST(b AS INT)", {"b": 2**31}, ERROR),
    ("CAST(b AS INT)", {"b": -(2**31)}, -(2**31)),
    ("CAST(b AS INT)", {"b": LEAST}, ERROR),
    ("CAST(b AS BIGINT)", {"b": LEAST}, LEAST),
    ("CAST(b AS DOUBLE)", {"b": LEAST}, float(LEAST)),
    ("CAST(b AS VARCHAR)", {"b": LEAST}, str(LEAST)),
    ("CAST(b AS DECIMAL(19,0))", {"b": LEAST}, LEAST),
    ("CAST(b AS DECIMAL(18,0))", {"b": LEAST}, ERROR),
    ("CAST(f AS INT)", {"f": 2147483647.9}, 2**31 - 1),
    ("CAST(f AS INT)", {"f": 2147483648.0}, ERROR),
    ("CAST(f AS BIGINT)", {"f": 9.3e18}, ERROR),
    ("CAST(f AS BIGINT)", {"f": -9223372036854775808.0}, LEAST),
    ("CAST(f AS BIGINT)", {"f": "nan"}, ERROR),
    ("CAST(f AS BIGINT)", {"f": "inf"}, ERROR),
    ("CAST(f AS DECIMAL(3,1))", {"f": 99.95}, ERROR),
    ("CAST(POW(f, 2) AS INT)", {"f": 1e10}, ERROR),
    ("FLOOR(f)", {"f": 1e300}, ERROR),
    ("CAST(c AS INT)", {"c": "9999999999.99"}, ERROR),
    ("CAST(c AS INT)", {"c": "2147483647.99"}, 2**31 - 1),
    ("CAST(c AS DECIMAL(4,2))", {"c": "99.99"}, "99.99"),
    ("CAST(c AS DECIMAL(4,2))", {"c": "100"}, ERROR),
    ("CAST(w AS BIGINT)", {"w": 2**63}, ERROR),
    ("CAST(w AS BIGINT)", {"w": LEAST}, LEAST),
    ("CAST(w AS INT)", {"w": NINES}, ERROR),
    ("CAST(i AS DECIMAL(2,0))", {"i": 100}, ERROR),
    ("w + 1", {"w": NINES}, ERROR),
    ("w * 10", {"w": NINES}, ERROR),
    ("-w", {"w": "-" + NINES}, NINES),
    ("b * w", {"b": LEAST, "w": NINES}, ERROR),
]  # fmt: skip


COLUMN = re.compile(r"(?<![\w'])([a-z])(?![\w'(])")
DECLARED = ", ".join(f"{name} {type}" for name, type in TYPES.items())
HEAD = f"CREATE STREAM r ({DECLARED}) USING csv OPTIONS (path 'r', op '__op');\n"


def of(alias: str, expr: str) -> str:
    """The expression over the columns of a source, in parentheses."""
    return "(" + COLUMN.sub(rf"{alias}.\1", expr) + ")"


SELECTED: dict[str, Callable[[str], str]] = {
    "item": lambda e: f"SELECT {e} AS v FROM r",
    "key": lambda e: f"SELECT v FROM (SELECT {e} AS v, COUNT(*) AS n FROM r GROUP BY {e}) q",
    "extreme": lambda e: f"SELECT MIN({e}) AS v FROM r GROUP BY d",
    "running": lambda e: f"SELECT FIRST_VALUE({e}) OVER (ORDER BY d) AS v FROM r",
    "ordered": lambda e: f"SELECT {e} AS v FROM r ORDER BY {e} DESC LIMIT 1",
}
ASKED: dict[str, Callable[[str], str]] = {
    "not null": lambda e: f"SELECT 1 AS found FROM r WHERE ({e}) IS NOT NULL",
    "equal": lambda e: f"SELECT 1 AS found FROM r JOIN r s ON {of('r', e)} = {of('s', e)}",
    "greater or equal": lambda e: f"SELECT 1 AS found FROM r JOIN r s ON {of('r', e)} >= {of('s', e)}",
    "exists": lambda e: f"SELECT 1 AS found FROM r WHERE EXISTS (SELECT 1 FROM r s WHERE {of('s', e)} = {of('r', e)})",
}


def literal(column: str, value: object) -> str:
    """A value as SQL writes it, in the type of its column."""
    if TYPES[column] in ("DATE", "TIMESTAMP"):
        return f"({TYPES[column]} '{value}')"
    return (
        f"CAST({value!r} AS DOUBLE)"
        if column == "f" and isinstance(value, str)
        else f"CAST({value} AS {TYPES[column]})"
    )


def answer(query: str, given: dict[str, object], folder: Path, optimizer: bool) -> list[object] | SquallError:
    """The first column of a query's rows over one row of r, or the error."""
    engine = VolatileEngine(optimizer=optimizer)
    try:
        engine.start(f"{HEAD}{query};", folder, {})
        relation = engine._session.script.relations["r"]
        row = [None if given.get(f.name) is None else str(given[f.name]) for f in relation.fields]
        engine.push({"r": table(relation, [row]).append_column("__mult", pa.array([1], pa.int64()))})
        return engine.result().column(0).to_pylist()
    except SquallError as error:
        return error


def is_overflow(found: object, *codes: str) -> bool:
    return isinstance(found, SquallError) and found.code in ("SQ5001", "SQ5002", *codes)


EVERY = [pytest.param(number, *case, id=f"{case[0]} {[*case[1].values()]}") for number, case in enumerate(CASES)]


@pytest.mark.parametrize(("number", "expr", "given", "expected"), EVERY)
def fault_end_selected(number: int, expr: str, given: dict[str, object], expected: object, tmp_path: Path) -> None:
    """As an item and as a constant, the optimizer on and off, and at one of the other places."""
    constant = COLUMN.sub(lambda m: literal(m[1], given[m[1]]), expr)
    place = [*SELECTED][1 + number % (len(SELECTED) - 1)]
    runs = [("item", expr, number % 2 == 0), (place, expr, number % 2 == 1)]
    for place, value, optimizer in [*runs, ("item", constant, True), ("item", constant, False)]:
        found = answer(SELECTED[place](value), given, tmp_path, optimizer)
        if expected is ERROR:
            assert is_overflow(found, *(["SQ2005"] if value == constant else [])), f"{place}: {found}"
        else:
            assert isinstance(found, list), f"{place}: {found}"
            assert found == [expected] or list(map(str, found)) == [str(expected)], f"{place}: {found}"


@pytest.mark.parametrize(("number", "expr", "given", "expected"), EVERY)
def fault_end_asked(number: int, expr: str, given: dict[str, object], expected: object, tmp_path: Path) -> None:
    """A comparison may know its answer without the value; it never loses the row."""
    place = [*ASKED][number % len(ASKED)]
    found = answer(ASKED[place](expr), given, tmp_path, number // len(ASKED) % 2 == 0)
    if expected is ERROR:
        assert is_overflow(found) or (found == [1] and place != "not null"), f"{place}: {found}"
    else:
        assert found == ([] if expected is None else [1]), f"{place}: {found}"
