"""What each optimisation of distributed programs is worth (Fig. 13 of the paper).

    python -m bench.distribution.optimisations


A query on Spark, its first batches only, with more and more switched on. Stages are those of a batch's one job.
"""

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench.data.queries import QUERIES
from bench.data.tables import Stream, generate
from bench.engines.shared_cluster import warm
from bench.engines.squall_local import open_sources
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint.state_folders import temporary_location
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.result.result import BatchChanges
from squallpy.runtime.sources.input import Input
from squallpy.runtime.spark.executor import SparkExecutor
from squallpy.script_session import ScriptSession

MASTER = "local[2]"
WARM = 3  # batches that are not counted
LEVELS = {
    "well-formed": Settings(move_rules=False, fusion=False, move_sharing=False),
    "+ move rules": Settings(fusion=False, move_sharing=False),
    "+ fusion": Settings(move_sharing=False),
    "+ sharing": Settings(),
}
HEAD = """# What the optimisations of distributed programs are worth

Made by `python -m bench.distribution.optimisations`; do not edit. {query} of TPC-H, scale {scale:g}, Spark `{master}`,
{partitions} partitions; the median of {batches} batches after {warm}. *Received*: what partitions were sent in a batch.
The paper's Figure 13 has the same steps, with 400 workers and batches of 200 million tuples: the rules take a third of
the latency, sharing 11 %, and fusion brings most.

| batch rows | | stages | received, kB | ms a batch | against all |
|--:|---|--:|--:|--:|--:|
"""


@dataclass(frozen=True)
class Measured:
    stages: int
    received: float
    seconds: float


def measure(stream: Stream, settings: Settings, batches: int) -> Measured:
    """The first batches of a stream."""
    session = ScriptSession(stream.query.path, settings)
    [query] = session.script.queries
    plan = session.compile(query, settings.partitions, dict(stream.replay.sizes)).plan
    seconds, received, until = list[float](), list[float](), perf_counter()

    def on_batch(batch: int, changes: BatchChanges, report: BatchReport) -> bool:
        nonlocal until
        before, until = until, perf_counter()
        seconds.append(until - before)
        received.append(report.received_bytes or 0)
        return len(seconds) < WARM + batches

    with temporary_location(settings.local_dir, "bench", settings.snapshot_mb << 20) as place:
        input = Input(open_sources(stream), stream.replay)
        SparkExecutor(plan, input, place, MASTER, settings.splits, with_changes=True).run(on_batch)
    return Measured(1 + len(plan.stages), statistics.median(received[WARM:]), statistics.median(seconds[WARM:]))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.distribution.optimisations", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--query", default="q3")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--batch-rows", type=lambda text: [int(n) for n in text.split(",")], default=[10_000, 100_000])
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "optimisations.md")
    given = parser.parse_args()
    query = QUERIES[given.query]
    folder = generate(query.benchmark, given.scale)
    text = HEAD.format(
        query=given.query.upper(), scale=given.scale, master=MASTER, partitions=Settings().partitions,
        batches=given.batches, warm=WARM,
    )  # fmt: skip
    with warm(MASTER):
        for batch_rows in given.batch_rows:
            stream = Stream(query, folder, batch_rows)
            found = {name: measure(stream, level, given.batches) for name, level in LEVELS.items()}
            best = found["+ sharing"].seconds
            for name, one in found.items():
                cells = f"{one.stages} | {one.received / 1000:,.1f} | {1000 * one.seconds:,.0f}"
                text += f"| {batch_rows:,} | {name} | {cells} | {one.seconds / best:.2f} × |\n"
            print(text, flush=True)
    given.out.write_text(text)


if __name__ == "__main__":
    main()
