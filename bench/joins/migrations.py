"""How long batches take while joiners migrate: `python -m bench.joins.migrations`.

    --rates LIST       how many times as large the one relation becomes as the other (§5.4)      [default: 4, 8]
    --joiners N        partitions                                                                [default: 16]
    --scale S          of TPC-H                                                                  [default: 0.1]
    --batch-rows N                                                                               [default: 10,000]
    --repeats N        runs whose batches are counted together; 15 before them warm the JVM      [default: 5]

A band join under Dynamic on Spark, `local[2]`, of streams of which now the one brings all tuples, now the other. What a
batch takes is from the end of the one before it to its own; its work is the processor time of all processes meanwhile,
of which others on the machine take less.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from bench.engines.shared_cluster import warm
from bench.joins.operators import LINEITEM, MASTER, skewed
from bench.measure.processes import busy, work
from squallpy.base.settings import JoinOperator, Settings
from squallpy.runtime.checkpoint.state_folders import temporary_location
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.input import Input
from squallpy.runtime.spark.executor import SparkExecutor
from squallpy.script_session import ScriptSession
from squallpy.testing.joins import fluctuating
from squallpy.testing.memory_source import PushedBatches, memory_input

WARM = 4  # batches that do not count
FIRST = 15  # runs that warm the JVM: it compiles for about a thousand batches
PROMISED = 1.5
QUERY = """SELECT r.l_orderkey, r.l_linenumber, s.l_orderkey AS o2, s.l_linenumber AS n2 FROM r JOIN s
ON ABS(r.l_orderkey - s.l_orderkey) <= 1 AND r.l_shipmode = 'TRUCK' AND s.l_shipmode = 'AIR';
"""
HEAD = """# Batches while joiners migrate

Made by `python -m bench.joins.migrations`; do not edit. A band join of TPC-H's lineitem with itself at scale
{scale:g}, Spark `{master}`, Dynamic, {joiners} joiners, batches of {rows:,}; |R| : |S| goes to and fro between k and
1/k. *In*: batches in which state moves. Promised: {promised} × the median of the others for 95 of 100 of them; ILF/ILF*
1.25 at most, 1.08 on average, after {warm} batches: before, one of them changes much of all there is. Batches of
{repeats} runs, after {first} that warmed the JVM; {load:.1f} processes were runnable a minute before. *p95* by the
median of the others of the same run: of batches in which state moves, and of the others, which says what the machine
does by itself. *Again*: the same of batches each by its median over the runs, which all move the same state in the same
batch: what migrations do, without what the machine does. *Work*: the processor time of all processes, as *p95*.
*max*, *mean*: of ILF/ILF*.

![seconds of batches](joins-migrations.png)

