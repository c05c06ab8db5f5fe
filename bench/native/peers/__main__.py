"""Compiled triggers beside the same queries by hand in Rust, on differential dataflow and DBSP: `make bench-native`.

    python -m bench.native.peers [q1 q3 …] [--scale 1] [--rows 10 100 …] [--without dbsp] [--repeats 3]

All have the same batches, each system in a process of its own on one core, in turns. The stream's last ones are
measured, size by size, by processor time. The first build of DBSP takes ten minutes to half an hour. With `--kept` all
have memory that the machine has had before (`bench/measure/warm_memory.py`), not what its host has yet to find.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import groupby, product
from pathlib import Path

from bench.data.tables import generate
from bench.measure.warm_memory import kept
from bench.native.loop import BEFORE
from bench.native.peers.coded import ROWS
from bench.native.peers.report import Report
from bench.native.peers.systems import PROGRAMS, Run, Task, build, run_program, run_squallpy

OURS = "squallpy"


def main() -> None:
    given = parse()
    systems = [system for system in (OURS, *PROGRAMS) if system in given.systems and system not in given.without]
    for package in dict.fromkeys(PROGRAMS[system].package for system in systems if system != OURS):
        build(package)
    folder, core = generate("tpch", given.scale), max(os.sched_getaffinity(0))
    begin = os.getloadavg()[0]
    runs = defaultdict[tuple[str, int, str], list[Run]](list)
    for task in (Task(query, folder, rows, core) for query in given.queries for rows in sizes_alike(given.rows)):
        for _, system in product(range(given.repeats), systems):
            if system != OURS and task.query not in PROGRAMS[system].queries:
                continue
            with kept() if given.kept else nullcontext():
                run = run_squallpy(task) if system == OURS else run_program(PROGRAMS[system], task)
            for rows in task.rows:
                runs[task.query, rows, system].append(run)
            took = ", ".join(f"{rows:,}: {run.times.median(rows):,.1f}" for rows in task.rows)
            print(f"{task.query} {system}: {took} µs; answer {run.answer}", file=sys.stderr, flush=True)
    names = {system: OURS if system == OURS else PROGRAMS[system].name for system in systems}
    plain = {system: PROGRAMS[system].plain for system in systems if system != OURS}
    text = Report(runs, names, plain, given.kept).text(given.scale, begin, os.getloadavg()[0])
    print(text)
    if given.out:
        given.out.write_text(text)


def sizes_alike(rows: list[int]) -> Iterator[tuple[int, ...]]:
    """Group sizes of batches for which the same ones build the state."""
    for _, sizes in groupby(sorted(rows), lambda size: max(BEFORE, size)):
        yield tuple(sizes)


def parse() -> argparse.Namespace:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.native.peers", description=__doc__, formatter_class=about)
    parser.add_argument("queries", nargs="*", default=[*ROWS], metavar="query", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rows", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--systems", nargs="+", choices=[OURS, *PROGRAMS], default=[OURS, *PROGRAMS])
    parser.add_argument("--without", action="append", choices=[*PROGRAMS], default=[], help="it is not built")
    parser.add_argument("--repeats", type=int, default=3, help="of each, of which the median  [default: 3]")
    parser.add_argument("--kept", action="store_true", help="with memory that the machine has had before")
    parser.add_argument("--out", type=Path, help="where the table is written, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
