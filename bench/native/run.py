"""The loop over Arrow in memory, batch by batch: microseconds and Python calls of a batch by its size.

    python -m bench.native.run [q1 q3 …] [--scale 0.1] [--rows 10 100 …] [--batches 300] [--set KEY=VALUE …] [--profile]

In the clock: slicing, the step, and changed rows as typed words; no checkpoint, no observers. Processor time of the
stream's last batches, the median over pieces of them, for a look at that clock may take as long as a batch. `--against
KEY=VALUE` runs the same with other settings in turns, piece for piece.
"""

import argparse
import cProfile
import gc
import pstats
import sys
from time import perf_counter
from typing import Any

from bench.data.queries import QUERIES
from bench.data.tables import Stream, generate
from bench.native.loop import Loop, Schedule

CALLED = 30  # batches whose Python calls are counted


def count_calls(loop: Loop) -> float:
    """Run a loop; its Python calls in a measured batch, as a profiler sees them, builtins among them."""
    calls, batches = 0, loop.schedule.measured

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for measured in loop.run():
        sys.setprofile(note)  # NB: from the first piece on, and in what leads to it if there is nothing else
        if not measured:
            calls = 0
    sys.setprofile(None)
    return calls / sum(batches.values())


def profile(loop: Loop) -> None:
    """Print the functions in which measured batches spend their time."""
    profiler, steps = cProfile.Profile(), loop.run()
    while True:
        if loop.seconds:
            profiler.enable()
        measured = next(steps, None)
        profiler.disable()
        if measured is None:
            break
    pstats.Stats(profiler).sort_stats("tottime").print_stats(45)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", default=["q1", "q3", "q5", "q6", "q12", "q17", "q18"])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rows", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--against", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    folder, ways = generate("tpch", given.scale), [given.set, given.against][: 1 + bool(given.against)]
    heads = (f"{' '.join(way) or 'default'}: µs | tuples/s | calls" for way in ways)
    print("| query | batch | " + " | ".join(heads) + " |")
    print("|---|--:|" + "--:|--:|--:|" * len(ways))
    for name in given.queries:
        for rows in given.rows:
            stream, begin = Stream(QUERIES[name], folder, rows), perf_counter()
            schedule, called = (Schedule.of(stream.replay.sizes, [rows], most, 1) for most in (given.batches, CALLED))
            loops = [Loop(stream, schedule, way) for way in ways]
            gc.collect()
            gc.freeze()
            if given.profile:
                for loop in loops:
                    profile(loop)
                continue
            for _ in zip(*(loop.run() for loop in loops), strict=True):
                pass
            cells = []
            for loop, way in zip(loops, ways, strict=True):
                calls = count_calls(Loop(stream, called, way))
                cells.append(f"{loop.median(rows):,.0f} | {rows / loop.median(rows):,.2f} M | {calls:,.0f}")
            print(f"| {name} | {rows:,} | " + " | ".join(cells) + " |", f"({perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
