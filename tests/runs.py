"""Whole runs for tests that kill: queries over streams with deletes, and what their runs have printed."""

import json
import os
import random
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from squallpy.terminal.cli import main

_STREAMS = """
CREATE STREAM r (k INT NOT NULL, a INT, x DECIMAL(8,2)) USING csv OPTIONS (path 'r.csv', op '__op', header 'true');
CREATE STREAM s (k INT NOT NULL, b VARCHAR) USING csv OPTIONS (path 's.csv');
"""
ONE_STAGE = f"""{_STREAMS}
SELECT b, COUNT(*) AS n, SUM(x * a) AS total FROM r JOIN s ON r.k = s.k GROUP BY b;
"""
# by k, then by b, then by how many there are: three stages behind that which reads
MANY_STAGES = f"""{_STREAMS}
SELECT y.m, COUNT(*) AS c, SUM(y.n) AS n FROM (
  SELECT x.n, MAX(x.total) AS m FROM (
    SELECT s.b, r.a, COUNT(*) AS n, SUM(r.x) AS total FROM r JOIN s ON r.k = s.k GROUP BY s.b, r.a
  ) x GROUP BY x.n
) y GROUP BY y.m;
"""
# on a grid, whose mapping changes when s has come to its end
BAND = f"""{_STREAMS}
SELECT b, COUNT(*) AS n, SUM(x * a) AS total FROM r JOIN s ON ABS(r.x - s.k) <= 1 GROUP BY b;
"""
# of a stream whose rows come up to half a minute late
WINDOWED = """
CREATE STREAM t (k INT NOT NULL, at TIMESTAMP) USING csv OPTIONS (path 't.csv') TIMESTAMP BY at;
SELECT k, COUNT(*) AS n, MAX(at) AS latest FROM t GROUP BY k RANGE 20 SEC;
"""
# of view trees: one payload on the driver, and counts of pairs of values
COFACTOR = f"""{_STREAMS}
SELECT * FROM cofactor(TABLE(SELECT r.k, a, x FROM r JOIN s ON r.k = s.k));
"""
PAIRS = f"""{_STREAMS}
SELECT a, b, ROUND(value, 9) AS value FROM mutual_information(TABLE(SELECT r.a, b, r.k FROM r JOIN s ON r.k = s.k));
"""
EDGES = f"""{_STREAMS}
SELECT a, b, ROUND(value, 9) AS value FROM chow_liu(TABLE(SELECT r.a, b, r.k FROM r JOIN s ON r.k = s.k));
"""
BATCHES = 40


def write(folder: Path, script: str = ONE_STAGE, seed: int = 7, times: int = 1) -> Path:
    """A script and its streams in 40 batches, of 50 tuples or several times that: joins over few keys, groups that
    change again and again, deletes, late rows."""
    folder.mkdir(parents=True, exist_ok=True)
    draw, keys = random.Random(seed), 40 * times
    rows = [(draw.randrange(keys), draw.randrange(9), f"{draw.randrange(10**5) / 100:.2f}") for _ in range(30 * keys)]
    gone = [("-", *row) for row in draw.sample(rows[: 15 * keys], 300 * times)]
    changes = [("+", *row) for row in rows] + gone
    names = [f"{draw.randrange(keys)},name {draw.randrange(12)}\n" for _ in range(500 * times)]
    (folder / "r.csv").write_text("__op,k,a,x\n" + "".join(",".join(map(str, c)) + "\n" for c in changes))
    (folder / "s.csv").write_text("".join(names))
    late = random.Random(seed)
    times_of = (
        datetime(2026, 1, 1) + timedelta(seconds=i / 4 - late.choice((0, 0, 3, 30))) for i in range(2000 * times)
    )
    (folder / "t.csv").write_text("".join(f"{late.randrange(9)},{at}\n" for at in times_of))
    path = folder / "q.sql"
    path.write_text(script)
    return path


def command(script: Path, out: Path, *more: str) -> list[str]:
    size = ["--batch-rows", "50", "--mode", "changes", "--out", str(out), "--format", "csv"]
    return [sys.executable, "-m", "squallpy.terminal", "run", str(script), *size, *more]


def on(master: str, script: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    """The run of a script on a cluster, in a session of its own."""
    return subprocess.Popen(
        command(script, out, "--master", master, *more),
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def printed(out: Path) -> list[str]:
    """Every change of every batch."""
    return [
        f"{file.name}: {line}" for file in sorted(out.glob("batch-*")) for line in sorted(file.read_text().splitlines())
    ]


def lost(metrics: Path) -> dict[int, list[dict[str, Any]]]:
    """By batch: the partitions that had lost their state, and how they got it back."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return {line["batch"]: line["rebuilt"] for line in lines if "rebuilt" in line}


def undisturbed(script: Path, *more: str, batches: int = BATCHES) -> list[str]:
    """What the script prints in process, this one: most of a run is its imports."""
    out = script.parent / "calm"
    assert main(command(script, out, "--backend", "local", *more)[3:]) == 0
    assert len(list(out.glob("batch-*"))) == batches
    return printed(out)
