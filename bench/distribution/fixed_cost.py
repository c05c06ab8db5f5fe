"""What a micro-batch costs before it does anything: two empty Python stages, an exchange, a commit.

    python -m bench.distribution.fixed_cost [--batches 60] [--master 'local[2]'] [--payload BYTES] [--set KEY=VALUE ...]

Run it on an idle machine; the first half of the batches only warms up. `squall run --profile` shows it of a query.
"""

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

from squallpy.base.timing import Trace
from squallpy.runtime.observers.profile import Profile
from squallpy.runtime.spark.executor import TOGETHER
from squallpy.runtime.spark.micro_batch_loop import BatchTimes, StreamJob, run
from squallpy.runtime.spark.spark_session import start
from squallpy.runtime.spark.timeline import timeline
from squallpy.runtime.spark.worker_tasks import Reports

PARTITIONS = 2


class Feed:
    """The same payload to every partition."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def __call__(self, batch: int, split: int) -> list[tuple[int, bytes]]:
        return [(target, self.payload) for target in range(PARTITIONS)]


def apply(batch: int, partition: int, stage: int, messages: list[bytes]) -> tuple[list[tuple[int, bytes]], Reports]:
    """How many messages came."""
    return [(partition, str(len(messages)).encode())], ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--payload", type=int, default=1000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    settings = dict(pair.split("=", 1) for pair in given.set)
    answers, begin = [], perf_counter()
    with start(given.master, settings) as cluster, tempfile.TemporaryDirectory() as room:
        started, profile = perf_counter() - begin, Profile(Path(room) / "profile.json")

        def on_batch(batch: int, outputs: list[bytes], spent: BatchTimes) -> bool:
            answers.append(perf_counter() - begin)
            if batch >= given.batches // 2:
                profile.add(batch, timeline(spent))
            return True

        feed, checkpoint = Feed(bytes(given.payload)), str(Path(room) / "checkpoint")
        job = StreamJob(given.batches, 2, PARTITIONS, feed, apply, checkpoint, trace=Trace(), batches_per_tick=TOGETHER)
        run(cluster.session, job, on_batch)
        done = perf_counter()
    print(f"session up {started:.2f} s, first answer {answers[0]:.2f} s, stop {perf_counter() - done:.2f} s")
    print("\n".join(profile.table()))


if __name__ == "__main__":
    main()
