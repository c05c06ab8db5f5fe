"""The TPC-H examples as they stand, on parquet and on .tbl files, against DuckDB over the same data."""

from pathlib import Path

import pytest

from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import difference
from squallpy.testing.example_runs import PrintedExample
from squallpy.testing.oracle import to_duckdb
from squallpy.testing.tpch import TPCH

EXAMPLES = Path(__file__).parents[2] / "examples" / "tpch"


@pytest.mark.parametrize("format", ["parquet", "tbl"])
@pytest.mark.parametrize("query", [f"q{number}" for number in range(1, 23)])
def oracle_tpch(query: str, format: str, tmp_path: Path) -> None:
    import duckdb

    data = TPCH.generate_cached(0.01, format)
    text = (EXAMPLES / f"{query}.sql").read_text()
    used = [name for name in TPCH.columns if f" {name} (" in text]
    select = text.rpartition(";\n\n")[2]
    script = tmp_path / f"{query}.sql"
    script.write_text("".join(TPCH.create(name, str(data), format) for name in used) + select)
    kept = PrintedExample()
    ScriptSession(script).run(RunOptions(backend="local", batch_rows=20_000), kept)
    connection = duckdb.connect()
    for name in used:
        connection.execute(f"CREATE VIEW {name} AS FROM '{TPCH.generate_cached(0.01) / name}.parquet'")
    expected = connection.execute(to_duckdb(select.rstrip().rstrip(";"))).fetchall()
    assert not difference(kept.table, expected, ordered="ORDER BY" in select)
    assert len(kept.table) > 0
