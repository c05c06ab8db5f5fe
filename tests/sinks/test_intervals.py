"""INTERVALs in files: what is written is read again, also where the format has no such type."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import rows_of
from squallpy.testing.example_runs import PrintedExample

ROWS = "1,2026-01-01 10:00:00,0 01:00:00\n2,2025-12-30 11:30:00.5,-1 02:03:04.000001\n3,,\n"
EXPECTED = [
    (1, timedelta(hours=10), timedelta(hours=1)),
    (2, -timedelta(days=1, hours=12, minutes=29, seconds=59.5), -timedelta(days=1, seconds=7384.000001)),
    (3, None, None),
]  # fmt: skip


def answer(text: str) -> Counter[tuple[object, ...]]:
    printed = PrintedExample()
    ScriptSession(Path("q.sql"), text=text).run(RunOptions("local"), printed)
    return Counter(rows_of(printed.table))


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_written_and_read(tmp_path: Path, format: str) -> None:
    (tmp_path / "r.csv").write_text(ROWS)
    ScriptSession(
        tmp_path / "q.sql",
        text="CREATE STREAM r (k INT, at TIMESTAMP, d INTERVAL DAY TO SECOND)"
        f" USING csv OPTIONS (path '{tmp_path}/r.csv');"
        f" CREATE SINK s USING {format} OPTIONS (path '{tmp_path}/out', mode 'changes')"
        " AS SELECT k, at - TIMESTAMP '2026-01-01 00:00:00' AS g, d FROM r;",
    ).run(RunOptions("local"), PrintedExample())
    header = ", header 'true'" if format == "csv" else ""
    columns = "k INT, g INTERVAL DAY TO SECOND, d interval day to second"
    back = f"CREATE STREAM b ({columns}) USING {format} OPTIONS (path '{tmp_path}/out', op 'op'{header});"
    assert answer(f"{back} SELECT * FROM b;") == Counter(EXPECTED)
    if format == "parquet":  # which tells the type
        assert answer(f"{back.replace(f' ({columns})', '')} SELECT k, g, d FROM b;") == Counter(EXPECTED)
