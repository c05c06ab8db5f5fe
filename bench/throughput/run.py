"""Throughput against peers in the same run: `python -m bench.throughput.run [--quick]`, or `make bench`.

    --quick          small scales, one repeat: does it all still work?
    --only TEXT      runs whose name (engine/query/batch rows) holds TEXT; `commands` is one of them, too
    --engines, --queries, --batch-rows, --scale, --repeats, --samples, --budget     comma lists and numbers

Results are merged into bench/results (bench/out with --quick), from which the table and the plot are made again.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.data.queries import QUERIES, STREAMING
from bench.data.tables import CACHE, folder_of, generate
from bench.engines import NAMES, ON_SPARK, REEVALUATING
from bench.measure.processes import Memory, end_tree, of_tree
from bench.throughput import commands, report
from bench.throughput.run_one import TINY_BATCHES, Task

USUAL = [name for name in NAMES if name != "duckdb-by-hand"]
HERE = Path(__file__).parents[1]
LOOK = 0.2  # seconds between looks at a run's memory
PATIENCE = 12  # budgets that a process may take over everything, before it is ended


def main() -> None:
    options = parse()
    folder = HERE / ("out" if options.quick else "results")
    folder.mkdir(exist_ok=True)
    for task in tasks(options):
        name = f"{task.engine}/{task.key}"
        if options.only in name:
            print(f"{name}, scale {task.scale:g} …", end=" ", flush=True)
            result = run(task)
            keep(folder / f"{task.engine}-sf{task.scale:g}.json", task.key, result)
            print(report.line(result), flush=True)
    if options.only in "commands":
        tables = generate("tpch", 0.01 if options.quick else 0.1)
        keep(folder / "commands.json", "commands", commands.measure(tables, options.repeats) | machine())
    print(report.write(folder))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.throughput.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small scales, one repeat")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs whose engine/query/batch rows holds TEXT")
    parser.add_argument("--engines", type=listed(NAMES), default=USUAL, help=", ".join(NAMES))
    parser.add_argument("--queries", type=listed(STREAMING), default=list(STREAMING), help=", ".join(STREAMING))
    parser.add_argument(
        "--batch-rows", type=lambda text: [int(n) for n in text.split(",")], default=[1_000, 10_000, 100_000]
    )
    parser.add_argument(
        "--scale", type=float, help="of all engines  [default: 1, those on Spark 0.1; quick: 0.1, 0.01]"
    )
    parser.add_argument("--repeats", type=int, help="per process, after a warm-up  [default: 3; quick: 1]")
    parser.add_argument(
        "--samples", type=int, help="batches that a re-evaluating engine measures  [default: 200; quick: 50]"
    )
    parser.add_argument("--budget", type=float, help="measured seconds per repeat  [default: 120; quick: 30]")
    options = parser.parse_args()
    for name, full, quick in (("repeats", 3, 1), ("samples", 200, 50), ("budget", 120.0, 30.0)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else full)
    return options


def listed(known: Any) -> Any:
    """A comma list of known names."""

    def names(text: str) -> list[str]:
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(known)}")
        return text.split(",")

    return names


def tasks(options: argparse.Namespace) -> list[Task]:
    """What to measure: systems side by side, so that what disturbs the machine disturbs them alike."""
    out = []
    for query in options.queries:
        for batch_rows in options.batch_rows:
            for engine in options.engines:
                usual = (0.1 if engine in ON_SPARK else 1.0) / (10 if options.quick else 1)
                scale = options.scale or usual
                folder = str(folder_of(QUERIES[query].benchmark, scale))
                samples = options.samples if engine in REEVALUATING else None
                out.append(Task(engine, query, batch_rows, scale, folder, options.repeats, samples, options.budget))
    return out


def run(task: Task) -> dict[str, Any]:
    """One task in a process of its own, its memory watched from here."""
    generate(QUERIES[task.query].benchmark, task.scale)
    if task.engine in ON_SPARK:  # NB: written here, so that the measured process does not hold the tables
        task.stream.files()
        task.tiny.files(TINY_BATCHES)
    logs = CACHE / "logs"
    logs.mkdir(exist_ok=True)
    name = f"{task.engine}-{task.query}-{task.batch_rows}"
    path, log = logs / f"{name}.json", logs / f"{name}.log"
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bench.throughput.run_one", json.dumps(asdict(task)), str(path)]
    with log.open("w") as talk:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=talk, text=True, cwd=HERE.parent)
        base, peak = watch(process, PATIENCE * task.budget)
    if process.returncode and not path.exists():
        late = process.returncode < 0
        return {
            "refused": f"ended after {PATIENCE * task.budget:g} s"
            if late
            else f"ended with status {process.returncode}"
        }
    result: dict[str, Any] = json.loads(path.read_text())
    return result | {"memory": asdict(peak), "memory_before": asdict(base)} | machine()


def watch(process: "subprocess.Popen[str]", patience: float) -> tuple[Memory, Memory]:
    """Memory before and at most during the first repeat; ends a process that takes too long."""
    begun, ended = threading.Event(), threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            {"start": begun, "stop": ended}.get(line.strip(), threading.Event()).set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    base, peak, left = Memory(), Memory(), patience
    while process.poll() is None and left > 0:
        if begun.is_set() and not ended.is_set():
            now = of_tree(process.pid)
            base = base if base.rss else now
            peak.grow(now)
        left -= LOOK
        try:
            process.wait(LOOK)
        except subprocess.TimeoutExpired:
            continue
    if process.poll() is None:
        end_tree(process.pid)
        process.wait()
    listener.join(5)
    return base, peak


def machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "load_at_end": os.getloadavg()}


def keep(path: Path, key: str, result: dict[str, Any]) -> None:
    """Merge a result into its file."""
    everything = json.loads(path.read_text()) if path.exists() else {}
    everything[key] = result
    path.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
