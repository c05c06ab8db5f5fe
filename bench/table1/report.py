"""Results of bench.table1.run beside the paper's Table 1 and the targets, as Markdown."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.data.queries import PAPER, QUERIES
from bench.measure.results import ms

Result = Mapping[str, Any]
Results = Mapping[tuple[str, str, float, int], Result]
OURS, IN_TURNS, AT_LAST = "squallpy-local", "squallpy-local/round-robin", "squallpy-local/largest-last"
PEERS, BY_HAND = ("duckdb", "polars"), "duckdb-by-hand"
COLUMNS = (
    "query", "ms", "p50", "DuckDB", "Polars", "by hand", "gain", "p50", "flat", "p50", "work", "printed",
    "in turns", "p50", "work", "at last", "p50", "work", "memory", "explain", "answer", "load", "tuples/s",
    "PostgreSQL", "IVM", "DBToaster",
)  # fmt: skip
FLAT, MEMORY, EXPLAIN = 1.2, 3.0, 3.0
MORE = "- of those, by more than their work grew, with something printed in both:"
GAIN = {(1.0, 1_000): 30.0, (1.0, 10_000): 10.0, (0.1, 1_000): 4.0, (0.1, 10_000): 2.0}  # geometric means; all ≥ 1

HEAD = """# Table 1 of the paper, and ours

Made by `python -m bench.table1.run`; do not edit. All relations but nation and region stream, interleaved in proportion
to their sizes: all end together, so that in the second tenth of the stream a row finds a fifth of the rows of another
relation that it will have found in the end, and of two others a twenty-fifth.

- *ms*: a batch in the last tenth of the stream, its printed changes made: the mean over all of them, and the median
  (*p50*), which knows less of what else the machine did. DuckDB and Polars, which answer the query again, are given all
  that came before at once; theirs is the median of 30 batches.
  *gain*: the better of them against our mean, and against our median. *flat*: our last tenth against our second tenth,
  of the means and of the medians. *in turns*: the same in a run of its own with the streams interleaved round-robin, a
  row of each, which is the paper's order (`--set interleave=round-robin`): small relations are soon complete. In the
  last tenth all rows of a batch are of the largest relation, in the second a half of them, or a third (Q9): what costs
  the same for each row of it, as it should, is up to 2 or 3 × as slow there. *at last*: the same with the largest
  relation alone after all others (`--set interleave=largest-last`), and tenths of its rows only: facts whose dimensions
  are there, so that only what grows with the facts before can cost more.
  *work*: the records that statements found and the rows that they added in a batch, last tenth against second.
  *printed*: rows of the result that a batch changed, in the second and in the last tenth.
- *memory*: all views with their indexes, and their strings, as `--metrics` has them, against the columns that the
  query reads, of the rows there at the end: 8 bytes a number, date or decimal, the bytes that strings hold.
- *explain*: seconds of `squall explain stages`.
- *tuples/s*: ours, in the last tenth. The paper's, over streams of 10 GB on a Xeon E5-2630L at 2.4 GHz: PostgreSQL
  asked again, PostgreSQL with classical maintenance, DBToaster.
- *load*: runnable processes over the last minute as ours began.
- The order book of scale 1 has a million orders, then half as many inserts and deletes. DuckDB and Polars compare all
  of its orders with all (*ended*: that took too long); *by hand* is DuckDB with window functions for the subquery.
