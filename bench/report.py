"""Results → a table with its targets, and a plot of the cost per batch along the stream.

python -m bench.report [folder, bench/results]
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engines import NAMES, ON_SPARK
from bench.queries import QUERIES

Result = dict[str, Any]
Results = dict[tuple[str, float, str], Result]  # engine, scale, query/batch rows
PEERS = ("spark-sql", "spark-sql-rocksdb")
COLOURS = {"squallpy-local": "tab:red", "duckdb": "tab:blue", "polars": "tab:green"}


@dataclass(frozen=True)
class Target:
    """What was promised, what was measured; `met` is None where nothing was."""

    promise: str
    measured: str
    met: bool | None


def load(folder: Path) -> Results:
    out: Results = {}
    for path in sorted(folder.glob("*-sf*.json")):
        engine, scale = path.stem.rsplit("-sf", 1)
        for key, result in json.loads(path.read_text()).items():
            out[engine, float(scale), key] = result
    return out


def line(result: Result) -> str:
    """A result in a line, for a terminal."""
    if "refused" in result:
        return f"refused: {result['refused']}"
    guess = " (extrapolated)" if result["extrapolated"] else ""
    return (
        f"{rate(result)} tuples/s{guess}, p50 {ms(result['p50'])} ms, flatness {ratio(result)}, "
        f"{result['memory']['rss']:.0f} MB, {result['answer']}, load {result['load_at_end'][0]:.1f}"
    )


def write(folder: Path) -> str:
    """The table and the plot of a folder of results; the targets as text."""
    results = load(folder)
    path = folder / "commands.json"
    found = targets(results, json.loads(path.read_text())["commands"] if path.exists() else {})
    goals = ["| target | measured | |", "|---|---|---|"]
    goals += [
        f"| {t.promise} | {t.measured} | {'—' if t.met is None else 'pass' if t.met else '**fail**'} |" for t in found
    ]
    text = [*HEAD, *where(results), "", "## Targets", "", *goals, "", "## Runs", "", *table(results), "", *NOTES]
    if plot(results, folder / "cost-per-batch.png"):
        text += [
            "",
            "## Where re-evaluation stops being cheaper",
            "",
            "![Seconds per batch](cost-per-batch.png)",
            "",
            *crossings(results),
        ]
    (folder / "README.md").write_text("\n".join(text) + "\n")
    return "\n".join(
        f"{'     ' if t.met is None else 'pass ' if t.met else 'FAIL '} {t.promise}: {t.measured}" for t in found
    )


HEAD = [
    "# What it costs, beside others",
    "",
    "Made by `make bench` (`python -m bench.run`); do not edit. Tables by tpchgen-cli; streams interleaved in proportion",
    "to their sizes; the same micro-batches for every system; every system answers after every batch.",
    "",
]

NOTES = [
    "Each row is a process of its own: 20 batches to warm up, then up to three repeats, of which the median. *tuples/s*",
    "counts from the start of the query to its last batch. *2nd*, *last*: mean batch in the second and the last tenth of",
    "the stream; *flat*: their quotient. *MB*: peak of the process tree in the first repeat, resident (shared pages once per process) /",
    "proportional (shared pages once); *before*: resident when it began, decoded tables included where they are in memory.",
    "*fixed*: median batch of 20 tuples. *load*: runnable processes over the last minute, as the run began and ended.",
    "*~*: extrapolated. A re-evaluating system is measured at sampled batches, what lies between is appended untimed and",
    "counted at the cost of the next sample; a run that is out of time is carried on at the cost of its last tenth.",
    "*answer*: compared with DuckDB's over the whole tables, exactly but for doubles (1e-9).",
    "",
    "- **squallpy-local**: one process, rows decoded beforehand; *-files*: Parquet read as `squall run` reads it. Most of it runs",
    "  on one core; DuckDB and Polars use all.",
    "- **squallpy-spark**, **spark-sql**: `local[2]`, 2 GB of heap, two partitions, a checkpoint on local disk through java.io, both",
    "  bring the changed rows to the driver as Arrow. Spark SQL reads one Parquet file per stream and batch with just the query's",
    "  columns, ours ranges of the whole tables. Spark SQL cannot sort or cut a stream in update mode: it is spared ORDER BY and LIMIT.",
    "- **polars**: products of decimals are rounded to the larger scale; the queries cast one factor so that answers are exact.",
]


def where(results: Results) -> list[str]:
    versions = sorted({r["version"] for r in results.values() if "version" in r})
    cores = sorted({r["cores"] for r in results.values() if "cores" in r})
    return [f"{', '.join(map(str, cores))} cores. {'; '.join(versions)}."]


def table(results: Results) -> list[str]:
    out = [
        "| query | batch | scale | system | tuples/s | p50 ms | p95 ms | 2nd ms | last ms | flat | MB | before | fixed ms | load | answer |",
        "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for (engine, scale, key), r in sorted(results.items(), key=place):
        query, batch = key.split("/")
        head = f"| {query} | {int(batch):,} | {scale:g} | {engine} |"
        if "refused" in r:
            out.append(f"{head} {' |' * 10} refused: {r['refused'].replace('|', '/')} |")
            continue
        guess = "~" if r["extrapolated"] else ""
        memory = f"{r['memory']['rss']:.0f} / {r['memory']['pss']:.0f}"
        out.append(
            f"{head} {guess}{rate(r)} | {ms(r['p50'])} | {ms(r['p95'])} | {ms(r['second_tenth'])} | {ms(r['last_tenth'])} | {ratio(r)} | "
            f"{memory} | {r['memory_before']['rss']:.0f} | {ms(r.get('fixed'))} | {r['load'][0]:.1f}–{r['load_at_end'][0]:.1f} | {r['answer']} |"
        )
    return out


def place(item: tuple[tuple[str, float, str], Result]) -> tuple[int, int, float, int]:
    (engine, scale, key), _ = item
    query, batch = key.split("/")
    return list(QUERIES).index(query), int(batch), -scale, NAMES.index(engine)


def targets(results: Results, commands: dict[str, Any]) -> list[Target]:
    """Each promise beside what was measured."""
    local = results.get(("squallpy-local", 1.0, "q3/10000"), {})
    duckdb = results.get(("duckdb", 1.0, "q3/10000"), {})
    below: Callable[[float, float], bool] = lambda a, b: a <= b  # noqa: E731
    above: Callable[[float, float], bool] = lambda a, b: a >= b  # noqa: E731
    head = "local, Q3, scale 1, batches of 10,000"
    out = [
        target(f"{head}: ≥ 5 M tuples/s, engine only", local.get("tuples_per_second"), 5e6, above, 1e-6, "M/s"),
        target(
            f"{head}: ≥ 20 × DuckDB's re-evaluation in the last tenth",
            quotient(duckdb.get("last_tenth"), local.get("last_tenth")),
            20,
            above,
            1,
            "×",
        ),
        target(
            f"{head}: last tenth ≤ 1.2 × second tenth",
            quotient(local.get("last_tenth"), local.get("second_tenth")),
            1.2,
            below,
            1,
            "×",
        ),
    ]
    for query, factor in (("q3", 4.0), ("q12", 2.5)):
        for rows in (10_000, 100_000):
            key, head = f"{query}/{rows}", f"spark local[2], {query.upper()}, scale 0.1, batches of {rows:,}"
            ours = results.get(("squallpy-spark", 0.1, key), {})
            peers = [r for name in PEERS if "seconds" in (r := results.get((name, 0.1, key), {}))]
            best = min(peers, key=lambda r: r["seconds"]) if peers else {}
            least = min(peers, key=lambda r: r["memory"]["rss"]) if peers else {}
            gain = quotient(ours.get("tuples_per_second"), best.get("tuples_per_second"))
            out.append(target(f"{head}: ≥ {factor:g} × Spark's streaming SQL", gain, factor, above, 1, "×"))
            memory = quotient(ours.get("memory", {}).get("rss"), least.get("memory", {}).get("rss"))
            out.append(target(f"{head}: no more memory", memory, 1.0, below, 1, "× its resident megabytes"))
            out.append(target(f"{head}: ≤ 0.22 s fixed per batch", ours.get("fixed"), 0.22, below, 1, "s"))
    for name, promise, limit in (
        ("help", "`squall --help` ≤ 0.2 s", 0.2),
        ("explain", "`squall explain` of Q3 ≤ 1 s", 1.0),
        ("first_answer", "first row of `squall run` on Spark ≤ 15 s after the command", 15.0),
    ):
        out.append(target(promise, commands.get(name), limit, below, 1, "s"))
    wrong = [
        f"{e}, {k}: {r['answer']}"
        for (e, _, k), r in results.items()
        if e.startswith("squallpy") and r.get("answer") not in ("equal", "not reached")
    ]
    seen = [r for (e, _, _), r in results.items() if e.startswith("squallpy") and "answer" in r]
    out.append(
        Target(
            "every answer of squallpy equals DuckDB's",
            "; ".join(wrong) or f"{len(seen)} runs",
            not wrong if seen else None,
        )
    )
    return out


def target(
    promise: str, value: float | str | None, limit: float, fits: Callable[[float, float], bool], unit: float, name: str
) -> Target:
    if value is None:
        return Target(promise, "not measured", None)
    if isinstance(value, str):
        return Target(promise, value, False)
    return Target(promise, f"{value * unit:.2f} {name}", fits(value, limit))


def quotient(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def rate(result: Result) -> str:
    return f"{result['tuples_per_second']:,.0f}"


def ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def ratio(result: Result) -> str:
    value = quotient(result["last_tenth"], result["second_tenth"])
    return "" if value is None else f"{value:.2f}"


def in_process(results: Results) -> dict[tuple[float, str], dict[str, Result]]:
    """By scale and query/batch rows, the systems that share a process with their data."""
    out: dict[tuple[float, str], dict[str, Result]] = {}
    for (engine, scale, key), result in results.items():
        if engine in COLOURS and engine not in ON_SPARK and "curve" in result:
            out.setdefault((scale, key), {})[engine] = result
    return out


def crossings(results: Results) -> list[str]:
    """From which prefix on a batch of ours costs less than re-evaluating all."""
    out = ["| query | batch | scale | cheaper than DuckDB after | than Polars after |", "|---|--:|--:|--:|--:|"]
    panels = in_process(results)
    for scale, key in sorted(
        panels, key=lambda panel: (list(QUERIES).index(panel[1].split("/")[0]), int(panel[1].split("/")[1]))
    ):
        found = panels[scale, key]
        if "squallpy-local" in found:
            query, batch = key.split("/")
            cells = [crossing(found["squallpy-local"], found.get(peer)) for peer in ("duckdb", "polars")]
            out.append(f"| {query} | {int(batch):,} | {scale:g} | {' | '.join(cells)} |")
    return out


def crossing(ours: Result, peer: Result | None) -> str:
    """The tuples seen after which the peer's batches cost more than ours, to the end of the stream."""
    if peer is None:
        return ""
    import numpy as np

    seen, cost = np.array(peer["curve"]).T
    mine = np.interp(seen, *np.array(ours["curve"]).T)
    cheaper = np.flatnonzero(cost <= mine)
    if not len(cheaper):
        return "the first batch"
    return "never" if cheaper[-1] == len(seen) - 1 else f"{seen[cheaper[-1]]:,.0f} tuples"


