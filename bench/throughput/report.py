"""Results → a table with its targets, and a plot of the cost per batch along the stream.

python -m bench.throughput.report [folder, bench/results]
"""

import json
import sys
from pathlib import Path

from bench.data.queries import STREAMING
from bench.engines import NAMES
from bench.measure.results import Result, Results, load, ms, rate, ratio
from bench.throughput.plot import crossings, plot
from bench.throughput.targets import Target, targets

COLUMNS = (
    "query", "batch", "scale", "system", "tuples/s", "p50 ms", "p95 ms", "2nd ms", "last ms", "flat", "MB", "before",
    "fixed ms", "load", "answer",
)  # fmt: skip

HEAD = """# What it costs, beside others

Made by `make bench` (`python -m bench.throughput.run`); do not edit. Tables by tpchgen-cli; streams interleaved in
proportion to their sizes; the same micro-batches for every system; every system but `-final` answers after every batch.
"""

NOTES = """
- Each row is a process of its own: 20 batches to warm up, then up to three repeats, of which the median.
- *tuples/s*: from the start of the query to its last batch. *2nd*, *last*: mean batch in the second and the last tenth
  of the stream; *flat*: their quotient. *fixed*: median batch of 20 tuples.
- *MB*: peak of the process tree in the first repeat, resident (a page counts in each process that maps it) /
  proportional (a page counts once). *before*: resident as it began, decoded tables included where they are in memory.
- *load*: runnable processes over the last minute, as the run began and ended.
- *~*: extrapolated. A re-evaluating system is measured at sampled batches; what lies between is appended untimed and
  counted at the cost of the next sample. A run that is out of time is carried on at the cost of its last tenth.
- *answer*: compared with DuckDB's over the whole tables, exactly but for doubles (1e-9).
- **squallpy-local**: one process, rows decoded beforehand, each batch's changes printed; **-final**: only the last
  answer printed, which no target counts; **-files**: Parquet read as `squall run` reads it. Most of it runs on one
  core; DuckDB and Polars use all.
- **squallpy-spark**, **spark-sql**: `local[2]`, 2 GB of heap, two partitions, a checkpoint on local disk through
  java.io; both bring the changed rows to the driver as Arrow. Spark SQL reads one Parquet file per stream and batch
  with just the query's columns, ours reads ranges of the whole tables. Spark SQL cannot sort or cut a stream in update
  mode: it is spared ORDER BY and LIMIT.
- **polars**: its SQL over doubles, for it would round a product of decimals to the larger scale.
"""


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
    results, path = load(folder), folder / "commands.json"
    found = targets(results, json.loads(path.read_text())["commands"] if path.exists() else {})
    text = [HEAD, *where(results), "", "## Targets", "", "| target | measured | |", "|---|---|---|"]
    text += [f"| {t.promise} | {t.measured} | {verdict(t, '**fail**')} |" for t in found]
    text += ["", "## Runs", "", *table(results), NOTES]
    if plot(results, folder / "cost-per-batch.png"):
        text += ["## Where re-evaluation stops being cheaper", "", "![Seconds per batch](cost-per-batch.png)", ""]
        text += crossings(results)
    (folder / "README.md").write_text("\n".join(text) + "\n")
    return "\n".join(f"{verdict(t, 'FAIL'):5} {t.promise}: {t.measured}" for t in found)


def verdict(target: Target, fail: str) -> str:
    return "—" if target.met is None else "pass" if target.met else fail


def where(results: Results) -> list[str]:
    versions = sorted({r["version"] for r in results.values() if "version" in r})
    cores = sorted({r["cores"] for r in results.values() if "cores" in r})
    return [f"{', '.join(map(str, cores))} cores. {'; '.join(versions)}."]


def table(results: Results) -> list[str]:
    out = [f"| {' | '.join(COLUMNS)} |", "|---|--:|--:|---|" + "--:|" * (len(COLUMNS) - 5) + "---|"]
    for (engine, scale, key), r in sorted(results.items(), key=place):
        query, batch = key.split("/")
        head = f"| {query} | {int(batch):,} | {scale:g} | {engine} |"
        if "refused" in r:
            out.append(f"{head} {' |' * 10} refused: {r['refused'].replace('|', '/')} |")
            continue
        cells = [
            f"{'~' if r['extrapolated'] else ''}{rate(r)}",
            *(ms(r.get(name)) for name in ("p50", "p95", "second_tenth", "last_tenth")),
            ratio(r),
            f"{r['memory']['rss']:.0f} / {r['memory']['pss']:.0f}",
            f"{r['memory_before']['rss']:.0f}",
            ms(r.get("fixed")),
            f"{r['load'][0]:.1f}–{r['load_at_end'][0]:.1f}",
            r["answer"],
        ]
        out.append(f"{head} {' | '.join(cells)} |")
    return out


def place(item: tuple[tuple[str, float, str], Result]) -> tuple[int, int, float, int]:
    (engine, scale, key), _ = item
    query, batch = key.split("/")
    return STREAMING.index(query), int(batch), -scale, NAMES.index(engine)


if __name__ == "__main__":
    print(write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "results"))
