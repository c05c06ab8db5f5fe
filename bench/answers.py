"""Whether an answer is right: compared, row by row, with DuckDB's over the whole tables."""

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from bench.data import Stream


def verdict(stream: Stream, answer: pa.Table | None) -> str:
    """`equal`, the first difference in words, or `not reached` for a run that was stopped."""
    if answer is None:
        return "not reached"
    import duckdb

    connection = duckdb.connect()
    for name in stream.query.tables:
        connection.execute(f"CREATE VIEW {name} AS FROM '{stream.folder / name}.parquet'")
    expected = _rows(connection.sql(stream.query.text).to_arrow_table())
    got = _rows(answer)
    if len(got) != len(expected):
        return f"{len(got)} rows instead of {len(expected)}"
    for number, (mine, right) in enumerate(zip(got, expected, strict=True), 1):
        for name, a, b in zip(answer.column_names, mine, right, strict=True):
            if not _same(a, b):
                return f"row {number}: {name} is {a} instead of {b}"
    return "equal"


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _same(a: Any, b: Any) -> bool:
    """Exact for integers, decimals, strings and dates; 1e-9 relative for doubles, or a decimal's own last digit."""
    if a is None or b is None or isinstance(a, str | date) or isinstance(b, str | date):
        return bool(a == b)
    if isinstance(a, float) or isinstance(b, float):
        digit = max(
            (float(Decimal(1).scaleb(x.as_tuple().exponent)) for x in (a, b) if isinstance(x, Decimal)), default=0
        )  # type: ignore[arg-type]
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=digit)
    return bool(a == b)
