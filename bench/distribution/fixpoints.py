"""A fixpoint that partitions divide among them, on Spark: the transitive closure of `bench.recursion`.

    python -m bench.distribution.fixpoints [--partitions 1 2] [--changes 1000] [--batches 12] [--turns 2]

The same batches on as many partitions as said, in turns, on one cluster `local[2]`. Processor time is that of the
driver, its JVM and all workers; *busiest* is the worker with the most, which the others wait for.
"""

import argparse
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines.shared_cluster import warm
from bench.measure.processes import busy, work
from bench.recursion import CLOSURE, Edges, batches, replace_rows
from squallpy.base.settings import Settings
from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

MASTER = "local[2]"
WARM = 2  # batches that are not counted, the first of which brings all edges
SCRIPT = f"""
CREATE STREAM edge (x INT NOT NULL, y INT NOT NULL) USING parquet
OPTIONS (path 'edge/', op 'op', watch 'true', maxFilesPerTrigger '1');
{CLOSURE};
"""


class StopWhenIdle(threading.Event):
    """A wish to stop that comes when there is nothing more to read."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


@dataclass
class Clock(IgnoringSink):
    """The result, and what each batch took: seconds, processor time, and that of the busiest worker."""

    taken: list[tuple[float, float, float]] = field(default_factory=list)
    rows: list[dict[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._until, self._busy = perf_counter(), busy(os.getpid())

    def on_query_progress(self, report: BatchReport) -> None:
        now, spent = perf_counter(), busy(os.getpid())
        workers = (work({pid: self._busy.get(pid, 0.0)}, {pid: spent[pid]}) for pid in spent if _is_worker(pid))
        self.taken.append((now - self._until, work(self._busy, spent), max(workers, default=0.0)))
        self._until, self._busy = now, spent

    def final(self, table: pa.Table) -> None:
        self.rows = table.to_pylist()


def _is_worker(pid: int) -> bool:
    """True for a process that runs Python, but this one."""
    try:
        return pid != os.getpid() and Path(f"/proc/{pid}/comm").read_text().startswith("python")
    except OSError:  # it has ended
        return False


def write(folder: Path, given: list[tuple[Edges, Edges]]) -> None:
    """Write a file for each batch, and the script."""
    (folder / "edge").mkdir()
    (folder / "q.sql").write_text(SCRIPT)
    for number, (gone, come) in enumerate(given):
        rows = np.concatenate([gone, come]).astype(np.int32)
        signs = pa.array(["-"] * len(gone) + ["+"] * len(come))
        pq.write_table(pa.table({"op": signs, "x": rows[:, 0], "y": rows[:, 1]}), folder / f"edge/{number:04}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.distribution.fixpoints", description=__doc__)
    for name, default in (("layers", 9), ("width", 6250), ("degree", 2), ("changes", 1000), ("batches", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.set_defaults(graph="layers")
    parser.add_argument("--partitions", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    given, database = list(batches(options)), duckdb.connect()
    database.execute("CREATE TABLE edge (x INT, y INT)")
    for gone, come in given:
        replace_rows(database, gone, come)
    answer = database.execute(CLOSURE).fetchall()
    with TemporaryDirectory() as name, warm(MASTER):
        write(Path(name), given)
        for _ in range(options.turns):
            for partitions in options.partitions:
                session, clock = (
                    ScriptSession(Path(name) / "q.sql", Settings(partitions=partitions, compile="off")),
                    Clock(),
                )
                session.run(RunOptions(batch_rows=1 << 20), clock, StopWhenIdle(), observer=clock)
                assert [tuple(row.values()) for row in clock.rows] == answer, (clock.rows, answer)
                first, later = clock.taken[0], np.median(np.array(clock.taken[WARM:]), axis=0)
                print(
                    f"{partitions} partitions, {options.changes:,} changes: {later[0]:.3f} s,"
                    f" processor {later[1]:.3f} s, busiest worker {later[2]:.3f} s;"
                    f" first batch {first[0]:.2f} s, processor {first[1]:.2f} s,"
                    f" busiest worker {first[2]:.2f} s; load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