| k | batches | migrations | in | others | median | p95 | others | again | others | work | p95 | others | max | mean | |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
"""


@dataclass(frozen=True)
class Batch:
    """What `--metrics` says of it."""

    seconds: float
    work: float
    migrates: bool
    epoch: int
    ratio: float


def swings(rows: int, k: int, batch_rows: int) -> PushedBatches:
    """Batches of both streams, as long as each has so many rows."""
    sides = fluctuating(2 * rows, k, start=batch_rows).sides
    ends = np.cumsum(sides == 0), np.cumsum(sides == 1)
    batches = PushedBatches()
    for at in range(batch_rows, len(sides), batch_rows):
        r, s = (int(end[at - 1]) for end in ends)
        if max(r, s) > rows:
            break
        batches.push({"r": r, "s": s})
    return batches


def run(k: int, folder: Path, given: argparse.Namespace) -> list[Batch]:
    settings = Settings(partitions=given.joiners, join_operator=JoinOperator.DYNAMIC.value)
    with TemporaryDirectory() as room:
        path = Path(room) / "join.sql"
        files = {"r": folder / "l1.parquet", "s": folder / "l2.parquet"}
        path.write_text(
            "".join(f"CREATE STREAM {n} ({LINEITEM}) USING parquet OPTIONS (path '{f}');\n" for n, f in files.items())
            + QUERY
        )
        session = ScriptSession(path, settings)
    (query,) = session.script.queries
    sources: Any = {name: open_source(relation, folder) for name, relation in session.script.relations.items()}
    batches = swings(min(source.rows for source in sources.values()), k, given.batch_rows)
    plan = session.compile(query, given.joiners, batches.sizes).plan
    found, until, done = list[Batch](), perf_counter(), busy(os.getpid())

    def on_batch(number: int, changes: Any, report: BatchReport) -> bool:
        nonlocal until, done
        seconds, before, done = perf_counter() - until, done, busy(os.getpid())
        join = report.join
        assert join and join.epoch is not None and join.ilf_ratio is not None
        found.append(Batch(seconds, work(before, done), join.migrated is not None, join.epoch, join.ilf_ratio))
        until = perf_counter()
        return True

    with temporary_location(settings.local_dir, "bench", settings.snapshot_mb << 20) as place:
        input: Input = memory_input(sources, batches)
        SparkExecutor(plan, input, place, MASTER, settings.splits, with_changes=True).run(on_batch)
    return found


def line(k: int, runs: list[list[Batch]]) -> str:
    counted = [found[WARM:] for found in runs]
    inside = sum(batch.migrates for found in counted for batch in found)
    ratios = [batch.ratio for found in counted for batch in found]
    others, (median, late, usual) = beside(counted, lambda batch: batch.seconds)
    _, works = beside(counted, lambda batch: batch.work)
    verdict = "pass" if late <= PROMISED else f"missed by {100 * (late / PROMISED - 1):.0f} %"
    times = f"{others:.3f} | {others * median:.3f} | {late:.2f} | {usual:.2f}"
    times += " | " + " | ".join(f"{x:.2f}" for x in again(counted))
    cells = f"{times} | {' | '.join(f'{x:.2f}' for x in works)} | {max(ratios):.3f} | {np.mean(ratios):.3f}"
    batches, epochs = sum(map(len, runs)), sum(found[-1].epoch for found in runs)
    return f"| {k} | {batches} | {epochs} | {inside} | {cells} | {verdict} |\n"


def beside(runs: list[list[Batch]], taken: Callable[[Batch], float]) -> tuple[float, tuple[float, float, float]]:
    """The median of what batches outside migrations take; by that of their run the median of those inside, and what 95
    of 100 of those inside, and of those outside, take at most."""
    medians = [np.median([taken(batch) for batch in found if not batch.migrates]) for found in runs]
    inside, outside = (
        [taken(b) / usual for found, usual in zip(runs, medians, strict=True) for b in found if b.migrates is moves]
        for moves in (True, False)
    )
    median, late, usual = (float(np.percentile(*some)) for some in ((inside, 50), (inside, 95), (outside, 95)))
    return float(np.median(medians)), (median, late, usual)


def again(runs: list[list[Batch]]) -> tuple[float, float]:
    """What 95 of 100 batches take at most, inside migrations and outside, each batch by its median over the runs."""
    assert len({tuple(batch.migrates for batch in found) for found in runs}) == 1
    moves = np.array([batch.migrates for batch in runs[0]])
    seconds = np.array([[batch.seconds for batch in found] for found in runs])
    typical = np.median(seconds / np.median(seconds[:, ~moves], axis=1, keepdims=True), axis=0)
    return float(np.percentile(typical[moves], 95)), float(np.percentile(typical[~moves], 95))


def plot(runs: dict[int, list[list[Batch]]], path: Path) -> None:
    """Seconds of each batch of the last runs, those that migrate in red."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(runs), 1, figsize=(10, 2.4 * len(runs)), layout="constrained", squeeze=False)
    for axis, (k, (*_, found)) in zip(axes[:, 0], runs.items(), strict=True):
        colours = ["tab:red" if batch.migrates else "tab:blue" for batch in found]
        axis.bar(range(len(found)), [batch.seconds for batch in found], color=colours)
        median = np.median([batch.seconds for batch in found[WARM:] if not batch.migrates])
        axis.axhline(PROMISED * median, color="black", linestyle=":", linewidth=1)
        axis.set(title=f"k = {k}", ylabel="seconds", ylim=(0, 4 * median))
    axes[-1, 0].set(xlabel="batch; those in a migration are red")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m bench.joins.migrations", description=__doc__, formatter_class=about
    )
    parser.add_argument("--rates", default="4,8")
    parser.add_argument("--joiners", type=int, default=16)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "joins-migrations.md")
    given = parser.parse_args()
    folder = skewed(given.scale, 0.0)
    shape = {"scale": given.scale, "joiners": given.joiners, "rows": given.batch_rows, "repeats": given.repeats}
    text = HEAD.format(**shape, master=MASTER, promised=PROMISED, warm=WARM, first=FIRST, load=os.getloadavg()[0])
    runs: dict[int, list[list[Batch]]] = {}
    with warm(MASTER):
        rates = list(map(int, given.rates.split(",")))
        for _ in range(FIRST):
            run(rates[0], folder, given)
        for k in rates:
            runs[k] = [run(k, folder, given) for _ in range(given.repeats)]
            text += line(k, runs[k])
            print(text.splitlines()[-1], flush=True)
    given.out.write_text(text)
    plot(runs, given.out.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
