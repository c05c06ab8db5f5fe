"""A process and all that it started: memory and processor time, from /proc (zeros where there is none), and its end.

`apart` runs a function in a process of its own, on one core.
"""

import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import clock_gettime
from typing import Any, TypeVar

T = TypeVar("T")


def apart(core: int, run: Callable[..., T], *args: Any) -> T:
    """Run a function in a process of its own on one core."""
    with ProcessPoolExecutor(1, get_context("spawn"), bind, (core,)) as process:
        return process.submit(run, *args).result()


def bind(core: int) -> None:
    """Bind this process to a core, before anything that counts them is imported."""
    os.sched_setaffinity(0, {core})
    os.environ["POLARS_MAX_THREADS"] = "1"


@dataclass
class Memory:
    """Megabytes. `rss` counts a page once per process that maps it, `pss` once."""

    rss: float = 0.0
    pss: float = 0.0

    def grow(self, other: "Memory") -> None:
        self.rss, self.pss = max(self.rss, other.rss), max(self.pss, other.pss)


def of_tree(root: int) -> Memory:
    total = Memory()
    for pid in _tree(root):
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Rss:"):
                    total.rss += int(line.split()[1]) / 1024
                elif line.startswith("Pss:"):
                    total.pss += int(line.split()[1]) / 1024
        except OSError:  # it has ended
            continue
    return total


def busy(root: int) -> dict[int, float]:
    """The seconds that each process has been busy so far."""
    found = dict[int, float]()
    for pid in _tree(root):
        with suppress(OSError):  # it has ended
            found[pid] = clock_gettime(~pid << 3 | 2)  # NB: how Linux numbers the clocks of other processes
    return found


def work(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """The seconds that processes were busy in between; of those that have ended nobody knows."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def end_tree(root: int) -> None:
    """Ends a process and all that it started, which are not always of its group: a JVM has its own."""
    for pid in _tree(root):
        with suppress(OSError):  # it has ended
            os.kill(pid, signal.SIGKILL)


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                waiting += [int(child) for child in children.read_text().split()]
        except OSError:  # it, or a thread of it, has ended
            continue
    return found