def plot(results: Results, path: Path) -> bool:
    """A panel per query and batch size; False if there is nothing to draw."""
    panels = in_process(results)
    if not panels:
        return False
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    scale = max(s for s, _ in panels)
    keys = [key for s, key in panels if s == scale]
    queries = [q for q in QUERIES if any(key.startswith(f"{q}/") for key in keys)]
    batches = sorted({int(key.split("/")[1]) for key in keys})
    size = (4.2 * len(batches), 2.7 * len(queries))
    figure, axes = pyplot.subplots(
        len(queries), len(batches), figsize=size, squeeze=False, sharex="row", layout="constrained"
    )
    for axis, (query, batch) in zip(axes.flat, [(q, b) for q in queries for b in batches], strict=True):
        for engine, result in panels.get((scale, f"{query}/{batch}"), {}).items():
            seen, cost = zip(*result["curve"], strict=True)
            axis.plot(
                [n / 1e6 for n in seen], [s * 1e3 for s in cost], color=COLOURS[engine], label=engine, linewidth=1.2
            )
        axis.set(yscale="log", title=f"{query.upper()}, batches of {batch:,}")
        axis.grid(True, which="major", alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("tuples seen, millions")
    for axis in axes[:, 0]:
        axis.set_ylabel("ms per batch")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


if __name__ == "__main__":
    print(write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results"))
