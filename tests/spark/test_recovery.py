"""A whole query under SIGKILL: whatever is killed, the answer and every change are those of the undisturbed run."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.runs import BAND, BATCHES, COFACTOR, EDGES, ONE_STAGE, PAIRS, WINDOWED, command, printed, undisturbed, write

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return write(tmp_path)


def running(script: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(script, out, *more), start_new_session=True)


def reach(out: Path, batches: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until so many batches are out."""
    patience = time.monotonic() + 240  # of a slow machine, too
    while not out.is_dir() or len(list(out.glob("batch-*"))) < batches:
        assert process.poll() is None and time.monotonic() < patience, "the run ended, or does not get on"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("query", "kills"),
    [
        pytest.param(ONE_STAGE, (7,), id="sums", marks=pytest.mark.cluster),
        pytest.param(COFACTOR, (7,), id="cofactor", marks=pytest.mark.cluster),
        pytest.param(ONE_STAGE, (3, 11), id="sums, twice", marks=pytest.mark.cluster),
        pytest.param(PAIRS, (3, 11), id="pairs, twice", marks=pytest.mark.cluster),
        pytest.param(EDGES, (7,), id="edges of trees", marks=pytest.mark.cluster),
    ],
)
def fault_driver_killed_and_restarted(query: str, kills: tuple[int, ...], tmp_path: Path) -> None:
    """Its workers, and the daemon they come from, are killed before."""
    script, size = write(tmp_path, query), ("--batch-rows", "100")
    out = tmp_path / "out"
    more = [*size, "--checkpoint", str(script.parent / "state")]
    for batches in kills:
        process = running(script, out, *more)
        reach(out, batches - 2, process)
        kill_workers(process, with_daemon=True)
        reach(out, batches, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert len(list(out.glob("batch-*"))) < BATCHES // 2
    subprocess.run(command(script, out, *more), check=True, timeout=300)
    assert printed(out) == undisturbed(script, *size, batches=BATCHES // 2)


@pytest.mark.cluster
def fault_driver_killed_while_windows_move(tmp_path: Path) -> None:
    """Late rows are written once, too."""
    script, late, calm = write(tmp_path, WINDOWED), tmp_path / "late.csv", tmp_path / "calm.csv"
    out, more = tmp_path / "out", ["--checkpoint", str(tmp_path / "state"), "--late", str(late)]
    for batches in (4, 13):
        process = running(script, out, *more)
        reach(out, batches, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command(script, out, *more), check=True, timeout=300)
    assert printed(out) == undisturbed(script, "--late", str(calm))
    assert sorted(late.read_text().splitlines()) == sorted(calm.read_text().splitlines())
    assert len(calm.read_text().splitlines()) > 100


@pytest.mark.cluster
def fault_driver_killed_while_joiners_migrate(tmp_path: Path) -> None:
    script, metrics = write(tmp_path, BAND, times=20), tmp_path / "metrics"
    out, size = tmp_path / "out", ["--batch-rows", "1000", "--set", "interleave=round-robin"]
    more = [*size, "--set", "partitions=4", "--checkpoint", str(tmp_path / "state"), "--metrics", str(metrics)]
    for number in range(2):
        process = running(script, out, *more)
        migrating(metrics, number + 1, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command(script, out, *more), check=True, timeout=300)
    assert printed(out) == undisturbed(script, *size)


def migrating(metrics: Path, batches: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until so many batches that migrate are done: what the last of them has sent has not arrived."""
    patience = time.monotonic() + 240
    while not metrics.exists() or len(re.findall(r'"migrated": \d', metrics.read_text())) < batches:
        assert process.poll() is None and time.monotonic() < patience, "the run ended, or nothing migrates"
        time.sleep(0.005)


@pytest.mark.cluster
@pytest.mark.parametrize("kills", [(9,), (2, 9, 15, 22)])
def fault_workers_killed_in_mid_batch(kills: tuple[int, ...], script: Path) -> None:
    """The workers, and in batch 9 the daemon they come from, too."""
    out = script.parent / "out"
    process = running(script, out)
    for batches in kills:
        reach(out, batches, process)
        kill_workers(process, with_daemon=batches == 9)
    assert process.wait(120) == 0
    assert printed(out) == undisturbed(script)


def kill_workers(process: "subprocess.Popen[bytes]", with_daemon: bool) -> None:
    """Kill the workers of a run, and the daemon that they come from."""
    daemon, forked = pythons(process.pid)
    assert forked
    for victim in (daemon, *forked) if with_daemon else forked:
        os.kill(victim, signal.SIGKILL)


@pytest.mark.parametrize("kills", [(17,), pytest.param((2, 17), marks=pytest.mark.cluster)])
def fault_local_run_killed_and_restarted(kills: tuple[int, ...], script: Path) -> None:
    out, more = script.parent / "out", ["--backend", "local", "--checkpoint", str(script.parent / "state")]
    for batches in kills:
        process = running(script, out, *more)
        reach(out, batches, process)
        process.kill()
        process.wait()
    subprocess.run(command(script, out, *more), check=True, timeout=300)
    assert printed(out) == undisturbed(script)


def pythons(group: int) -> tuple[int, list[int]]:
    """The daemon of a run, and the workers forked from it, busy or waiting."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"-m\0squallpy.runtime.spark.worker_daemon" in line and int(fields[3]) == group:
            parents[int(place.name)] = int(fields[1])
    (daemon,) = (pid for pid, parent in parents.items() if parent not in parents)
    return daemon, [pid for pid, parent in parents.items() if parent == daemon]
