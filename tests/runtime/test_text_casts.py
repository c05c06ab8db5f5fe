"""Texts as values: one by one as Spark casts them, in columns and in files as one by one."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.text_casts import parse
from squallpy.base.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INT,
    RANGES,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    decimal,
)
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.coercion import convert
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Cast, Column, Literal
from squallpy.runtime.evaluate.casts import cast
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.text_column_casts import column_type, parse_texts
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, from_arrow, to_arrow
from squallpy.runtime.formats.skipped_rows import skipped
from squallpy.runtime.sources import open_source

# what Spark 4.3 answers to TRY_CAST in UTC, as text; tests/spark/test_casts.py asks it again
TABLE = [json.loads(line) for line in (Path(__file__).parent / "spark_casts.jsonl").read_text().splitlines()]
TEXTS = [row["text"] for row in TABLE]
TYPES = {
    str(type): type
    for type in (
        INT, BIGINT, DOUBLE, decimal(10, 2), decimal(38, 10), decimal(38, 38), decimal(3, 0), BOOLEAN, DATE, TIMESTAMP
    )
}  # fmt: skip
MORE = [*TYPES.values(), decimal(38, 0), decimal(2, 2), decimal(18, 4), decimal(1, 0)]
MARKS = "0123456789+-.:eE TZxX/_\t,'nafi\u0663"


def by_spark(row: dict[str, str], type: Type) -> str | None:
    """The text of Spark's answer; None where we have none: years outside 1 to 9999, and times without a day."""
    if type.is_temporal and not re.match(r"[0-9]{4}-(?<!0000-)", row.get("DATE", "")):
        return None
    answer = row.get(str(type))
    return None if type.is_temporal and answer and not re.match(r"[0-9]{4}-(?<!0000-)", answer) else answer


def parsed(text: str, type: Type) -> Any:
    """The value of a text as Python has it; None if it has none."""
    try:
        value = parse(text, type)
    except ValueError:
        return None
    return to_arrow(Vec(value), type, 1)[0].as_py()


def held(texts: list[str | None], type: Type) -> pa.Array:
    """What each text parses as, one by one."""
    values = [None if text is None else parsed(text, type) for text in texts]
    return pa.array(values, column_type(type))


def mutated() -> st.SearchStrategy[str]:
    """Texts of the table with some characters replaced, added or cut."""

    def edit(text: str, edits: list[tuple[int, int, str]]) -> str:
        for at, width, mark in edits:
            at %= len(text) + 1
            text = text[:at] + mark + text[at + width :]
        return text

    edits = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1), st.sampled_from(["", *MARKS])), max_size=3)
    return st.builds(edit, st.sampled_from(TEXTS), edits)


@pytest.mark.parametrize("name", TYPES)
def oracle_texts_parse_as_spark_casts_them(name: str) -> None:
    type = TYPES[name]
    for row in TABLE:
        expected, found = by_spark(row, type), parsed(row["text"], type)
        if type.kind is Kind.DOUBLE and expected is not None:
            assert repr(found) == repr(float(expected.replace("Infinity", "inf"))), row
            continue
        shown = None if found is None else str(found).lower() if type.kind is Kind.BOOLEAN else f"{found}"
        if type.kind is Kind.DECIMAL and found is not None:
            shown = f"{found:f}".replace("-0.00", "0.00") if not found else f"{found:f}"
        if type.kind is Kind.TIMESTAMP and found is not None and found.microsecond:
            shown = str(found).rstrip("0")
        assert shown == expected, row


@pytest.mark.parametrize("type", MORE, ids=str)
@given(texts=st.lists(st.none() | mutated(), max_size=20))
def property_columns_parse_as_their_texts_do(type: Type, texts: list[str | None]) -> None:
    found = parse_texts(pa.array(texts, pa.string()), type)
    assert repr(found.to_pylist()) == repr(held(texts, type).to_pylist())  # NB: NaN is NaN, and −0.0 is not 0.0


def property_the_whole_table_parses_at_once_as_one_by_one() -> None:
    for type in MORE:
        found = parse_texts(pa.array(TEXTS, pa.string()), type)
        assert repr(found.to_pylist()) == repr(held(TEXTS, type).to_pylist())


