"""Table 1 of the paper with our figures: `python -m bench.table1.run [--scale 0.1,1] [--batch-rows 1000,10000]`.

    --queries LIST   q1 … q22, ds3 … ds79, vwap …           [default: TPC-H, TPC-DS and vwap]
    --engines LIST   squallpy-local, squallpy-local/round-robin, squallpy-local/largest-last, duckdb, polars;
                     duckdb-by-hand where a query is written for it by hand
    --out FOLDER     where table1.jsonl and table1.md are   [default: bench/results]
    --again          measure what is known, too

Each run is a process; its result is a line of table1.jsonl as soon as it is known, and what is known is not measured
again: the whole can be done piece by piece. Streams are interleaved in proportion to their sizes; for an engine that is
named with /round-robin, a row of each in turns, as in the paper; with /largest-last, the largest alone at last, and the
tenths are of it alone. Ours takes every row; what lies outside of the second and the last tenth of the stream comes in
batches of 100,000. The others are given all before the last tenth at once; at 30 of its batches the query is asked
again.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from bench.data.queries import PAPER, QUERIES
from bench.data.tables import folder_of, generate
from bench.table1 import report
from bench.throughput import commands
from bench.throughput.run import machine, run
from bench.throughput.run_one import Task

HERE = Path(__file__).parents[1]
ENGINES = (report.OURS, report.IN_TURNS, report.AT_LAST, *report.PEERS, report.BY_HAND)
USUAL = [*PAPER, "vwap"]
SAMPLES = 30  # batches at which the others are asked
BUDGETS = 60.0, 20.0  # measured seconds: ours, which has two tenths to do, and theirs
Key = tuple[str, str, float, int]  # query, engine, scale, batch rows; `explain` is an engine with neither


def main() -> None:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "table1.jsonl"
    known = {} if options.again else load(path)
    for key in wanted(options):
        if key in known:
            continue
        print(*key, "…", end=" ", flush=True)
        result = measure(*key)
        with path.open("a") as lines:
            named = dict(zip(("query", "engine", "scale", "batch_rows"), key, strict=True))
            lines.write(json.dumps(named | result | named) + "\n")
        print(line(result), flush=True)
    path.with_suffix(".md").write_text(report.text(load(path)))


def parse() -> argparse.Namespace:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.table1.run", description=__doc__, formatter_class=about)
    parser.add_argument("--scale", type=lambda text: [float(n) for n in text.split(",")], default=[0.1, 1.0])
    parser.add_argument("--batch-rows", type=lambda text: [int(n) for n in text.split(",")], default=[1_000, 10_000])
    parser.add_argument("--queries", type=lambda text: text.split(","), default=USUAL)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    for name in options.queries:
        if name not in QUERIES:
            parser.error(f"{name} is not one of {', '.join(QUERIES)}")
    for name in options.engines:
        if name not in ENGINES:
            parser.error(f"{name} is not one of {', '.join(ENGINES)}")
    return options


def wanted(options: argparse.Namespace) -> list[Key]:
    """What to measure: systems side by side, so that what disturbs the machine disturbs them alike."""
    out: list[Key] = [(query, "explain", 0.0, 0) for query in options.queries]
    for scale in options.scale:
        for batch_rows in options.batch_rows:
            for query in options.queries:
                engines = [e for e in options.engines if e != "duckdb-by-hand" or QUERIES[query].by_hand]
                out += [(query, engine, scale, batch_rows) for engine in engines]
    return out


def load(path: Path) -> dict[Key, dict[str, Any]]:
    """The results by what was measured; of several the last."""
    lines = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    return {(r["query"], r["engine"], r["scale"], r["batch_rows"]): r for r in lines}


def measure(query: str, engine: str, scale: float, batch_rows: int) -> dict[str, Any]:
    if engine == "explain":
        return {"seconds": explain(query)} | machine()
    system, _, order = engine.partition("/")
    ours = system == report.OURS
    folder = str(folder_of(QUERIES[query].benchmark, scale))
    tenths, samples, budget = ((1, 9), None, BUDGETS[0]) if ours else ((9,), SAMPLES, BUDGETS[1])
    task = Task(system, query, batch_rows, scale, folder, 1, samples, budget, tenths, order or "proportional")
    result = run(task)
    result.pop("curve", None)
    return result


def explain(query: str) -> float:
    """Seconds of `squall explain stages`, from the command to its end."""
    with tempfile.TemporaryDirectory() as room:
        script = Path(room) / "query.sql"
        script.write_text(QUERIES[query].script(str(generate(QUERIES[query].benchmark, 0.1).resolve())))
        return commands.whole([*commands.SQUALL, "explain", "stages", str(script)])


def line(result: dict[str, Any]) -> str:
    """A result in a line, for a terminal."""
    if "refused" in result:
        return f"refused: {result['refused']}"
    if "last_tenth" not in result:
        return f"{result['seconds']:.2f} s"
    return f"{(result['last_tenth'] or 0) * 1e3:.3g} ms a batch, {result['answer'][:80]}, load {result['load'][0]:.1f}"


if __name__ == "__main__":
    main()
