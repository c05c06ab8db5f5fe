"""Runs on Spark that are interrupted, and whose JVM is killed: one line, a status, nothing left behind."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from squallpy.runtime.checkpoint.lease import NAME
from squallpy.testing.standalone_cluster import wait
from tests.runs import BATCHES, command, printed, undisturbed, write

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LONG = pytest.mark.cluster  # of those that take a minute, only an interrupted start is in `make test`

STOPPED = "stopped at once; without --checkpoint nothing is kept, the next run starts from the beginning\n"


def children(pid: int) -> list[int]:
    """The processes that one has started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [*map(int, found)]


def below(pid: int) -> list[int]:
    """These, those that they have started, and so on."""
    return [deep for child in children(pid) for deep in (child, *below(child))]


def java(pid: int) -> list[int]:
    """The JVM of a run, which is a child of it; the shell that becomes it has another for a moment."""
    return [child for child in children(pid) if os.path.basename(_program(child)) == "java"]


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:  # it has just ended
        return ""


@contextmanager
def running(script: Path, out: Path, *more: str) -> "Iterator[subprocess.Popen[str]]":
    """A run of a script, with nothing left of it afterwards."""
    line = command(script, out, *more)
    run = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield run
        wait(lambda: not alive(run.pid), 10)
    finally:
        if alive(run.pid):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        assert run.stderr
        run.stderr.close()


def alive(group: int) -> bool:
    """True while any process of a run is there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("delay", [pytest.param(0.0, marks=LONG), 0.4, pytest.param(1.5, marks=LONG)])
def fault_ctrl_c_while_spark_starts(tmp_path: Path, delay: float) -> None:
    script, out = write(tmp_path), tmp_path / "out"
    with running(script, out) as run:
        wait(lambda: java(run.pid), 240)
        time.sleep(delay)
        os.killpg(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=600)
        assert (run.returncode, said) == (130, STOPPED)
        assert not list(out.glob("batch-*")), "a batch was run"


@LONG
@pytest.mark.parametrize("batches", [0, 3, 17])
def fault_the_jvm_is_killed(tmp_path: Path, batches: int) -> None:
    """While Spark starts, and between or in batches: one line, and the same command goes on."""
    script, out, kept = write(tmp_path), tmp_path / "out", ("--checkpoint", str(tmp_path / "kept"))
    with running(script, out, *kept) as run:
        [jvm] = wait(lambda: java(run.pid), 240)
        wait(lambda: len(list(out.glob("batch-*"))) >= batches, 240)
        assert all(NAME not in held for child in below(run.pid) for held in descriptors(child)), "the lease lives on"
        os.kill(jvm, signal.SIGKILL)
        _, said = run.communicate(timeout=600)
    assert run.returncode == 1 and said.count("\n") == 1 and said.startswith("SQ8007 Spark's JVM was killed"), said
    with running(script, out, *kept) as run:
        _, said = run.communicate(timeout=240)
        assert (run.returncode, said) == (0, "")
    assert len(list(out.glob("batch-*"))) == BATCHES and printed(out) == undisturbed(script)


def descriptors(pid: int) -> list[str]:
    """The files that a process has open."""
    try:
        return [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
