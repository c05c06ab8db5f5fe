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
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time_ns
from typing import Any

from bench.data.queries import QUERIES
from bench.data.tables import Stream, generate
from bench.engines.squall_local import Decoded, Leaps
from squallpy.base.settings import Settings, parse_settings
from squallpy.runtime.compiled.functions import compile_plan
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.sources.input import Input
from squallpy.session import Session

PIECES = 15  # in which batches are measured
CALLED = 30  # batches whose Python calls are counted


@dataclass
class Loop:
    """A query's executor with settings, and the seconds of its measured batches."""

    stream: Stream
    settings: Settings
    batches: int
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        total = self.stream.batches
        self._first = max(0, total - self.batches)
        self._piece = max(1, (total - self._first) // PIECES)
        leaps = Leaps(self.stream.replay, [*range(self._first, total)])
        self._steps, plan = [first for first, _ in leaps.steps], self._compile()
        input = Input({name: Decoded(table) for name, table in self.stream.tables.items()}, leaps)
        self._executor = LocalExecutor(plan, input, compiled=compile_plan(plan, self.settings.compile))

    def _compile(self) -> Any:
        with tempfile.TemporaryDirectory() as room:
            script = Path(room) / f"{self.stream.query.name}.sql"
            script.write_text(self.stream.query.script(str(self.stream.folder.resolve())))
            session = Session(script, self.settings)
            [query] = session.script.queries
            sizes = {name: len(table) for name, table in self.stream.tables.items()}
            return session.compile(query, 1, sizes).plan

    def run(self) -> Iterator[bool]:
        """Run piece by piece; each says whether it was one of those that are measured."""
        for _ in (first for first in self._steps if first < self._first):
            self._executor.step()
            yield False
        for start in range(self._first, self.stream.batches - self._piece + 1, self._piece):
            begin = process_time_ns()
            for _ in range(start, start + self._piece):
                self._executor.step()
            self.seconds.append((process_time_ns() - begin) / 1e9 / self._piece)
            yield True

    @property
    def measured(self) -> int:
        """Number of batches that were measured."""
        return len(self.seconds) * self._piece

    @property
    def microseconds(self) -> float:
        return median(self.seconds) * 1e6


def count_calls(loop: Loop) -> float:
    """Run a loop; its Python calls in a measured batch, as a profiler sees them, builtins among them."""
    calls = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for measured in loop.run():
        sys.setprofile(note)  # NB: from the first piece on, and in what leads to it if there is nothing else
        if not measured:
            calls = 0
    sys.setprofile(None)
    return calls / max(1, loop.measured)


def profile(loop: Loop) -> None:
    """Print the functions in which measured batches spend their time."""
    profiler, steps = cProfile.Profile(), loop.run()
    while True:
        if loop.measured:
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
            loops = [Loop(stream, parse_settings(way), given.batches) for way in ways]
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
                calls = count_calls(Loop(stream, parse_settings(way), CALLED))
                cells.append(f"{loop.microseconds:,.0f} | {rows / loop.microseconds:,.2f} M | {calls:,.0f}")
            print(f"| {name} | {rows:,} | " + " | ".join(cells) + " |", f"({perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
