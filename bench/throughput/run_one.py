"""One system, one query, one batch size, in a process of its own.

    python -m bench.throughput.run_one TASK-AS-JSON RESULT-FILE


Says `start` and `stop` on stdout around the first timed repeat, so that whoever started it can watch the memory.
"""

import gc
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.data.answers import verdict
from bench.data.queries import QUERIES
from bench.data.tables import Stream
from bench.engines import ON_SPARK, open_engine
from bench.measure.batches import Watch, sum_of

WARM_BATCHES = 20
TINY_ROWS, TINY_BATCHES = 20, 30  # batches that cost nothing but what every batch costs
POINTS = 200  # of a curve
LOOK = 0.5  # seconds for the one who watches to see the memory before the first repeat


@dataclass(frozen=True)
class Task:
    engine: str
    query: str
    batch_rows: int
    scale: float
    folder: str
    repeats: int
    samples: int | None
    budget: float
    tenths: tuple[int, ...] | None = None  # only these tenths of the stream are measured
    order: str = "proportional"

    @property
    def stream(self) -> Stream:
        return Stream(QUERIES[self.query], Path(self.folder), self.batch_rows, self.order)

    @property
    def tiny(self) -> Stream:
        return Stream(QUERIES[self.query], Path(self.folder), TINY_ROWS)

    @property
    def key(self) -> str:
        return f"{self.query}/{self.batch_rows}"


def measure(task: Task) -> dict[str, Any]:
    """Warm up, repeat, and say what the median repeat cost."""
    stream, engine = task.stream, open_engine(task.engine)
    result: dict[str, Any] = asdict(task) | {
        "tuples": stream.replay.total,
        "batches": stream.batches,
        "version": engine.version,
    }
    del result["folder"], result["tenths"]
    if task.tenths is None:
        engine.run(stream, Watch(limit=WARM_BATCHES))
    else:  # NB: what only comes with the first rows of the answer is loaded, too
        engine.run(stream, Watch(tenths=task.tenths[-1:], first=stream.alone, samples=1))
    if task.engine in ON_SPARK:
        tiny = Watch(limit=TINY_BATCHES)
        engine.run(task.tiny, tiny)
        result["fixed"] = statistics.median(list(tiny.seconds.values())[TINY_BATCHES // 3 :])
    runs, answer, spent = list[Watch](), None, 0.0
    result["load"] = os.getloadavg()
    print("start", flush=True)
    time.sleep(LOOK)
    while len(runs) < task.repeats and spent < 2 * task.budget:
        watch = Watch(tenths=task.tenths, first=stream.alone, samples=task.samples, budget=task.budget)
        answer = engine.run(stream, watch)
        if not runs:
            print("stop", flush=True)
        runs.append(watch)
        spent += sum_of(watch)
        gc.collect()
    engine.close()
    result["load_after"] = os.getloadavg()
    totals = [whole(watch, stream.batches) for watch in runs]
    middle = runs[totals.index(statistics.median_low(totals))]
    result |= {"totals": totals, "extrapolated": len(middle.seconds) < stream.batches} | figures(stream, middle)
    return result | dict(engine.facts) | {"answer": verdict(stream, answer)}


def whole(watch: Watch, batches: int) -> float:
    """Seconds of the whole stream; a batch that was not measured counts as the nearest measured one after or before."""
    total, done = 0.0, 0
    for batch, seconds in watch.seconds.items():
        total += seconds * (batch + 1 - done)
        done = batch + 1
    last_tenth = list(watch.seconds.values())[-max(1, len(watch.seconds) // 10) :]
    return total + (batches - done) * statistics.mean(last_tenth)


def figures(stream: Stream, watch: Watch) -> dict[str, Any]:
    """A run in numbers: seconds per batch, and how they grow along the stream."""
    n, seconds = stream.batches, list(watch.seconds.values())
    second, last = ([watch.seconds[b] for b in watch.tenth(i, n) if b in watch.seconds] for i in (1, 9))
    total = whole(watch, n)
    return {
        "measured": len(seconds),
        "seconds": total,
        "tuples_per_second": stream.replay.total / total,
        "p50": statistics.median(seconds),
        "p95": sorted(seconds)[min(len(seconds) - 1, int(0.95 * len(seconds)))],
        "second_tenth": statistics.mean(second) if second else None,
        "last_tenth": statistics.mean(last) if last else None,
        "second_tenth_p50": statistics.median(second) if second else None,
        "last_tenth_p50": statistics.median(last) if last else None,
        "curve": curve(stream, watch),
    }


def curve(stream: Stream, watch: Watch) -> list[tuple[int, float]]:
    """(tuples seen, mean seconds of a batch) at up to POINTS places."""
    measured = list(watch.seconds.items())
    step = -(-len(measured) // POINTS)
    groups = [measured[i : i + step] for i in range(0, len(measured), step)]
    return [(stream.seen(group[-1][0]), round(statistics.mean(s for _, s in group), 7)) for group in groups]


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    try:
        result = measure(task)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        Path(sys.argv[2]).write_text(json.dumps({"refused": f"{type(error).__name__}: {first}"[:300]}))
        raise
    Path(sys.argv[2]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
