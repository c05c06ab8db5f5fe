"""How long a query takes to get over an executor that is killed, in batches: a standalone cluster of two workers.

    python -m bench.distribution.recovery examples/tpch/q3.sql [--batch-rows 100000] [--kills 3] [--set K=V ...]

An executor is killed in the middle of a batch. Recovered is when as many batches are done as would have been without:
what the batches after the kill take longer than the median of those before it, until one is as fast as that again.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from squallpy.testing.standalone_cluster import Standalone, wait

_WARM = 6  # batches before the first kill, and between two


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path)
    parser.add_argument("--batch-rows", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="K=V")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as room, Standalone(Path(room)) as cluster:
        metrics, kills = Path(room) / "metrics.jsonl", []
        command = [sys.executable, "-m", "squallpy.terminal", "run", str(given.script), "--master", cluster.master]
        command += ["--batch-rows", str(given.batch_rows), "--metrics", str(metrics), "--mode", "final"]
        command += ["--checkpoint", f"{room}/checkpoint", *(word for pair in given.set for word in ("--set", pair))]
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
        run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        draw, done = random.Random(1), 0
        for number in range(given.kills):
            until(run, metrics, done, batches=_WARM + 1)
            if run.poll() is not None:
                break
            time.sleep(draw.uniform(0.2, 0.8) * lines(metrics)[-1]["seconds"])
            kills.append(len(lines(metrics)))
            for executor in cluster.workers[number % 2].executors():
                os.kill(executor, signal.SIGKILL)
            # its partition goes elsewhere, and comes back when another executor is warm; not to be killed before
            until(run, metrics, kills[-1], rebuilt=2)
            done = len(lines(metrics))
        assert run.wait() == 0
        report(lines(metrics), kills)


def until(run: subprocess.Popen[bytes], metrics: Path, since: int, batches: int = 0, rebuilt: int = 0) -> None:
    """Wait for so many batches since one, and partitions rebuilt in them, or for the end of the run."""

    def is_enough() -> bool:
        done = lines(metrics)[since:]
        return len(done) >= batches and rebuilds(done) >= rebuilt

    wait(lambda: run.poll() is not None or is_enough(), 600)


def lines(metrics: Path) -> list[dict[str, Any]]:
    """The batches so far."""
    text = metrics.read_text() if metrics.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def rebuilds(batches: list[dict[str, Any]]) -> int:
    """How many partitions have lost their state in some batches."""
    return sum(len(batch.get("rebuilt", ())) for batch in batches)


def report(batches: list[dict[str, Any]], kills: list[int]) -> None:
    """Prints what each kill has cost."""
    undisturbed = [b["seconds"] for b in batches[2:] if not any(0 <= b["batch"] - kill < _WARM for kill in kills)]
    usual = statistics.median(undisturbed or [b["seconds"] for b in batches[2:]])
    print(f"{len(batches)} batches, median {usual:.2f} s; batches that are not told of took that")
    for kill in kills:
        after = batches[kill : kill + _WARM]
        took = [b["seconds"] for b in after]
        last = max((i for i, seconds in enumerate(took) if seconds > 1.5 * usual), default=0)
        lost = sum(seconds - usual for seconds in took[: last + 1])
        rebuilt = [r for b in after for r in b.get("rebuilt", ())]
        slowest = max((r["seconds"] for r in rebuilt), default=0.0)
        shown = " ".join(f"{seconds:.2f}" for seconds in took)
        print(
            f"killed in batch {kill}: {lost:.2f} s lost = {lost / usual:.1f} batches; then {shown} s; "
            f"{len(rebuilt)} rebuilds, the slowest {slowest:.2f} s"
        )


if __name__ == "__main__":
    main()
