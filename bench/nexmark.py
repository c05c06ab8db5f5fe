"""All queries of Nexmark in one process, beside DuckDB asked again: `python -m bench.nexmark [nexmark0 …]`.

    --events 1000000     of all streams
    --batch-rows 10000   events a batch
    --out FILE           the table  [default: bench/results/nexmark.md]

The changes of the result are made as `--mode changes` prints them, after every batch; triggers are compiled before the
first. DuckDB is given each batch, and asked again at ten of the last tenth. Each is a process of its own, one after the
other, and every answer is compared with DuckDB's over all rows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.data.queries import QUERIES
from bench.data.tables import EVENTS, generate
from bench.throughput.run_one import Task

RESULTS = Path(__file__).parent / "results"
NAMES = [name for name, query in QUERIES.items() if query.benchmark == "nexmark"]
ASKED = 10  # batches at which DuckDB is asked
BUDGET = 30.0  # seconds of them


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.nexmark", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("queries", nargs="*", default=NAMES, metavar="QUERY")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=RESULTS / "nexmark.md")
    options = parser.parse_args()
    scale = options.events / EVENTS
    folder, rows, load = generate("nexmark", scale), dict[str, tuple[dict[str, Any], dict[str, Any]]](), os.getloadavg()
    for name in options.queries:
        ours = Task("squallpy-compiled", name, options.batch_rows, scale, str(folder), 1, None, 120.0)
        theirs = Task("duckdb", name, options.batch_rows, scale, str(folder), 1, ASKED, BUDGET, (9,))
        rows[name] = run(ours), run(theirs)
        print(line(name, *rows[name]), flush=True)
    options.out.write_text(report(rows, options.events, options.batch_rows, load))


def run(task: Task) -> dict[str, Any]:
    """Measure in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "bench.throughput.run_one", json.dumps(asdict(task)), str(result)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        found: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {"refused": "it ended"}
        return found


def line(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Write a row of the table."""
    title = name.removeprefix("nexmark")
    if "refused" in ours:
        return f"| q{title} | {ours['refused']} | | | | | |"
    asked = theirs.get("last_tenth")
    beside = f"{1e3 * asked:.1f} | {asked / ours['last_tenth']:.0f} ×" if asked else "|"
    flat = ours["last_tenth_p50"] / ours["second_tenth_p50"]
    figures = f"{ours['tuples_per_second'] / 1e6:.2f} M | {1e3 * ours['last_tenth']:.2f}"
    return f"| q{title} | {figures} | {beside} | {flat:.2f} × | {ours['answer']} |"


def report(
    rows: dict[str, tuple[dict[str, Any], dict[str, Any]]], events: int, batch_rows: int, load: tuple[float, ...]
) -> str:
    """Write the table of all queries."""
    gains = [b["last_tenth"] / a["last_tenth"] for a, b in rows.values() if a.get("last_tenth") and b.get("last_tenth")]
    after = os.getloadavg()
    return "\n".join(
        [
            "# Nexmark",
            "",
            "Made by `python -m bench.nexmark`; do not edit. The queries are those of",
            f"[examples/nexmark](../../examples/nexmark): {events:,} events, batches of {batch_rows:,}, one process,",
            "triggers compiled, changes printed after every batch. DuckDB is asked again after a batch, on both cores.",
            "*Flat*: the median batch of the last tenth against that of the second. *Answer*: the last one, compared",
            f"with DuckDB's. Load {load[0]:.1f} before, {after[0]:.1f} after.",
            "",
            "| query | tuples/s | ms a batch, last tenth | DuckDB | | flat | answer |",
            "|---|--:|--:|--:|--:|--:|---|",
            *(line(name, *found) for name, found in rows.items()),
            "",
            f"Geometric mean against DuckDB: {geometric_mean(gains):.0f} ×.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
