"""What ratios depend on: the BLAS with its core type and threads, the memory's bandwidth, the speed of products.

blas()                 →  [("numpy", "OpenBLAS 0.3.31 …", "Haswell", 2), ("scipy", …)]
set_threads(1)            of all of them
"""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from squallpy.runtime.kernels.threads import shared

_NAMES = [f"{before}openblas_{{}}{after}" for before in ("scipy_", "") for after in ("64_", "")]


@dataclass(frozen=True)
class Blas:
    """An OpenBLAS that this process has loaded."""

    path: str

    @cached_property
    def _library(self) -> Any:
        return ctypes.CDLL(self.path)

    def _call(self, name: str, result: Any, *arguments: int) -> Any:
        for pattern in _NAMES:
            if function := getattr(self._library, pattern.format(name), None):
                function.restype = result
                return function(*arguments)
        return None

    @property
    def owner(self) -> str:
        return Path(self.path).parent.name.split(".")[0]

    @property
    def threads(self) -> int:
        return int(self._call("get_num_threads", ctypes.c_int))

    def set_threads(self, threads: int) -> None:
        self._call("set_num_threads", None, threads)

    @property
    def core(self) -> str:
        return str(self._call("get_corename", ctypes.c_char_p).decode())

    def __str__(self) -> str:
        config = self._call("get_config", ctypes.c_char_p).decode()
        return f"{self.owner}: {' '.join(config.split()[:2])}, {self.core}, {self.threads} threads"


def blas() -> list[Blas]:
    """Those loaded so far; others than OpenBLAS are not seen."""
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line}
    return [Blas(path) for path in sorted(mapped)]


def describe() -> str:
    """One line for each BLAS, and the machine."""
    cores = f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    found = [str(one) for one in blas()] or [f"numpy: {np.show_config(mode='dicts')['Build Dependencies']['blas']}"]
    return "\n".join([cores, *found])


def short() -> str:
    """The core type, and the load."""
    return f"{next((one.core for one in blas()), 'another BLAS')}, {os.getloadavg()[0]:.1f}"


@dataclass(frozen=True)
class Times:
    """Seconds of some runs."""

    runs: tuple[float, ...]

    @property
    def least(self) -> float:
        return min(self.runs)

    @property
    def middle(self) -> float:
        return median(self.runs)


def interleaved(actions: dict[str, Callable[[], object]], rounds: int, budget: float = 1e9) -> dict[str, Times]:
    """All actions in turns, so that what else the machine does meets them alike; each at least twice, and for no longer
    than `budget` seconds altogether if it was measured twice."""
    runs: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(rounds):
        for name, action in actions.items():
            if turn < 2 or sum(runs[name]) < budget:
                start = perf_counter()
                action()
                runs[name].append(perf_counter() - start)
    return {name: Times(tuple(of)) for name, of in runs.items()}


def memory() -> Callable[[], object]:
    """An action that reads and writes 512 MB in place on all cores; see MEMORY_BYTES."""
    pieces = [np.ones(MEMORY_BYTES // 64) for _ in range(4)]

    def one(piece: int) -> None:
        np.multiply(pieces[piece], 1.0, out=pieces[piece])

    return lambda: shared(one, len(pieces))


MEMORY_BYTES = 1 << 29  # that `memory` moves: half read, half written


def products(n: int = 2000) -> Callable[[], object]:
    """An action of 2·n³ operations by BLAS."""
    A, B = np.ones((n, n)), np.ones((n, n))
    C = np.empty((n, n))
    return lambda: np.matmul(A, B, out=C)
