"""Gradient descent in blocks on Spark (Figure 5.15c of the thesis): a row of X changes with each batch.

    python -m bench.matrix.on_spark [--n 1000 2000] [--steps 16] [--batches 8] [--partitions 2]

The program is `T := iterate[16](zeros(n, n))(t => t - X' * (X * t - Y))`, of which one row is read. The same batches by
triggers, and evaluated anew, in turns on one cluster `local[2]`. Seconds are those of a batch by the clock, processor
time that of the driver, its JVM and all workers; medians without the first two batches.
"""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bench.distribution.fixpoints import MASTER, WARM, Clock, StopWhenIdle
from bench.engines.shared_cluster import warm
from bench.matrix import inputs
from squallpy.base.settings import Settings
from squallpy.script_session import RunOptions, ScriptSession

Array = npt.NDArray[np.float64]
ROW = 7
STRATEGIES = ("incr", "reeval")
SCRIPT = """
CREATE STREAM xs (i INT, j INT, v DOUBLE) USING parquet OPTIONS (path 'xs/', watch 'true', maxFilesPerTrigger '1');
CREATE STREAM ys (i INT, j INT, v DOUBLE) USING parquet OPTIONS (path 'ys/', watch 'true', maxFilesPerTrigger '1');
CREATE MATRIX X ({n}, {n}) FROM STREAM xs (i, j, v);
CREATE MATRIX Y ({n}, {n}) FROM STREAM ys (i, j, v);
CREATE MATRIX PROGRAM p AS $$ T := iterate[{steps}](zeros({n}, {n}))(t => t - X' * (X * t - Y)) $$;
SELECT j, value FROM p.T WHERE i = {row};
"""


def cells(values: Array, first: int = 0) -> pa.Table:
    """List the cells of rows, the first of which has this number."""
    rows, columns = values.shape
    at = np.repeat(np.arange(first, first + rows, dtype=np.int32), columns)
    return pa.table({"i": at, "j": np.tile(np.arange(columns, dtype=np.int32), rows), "v": values.ravel()})


def write(folder: Path, n: int, steps: int, batches: int) -> Array:
    """Write the script and a file for each batch; returns what is read of T in the end."""
    random = np.random.default_rng(1)
    X, Y, T = inputs.observations(n, n, random) / 2, random.normal(size=(n, n)), np.zeros((n, n))
    (folder / "q.sql").write_text(SCRIPT.format(n=n, steps=steps, row=ROW))
    for name, values in (("xs", X), ("ys", Y)):
        (folder / name).mkdir()
        pq.write_table(cells(values), folder / f"{name}/0000.parquet")
    for batch in range(1, batches + 1):
        row, change = int(random.integers(n)), 0.05 * random.normal(size=(1, n)) / np.sqrt(n)
        X[row] += change[0]
        pq.write_table(cells(change, row), folder / f"xs/{batch:04}.parquet")
    for _ in range(steps):
        T -= X.T @ (X @ T - Y)
    read: Array = T[ROW]
    return read


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.matrix.on_spark", description=__doc__, formatter_class=about)
    parser.add_argument("--n", type=int, nargs="*", default=[1000, 2000])
    for name, default in (("steps", 16), ("batches", 8), ("partitions", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with warm(MASTER):
        for n in options.n:
            with TemporaryDirectory() as name:
                expected, took = write(Path(name), n, options.steps, options.batches), dict[str, tuple[float, ...]]()
                for strategy in STRATEGIES:
                    settings = Settings(
                        partitions=options.partitions, matrix_place="blocks", matrix_strategy=strategy, compile="off"
                    )
                    clock = Clock()
                    session = ScriptSession(Path(name) / "q.sql", settings)
                    session.run(RunOptions(batch_rows=1 << 24), clock, StopWhenIdle(), observer=clock)
                    found = np.zeros(n)
                    found[[row["j"] for row in clock.rows]] = [row["value"] for row in clock.rows]
                    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9), np.abs(found - expected).max()
                    took[strategy] = tuple(np.median(np.array(clock.taken[WARM:]), axis=0))
                    seconds, processor, _ = took[strategy]
                    print(
                        f"n = {n:,}, {strategy}: {seconds:.3f} s a batch, processor {processor:.3f} s;"
                        f" first {clock.taken[0][0]:.1f} s; {len(clock.taken)} batches; load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
                times = [took["reeval"][at] / took["incr"][at] for at in range(2)]
                print(
                    f"n = {n:,}: triggers {times[0]:.1f} x by the clock, {times[1]:.1f} x of processor time", flush=True
                )


if __name__ == "__main__":
    main()
