"""The example of docs/postgres.md, as it is there."""

import re
from pathlib import Path

import pytest

from tests.connectors.runs import run
from tests.connectors.servers import PostgresServer

PAGE = (Path(__file__).parents[2] / "docs" / "postgres.md").read_text(encoding="utf-8")


def test_the_example(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, script, later = re.findall(r"^```(?:postgre)?sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (answer,) = re.findall(r"says\n\n```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("SHOP", postgres.url)
    postgres.execute(before)
    run(script, checkpoint=tmp_path / "state")
    postgres.execute(later)
    run(script, checkpoint=tmp_path / "state")
    rows = postgres.execute("SELECT * FROM spent ORDER BY name")
    assert "".join(f"{','.join(map(str, row))}\n" for row in rows) == answer
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert postgres.url.encode() not in kept
