"""A band join on Spark beside Spark's own streaming SQL by cells of a grid: `python -m bench.joins.by_hand`.

    --scale S          of TPC-H                                   [default: 0.1]
    --batch-rows N                                                [default: 10,000]

BNCI, which Spark's streaming SQL refuses as it stands: there is no equality. So l1 is in the cell of its key, l2 in the
one or two that its band touches, and the join is by cells, with the band as a filter. Each system in a process of its
own on `local[2]`, warm after its first batches in a run that is not counted; each brings its pairs to the driver.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException

from bench.joins.operators import LINEITEM, MASTER, WARM, Enough, script, skewed
from squallpy.base.records import dataclass
from squallpy.runtime.sources.replay import Replay
from squallpy.testing.ignoring_sink import IgnoringSink

JOIN, BAND = "bnci", 1
CELL = 2 * BAND + 1
PROMISED = 5
ENGINES = {"ours": "squallpy", "memory": "Spark, state in memory", "rocksdb": "Spark, state in RocksDB"}
_OLD = 1_600_000_000  # when the first batch was written
BY_CELLS = f"""
SELECT l_orderkey, l_linenumber, o2, n2
FROM (SELECT l_orderkey, l_linenumber, l_orderkey DIV {CELL} AS cell
      FROM l1 WHERE l_shipmode = 'TRUCK' AND l_quantity > 48) a
JOIN (SELECT l_orderkey AS o2, l_linenumber AS n2,
             EXPLODE(SEQUENCE((l_orderkey - {BAND}) DIV {CELL}, (l_orderkey + {BAND}) DIV {CELL})) AS cell
      FROM l2 WHERE l_shipinstruct = 'NONE') b
ON a.cell = b.cell AND ABS(l_orderkey - o2) <= {BAND}
"""
HEAD = """# A band join, and the same by hand

Made by `python -m bench.joins.by_hand`; do not edit. BNCI at scale {scale:g}, {tuples:,} tuples in batches of
{rows:,}, on `{master}`. Spark's own streaming SQL joins cells of {cell} keys; squallpy the band as it stands, defaults
everywhere. {load:.1f} processes were runnable over the minute before.

![seconds](joins-by-hand.png)

| | seconds | tuples/s | pairs | times |
|---|--:|--:|--:|--:|
"""


def batches(folder: Path, batch_rows: int) -> tuple[Path, int]:
    """A folder with a folder per stream with a Parquet file per batch, and how many there are."""
    tables = {name: pq.read_table(folder / f"{name}.parquet") for name in ("l2", "l1")}
    replay = Replay({name: len(table) for name, table in tables.items()}, batch_rows)
    root = folder / f"batches-{batch_rows}"
    if not (root / "done").exists():
        shutil.rmtree(root, ignore_errors=True)
        for name, table in tables.items():
            (root / name).mkdir(parents=True)
            for batch in range(replay.batches):
                first, end = replay.ranges(batch)[name]
                path = root / name / f"{batch:06}.parquet"
                pq.write_table(table.slice(first, end - first), path)
                os.utime(path, (_OLD + batch, _OLD + batch))
        (root / "done").touch()
    return root, replay.batches


def ours(scale: float, batch_rows: int) -> tuple[float, int]:
    """Seconds, and pairs."""
    from bench.engines.shared_cluster import warm
    from squallpy.script_session import RunOptions, ScriptSession

    options = RunOptions(master=MASTER, batch_rows=batch_rows, changes=True, final=False)
    with warm(MASTER), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "join.sql"
        path.write_text(script(JOIN, skewed(scale, 0.0)))
        with suppress(Enough):
            ScriptSession(path).run(options, Pairs(WARM))
        pairs, since = Pairs(), perf_counter()
        ScriptSession(path).run(options, pairs)
        return perf_counter() - since, pairs.count


@dataclass
class Pairs(IgnoringSink):
    """A sink that counts, and stops after `batches`."""

    batches: int | None = None
    count: int = 0

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        self.count += len(inserts)
        if self.batches and number + 1 >= self.batches:
            raise Enough


def theirs(engine: str, scale: float, batch_rows: int) -> tuple[float, int]:
    """Seconds, and pairs, of Spark's streaming SQL by cells."""
    from pyspark.sql import DataFrame

    from bench.engines.spark_sql import Memory, RocksDB

    folder, count = batches(skewed(scale, 0.0), batch_rows)
    spark = (RocksDB if engine == "rocksdb" else Memory)()
    for name in ("l1", "l2"):
        reader = spark._session.readStream.schema(LINEITEM.replace("VARCHAR", "STRING")).option("maxFilesPerTrigger", 1)
        reader.parquet(str(folder / name)).createOrReplaceTempView(name)

    def run(limit: int) -> int:
        pairs = 0

        def on_batch(frame: DataFrame, batch: int) -> None:
            nonlocal pairs
            pairs += len(frame.toArrow())
            if batch + 1 >= limit:
                raise Enough

        with tempfile.TemporaryDirectory() as checkpoint:
            writer = spark._session.sql(BY_CELLS).writeStream.outputMode("append").foreachBatch(on_batch)
            running = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            try:
                running.awaitTermination()
            except StreamingQueryException as error:
                if "Enough" not in str(error):
                    raise
            finally:
                running.stop()
        return pairs

    run(WARM)
    since = perf_counter()
    pairs = run(count + 1)
    seconds = perf_counter() - since
    spark.close()
    return seconds, pairs


