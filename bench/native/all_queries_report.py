"""The tables of `bench.native.all_queries`, beside what others published."""

import csv
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.fivm.run import figure
from bench.native.peers.report import head, line_of

PEERS = "duckdb", "polars"
NAMES = {"duckdb": "DuckDB", "polars": "Polars"}
SIZES = 1, 10, 100, 1_000, 10_000, 100_000
PAPER = Path(__file__).parents[1] / "table1" / "paper.csv"
Result = Mapping[str, Any]

HEAD = """# Compiled triggers by the rows of a batch, TPC-H and TPC-DS

Made by `python -m bench.native.all_queries`; do not edit. Scale {scale:g}; all relations but nation and region stream,
interleaved in proportion to their sizes. Measured are batches in the last tenth of the stream: slicing of rows that are
decoded, the step, changed groups as words. One core for each system, processor time; all have memory that the machine
has had before, where else its host has to find each page that is touched first. {cores} cores, load
{least:.1f}–{most:.1f}.

"""
SPEEDS = """## Compiled triggers, and interpreted ones in turns

Million tuples a second by the mean batch; in brackets × interpreted.

"""
ASKED = """
## DuckDB and Polars, asked again

Milliseconds of a batch, the rows appended and the query run over all of them, the median of five; ours the mean, in
brackets the median. *gain*: the better of them by ours, in brackets by our median.

"""
PUBLISHED = """
## What was published

Tuples a second, on machines of other years and of other orders of streams: DBToaster's C++, compiled for batches, in
Table 1 of the paper (streams of 10 GB, Xeon E5-2630L at 2.4 GHz), and *dd*, differential dataflow as in
`tpchlike/README.md` of its repository (scale 1; the whole stream, a row of each relation in turns). Ours as above.

"""
# Seconds for batches of 1,000, 10,000 and 100,000, and the rows of the relations that a query reads.
TPCHLIKE = {
    "q1": (1.26, 1.33, 1.43, 6_001_215),
    "q2": (2.29, 1.72, 1.61, 1_010_030),
    "q3": (2.81, 2.61, 2.46, 7_651_215),
    "q4": (6.83, 5.80, 3.72, 7_501_215),
    "q5": (5.23, 4.57, 3.82, 7_661_245),
    "q6": (1.29, 1.35, 1.49, 6_001_215),
    "q15": (73.12, 67.15, 84.63, 6_011_215),
    "q17": (7.42, 5.72, 4.78, 6_201_215),
}


def text(results: Mapping[str, Result]) -> str:
    """All tables."""
    loads, scales = [result["load"] for result in results.values()], {result["scale"] for result in results.values()}
    start = HEAD.format(scale=max(scales), cores=os.cpu_count(), least=min(loads), most=max(loads))
    return start + "".join([SPEEDS, *speeds(results), ASKED, *asked(results), PUBLISHED, *published(results)])


def line(result: Result) -> str:
    """A result in a line, for a terminal."""
    ours = result["squallpy"]
    took = ", ".join(f"{int(rows):,}: {figure(mean)}" for rows, (mean, _) in ours["compiled"].items())
    gains = ", ".join(f"{rows:,}: {found[0]:.1f} ×" for rows in (1_000, 10_000) if (found := gain(result, rows)))
    return f"{result['query']}: {took} µs; {gains}; {ours['compiled answer']}; load {result['load']:.1f}"


def quicker(result: Result, rows: int) -> float | None:
    """By how much compiled triggers are quicker than interpreted ones."""
    ours, size = result["squallpy"], str(rows)
    interpreted = ours.get("interpreted", {}).get(size)
    return interpreted[0] / ours["compiled"][size][0] if interpreted else None


def gain(result: Result, rows: int) -> tuple[float, float] | None:
    """The better peer's batch by ours, by our mean and by our median."""
    theirs = [took for peer in PEERS if (took := result.get(peer, {}).get(str(rows), {}).get("ms"))]
    mean, middle = result["squallpy"]["compiled"][str(rows)]
    return (min(theirs) * 1e3 / mean, min(theirs) * 1e3 / middle) if theirs else None


def speeds(results: Mapping[str, Result]) -> Iterator[str]:
    yield head("query", *(f"{rows:,}" for rows in SIZES), "state, MB", "answer")
    for name, result in results.items():
        ours, cells = result["squallpy"], list[str]()
        for rows in SIZES:
            times, ratio = ours["compiled"].get(str(rows)), quicker(result, rows)
            cells.append((figure(rows / times[0]) if times else "") + (f" ({ratio:.2f})" if ratio else ""))
        answers = {ours[key] for key in ours if key.endswith("answer")}
        yield line_of(name, *cells, f"{ours['state'] / 1e6:,.0f}", ", ".join(sorted(answers)))
    cells = [f"{geometric_mean(all_of):.2f}" if (all_of := _found(results, rows)) else "" for rows in SIZES]
    yield line_of("geometric mean of ×", *cells, "", "")


def _found(results: Mapping[str, Result], rows: int) -> list[float]:
    return [ratio for result in results.values() if (ratio := quicker(result, rows))]


def asked(results: Mapping[str, Result]) -> Iterator[str]:
    sizes = 1_000, 10_000
    yield head("query", *(cell for rows in sizes for cell in (f"{rows:,}", *NAMES.values(), "gain")))
    for name, result in results.items():
        cells = list[str]()
        for rows in sizes:
            mean, middle = result["squallpy"]["compiled"][str(rows)]
            cells.append(f"{figure(mean / 1e3)} ({figure(middle / 1e3)})")
            for peer in PEERS:
                found = result.get(peer, {}).get(str(rows), {})
                cells.append(figure(found["ms"]) if "ms" in found else found.get("refused", "").split(":")[0])
            gains = gain(result, rows)
            cells.append("{:.1f} ({:.1f})".format(*gains) if gains else "")
        yield line_of(name, *cells)
    last = list[str]()
    for rows in sizes:
        all_gains = [found for result in results.values() if (found := gain(result, rows))]
        means = [geometric_mean(values) for values in zip(*all_gains, strict=True)]
        last += ["", "", "", "{:.1f} ({:.1f})".format(*means) if means else ""]
    yield line_of("geometric mean", *last)


def published(results: Mapping[str, Result]) -> Iterator[str]:
    with PAPER.open() as lines:
        paper = {row["query"]: row for row in csv.DictReader(lines)}
    yield head("query", "", *(f"{rows:,}" for rows in SIZES))
    for name, result in results.items():
        ours = result["squallpy"]["compiled"]
        yield line_of(
            name, "squallpy", *(f"{int(rows) / mean * 1e6:,.0f}" for rows, (mean, _) in reversed(ours.items()))
        )
        row = paper.get(name, {})
        yield line_of("", "DBToaster", *(f"{int(n):,}" if (n := row.get(f"dbtoaster_{r}")) else "" for r in SIZES))
        if name in TPCHLIKE:
            *seconds, tuples = TPCHLIKE[name]
            yield line_of("", "dd", "", "", "", *(f"{tuples / each:,.0f}" for each in seconds))
