"""Scalar expressions of compiled triggers beside the generic evaluators, over odd values of all types."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from squallpy.codegen import text_expressions
from squallpy.runtime.compiled.functions import CompiledPlan
from squallpy.runtime.kernels import composed_texts
from squallpy.runtime.messages.grouping import Grouping
from squallpy.testing.engines import VolatileEngine

STREAM = """CREATE STREAM r (k INT, b BIGINT, p DECIMAL(8,2), w DECIMAL(18,6), x DOUBLE, o BOOLEAN, d DATE,
at TIMESTAMP, s VARCHAR, t VARCHAR NOT NULL) USING csv OPTIONS (path 'r', op 'op');"""
MOMENTS = [
    *(f"EXTRACT({part} FROM at)" for part in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")),
    *("DAYOFWEEK(d)", "WEEKDAY(at)", "DAYOFYEAR(d)", "WEEKOFYEAR(d)", "EXTRACT(HOUR FROM d)", "YEAR(d)"),
    *(f"DATE_TRUNC('{unit}', at)" for unit in ("year", "quarter", "month", "week", "day", "hour", "second")),
    *("LAST_DAY(at)", "ADD_MONTHS(d, 1)", "ADD_MONTHS(d, -13)", "at + INTERVAL '2' MONTH", "CAST(at AS DATE)"),
    *("at + INTERVAL '90' MINUTE", "TRUNC(d, 'week')", "UNIX_TIMESTAMP(at)"),
]
NUMBERS = [
    *(
        "k DIV 7",
        "b DIV k",
        "k DIV 0",
        "MOD(b, k)",
        "k & 12",
        "k | b",
        "b ^ k",
        "~k",
        "SHIFTLEFT(k, 3)",
        "SHIFTRIGHT(b, 2)",
    ),
    *("ROUND(p)", "ROUND(w, 2)", "FLOOR(p)", "CEIL(w)", "CAST(w AS INT)", "CAST(p AS DECIMAL(6,1))", "CAST(o AS INT)"),
    *("CAST(k AS BOOLEAN)", "CAST(x AS BOOLEAN)", "GREATEST(k, b)", "LEAST(p, w)", "GREATEST(x, 0.5e0, -x)"),
    *("LEAST(d, DATE '2020-02-29')", "GREATEST(NULL, k)", "k IS NOT DISTINCT FROM b", "x IS DISTINCT FROM -0.0e0"),
    *("x IN (2.5e0, CAST('NaN' AS DOUBLE))", "x IN (0.0e0, NULL)", "k NOT IN (0, NULL)"),
    *("ABS(x)", "SQRT(ABS(x))", "FLOOR(LEAST(x, 1e6))", "CEIL(LEAST(GREATEST(x, -9.5e0), 9.5e0))"),
    *("CAST(LEAST(GREATEST(x, -3e9), 1e9) AS BIGINT)", "CAST(LEAST(GREATEST(x, -9.5e0), 9.5e0) AS DECIMAL(6,2))"),
]
TEXTS = [
    *("s || t", "'<' || s || '>' || CAST(k AS VARCHAR)", "CONCAT(t, p)", "CAST(p AS VARCHAR)", "CAST(w AS VARCHAR)"),
    *("CAST(d AS VARCHAR)", "CAST(at AS VARCHAR)", "CAST(o AS VARCHAR)", "DATE_FORMAT(at, 'yyyy/MM-dd HH:mm')"),
    *("LPAD(s, 3, 'x')", "RPAD(s, 5, 'ä€')", "LPAD(CAST(k AS VARCHAR), 4, '0')", "LPAD(t, 2, '')", "RPAD(s, 0, '.')"),
    *("TRIM(s)", "LTRIM(s)", "TRIM(TRAILING 'ab' FROM t)", "REPLACE(s, 'ab', '€')", "REPLACE(t, 'a', '')"),
    *("SPLIT_PART(s, '/', 1)", "SPLIT_PART(s, '/', 2)", "SPLIT_PART(t, 'ab', 3)", "LEFT(s, 2)", "RIGHT(s, 2)"),
    *("SUBSTRING(s, -3, 2)", "SUBSTRING(t, -2)", "SUBSTRING(s, 0, 1)", "COALESCE(s, t, 'none')", "NULLIF(s, t)"),
    *("CASE WHEN k > 0 THEN s WHEN k < -5 THEN 'low' || t ELSE UPPER('q') END", "IF(o, t, NULL)"),
]
TESTS = [
    *("s < t", "s >= 'b'", "s IS NOT DISTINCT FROM t", "s IS DISTINCT FROM 'a'", "s LIKE '_'", "s LIKE 'a_%'"),
    *("t LIKE '%_b'", "s LIKE '%a%/_'", "t LIKE '_€%'", "STARTSWITH(s, 'a')", "ENDSWITH(t, 'b')", "CONTAINS(s, '%')"),
    *("LENGTH(s)", "OCTET_LENGTH(t)", "POSITION('a' IN s)", "POSITION('ä/' IN t)", "INSTR(s, '')", "s || t = 'ab'"),
    *("LENGTH(TRIM(s)) > 2", "CONTAINS(s, '')"),
]
ASCII = ["UPPER(t)", "LOWER(s)", "UPPER(s || LOWER(t))"]
TEXT_SIGNS = "aaabb/ _%AB"
MOST = 2**31 - 1


def odd_rows(draw: Random, count: int, signs: str) -> pa.Table:
    """Draw rows, among whose values are NULLs and the ends of types."""

    def some(*values: Any, others: Any) -> list[Any]:
        return [draw.choice((None, *values)) if draw.random() < 0.4 else others() for _ in range(count)]

    def text() -> str:
        return "".join(draw.choice(signs) for _ in range(draw.randrange(7)))

    first, moment = date(1970, 1, 1), datetime(1970, 1, 1)
    dates = date(3, 2, 3), date(2024, 2, 29), date(9999, 11, 30)
    moments = datetime(1, 1, 8), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 1, 31, 1, 2, 3, 450_000)
    prices, weights = ([*map(Decimal, each)] for each in (("0.00", "-0.05", "99999.94"), ("0.000001", "-2.5", "99.5")))

    def time() -> datetime:
        seconds, micros = draw.randrange(-(10**10), 10**10), draw.choice((0, 10, 123_456))
        return moment + timedelta(seconds=seconds, microseconds=micros)

    found = {
        "k": (pa.int64(), some(0, -1, -MOST, MOST, others=lambda: draw.randrange(-20, 20))),
        "b": (pa.int64(), some(0, 7, -(2**62), 2**62, others=lambda: draw.randrange(-(10**12), 10**12))),
        "p": (pa.decimal128(8, 2), some(*prices, others=lambda: cents(draw, 999))),
        "w": (pa.decimal128(18, 6), some(*weights, others=lambda: cents(draw, 10**9))),
        "x": (pa.float64(), some(0.0, -0.0, nan, inf, 2.5, -2.5, others=lambda: draw.uniform(-12, 12))),
        "o": (pa.bool_(), some(others=lambda: draw.random() < 0.5)),
        "d": (pa.date32(), some(*dates, others=lambda: first + timedelta(draw.randrange(-(10**5), 10**5)))),
        "at": (pa.timestamp("us"), some(*moments, others=time)),
        "s": (pa.string(), some("", "  ", others=text)),
        "t": (pa.string(), [text() for _ in range(count)]),
        "__mult": (pa.int64(), [draw.choice((1, 1, -1, 2)) for _ in range(count)]),
    }
    columns = {name: pa.array(values, type) for name, (type, values) in found.items()}
    return pa.table(columns)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*table.to_pydict().values(), strict=True)))


def cents(draw: Random, most: int) -> Decimal:
    return Decimal(draw.randrange(-most, most)) / 100


def script(exprs: list[str], size: int = 8) -> str:
    """Group by some of the expressions at a time."""
    parts = [exprs[i : i + size] for i in range(0, len(exprs), size)]
    selects = (", ".join(f"{expr} AS v{i}" for i, expr in enumerate(part)) for part in parts)
    return STREAM + "".join(f"SELECT {items}, COUNT(*) AS n FROM r GROUP BY ALL;" for items in selects)


@pytest.mark.parametrize(
    ("exprs", "signs"),
    [(MOMENTS + NUMBERS, TEXT_SIGNS), (TEXTS + TESTS, TEXT_SIGNS + "ä€"), (ASCII, TEXT_SIGNS)],
    ids=["numbers", "texts", "ascii"],
)
def differential_compiled_scalars(
    exprs: list[str], signs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines, draw = [VolatileEngine(compile="wait"), VolatileEngine()], Random(0)
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(script(exprs), tmp_path / str(number), {})
    code = engines[0]._code
    assert isinstance(code, CompiledPlan) and not code.code.refused
    for count in (400, 1, 300):
        rows = odd_rows(draw, count, signs)
        with monkeypatch.context() as during:
            during.setattr(Grouping, "_run", _interpreted)  # as compiled code has an answer
            ours = engines[0].push_all({"r": rows})
        found = [ours, engines[1].push_all({"r": rows})]
        assert all(map(len, found[0]))
        for changes, expected in zip(*found, strict=True):
            assert sorted_rows(changes) == sorted_rows(expected)


def _interpreted(*_: Any) -> None:
    raise AssertionError("interpreted")


LONG = """SELECT UPPER(s) AS u, s || t AS both, RPAD(t, 4096, 'xy') AS wide, COUNT(*) AS n FROM r GROUP BY ALL;
SELECT s || s AS twice, CASE WHEN t = 'b' THEN t || s ELSE t END AS same, COUNT(*) AS n FROM r GROUP BY ALL;"""


@pytest.mark.parametrize("s", ["a" * 4095, "a" * 5000, "ß", "a" * 2048, None])
def differential_compiled_texts_without_room(s: str | None, tmp_path: Path) -> None:
    """What has no room, or letters that are not of ASCII, the generic evaluators compute, in the same order."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(STREAM + LONG, tmp_path / str(number), {})
    rows = odd_rows(Random(1), 20, "ab")
    for number in (5, 19):
        columns = rows.to_pydict()
        columns["s"][number] = s
        given = pa.table(columns, rows.schema)
        found = [engine.push_all({"r": given}) for engine in engines]
        assert [*map(sorted_rows, found[0])] == [*map(sorted_rows, found[1])] and all(map(len, found[0]))


def test_kernels_compose_texts_in_the_room_that_printed_code_gives_them() -> None:
    assert text_expressions.ROOM == composed_texts.ROOM