def plot(seconds: dict[str, float], path: Path) -> None:
    """Seconds of each."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 2.2), layout="constrained")
    axis.barh(
        [ENGINES[engine] for engine in seconds], list(seconds.values()), color=["tab:red", "tab:blue", "tab:cyan"]
    )
    axis.set(xlabel="seconds")
    axis.invert_yaxis()
    axis.grid(True, axis="x", alpha=0.3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.joins.by_hand", description=__doc__, formatter_class=about)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--engine", choices=list(ENGINES), help="only this one, its figures on stdout as JSON")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "joins-by-hand.md")
    given = parser.parse_args()
    if given.engine:
        one = given.engine, given.scale, given.batch_rows
        took, pairs = ours(*one[1:]) if given.engine == "ours" else theirs(*one)
        print(json.dumps({"seconds": took, "pairs": pairs}))
        return
    folder, results = skewed(given.scale, 0.0), dict[str, dict[str, float]]()
    tuples, load = (
        sum(pq.read_metadata(folder / f"{name}.parquet").num_rows for name in ("l1", "l2")),
        os.getloadavg()[0],
    )
    for engine in ENGINES:
        command = [sys.executable, "-m", "bench.joins.by_hand", "--engine", engine]
        command += ["--scale", str(given.scale), "--batch-rows", str(given.batch_rows)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results[engine] = json.loads(said.splitlines()[-1])
        print(engine, results[engine], flush=True)
    assert len({one["pairs"] for one in results.values()}) == 1, "they find different pairs"
    seconds = {engine: one["seconds"] for engine, one in results.items()}
    shape = {
        "scale": given.scale,
        "rows": given.batch_rows,
        "tuples": tuples,
        "cell": CELL,
        "master": MASTER,
        "load": load,
    }
    text = HEAD.format(**shape)
    for engine, found in results.items():
        rate, times = tuples / found["seconds"], found["seconds"] / seconds["ours"]
        text += f"| {ENGINES[engine]} | {found['seconds']:.1f} | {rate:,.0f} | {found['pairs']:,} | {times:.2f} |\n"
    reached = min(seconds[engine] for engine in ("memory", "rocksdb")) / seconds["ours"]
    missed = f"; missed by {100 * (1 - reached / PROMISED):.0f} %" if reached < PROMISED else ""
    text += f"\n- the better of Spark's / ours: {reached:.2f} × (promised: {PROMISED} ×{missed})\n"
    given.out.write_text(text)
    plot(seconds, given.out.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
