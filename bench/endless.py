"""Runs without end: what idle looks cost, whether input leaves memory and batches flat, what is known of a file.

python -m bench.endless                     ten hours of looks; 3,600 batches of 10,000 rows, a file each; small files
python -m bench.endless --minutes 10        the same for ten minutes of input

Time is a clock of the bench's own, which a wait moves on: a look every 0.1 s, a file of 10,000 rows every second. So
an hour's worth takes as long as its work does. Both keep a checkpoint; what was read is deleted after a minute. The
query counts and sums 1,000 groups over a window of a minute.
"""

import argparse
import gc
import threading
import tracemalloc
from collections import deque
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep

import numpy as np

from squallpy.base.settings import Settings
from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

ROWS, GROUPS, KEPT = 10_000, 1_000, 60  # rows a second; seconds for which files stay
FIRST = 1_000  # files that are there before those that are measured
QUERY = """
CREATE STREAM r (k INT, v BIGINT, at TIMESTAMP) USING csv OPTIONS (path 'in/', watch 'true'{options}) TIMESTAMP BY at;
SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r GROUP BY k RANGE 1 MIN;
"""


class Clock(threading.Event):
    """A clock that goes on by what is waited for, and stops the run after some seconds."""

    def __init__(self, until: float) -> None:
        super().__init__()
        self.now, self.until, self.looks = 0.0, until, 0
        self.memory, self.waited = list[float](), 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.now, self.looks = self.now + (timeout or 0.0), self.looks + 1
        if self.now >= self.until * (len(self.memory) + 1) / 10:
            self.memory.append(resident())
        if self.now >= self.until:
            self.set()
        self.waited = process_time()
        return self.is_set()


class Writer(Clock):
    """A clock by which a file of rows comes every second, while the run waits; those of a minute ago go."""

    def __init__(self, until: float, folder: Path) -> None:
        super().__init__(until)
        self._folder, self._seconds, self._files = folder, 0, deque[Path]()
        draw = np.random.default_rng(7)
        self._rows = [f"{k},{v}," for k, v in zip(draw.integers(0, GROUPS, ROWS), range(ROWS), strict=True)]

    def wait(self, timeout: float | None = None) -> bool:
        hour, minute, second = self._seconds // 3600, self._seconds // 60 % 60, self._seconds % 60
        time = f"2026-01-01 {hour:02}:{minute:02}:{second:02}\n"
        path = self._folder / f"{self._seconds:06}.csv"
        draft = path.with_name(f".{path.name}")
        draft.write_text("".join([row + time for row in self._rows]))
        self._files.append(draft.rename(path))
        if len(self._files) > KEPT:
            self._files.popleft().unlink()
        self._seconds += 1
        return super().wait(1.0)


class SmallFiles(threading.Event):
    """Files of two rows that come by the hundred, and the traced bytes after the first thousand and after all."""

    def __init__(self, count: int, folder: Path) -> None:
        super().__init__()
        self._count, self._folder, self._files = count, folder, 0
        self.traced = list[int]()

    def wait(self, timeout: float | None = None) -> bool:
        if self._files in (FIRST, FIRST + self._count) and len(self.traced) < 2:
            gc.collect()
            self.traced.append(tracemalloc.get_traced_memory()[0])
        if self._files == FIRST + self._count:
            self.set()
            return True
        for _ in range(100):
            draft = self._folder / f".{self._files}"
            draft.write_text(f"{self._files % 7},1,2026-01-01 00:00:00\n{self._files % 5},2,2026-01-01 00:00:00\n")
            draft.rename(self._folder / f"a-file-with-a-name-of-usual-length-{self._files:08}.csv")
            self._files += 1
        sleep(0.06)  # NB: so that the folder has another time
        return False


class Seconds(IgnoringSink):
    """The seconds of processor time of all batches, each since the run has waited for it."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.seconds = clock, list[float]()

    def on_query_progress(self, report: BatchReport) -> None:
        self.seconds.append(process_time() - self.clock.waited)


def resident() -> float:
    """Megabytes of this process in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def run(folder: Path, clock: Clock, limits: str = "") -> Seconds:
    (folder / "q.sql").write_text(QUERY.format(options=limits))
    seen = Seconds(clock)
    session = ScriptSession(folder / "q.sql", Settings(local_dir=str(folder / "local")))
    options = RunOptions("local", changes=True, final=False, checkpoint=str(folder / "kept"), clock=clock)
    session.run(options, seen, clock, observer=seen)
    return seen


def idle(hours: float) -> None:
    with TemporaryDirectory(prefix="squallpy-") as name:
        folder = Path(name)
        (folder / "in").mkdir()
        rows = "".join(f"{k},{k},2026-01-01 00:00:00\n" for k in range(GROUPS))
        (folder / "in" / "1.csv").write_text(rows)
        clock, start = Clock(3600 * hours), perf_counter()
        seen = run(folder, clock, ", idle_timeout '30 seconds', close_after '1 minute'")
    seconds = perf_counter() - start
    first, last = clock.memory[0], clock.memory[-1]
    each = 1e6 * seconds / clock.looks
    print(f"{hours:g} h idle: {clock.looks:,} looks, {len(seen.seconds)} batches, {each:.0f} µs a look")
    print(f"  memory after a tenth {first:.1f} MB, at the end {last:.1f} MB: {last - first:+.1f} MB")


def steady(minutes: float) -> None:
    with TemporaryDirectory(prefix="squallpy-") as name:
        folder = Path(name)
        (folder / "in").mkdir()
        clock, start = Writer(60 * minutes, folder / "in"), perf_counter()
        seen = run(folder, clock)
    count, seconds = len(seen.seconds), perf_counter() - start
    tenths = [seen.seconds[i * count // 10 : (i + 1) * count // 10] for i in range(10)]
    millis = [1000 * median(tenth) for tenth in tenths]
    print(f"{minutes:g} min of {ROWS:,} rows a second: {count:,} batches in {seconds:.0f} s")
    print("  median of a batch by tenths, ms of processor time:  " + " ".join(f"{each:.2f}" for each in millis))
    print(f"  the last tenth by the third: {millis[-1] / millis[2]:.3f}")
    print("  memory by tenths, MB:  " + " ".join(f"{each:.0f}" for each in clock.memory))
    print(f"  the last by the third: {clock.memory[-1] / clock.memory[2]:.3f}")


def files(count: int) -> None:
    with TemporaryDirectory(prefix="squallpy-") as name:
        folder = Path(name)
        (folder / "in").mkdir()
        (folder / "q.sql").write_text(QUERY.format(options=""))
        fed = SmallFiles(count, folder / "in")
        session = ScriptSession(folder / "q.sql", Settings(local_dir=str(folder / "local")))
        tracemalloc.start()
        options = RunOptions("local", changes=True, final=False, checkpoint=str(folder / "kept"))
        session.run(options, IgnoringSink(), fed)
        tracemalloc.stop()
    print(f"{count:,} files more: {(fed.traced[1] - fed.traced[0]) / count:,.0f} bytes of memory for each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=10.0, help="of idle looks")
    parser.add_argument("--minutes", type=float, default=60.0, help="of input")
    parser.add_argument("--files", type=int, default=10_000, help="small files in one folder")
    given = parser.parse_args()
    idle(given.hours)
    steady(given.minutes)
    files(given.files)


if __name__ == "__main__":
    main()
