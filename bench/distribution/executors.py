"""Two executors against one, of one core each.

    python -m bench.distribution.executors [--queries q3,q17] [--batch-rows N]

Batches have so many rows that one executor takes some half a second for each, unless --batch-rows says otherwise. A
standalone cluster on this machine. One and two executors take turns, as what else the machine does comes and goes; of
a turn the median batch counts after the first ones, in which JVMs are still compiled (of two executors two, on the same
cores: an eighth of all work after 8 batches), and of the turns the quickest: what disturbs only slows.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter

import pyarrow.parquet as pq

from bench.data.queries import QUERIES
from bench.data.tables import generate
from bench.measure.warm_memory import kept
from squallpy.testing.standalone_cluster import Standalone

WARM = 40_000_000  # rows whose batches are not counted
ROWS = {"q3": 4_000_000}  # of a batch, of which one executor takes half a second
OTHERS = 1_000_000
GROUPS = 60  # row groups of lineitem that a process decodes, to see what the machine gives
SHARED = Path("/dev/shm")
HEAD = """# Two executors against one

Made by `python -m bench.distribution.executors`; do not edit. TPC-H at scale {scale:g}, a standalone cluster whose
executors have one core each; {partitions} partitions. There are 2 cores for all, drivers included; {load:.1f} processes
were runnable over the minute before. Two processes that only decode rows, and wait for nothing, do {machine:.2f} × what
one does alone. Seconds of the median batch after the first {warm:,} rows, of the quickest of {repeats} turns (and of
all). *Bound*: whatever an executor does, its JVM and its Python worker, is on a core of its
own, as where a host has one; else Spark gives it one task at a time, and what it does beside that is on any core.
*Kept*: with memory that this machine has had before (`bench/measure/warm_memory.py`); else it may come from the host of
a virtual machine, page by page.

| query | rows of a batch | | one executor | two | gain |
|---|--:|---|--:|--:|--:|
"""

# What is measured: are executors bound, is memory kept?
CASES = {"": (False, False), "bound": (True, False), "kept": (False, True)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.distribution.executors", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--queries", type=lambda text: text.split(","), default=["q3", "q17"])
    parser.add_argument("--scale", type=float, default=10.0)
    parser.add_argument("--batch-rows", type=int)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "executors.md")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    text = HEAD.format(**vars(given), warm=WARM, load=load, machine=machine(given.scale))
    for name in given.queries:
        for case, (bound, keeps) in CASES.items():
            one, two = list[float](), list[float]()
            for _ in range(given.repeats):
                for workers, times in ((1, one), (2, two)):
                    with kept() if keeps else nullcontext():
                        times.append(seconds(name, given, workers, bound))
            text += f"| {name} | {batch_rows(name, given):,} | {case} | {_told(one)} | {_told(two)} "
            text += f"| {min(one) / min(two):.2f} × |\n"
            print(text, flush=True)
    given.out.write_text(text)


def machine(scale: float) -> float:
    """How many times as much two processes decode as one does, by the quickest of some turns."""
    path = str(generate("tpch", scale) / "lineitem.parquet")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        turns = [[max(pool.map(_decode, [path] * processes, 1)) for processes in (1, 2)] for _ in range(5)]
    one, two = (min(turn[i] for turn in turns) for i in (0, 1))
    return 2 * one / two


def _decode(path: str) -> float:
    """Seconds for some row groups."""
    file, start = pq.ParquetFile(path), perf_counter()
    for group in range(min(GROUPS, file.num_row_groups)):
        file.read_row_group(group, ["l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"], use_threads=False)
    return perf_counter() - start


def seconds(name: str, given: argparse.Namespace, workers: int, bound: bool) -> float:
    """The median batch of a query on so many executors."""
    query = QUERIES[name]
    folder = generate(query.benchmark, given.scale)
    room_in = SHARED if os.access(SHARED, os.W_OK) else None  # as mapped state is by default
    with (
        tempfile.TemporaryDirectory(dir=room_in) as room,
        Standalone(Path(room) / "cluster", workers, bound=bound) as cluster,
    ):
        script, metrics = Path(room) / "query.sql", Path(room) / "metrics.jsonl"
        script.write_text(query.script(str(folder)))
        command = [sys.executable, "-m", "squallpy.terminal", "run", str(script), "--master", cluster.master]
        command += ["--batch-rows", str(batch_rows(name, given)), "--metrics", str(metrics), "--mode", "final"]
        command += ["--set", f"partitions={given.partitions}"]
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        batches = [json.loads(line) for line in metrics.read_text().splitlines()]
    counted = batches[-(-WARM // batch_rows(name, given)) : -1]  # NB: the last is not whole
    measured = [float(batch["seconds"]) for batch in counted]
    return statistics.median(measured)


def batch_rows(name: str, given: argparse.Namespace) -> int:
    """Rows of a query's batches."""
    return int(given.batch_rows or ROWS.get(name, OTHERS))


def _told(times: list[float]) -> str:
    return f"{min(times):.2f} ({', '.join(f'{time:.2f}' for time in times)})"


if __name__ == "__main__":
    main()
