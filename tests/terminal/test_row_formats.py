"""Rows as CSV, JSON and aligned text: what is written reads back as what it was."""

import io
import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from squallpy.runtime.formats.csv_writer import csv_header, csv_rows
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.sinks.change_table import ADDED, change_table
from squallpy.terminal.text_table import table_text

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("n", pa.int64()),
        ("d", pa.decimal128(38, 10)),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("t", pa.timestamp("us")),
    ]
)


def exact(n: int) -> Decimal:
    """n · 10⁻¹⁰ with all 38 digits, which Python's default context would round."""
    return Decimal((n < 0, tuple(int(c) for c in str(abs(n))), -10))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["", '"', "a,b", "x\r\ny", "\\"]
)
ROWS = st.tuples(
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(exact),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | TEXTS,
    st.none() | st.booleans(),
    st.none() | st.dates(min_value=date(1900, 1, 1)),
    st.none() | st.datetimes(min_value=datetime(1900, 1, 1)),
)


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.Table.from_arrays([pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def written(rows: Callable[[pa.Table], object], data: pa.Table) -> bytes:
    return b"".join(rows(data))  # type: ignore[arg-type]


@given(st.lists(ROWS, max_size=8), st.integers(0, 3))
def property_csv_reads_back_as_what_it_was(rows: list[tuple[object, ...]], skip: int) -> None:
    data = table(rows).slice(skip)
    text = csv_header(SCHEMA) + written(csv_rows, data)
    back = csv.read_csv(
        io.BytesIO(text),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=SCHEMA, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    assert back.equals(data)


@given(st.lists(ROWS, max_size=8), st.integers(0, 3))
def property_json_reads_back_as_what_it_was(rows: list[tuple[object, ...]], skip: int) -> None:
    data = table(rows).slice(skip)
    lines = written(json_rows, data).decode().split("\n")[:-1]
    back = [json.loads(line, parse_float=Decimal) for line in lines]
    for read, row in zip(back, data.to_pylist(), strict=True):
        row["day"], row["t"] = (None if v is None else str(v) for v in (row["day"], row["t"]))
        read["x"] = None if read["x"] is None else float(read["x"])
        assert read == row


def golden_csv_manners() -> None:
    rows: list[tuple[object, ...]] = [
        (1, None, Decimal("0.0000000001"), 1e300, 'say "hi"', True, date(1998, 12, 1), datetime(1998, 12, 1, 10)),
        (-2, 2**63 - 1, Decimal("-1.5"), 0.1, "", False, None, datetime(1998, 12, 1, 10, 0, 0, 1)),
        (None, 0, Decimal(0), None, None, None, None, None),
    ]
    assert (csv_header(SCHEMA) + written(csv_rows, table(rows))).decode() == (
        "i,n,d,x,s,b,day,t\n"
        '1,,0.0000000001,1e+300,"say ""hi""",true,1998-12-01,1998-12-01 10:00:00\n'
        '-2,9223372036854775807,-1.5000000000,0.1,"",false,,1998-12-01 10:00:00.000001\n'
        ",0,0.0000000000,,,,,\n"
    )


def golden_json_of_what_is_no_number() -> None:
    data = pa.table({"x": [float("nan"), float("inf"), float("-inf"), 0.5], 'a"b': ["\t", None, "é", "\\"]})
    assert written(json_rows, data).decode() == (
        '{"x": "NaN", "a\\"b": "\\t"}\n{"x": "Infinity", "a\\"b": null}\n'
        '{"x": "-Infinity", "a\\"b": "é"}\n{"x": 0.5, "a\\"b": "\\\\"}\n'
    )


def golden_table() -> None:
    data = pa.table({"name": ["日本", "a\x1b[2J", None], "total": pa.array([Decimal("1.50"), None, Decimal("22.00")])})
    assert b"".join(table_text(data)).decode() == (
        "name   total\n"
        "─────  ─────\n"
        "日本    1.50\n"
        "a·[2J   NULL\n"
        "NULL   22.00\n"
    )  # fmt: skip


def test_table_without_rows_has_a_header() -> None:
    assert b"".join(table_text(table([]).select(["i", "s"]))).decode() == "i  s\n─  ─\n"
    assert b"".join(table_text(table([]).select(["i"]), color=True)).decode() == "\x1b[1mi\x1b[0m\n─\n"


def test_large_tables_come_in_pieces() -> None:
    data = pa.table({"n": pa.array(range(200_000))})
    parts = list(csv_rows(data))
    assert len(parts) > 1 and b"".join(parts).count(b"\n") == 200_000


@pytest.mark.parametrize(("type", "null"), [(pa.int64(), '""'), (pa.date32(), '""'), (pa.string(), "")])
def test_a_null_alone_is_no_blank_line_where_it_need_not_be(type: pa.DataType, null: str) -> None:
    result = pa.table({"x": pa.nulls(1, type)})
    assert b"".join(csv_rows(result)).decode() == f"{null}\n"
    changes = change_table(7, result, result)
    assert b"".join(csv_rows(changes, ADDED)).decode() == f"7,-,{null}\n7,+,{null}\n"
    two = pa.table({"x": pa.nulls(1, type), "n": [1]})
    assert b"".join(csv_rows(change_table(7, two, two), ADDED)).decode() == "7,-,,1\n7,+,,1\n"


@pytest.mark.parametrize(
    "column", [pa.array([1, None, 2]), pa.array([None], pa.date32()), pa.array(["x", None, "", '"'])]
)
def oracle_a_single_column_reads_back_in_duckdb(tmp_path: Path, column: pa.Array) -> None:
    data = pa.table({"x": column})
    (tmp_path / "x.csv").write_bytes(csv_header(data.schema) + b"".join(csv_rows(data)))
    quoted = ", allow_quoted_nulls = false" if pa.types.is_string(column.type) else ""
    names = {pa.int64(): "BIGINT", pa.date32(): "DATE", pa.string(): "VARCHAR"}
    columns = f"columns = {{'x': '{names[column.type]}'}}"
    found = duckdb.sql(f"FROM read_csv('{tmp_path}/x.csv', header = true, {columns}{quoted})").fetchall()
    assert [x for (x,) in found] == column.to_pylist()
