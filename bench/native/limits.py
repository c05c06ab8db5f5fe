"""What bounds a batch: computing, waiting for memory, memory that is touched first: `python -m bench.native.limits`.

    [q1 q3 …] [--rows 1000 10000] [--scale 1] [--out FILE]

A batch over tables a fiftieth as large, whose state is in the processor's cache, takes what is computed; the median
batch of the whole tables besides waits for memory; the mean has growth of state, too. Beside them what this machine's
memory can do. Processor time of one core, compiled triggers, the last batches of the stream.
"""

import argparse
import gc
import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from time import process_time

import numpy as np

from bench.data.queries import QUERIES
from bench.data.tables import Stream, generate
from bench.fivm.run import figure
from bench.measure.processes import apart
from bench.native.loop import Loop, Schedule
from bench.native.peers.coded import ROWS
from bench.native.peers.report import head, line_of
from bench.native.peers.systems import MOST, SHARE
from squallpy.runtime.kernels.intrinsics import load, prefetch
from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel

SMALL = 50  # times smaller are the tables whose state is in the cache
REPEATS = 3
MEGABYTES = 8, 64, 512  # of memory that is read at random
LINES = 1_000_000
AHEAD = 64  # lines that are asked for before one is read
HEAD = """# What bounds a batch of compiled triggers

Made by `python -m bench.native.limits`; do not edit. TPC-H, the last batches of the stream, microseconds of processor
time of one core, the median of {repeats} runs. *computing*: the median batch over tables of scale {small:g}, whose
state is in the cache. *waiting*: what the median batch at scale {scale:g} takes more: what is looked up and written at
random is not in the cache. *growth*: what the mean takes more than the median: memory that is touched first, and tables
that grow. *state*: of views, MB at scale {scale:g}. {cores} cores, load {begin:.1f}–{end:.1f}.

"""
MEMORY = """
The machine: nanoseconds for a cache line that is read at random in so many MB, {ahead} of them asked for at once; in
order; microseconds for a MB that is touched for the first time, in pages of 4 KB and of 2 MB.

"""


@dataclass(frozen=True)
class Bounds:
    """Microseconds of a batch, and bytes of state."""

    median: float
    mean: float
    state: int


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.native.limits", description=__doc__, formatter_class=about)
    parser.add_argument("queries", nargs="*", default=[*ROWS])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    begin, small = os.getloadavg()[0], given.scale / SMALL
    table = head("query", "batch", "mean", "computing", "waiting", "growth", "state", "lines waited for, a tuple")
    core = max(os.sched_getaffinity(0))
    machine = apart(core, of_machine)
    for name in given.queries:
        for rows in given.rows:
            whole, cached = (repeated(core, name, rows, scale) for scale in (given.scale, small))
            waiting = max(0.0, whole.median - cached.median)
            lines = waiting * 1e3 / machine.line_of(whole.state) / rows
            cells = (whole.mean, cached.median, waiting, max(0.0, whole.mean - whole.median), whole.state / 1e6, lines)
            table += line_of(name, f"{rows:,}", *map(figure, cells))
            print(table.splitlines()[-1], flush=True)
    text = HEAD.format(
        repeats=REPEATS, small=small, scale=given.scale, cores=os.cpu_count(), begin=begin, end=os.getloadavg()[0]
    )
    text += table + MEMORY.format(ahead=AHEAD) + "".join(machine.lines())
    print(text)
    if given.out:
        given.out.write_text(text)


def repeated(core: int, query: str, rows: int, scale: float) -> Bounds:
    """Measure a query several times, each in a process of its own."""
    folder, share = generate(QUERIES[query].benchmark, scale), 0.5 if scale < 1 else SHARE
    runs = [apart(core, measure, query, folder, rows, share) for _ in range(REPEATS)]
    return Bounds(median(r.median for r in runs), median(r.mean for r in runs), runs[0].state)


def measure(query: str, folder: Path, rows: int, share: float) -> Bounds:
    """Run a query's last batches of some rows, which are a share of its stream."""
    stream = Stream(QUERIES[query], folder, rows)
    loop = Loop(stream, Schedule.of(stream.replay.sizes, [rows], MOST, share), ["compile=wait"])
    gc.collect()
    gc.freeze()
    for _ in loop.run():
        pass
    return Bounds(loop.median(rows), loop.mean(rows), loop.state)


@dataclass(frozen=True)
class Machine:
    """What memory costs."""

    random: dict[int, float]  # ns a line, by MB
    in_order: float
    first: tuple[float, float]  # µs a MB, in small pages and in huge ones

    def line_of(self, state: int) -> float:
        """Return the nanoseconds for a line at random in so many bytes."""
        return self.random[min(MEGABYTES, key=lambda size: abs(size - state / 1e6))]

    def lines(self) -> Iterator[str]:
        """Write them as a table."""
        yield head(*(f"{size} MB" for size in MEGABYTES), "in order", "first, 4 KB", "first, 2 MB")
        yield line_of(*map(figure, (*self.random.values(), self.in_order, *self.first)))


def of_machine() -> Machine:
    """Measure what memory costs."""
    random = {size: read_at_random(size) for size in MEGABYTES}
    small, huge = (mean(touch_first(huge) for _ in range(REPEATS)) for huge in (False, True))
    return Machine(random, read_in_order(MEGABYTES[-1]), (small, huge))


@kernel(f"int64(int64, {VECTOR})")
def _sum_of_lines(start: int, places: Vector) -> int:
    """Add up words at places, asked for some ahead."""
    total, numbers = 0, address(places)
    for i in range(len(places) - AHEAD):
        prefetch(start + 8 * load(numbers, i + AHEAD))
        total += load(start, load(numbers, i))
    return total


def read_at_random(megabytes: int) -> float:
    """Nanoseconds for a line, in huge pages where the system has them."""
    words = _memory(megabytes, huge=True)
    words[:] = 1
    places = np.random.default_rng(0).integers(0, len(words) // 8, LINES) * 8
    return min(_seconds(lambda: _sum_of_lines(words.ctypes.data, places)) for _ in range(REPEATS)) / LINES * 1e9


def read_in_order(megabytes: int) -> float:
    """Nanoseconds for a line."""
    words = _memory(megabytes, huge=True)
    words[:] = 1
    return min(_seconds(words.sum) for _ in range(REPEATS)) / (len(words) // 8) * 1e9


def touch_first(huge: bool, megabytes: int = 64) -> float:
    """Microseconds for a MB."""
    words = _memory(megabytes, huge)
    pages = words[:: 4096 // 8]
    return _seconds(lambda: pages.fill(1)) / megabytes * 1e6


def _memory(megabytes: int, huge: bool) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return memory that nobody has touched."""
    area = mmap.mmap(-1, megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(area, np.int64)


def _seconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    begin = process_time()
    call()
    return process_time() - begin


if __name__ == "__main__":
    main()
