"""A small stream in a file, and `squall` as a user calls it."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from squallpy.terminal.cli import main

ROOT = Path(__file__).parents[2]
SQUALL = (sys.executable, "-m", "squallpy.terminal")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm"}
CLICKS = "user,amount,day\nann,1.50,2024-01-01\nbob,2.25,2024-01-02\nann,0.25,2024-01-03\n"
STREAM = (
    "CREATE STREAM clicks (user VARCHAR, amount DECIMAL(10,2), day DATE)\n"
    "    USING csv OPTIONS (path 'clicks.csv', header 'true');\n"
)
QUERY = "SELECT user, SUM(amount) AS total FROM clicks GROUP BY user ORDER BY total;\n"


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command leaves behind."""

    status: int
    out: str
    err: str


Squall = Callable[..., Ended]


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder with a script q.sql over a stream of three rows."""
    (tmp_path / "clicks.csv").write_text(CLICKS)
    (tmp_path / "q.sql").write_text(STREAM + QUERY)
    return tmp_path


@pytest.fixture
def squall(room: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Squall:
    """`squall` in the room, with no terminal around. In this process: most of a run is its imports."""

    def run(*arguments: str) -> Ended:
        monkeypatch.chdir(room)
        return Ended(main(list(arguments)), *capfd.readouterr())

    return run
