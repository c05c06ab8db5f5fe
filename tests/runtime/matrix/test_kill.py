"""Runs over matrices under SIGKILL: every change is that of the undisturbed run."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from squallpy.terminal.cli import main
from tests.runs import command, printed

SCRIPT = """
CREATE STREAM edges (a INT, b INT, v DOUBLE) USING csv OPTIONS (path 'edges.csv', op '__op', header 'true');
CREATE STREAM names (id INT, name VARCHAR) USING csv OPTIONS (path 'names.csv', header 'true');
CREATE MATRIX A (n, n) FROM STREAM edges (a, b, v);
CREATE MATRIX PROGRAM p AS $$ B := A * A; C := B * B + eye(n) $$;
SELECT name, COUNT(*) AS n, SUM(value) AS total FROM p.C JOIN names ON id = i WHERE j < 9 GROUP BY name;
"""


def _script(folder: Path) -> Path:
    """Entries are small whole numbers, so that sums are exact in any order."""
    draw = random.Random(3)
    edges = [(draw.randrange(20), draw.randrange(20), draw.randrange(1, 4)) for _ in range(700)]
    edges.sort(key=lambda edge: max(edge[:2]) + draw.randrange(12))  # the matrix grows for a while
    changes = [("+", *edge) for edge in edges]
    for gone in draw.sample(range(600), 200):
        changes.insert(gone + 100, ("-", *edges[gone]) if gone < 500 else ("+", *edges[gone]))
    folder.mkdir()
    (folder / "edges.csv").write_text("__op,a,b,v\n" + "".join(",".join(map(str, c)) + "\n" for c in changes))
    (folder / "names.csv").write_text("id,name\n" + "".join(f"{k},name {k % 4}\n" for k in range(20)))
    (folder / "q.sql").write_text(SCRIPT)
    return folder / "q.sql"


_CLUSTER = [pytest.mark.spark, pytest.mark.cluster]


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend, place",
    [
        pytest.param("local", "driver", marks=pytest.mark.long),
        *(pytest.param("spark", place, marks=_CLUSTER) for place in ("driver", "blocks")),
    ],
)
def fault_killed_again_and_again(backend: str, place: str, tmp_path: Path) -> None:
    script, draw = _script(tmp_path / "data"), random.Random(8)
    assert main(command(script, tmp_path / "plain", "--backend", "local")[3:]) == 0
    killed, out = 0, tmp_path / "out"
    more: tuple[str, ...] = ("--backend", backend, "--checkpoint", str(tmp_path / "state"), "--set", "snapshot_mb=1")
    more = (
        *more,
        "--set",
        f"matrix.place={place}",
        "--set",
        f"matrix.strategy={'incr' if place == 'blocks' else 'auto'}",
    )
    while True:
        there = len(list(out.glob("*"))) if out.exists() else 0
        process = subprocess.Popen(command(script, out, *more), stderr=subprocess.PIPE, start_new_session=True)
        until = there + draw.randrange(1, 5)
        while process.poll() is None and (not out.exists() or len(list(out.glob("*"))) < until):
            time.sleep(0.002)
        if killed < 4 and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    assert killed >= 3 and printed(out) == printed(tmp_path / "plain")