"""


def text(results: Results) -> str:
    """All tables."""
    parts = [HEAD]
    for scale, rows in sorted({(scale, rows) for _, _, scale, rows in results if rows}):
        parts += [
            f"## Scale {scale:g}, batches of {rows:,}",
            "",
            *targets(results, scale, rows),
            "",
            *table(results, scale, rows),
            "",
        ]
    return "\n".join(parts)


def table(results: Results, scale: float, rows: int) -> list[str]:
    figures = paper(rows)
    out = [f"| {' | '.join(COLUMNS)} |", "|---|" + "--:|" * 19 + "---|" + "--:|" * 5]
    for query in QUERIES:
        engines = (OURS, IN_TURNS, AT_LAST, *PEERS, BY_HAND)
        found = {engine: results.get((query, engine, scale, rows), {}) for engine in engines}
        ours, *orders = (found.pop(engine) for engine in (OURS, IN_TURNS, AT_LAST))
        if ours:
            explained = results.get((query, "explain", 0.0, 0), {}).get("seconds")
            last = ours.get("last_tenth")
            cells = [query, cell(ours, "last_tenth"), ms(ours.get("last_tenth_p50"))]
            cells += [cell(peer, "last_tenth_p50") for peer in found.values()]
            cells += [shown(gain(results, query, scale, rows, of)) for of in ("last_tenth", "last_tenth_p50")]
            cells += [*(shown(flat(ours, of)) for of in ("", "_p50", "_work")), printed(ours)]
            cells += [shown(flat(result, of)) for result in orders for of in ("", "_p50", "_work")]
            cells += [shown(memory(ours)), shown(explained), ours.get("answer", "")[:60]]
            cells += [f"{ours['load'][0]:.1f}" if "load" in ours else ""]
            cells += [f"{rows / last:,.0f}" if last else "", *figures.get(query, ["", "", ""])]
            out.append(f"| {' | '.join(cells)} |")
    return out


def paper(rows: int) -> dict[str, list[str]]:
    """Tuples per second in the paper at a batch size: re-evaluation, classical maintenance, DBToaster."""
    with (Path(__file__).parent / "paper.csv").open() as lines:
        found = csv.DictReader(lines)
        names = [f"{system}_{rows}" for system in ("reevaluation", "ivm", "dbtoaster")]
        return {r["query"]: [f"{int(r[n]):,}" if r.get(n) else "" for n in names] for r in found}


def targets(results: Results, scale: float, rows: int) -> list[str]:
    """What was promised, what was measured, and which queries fail."""
    queries = list(PAPER)
    ours, turns, at_last = (
        {q: r for q in queries if "last_tenth" in (r := results.get((q, engine, scale, rows), {}))}
        for engine in (OURS, IN_TURNS, AT_LAST)
    )
    gains = {q: g for q in ours if (g := gain(results, q, scale, rows)) is not None}
    memories = {q: memory(r) for q, r in ours.items() if QUERIES[q].benchmark == "tpch"}
    explained = {q: found["seconds"] for q in queries if (found := results.get((q, "explain", 0.0, 0)))}
    promised = GAIN.get((scale, rows))
    out = []
    if gains:
        medians = [g for q in gains if (g := gain(results, q, scale, rows, "last_tenth_p50"))]
        mean = f"- geometric mean of the gains of {len(gains)} queries: **{geometric_mean(gains.values()):.1f} ×**"
        mean += f", by medians {geometric_mean(medians):.1f} ×"
        out += [f"{mean} (promised: {promised:g} ×)" if promised else mean]
        out += [f"- below 1 ×: {listed({q: g for q, g in gains.items() if g < 1})}"]
    out += [
        *flatness(f"last tenth slower than the second by more than {FLAT:g} ×", ours),
        *flatness("the same with streams in turns", turns),
        *flatness("the same with the largest at last", at_last),
        f"- memory of more than {MEMORY:g} ×, TPC-H: {over(MEMORY, memories)}",
        f"- explained in more than {EXPLAIN:g} s: {over(EXPLAIN, explained)}",
        f"- answers that are not DuckDB's: {', '.join(wrong(results, scale, rows)) or 'none'}",
    ]
    return out


def flatness(title: str, found: Mapping[str, Result]) -> list[str]:
    """Which queries are not flat, and of which their work does not say why."""
    if not found:
        return [f"- {title}: not measured"]
    return [
        f"- {title}: {over(FLAT, {q: flat(r) for q, r in found.items()})}",
        f"{MORE} {over(FLAT, {q: unexplained(r) for q, r in found.items()})}",
    ]


def wrong(results: Results, scale: float, rows: int) -> list[str]:
    found = {query: results.get((query, OURS, scale, rows)) for query in QUERIES}
    return [query for query, result in found.items() if result is not None and result.get("answer") != "equal"]


def over(limit: float, found: Mapping[str, float | str | None]) -> str:
    return listed({query: value for query, value in found.items() if isinstance(value, float) and value > limit})


def listed(found: Mapping[str, float]) -> str:
    """The worst first."""
    worst = sorted(found.items(), key=lambda item: -abs(math.log(item[1])))
    return ", ".join(f"{query} {value:.2f}" for query, value in worst) or "none"


def gain(results: Results, query: str, scale: float, rows: int, of: str = "last_tenth") -> float | None:
    """The better peer's batch against ours; None where either is not known."""
    ours = results.get((query, OURS, scale, rows), {}).get(of)
    theirs = [t for peer in PEERS if (t := results.get((query, peer, scale, rows), {}).get("last_tenth_p50"))]
    return min(theirs) / ours if ours and theirs else None


def flat(result: Result, of: str = "") -> float | None:
    second, last = result.get(f"second_tenth{of}"), result.get(f"last_tenth{of}")
    return last / second if second and last else None


def unexplained(result: Result) -> float | None:
    """How flat, if the work of a batch does not say why: it grew by less, and something was printed in both tenths."""
    grown, work, before = flat(result), flat(result, "_work"), result.get("second_tenth_printed")
    return grown if grown and work and before and grown > work else None


def printed(result: Result) -> str:
    before, after = result.get("second_tenth_printed"), result.get("last_tenth_printed")
    return "" if before is None or after is None else f"{before:,.0f} → {after:,.0f}"


def memory(result: Result) -> float | None:
    return sum(result["views"].values()) / result["read_bytes"] if result.get("read_bytes") else None


def cell(result: Result, name: str) -> str:
    return result["refused"].split(":")[0][:30] if "refused" in result else ms(result.get(name))


def shown(value: Any) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
