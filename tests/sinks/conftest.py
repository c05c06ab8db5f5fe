"""A stream of letters in a file, and scripts over it with sinks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from squallpy.terminal.cli import main

STREAM = "CREATE STREAM f (id BIGINT, zip VARCHAR, v BIGINT) USING csv OPTIONS (path 'f.csv');\n"
QUERY = "SELECT zip, COUNT(*) AS n, SUM(v) AS s FROM f GROUP BY zip"
ROWS = [(1, "a", 1), (2, "a", 2), (3, "b", 3), (4, "c", 4), (5, "b", 5), (6, "a", 6), (7, "d", 7)]

Run = Callable[..., str]


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder with the rows of f."""
    (tmp_path / "f.csv").write_text("".join(f"{id},{zip},{v}\n" for id, zip, v in ROWS))
    return tmp_path


@pytest.fixture
def run(room: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """A run of a script in batches of two rows; returns what it says, with exit status 0 or the one that is named."""

    def run(script: str, *options: str, status: int = 0, stream: str = STREAM) -> str:
        monkeypatch.chdir(room)
        (room / "q.sql").write_text(stream + script)
        ended = main(["run", "q.sql", "--backend", "local", "--batch-rows", "2", *options])
        printed = capfd.readouterr()
        assert ended == status, printed
        return printed.out + printed.err

    return run


def contents(folder: Path) -> dict[str, str]:
    """The files that a sink shows."""
    return {path.name: path.read_text() for path in sorted(folder.glob("[!._]*")) if path.is_file()}


def manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a sink, without the identity of its query."""
    found = json.loads((folder / "_manifest").read_text())
    return {name: value for name, value in found.items() if name != "query"}
