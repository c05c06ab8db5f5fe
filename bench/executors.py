"""Two executors against one, of one core each: `python -m bench.executors [--queries q3,q17] [--batch-rows 1000000]`.

A standalone cluster on this machine; the median batch after the first few, whose Python is cold.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.data import generate
from bench.queries import QUERIES
from squallpy.testing.standalone import Standalone

WARM = 2  # batches that are not counted
HEAD = """# Two executors against one

Made by `python -m bench.executors`; do not edit. TPC-H at scale {scale:g}, batches of {batch_rows:,}, a standalone
cluster whose executors have one core each; {partitions} partitions. There are 2 cores for all.

| query | one executor, s a batch | two | gain |
|---|--:|--:|--:|
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.executors", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=lambda text: text.split(","), default=["q3", "q17"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--batch-rows", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "executors.md")
    given = parser.parse_args()
    text = HEAD.format(scale=given.scale, batch_rows=given.batch_rows, partitions=given.partitions)
    for name in given.queries:
        one, two = (seconds(name, given, workers) for workers in (1, 2))
        text += f"| {name} | {one:.2f} | {two:.2f} | {one / two:.2f} × |\n"
        print(text, flush=True)
    given.out.write_text(text)


def seconds(name: str, given: argparse.Namespace, workers: int) -> float:
    """The median batch of a query on so many executors."""
    query = QUERIES[name]
    folder = generate(query.benchmark, given.scale)
    with tempfile.TemporaryDirectory() as room, Standalone(Path(room) / "cluster", workers) as cluster:
        script, metrics = Path(room) / "query.sql", Path(room) / "metrics.jsonl"
        script.write_text(query.script(str(folder)))
        command = [sys.executable, "-m", "squallpy.terminal", "run", str(script), "--master", cluster.master]
        command += ["--batch-rows", str(given.batch_rows), "--metrics", str(metrics), "--mode", "final"]
        command += ["--set", f"partitions={given.partitions}"]
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        batches = [json.loads(line) for line in metrics.read_text().splitlines()]
    return statistics.median(batch["seconds"] for batch in batches[WARM:-1])  # NB: the last is not whole


if __name__ == "__main__":
    main()
