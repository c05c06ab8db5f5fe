"""Two bags of rows, and how they differ.

    difference([(1, 2.0)], [(1, 2.5)])   →   "missing (1, 2.5)\\nextra   (1, 2.0)"

Exact for integers, decimals, texts, dates, timestamps and booleans, NULL = NULL; doubles by 1e-9, relative, and a
decimal against a double (quotients, averages) also by its last digit.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]
SHOWN = 5
RELATIVE, RESIDUE = 1e-9, 1e-9  # NB: sums of doubles that cancel out leave a residue in the oracle as well


def rows_of(table: pa.Table) -> list[Row]:
    """Convert a table to tuples."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []


def difference(
    actual: pa.Table | Iterable[Row],
    expected: pa.Table | Iterable[Row],
    ordered: bool = False,
    residue: float = RESIDUE,
) -> str:
    """Describe the first few rows that are missing in `actual` and those that are too many; empty if there are none.

    Doubles may be off by `residue`, absolute, too: 0.0 where the expected ones are not the oracle's.
    """
    mine = rows_of(actual) if isinstance(actual, pa.Table) else list(actual)
    right = rows_of(expected) if isinstance(expected, pa.Table) else list(expected)
    if ordered:
        return _ordered(mine, right, residue)
    missing, extra = _match_rows(mine, right, residue)
    if not missing and not extra:
        return ""
    lines = [f"{len(mine)} rows, expected {len(right)}"]
    for word, rows in (("missing", missing), ("extra  ", extra)):
        lines += [f"{word} {show(row)}" for row in rows[:SHOWN]]
        lines += [f"{word} … {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    return "\n".join(lines)


def _ordered(mine: Sequence[Row], right: Sequence[Row], residue: float) -> str:
    for number, (a, b) in enumerate(zip(mine, right, strict=False), 1):
        if not is_same_row(a, b, residue):
            return f"row {number} is {show(a)}, expected {show(b)}"
    return "" if len(mine) == len(right) else f"{len(mine)} rows, expected {len(right)}"


def _match_rows(mine: Sequence[Row], right: Sequence[Row], residue: float) -> tuple[list[Row], list[Row]]:
    """Match the rows of two bags; return the rows of `right` and those of `mine` without a partner.

    Only rows whose exact values agree are compared further.
    """
    inexact = _find_inexact_columns(mine) | _find_inexact_columns(right)
    waiting: dict[Row, list[Row]] = defaultdict(list)
    for row in mine:
        waiting[_exact(row, inexact)].append(row)
    missing = []
    for row in right:
        candidates = waiting[_exact(row, inexact)]
        partner = next((i for i, other in enumerate(candidates) if is_same_row(other, row, residue)), None)
        if partner is None:
            missing.append(row)
        else:
            candidates.pop(partner)
    return missing, [row for rows in waiting.values() for row in rows]


def whole_days(rows: Sequence[Row]) -> list[Row]:
    """Convert midnights to dates: a DATE ± INTERVAL is a DATE in Spark and here, a TIMESTAMP in DuckDB."""
    return [tuple(v.date() if isinstance(v, datetime) and v.time() == time() else v for v in row) for row in rows]


def _find_inexact_columns(rows: Sequence[Row]) -> set[int]:
    """Find the columns that contain a double."""
    return {i for row in rows for i, value in enumerate(row) if isinstance(value, float)}


def _exact(row: Row, inexact: set[int]) -> Row:
    return tuple((isinstance(value, bool), value) for i, value in enumerate(row) if i not in inexact)


def is_same_row(a: Row, b: Row, residue: float = RESIDUE) -> bool:
    return len(a) == len(b) and all(is_same_value(x, y, residue) for x, y in zip(a, b, strict=True))


def is_same_value(a: Any, b: Any, residue: float = RESIDUE) -> bool:
    """True if two values count as equal."""
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float | int | Decimal) and isinstance(b, float | int | Decimal):
        if isinstance(a, float) or isinstance(b, float):
            if math.isnan(a) or math.isnan(b):
                return math.isnan(a) and math.isnan(b)
            last = max((10.0 ** int(d.as_tuple().exponent) for d in (a, b) if isinstance(d, Decimal)), default=0.0)
            return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=max(residue, last))
        return a == b
    return bool(type(a) is type(b) and a == b)


def show(row: Row) -> str:
    return (
        "("
        + ", ".join("NULL" if value is None else repr(value) if isinstance(value, str) else str(value) for value in row)
        + ")"
    )
