"""Housing on Spark's local[2] beside one process: `python -m bench.fivm.on_spark [--scale 4] [--batch 100000]`.

In turns, in one run: what else the machine does slows both. A batch is measured by the clock, and by the processor time
of all processes. The first batch of a run is left out: on Spark it starts the query.
"""

import argparse
import os
from pathlib import Path
from statistics import median

from bench.engines import Engine, open_engine
from bench.fivm.run import HERE, machine
from bench.fivm.run_one import Task
from bench.measure.batches import Watch
from bench.measure.processes import busy, work

NAMES = {"squallpy-local-files": "one process", "squallpy-spark": "Spark, local[2]"}
HEAD = """# The cofactor matrix of {name}, on Spark

Made by `python -m bench.fivm.on_spark`; do not edit. {tuples:,} tuples, batches of {batch_rows:,}, {repeats} runs of
each in turns, read from Parquet; without the first batch. {machine}.

| system | tuples/s | batch, ms | fastest run, ms | processor ms a batch | first batch, ms | load |
|---|--:|--:|--:|--:|--:|--:|
"""


class Busy(Watch):
    """Seconds by batch, and when a batch ends how long processes have been busy."""

    spent: dict[int, dict[int, float]]

    def record(self, batch: int, seconds: float) -> bool:
        self.spent = {**getattr(self, "spent", {}), batch: busy(os.getpid())}
        return super().record(batch, seconds)


def main() -> None:
    given = parse()
    task = Task("cofactor/squallpy-local", "housing", given.scale, 1.0, "rounds", 0.0, 0, given.batch)
    stream, engines = task.stream, {name: open_engine(name) for name in NAMES}
    runs: dict[str, list[tuple[Busy, float]]] = {name: [] for name in NAMES}
    for repeat in range(given.repeats + 1):
        for name, engine in engines.items():
            watch = measure(engine, task)
            if repeat:
                runs[name].append((watch, os.getloadavg()[0]))
    shape = {"name": task.dataset.name, "tuples": stream.replay.total, "machine": machine()}
    text = HEAD.format(**shape, batch_rows=given.batch, repeats=given.repeats)
    rows = stream.replay.total - given.batch
    rates = {}
    for name, found in runs.items():
        later = [sum(watch.seconds.values()) - watch.seconds[0] for watch, _ in found]
        spent = [work(watch.spent[0], watch.spent[max(watch.spent)]) for watch, _ in found]
        rates[name] = rows / median(later)
        batch, least, cpu = (1000 * s * given.batch / rows for s in (median(later), min(later), median(spent)))
        first, load = 1000 * median(watch.seconds[0] for watch, _ in found), median(load for _, load in found)
        cells = (NAMES[name], *(f"{x:,.0f}" for x in (rates[name], batch, least, cpu, first)), f"{load:.1f}")
        text += f"| {' | '.join(cells)} |\n"
    local, spark = rates.values()
    text += f"\nSpark by one process: {spark / local:.2f} ×, to be at least 0.5 ×.\n"
    print(text)
    for engine in engines.values():
        engine.close()
    (given.out or HERE / "results" / f"fivm-spark-{task.dataset.name}.md").write_text(text)


def measure(engine: Engine, task: Task) -> Busy:
    watch = Busy()
    engine.run(task.stream, watch)
    return watch


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.fivm.on_spark", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scale", type=float, default=4.0)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
