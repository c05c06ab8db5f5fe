"""Runs that are killed again and again, while what they read changes: in the end their sinks have all of it."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.growing import ROOT, command_of, descendants

PATIENCE = 60.0  # seconds for a run to have a whole batch before it is killed
CATCH_UP = 600.0  # seconds for the last run to read what the killed ones have not
BACKENDS = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]


def batches_of(folder: Path) -> int:
    """Return the number of the last batch that runs have begun; a run with other partitions has a folder of its own."""
    last = -1
    for log in (folder / "kept").glob("*/offsets"):
        with suppress(OSError):
            if found := re.match(r'{"batch": ([0-9]+),', log.read_text()):
                last = max(last, int(found[1]))
    return last


def number_of_kills(backend: str) -> int:
    """Return KILLS; without it 5, or 2 on Spark, which takes seconds to begin."""
    return int(os.environ.get("KILLS", "2" if backend == "spark" else "5"))


def let_run(folder: Path, draw: random.Random, number: int, backend: str, step: Callable[[], None]) -> None:
    """Let a run go on before it is killed for the `number`th time: three times of four until it has had a whole batch
    and some seconds more, else for some seconds, in which it may not have begun."""
    known, until = batches_of(folder), time.monotonic() + (PATIENCE if number % 4 else 0)
    while time.monotonic() < until and batches_of(folder) < known + 2:
        step()
    until = time.monotonic() + draw.uniform(0, 10 if backend == "spark" and number % 4 == 0 else 4)
    while time.monotonic() < until:
        step()


def kill_again_and_again(
    folder: Path,
    backend: str,
    draw: random.Random,
    change: Callable[[], None],
    is_done: Callable[[], bool],
    hit: Callable[[], None] | None = None,
    rows: int = 10_000,
    settings: Sequence[str] = (),
    options: Sequence[str] = (),
) -> None:
    """Kill the run of q.sql, a process of its Spark, or what `hit` does, again and again; then wait until it has done
    all."""
    command = [sys.executable, "-m", "squallpy.terminal", "run", "q.sql", "--backend", backend, "--checkpoint", "kept"]
    command += ["--batch-rows", str(rows), "--log-level", "error", *options]
    command += [word for setting in (f"local_dir={folder}/mapped", *settings) for word in ("--set", setting)]

    def start() -> subprocess.Popen[bytes]:
        env, said = os.environ | {"PYTHONPATH": str(ROOT)}, (folder / "said").open("ab")
        return subprocess.Popen(command, cwd=folder, env=env, stderr=said, stdout=said, start_new_session=True)

    def check() -> None:
        assert running.poll() is None, (folder / "said").read_text()[-3000:]

    def step() -> None:
        change()
        time.sleep(0.05)
        check()

    running = start()
    try:
        for number in range(number_of_kills(backend)):
            let_run(folder, draw, number, backend, step)
            if hit and number % 3 == 1:
                hit()
                continue
            if backend == "spark" and (pattern := draw.choice(["", "java", "worker_daemon"])):
                for pid in [pid for pid in descendants(running.pid) if pattern in command_of(pid)][-1:]:
                    os.kill(pid, signal.SIGKILL)
                    time.sleep(draw.uniform(0, 1))
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            running = start()
        until = time.monotonic() + CATCH_UP
        while not is_done():
            check()
            assert time.monotonic() < until, (folder / "said").read_text()[-3000:]
            time.sleep(0.2)
        running.terminate()
        assert running.wait(CATCH_UP) == 0, (folder / "said").read_text()[-3000:]
        assert is_done()
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
