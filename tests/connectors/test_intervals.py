"""INTERVALs in tables elsewhere: PostgreSQL has the type, Delta and Iceberg their text, which is read again."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from tests.connectors.runs import run
from tests.connectors.servers import PostgresServer

pytestmark = pytest.mark.connectors
ROWS = [(1, timedelta(hours=10)), (2, -timedelta(days=1, hours=2, microseconds=1)), (3, None)]
SOURCE = "CREATE STREAM r (k INT, d INTERVAL DAY TO SECOND) USING csv OPTIONS (path '{}/r.csv');"


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "r.csv").write_text("1,0 10:00:00\n2,-1 02:00:00.000001\n3,\n")
    return SOURCE.format(tmp_path)


@pytest.mark.parametrize("key", ["k", "d"])
def test_postgres(postgres: PostgresServer, source: str, key: str) -> None:
    options = f"url '{postgres.url}', table 't', mode 'upsert', key '{key}'"
    run(f"{source} CREATE SINK s USING postgres OPTIONS ({options}) AS SELECT k, d FROM r;")
    found = postgres.execute("SELECT k, d FROM t ORDER BY k")
    assert [(k, d) for k, d in found] == ROWS
    assert postgres.execute("SELECT data_type FROM information_schema.columns WHERE column_name = 'd'") == [
        ("interval",)
    ]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables_of_files(tmp_path: Path, source: str, kind: str) -> None:
    where = {
        "delta": f"path '{tmp_path}/t'",
        "iceberg": f"catalog.uri 'sqlite:///{tmp_path}/c.db', catalog.warehouse '{tmp_path}/w', table 'a.t'",
    }[kind]
    run(f"{source} CREATE SINK s USING {kind} OPTIONS ({where}, mode 'append') AS SELECT k, d FROM r;")
    back = f"CREATE TABLE t USING {kind} OPTIONS ({where}); SELECT k, CAST(d AS INTERVAL DAY TO SECOND) AS d FROM t;"
    assert run(back).rows == Counter(ROWS)
