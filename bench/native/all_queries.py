"""All queries of TPC-H and TPC-DS, compiled, by the rows of a batch: `python -m bench.native.all_queries [q1 ds3 …]`.

    --scale 1        of the tables
    --without NAME   interpreted, duckdb or polars, which are run beside
    --out FOLDER     where batch-sizes.jsonl and batch-sizes.md are   [default: bench/results]
    --again          measure what is known, too

A query's batches of all sizes are of one run, in the last tenth of its stream, large ones first; what is before them
comes in batches of 100,000. Compiled and interpreted triggers take turns, piece for piece. DuckDB and Polars are given
all that came before the last tenth at once; at some of its batches the query is asked again. Each system is a process
on one core; the clock is its processor time. All have memory that the machine has had before
(`bench/measure/warm_memory.py`).
"""

import argparse
import gc
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from bench.data.answers import verdict
from bench.data.queries import PAPER, QUERIES
from bench.data.tables import Stream, generate
from bench.engines import open_engine
from bench.measure.batches import Watch
from bench.measure.processes import apart
from bench.measure.warm_memory import kept
from bench.native import all_queries_report
from bench.native.loop import Loop, Schedule
from squallpy.runtime.sources.replay import Sizes

RESULTS = Path(__file__).parents[1] / "results"
USUAL = list(PAPER)
TENTH = 0.1
# Of each size the most batches, and the part of the last tenth that they may be; one at least.
MEASURED = {
    100_000: (4, 0.4),
    10_000: (40, 0.3),
    1_000: (150, 0.15),
    100: (600, 0.05),
    10: (2_000, 0.05),
    1: (20_000, 0.05),
}
ASKED = 1_000, 10_000  # rows of the batches at which the others are asked
SAMPLES = 5  # so many times each
BUDGET = 12.0  # seconds of them


@dataclass(frozen=True)
class Task:
    """A query over the tables in a folder."""

    query: str
    folder: Path

    def stream(self, rows: int) -> Stream:
        return Stream(QUERIES[self.query], self.folder, rows)


def main() -> None:
    options = parse()
    path = options.out / "batch-sizes.jsonl"
    known = {} if options.again else load(path)
    core = max(os.sched_getaffinity(0))
    for name in options.queries:
        if name in known:
            continue
        task, begin = Task(name, generate(QUERIES[name].benchmark, options.scale)), perf_counter()
        result: dict[str, Any] = {"query": name, "scale": options.scale, "load": os.getloadavg()[0]}
        with kept():
            result["squallpy"] = apart(core, run_triggers, task, "interpreted" not in options.without)
            for peer in all_queries_report.PEERS:
                if peer not in options.without:
                    result[peer] = {str(rows): apart(core, ask_again, task, peer, rows) for rows in ASKED}
        with path.open("a") as lines:
            lines.write(json.dumps(result) + "\n")
        known[name] = result
        print(all_queries_report.line(result), f"({perf_counter() - begin:.0f} s)", file=sys.stderr, flush=True)
    path.with_suffix(".md").write_text(all_queries_report.text(load(path)))


def parse() -> argparse.Namespace:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m bench.native.all_queries", description=__doc__, formatter_class=about
    )
    parser.add_argument("queries", nargs="*", default=USUAL)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--without", action="append", choices=["interpreted", *all_queries_report.PEERS], default=[])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    return parser.parse_args()


def load(path: Path) -> dict[str, dict[str, Any]]:
    """The results by query; of several the last."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    found = {result["query"]: result for result in lines}
    return {name: found[name] for name in QUERIES if name in found}


def schedule_of(sizes: Sizes) -> Schedule:
    """Measure batches of all sizes in the last tenth of a stream, but for those that are a quarter of it.

    schedule_of({"lineitem": 6_000_000}).measured   →   {100_000: 2, 10_000: 18, 1_000: 90, 100: 300, …}
    """
    total = sum(sizes.values())
    measured = {
        rows: max(1, min(most, int(total * TENTH * part) // rows))
        for rows, (most, part) in MEASURED.items()
        if 4 * rows <= total
    }
    return Schedule(sizes, measured)


def run_triggers(task: Task, interpreted: bool) -> dict[str, Any]:
    """Microseconds of a batch, mean and median, by its rows; bytes of state, and whether the answers are right."""
    stream = task.stream(max(MEASURED))
    schedule = schedule_of(stream.replay.sizes)
    ways = {"compiled": "compile=wait"} | ({"interpreted": "compile=off"} if interpreted else {})
    loops = {name: Loop(stream, schedule, [setting]) for name, setting in ways.items()}
    gc.collect()
    gc.freeze()
    for _ in zip(*(loop.run() for loop in loops.values()), strict=True):
        pass
    found: dict[str, Any] = {}
    for name, loop in loops.items():
        (answer,) = loop.executor.final()
        found[name] = {str(rows): (loop.mean(rows), loop.median(rows)) for rows in schedule.measured}
        found[f"{name} answer"] = verdict(stream, answer)
    found["state"] = loops["compiled"].state
    return found


def ask_again(task: Task, peer: str, rows: int) -> dict[str, Any]:
    """Milliseconds of a batch in the last tenth, the median, on an engine that is asked again."""
    engine = open_engine(peer)
    if peer == "duckdb":
        engine.config = {"threads": 1}  # type: ignore[attr-defined]
    watch = Watch(tenths=(9,), samples=SAMPLES, budget=BUDGET, clock=process_time)
    stream = task.stream(rows)
    try:
        engine.run(stream, watch)
    except Exception as error:  # NB: what Polars' SQL does not have
        return {"refused": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return {"ms": median(watch.seconds.values()) * 1e3, "version": engine.version}


if __name__ == "__main__":
    main()
