"""A whole query under SIGKILL: whatever is killed, the answer and every change are those of the undisturbed run."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = """
CREATE STREAM r (k INT NOT NULL, a INT, x DECIMAL(8,2)) USING csv OPTIONS (path 'r.csv', op '__op', header 'true');
CREATE STREAM s (k INT NOT NULL, b VARCHAR) USING csv OPTIONS (path 's.csv');
SELECT b, COUNT(*) AS n, SUM(x * a) AS total FROM r JOIN s ON r.k = s.k GROUP BY b;
"""
BATCHES = 40


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Two streams in 40 batches: joins over few keys, many groups that change again and again, deletes among them."""
    draw = random.Random(7)
    rows = [(draw.randrange(40), draw.randrange(9), f"{draw.randrange(10**5) / 100:.2f}") for _ in range(1200)]
    gone = [("-", *row) for row in draw.sample(rows[:600], 300)]
    changes = [("+", *row) for row in rows] + gone
    (tmp_path / "r.csv").write_text("__op,k,a,x\n" + "".join(",".join(map(str, c)) + "\n" for c in changes))
    (tmp_path / "s.csv").write_text("".join(f"{draw.randrange(40)},name {draw.randrange(12)}\n" for _ in range(500)))
    path = tmp_path / "q.sql"
    path.write_text(SCRIPT)
    return path


def command(script: Path, out: Path, *more: str) -> list[str]:
    size = ["--batch-rows", "50", "--mode", "changes", "--out", str(out), "--format", "csv"]
    return [sys.executable, "-m", "squallpy.terminal", "run", str(script), *size, *more]


def printed(out: Path) -> list[str]:
    return [f"{file.name}: {line}" for file in sorted(out.iterdir()) for line in sorted(file.read_text().splitlines())]


def undisturbed(script: Path) -> list[str]:
    out = script.parent / "calm"
    subprocess.run(command(script, out, "--backend", "local"), check=True, timeout=60)
    assert len(list(out.iterdir())) == BATCHES
    return printed(out)


def running(script: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(script, out, *more), start_new_session=True)


def reach(out: Path, batches: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until so many batches are out."""
    patience = time.monotonic() + 60
    while not out.is_dir() or len(list(out.iterdir())) < batches:
        assert process.poll() is None and time.monotonic() < patience, "the run ended, or does not get on"
        time.sleep(0.005)


def fault_driver_killed_and_restarted(script: Path) -> None:
    out, more = script.parent / "out", ["--checkpoint", str(script.parent / "state")]
    for batches in (3, 11):
        process = running(script, out, *more)
        reach(out, batches, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert len(list(out.iterdir())) < BATCHES
    subprocess.run(command(script, out, *more), check=True, timeout=120)
    assert printed(out) == undisturbed(script)


def fault_workers_killed_in_mid_batch(script: Path) -> None:
    out = script.parent / "out"
    process = running(script, out)
    for batches in (2, 9, 15, 22):
        reach(out, batches, process)
        victims = workers(process.pid)
        assert victims
        for worker in victims:
            os.kill(worker, signal.SIGKILL)
    assert process.wait(120) == 0
    assert printed(out) == undisturbed(script)


def fault_local_run_killed_and_restarted(script: Path) -> None:
    out, more = script.parent / "out", ["--backend", "local", "--checkpoint", str(script.parent / "state")]
    for batches in (2, 17):
        process = running(script, out, *more)
        reach(out, batches, process)
        process.kill()
        process.wait()
    subprocess.run(command(script, out, *more), check=True, timeout=60)
    assert printed(out) == undisturbed(script)


def workers(group: int) -> list[int]:
    """The Python workers of a run: forked from our daemon, busy or waiting."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"squallpy.runtime.spark.daemon" in line and int(fields[3]) == group:
            parent = (Path("/proc") / fields[1] / "cmdline").read_bytes()
            if b"squallpy.runtime.spark.daemon" in parent:  # a worker, not the daemon itself
                found.append(int(place.name))
    return found
