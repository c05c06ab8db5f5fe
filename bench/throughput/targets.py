"""What was promised, beside what was measured; nothing is rounded in anybody's favour."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.measure.results import Results, quotient

PEERS = ("spark-sql", "spark-sql-rocksdb")


@dataclass(frozen=True)
class Target:
    """What was promised, what was measured; `met` is None where nothing was."""

    promise: str
    measured: str
    met: bool | None


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
