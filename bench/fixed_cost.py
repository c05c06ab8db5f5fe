"""What a micro-batch costs before it does anything: two empty Python stages, an exchange, a commit.

    python bench/fixed_cost.py [--batches 60] [--master 'local[2]'] [--payload BYTES] [--set KEY=VALUE ...]

Run it on an idle machine; the first half of the batches only warms up.
"""

import argparse
import statistics
import tempfile
from time import perf_counter

from squallpy.runtime.spark.cluster import start
from squallpy.runtime.spark.stream import BatchTimes, StreamJob, run
from squallpy.runtime.spark.tasks import Told

PARTITIONS = 2


class Feed:
    """The same payload to every partition."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def __call__(self, batch: int, split: int) -> list[tuple[int, bytes]]:
        return [(target, self.payload) for target in range(PARTITIONS)]


def apply(batch: int, partition: int, stage: int, messages: list[bytes]) -> tuple[list[tuple[int, bytes]], Told]:
    """How many messages came."""
    return [(0, str(len(messages)).encode())], ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--payload", type=int, default=1000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    settings = dict(pair.split("=", 1) for pair in given.set)
    times: list[BatchTimes] = []
    answers = []
    begin = perf_counter()

    def on_batch(batch: int, outputs: list[bytes], spent: BatchTimes) -> bool:
        answers.append(perf_counter() - begin)
        times.append(spent)
        return True

    with start(given.master, settings) as cluster, tempfile.TemporaryDirectory() as checkpoint:
        started = perf_counter() - begin
        job = StreamJob(given.batches, 2, PARTITIONS, Feed(bytes(given.payload)), apply, checkpoint)
        run(cluster.session, job, on_batch)
        done = perf_counter()
    stopped = perf_counter() - done

    warm = times[len(times) // 2 :]
    print(f"{'session up':<34}{started:8.2f} s\n{'first answer':<34}{answers[0]:8.2f} s\n{'stop':<34}{stopped:8.2f} s")
    rows = {
        "batch": [spent.job + spent.between for spent in warm],
        "  Spark job": [spent.job for spent in warm],
        "    feed, slowest split": [spent.feed for spent in warm],
        "    apply, slowest partition": [spent.apply for spent in warm],
        "  between jobs": [spent.between for spent in warm],
    }
    for phase in ("walCommit", "queryPlanning", "commitOffsets"):
        rows[f"    Spark's {phase}"] = [spent.spark["durationMs"].get(phase, 0) / 1000 for spent in warm if spent.spark]
    for name, seconds in rows.items():
        print(f"{name:<34}{statistics.median(seconds):8.3f} s   (min {min(seconds):.3f}, max {max(seconds):.3f})")


if __name__ == "__main__":
    main()
