"""Secrets of servers: no checkpoint, plan, metric or message has them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.connectors.servers import PostgresServer
from tests.growing import ROOT

SECRET = "geheim-7f3a"


@pytest.mark.connectors
def test_where_secrets_are_not(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 2)")
    postgres.execute("CREATE PUBLICATION squall FOR TABLE t")
    (tmp_path / "user").write_text("postgres\n")
    url = postgres.url.replace("postgres@", "")
    of = f"USING postgres OPTIONS (url '{url}', user '${{file:{tmp_path}/user}}', password '${{env:PW}}'"
    query = "SELECT v, COUNT(*) AS n FROM t GROUP BY v"
    (tmp_path / "q.sql").write_text(f"CREATE STREAM t {of}); CREATE SINK s {of}, mode 'upsert') AS {query};")

    def squall(*words: str) -> subprocess.CompletedProcess[bytes]:
        env = os.environ | {"PYTHONPATH": str(ROOT), "PW": SECRET}
        command = [sys.executable, "-m", "squallpy.terminal", *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=120)

    said = [squall("explain", stage, "q.sql") for stage in ("logical", "physical", "triggers")]
    options = ["--backend", "local", "--checkpoint", "kept", "--metrics", "m.jsonl", "--log-level", "debug"]
    said += [squall("run", "q.sql", *options, "--trigger", "available-now")]
    assert [each.returncode for each in said] == [0, 0, 0, 0], said
    assert postgres.execute("SELECT v, n FROM s") == [(2, 1)]
    (tmp_path / "q.sql").write_text(
        (tmp_path / "q.sql")
        .read_text()
        .replace("password", "connect_timeout '200 ms', password")
        .replace(url, "postgresql://127.0.0.1:9/x")
    )
    said += [squall("run", "q.sql", "--backend", "local")]
    assert said[-1].returncode == 3 and b"SQ8010" in said[-1].stderr
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    kept += [part for each in said for part in (each.stdout, each.stderr)]
    assert len(kept) > 10 and not any(SECRET.encode() in data for data in kept)