@pytest.mark.parametrize("type", MORE, ids=str)
@given(texts=st.lists(mutated().filter(lambda text: not set(text) & set('",\n\r\0')), min_size=1, max_size=8))
def property_fields_of_a_csv_file_are_cast_as_texts(
    tmp_path_factory: pytest.TempPathFactory, type: Type, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    lines = "".join(f"{n},{text}\n" for n, text in enumerate(texts))
    (folder / "r.csv").write_text(lines, encoding="utf-8", newline="")
    fields = (Field("n", BIGINT, True), Field("x", type, True))
    source = open_source(Relation("r", fields, True, "csv", {"path": "r.csv", "on_error": "skip"}), folder)
    table = source.read(0, source.rows, ("n", "x"))
    expected = [
        (n, value)
        for n, (text, value) in enumerate(zip(texts, held(list(texts), type).to_pylist(), strict=True))
        if value is not None or not text  # an empty field is NULL
    ]
    assert repr([tuple(row.values()) for row in table.to_pylist()]) == repr(expected)
    assert skipped(table).count == len(texts) - len(expected)


@pytest.mark.parametrize("name", TYPES)
def differential_constants_and_columns_are_cast_alike(name: str) -> None:
    type, column = TYPES[name], Column(1, "s", VARCHAR)
    for text in TEXTS:
        value, strict, lenient = parsed(text, type), Cast(column, type), call("tried", Cast(column, type))
        frame = VectorFrame(1, {1: from_arrow(pa.array([text]), VARCHAR)})
        folded = fold_constant(Cast(Literal(text, VARCHAR), type))
        got = to_arrow(compile_expression(lenient)(frame), type, 1)[0].as_py()
        assert repr(got) == repr(value)
        if value is None:
            assert folded is None
            with pytest.raises(SquallError, match="SQ2005"):
                convert(text, VARCHAR, type)
            with pytest.raises(SquallError, match="SQ5002"):
                compile_expression(strict)(frame)
        else:
            assert repr(folded) == repr(Literal(convert(text, VARCHAR, type), type))
            assert repr(to_arrow(compile_expression(strict)(frame), type, 1)[0].as_py()) == repr(value)


DIGITS = "12345678901234567890123456789012345678"


@pytest.mark.parametrize("scale", [0, 1, 10, 20, 30, 36, 38])
@pytest.mark.parametrize("line", ["{n},{text}", '{{"n": {n}, "x": {text}}}', '{{"x": "{text}", "n": {n}}}'])
def fault_numbers_of_too_many_digits(tmp_path: Path, line: str, scale: int) -> None:
    """Arrow multiplies them by a power of ten modulo 2¹²⁸: 11 as a DECIMAL(38,38) would be 0.79…"""
    kind = "csv" if line.startswith("{n}") else "json"
    texts: list[str | None] = [
        "11",
        "-11",
        "100",
        "1",
        "0.5",
        "-0",
        DIGITS,
        f"-{DIGITS[:30]}",
        f"{DIGITS[:9]}.5",
        "9" * 20,
        "17",
        "1.7",
    ]
    lines = "".join(f"{line.format(n=n, text=text)}\n" for n, text in enumerate(texts))
    (tmp_path / "r").write_text(lines)
    fields = (Field("n", BIGINT, True), Field("x", decimal(38, scale), True))
    source = open_source(Relation("r", fields, True, kind, {"path": "r", "on_error": "skip"}), tmp_path)
    found = {row["n"]: row["x"] for row in source.read(0, source.rows, ("n", "x")).to_pylist()}
    expected = dict(enumerate(held(texts, decimal(38, scale)).to_pylist()))
    assert found == {n: value for n, value in expected.items() if value is not None}


@given(
    st.lists(st.none() | st.integers(*RANGES[Kind.DAY_TO_SECOND]) | st.sampled_from([0, -1, 999_999, 86_399_999_999]))
)
def test_intervals_are_written_and_read(micros: list[int | None]) -> None:
    """A column is written as each value is, which is read again, with and without the words around it."""
    values = from_arrow(pa.array(micros, pa.int64()), BIGINT)
    written = to_arrow(cast(values, DAY_TO_SECOND, VARCHAR, len(micros), "x"), VARCHAR, len(micros))
    assert written.to_pylist() == [convert(each, DAY_TO_SECOND, VARCHAR) for each in micros]
    bare = [text and text.removeprefix("INTERVAL '").removesuffix("' DAY TO SECOND") for text in written.to_pylist()]
    for texts in (written, pa.array(bare, pa.string())):
        assert parse_texts(texts, DAY_TO_SECOND).view(pa.int64()).to_pylist() == micros


@pytest.mark.parametrize(
    "text, micros",
    {
        "1 2:3:4": 93_784_000_000, "+0 00:00:00.1234567": 123_456,
        "interval -'-1 00:00:00'  day to  SECOND": 86_400_000_000,
        "INTERVAL '1 00:00:00'": None, "1 00:00:00' DAY TO SECOND": None, "0 24:00:00": None, "0 00:60:00": None,
        "1 day": 86_400_000_000, "-1 days -02:00:00.5": -93_600_500_000, "1 day -00:00:01": 86_399_000_000,
        "26:03:04": 93_784_000_000, "-26:00:00": -93_600_000_000, "1 days ": 86_400_000_000,
        "1": None, "": None, "1 mon": None, "1 day02:00:00": None, "02:60:00": None, "1 year 1 day": None,
        "999999999 00:00:00": None,
    }.items(),
)  # fmt: skip
def test_texts_of_intervals(text: str, micros: int | None) -> None:
    try:
        assert parse(text, DAY_TO_SECOND) == micros
    except ValueError:
        assert micros is None
