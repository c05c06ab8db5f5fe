"""A restart on twice the partitions, without the input: `python -m bench.reshard [KEYS]`.

A stream without end has brought some million keys, and its files have gone. Then the same query starts with 4 state
partitions instead of 2; the seconds until it has applied one more row are printed, of which Spark's start is a part, as
those of a restart with the same partitions.
"""

import shutil
import sys
import tempfile
import threading
from os import getloadavg
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from squallpy.base.settings import Settings
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

SCRIPT = """
CREATE STREAM r (k BIGINT, v BIGINT) USING parquet OPTIONS (path 'r/', watch 'true');
SELECT COUNT(*) AS n, SUM(s) AS total FROM (SELECT k, SUM(v) AS s FROM r GROUP BY k HAVING SUM(v) > 1) AS x;
"""
ROWS = 1_000_000  # of a file


class StopWhenIdle(threading.Event):
    """A wish to stop that comes when there is nothing more to read."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


class Result(IgnoringSink):
    """Keeps the final result."""

    rows: object = None

    def final(self, table: pa.Table) -> None:
        self.rows = table.to_pylist()


def seconds(folder: Path, partitions: int) -> tuple[float, object]:
    """Run the query to the end of what has come; returns the seconds, and the result."""
    start, sink = perf_counter(), Result()
    session = ScriptSession(folder / "q.sql", Settings(partitions=partitions))
    options = RunOptions(batch_rows=ROWS, checkpoint=str(folder / "kept"))
    session.run(options, sink, StopWhenIdle())
    return perf_counter() - start, sink.rows


def main(keys: int) -> None:
    """Print the seconds of each run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "q.sql").write_text(SCRIPT)
        (folder / "r").mkdir()
        for number, first in enumerate(range(0, keys, ROWS)):
            k = np.random.default_rng(number).permutation(np.arange(first, min(keys, first + ROWS)))
            pq.write_table(pa.table({"k": k * 7, "v": k % 5}), folder / f"r/{number}.parquet")
        print(f"{keys:,} keys on 2 partitions: {seconds(folder, 2)[0]:.1f} s", flush=True)
        shutil.rmtree(folder / "r")
        for number, (partitions, what) in enumerate(((2, "again on 2"), (4, "on 4"), (4, "again on 4"), (1, "on 1"))):
            (folder / "r").mkdir(exist_ok=True)
            pq.write_table(pa.table({"k": [-1 - number], "v": [7]}), folder / f"r/{keys + number}.parquet")
            took, rows = seconds(folder, partitions)
            size = sum(path.stat().st_size for path in (folder / "kept").rglob("*") if path.is_file()) >> 20
            print(
                f"one more, {what} partitions: {took:.1f} s, {rows}, {size} MB, load {getloadavg()[0]:.1f}", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
