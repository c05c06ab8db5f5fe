"""What a person at a terminal waits for: seconds from the command to its answer."""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from bench.data.queries import QUERIES

SQUALL = [sys.executable, "-m", "squallpy.terminal"]


def measure(tables: Path, repeats: int) -> dict[str, float | str]:
    """Medians of `squall --help`, `squall explain` of Q3, and the first row of `squall run` of Q1 on Spark."""
    with tempfile.TemporaryDirectory() as room:
        scripts = {name: Path(room) / f"{name}.sql" for name in ("q1", "q3")}
        for name, path in scripts.items():
            path.write_text(QUERIES[name].script(str(tables.resolve())))
        first = [*SQUALL, "run", "--mode", "changes", "--format", "csv", "--batch-rows", "10000", str(scripts["q1"])]
        return {
            "help": _median(lambda: whole([*SQUALL, "--help"]), repeats),
            "explain": _median(lambda: whole([*SQUALL, "explain", "physical", str(scripts["q3"])]), repeats),
            "first_answer": _median(lambda: _first_row(first), min(repeats, 3)),
        }


def _median(action: Callable[[], float], repeats: int) -> float | str:
    try:
        action()  # files into the page cache
        return statistics.median(action() for _ in range(repeats))
    except (subprocess.SubprocessError, RuntimeError) as error:
        return str(error)[:200]


def whole(command: list[str]) -> float:
    start = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    return perf_counter() - start


def _first_row(command: list[str]) -> float:
    """Until the line after the header."""
    start = perf_counter()
    with tempfile.TemporaryFile("w+") as talk:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=talk, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        row = process.stdout.readline()
        seconds = perf_counter() - start
        process.terminate()
        process.communicate(timeout=60)
        if not row:
            talk.seek(0)
            raise RuntimeError(f"no row: {talk.read().strip()[-150:]}")
    return seconds
