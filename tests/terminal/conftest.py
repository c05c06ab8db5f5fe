"""A small stream in a file, and `squall` as a user calls it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SQUALL = (sys.executable, "-m", "squallpy.terminal")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm"}
CLICKS = "user,amount,day\nann,1.50,2024-01-01\nbob,2.25,2024-01-02\nann,0.25,2024-01-03\n"
STREAM = (
    "CREATE STREAM clicks (user VARCHAR, amount DECIMAL(10,2), day DATE)\n"
    "    USING csv OPTIONS (path 'clicks.csv', header 'true');\n"
)
QUERY = "SELECT user, SUM(amount) AS total FROM clicks GROUP BY user ORDER BY total;\n"

Squall = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder with a script q.sql over a stream of three rows."""
    (tmp_path / "clicks.csv").write_text(CLICKS)
    (tmp_path / "q.sql").write_text(STREAM + QUERY)
    return tmp_path


@pytest.fixture
def squall(room: Path) -> Squall:
    """Runs `squall` in the room, in a process of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = (*SQUALL, *arguments)
        settings = ENVIRONMENT | environment
        return subprocess.run(command, cwd=room, env=settings, capture_output=True, text=True, timeout=60, check=False)

    return run
