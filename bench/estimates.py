"""Bounds of `estimate`: how often they hold, by repetition with other seeds, and how they close with the rows read.

    python -m bench.estimates [--rows 50000] [--groups 8] [--seeds 100] [--batches 10] [--confidence 0.95]

Each repetition reads the same files in another random order. Answers over all rows are NumPy's. Values are of an
exponential distribution, groups have sizes like 1, 1/2, 1/3 …; each row of s joins one of r. For each fraction that was
read it prints how many of 100 bounds hold the answer, and the half of their width by the answer, the median of all.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import squallpy

STREAMS = """
CREATE STREAM r (id INT PRIMARY KEY, g INT, x DOUBLE)
    USING parquet OPTIONS (path '{room}/r.parquet', order 'random', seed '{seed}');
CREATE STREAM s (id INT PRIMARY KEY, r INT, y DOUBLE)
    USING parquet OPTIONS (path '{room}/s.parquet', order 'random', seed '{other}');
"""
LANES = "SUM({x}) AS total, COUNT(*) AS n, AVG({x}) AS mean"
QUERIES = {
    "groups of a stream": f"SELECT g, {LANES.format(x='x')} FROM r GROUP BY g",
    "groups of a ripple join": f"SELECT g, {LANES.format(x='x * y')} FROM r JOIN s ON r.id = s.r GROUP BY g",
}
Numbers = npt.NDArray[Any]
Seen = dict[tuple[str, str, float], list[tuple[bool, float]]]  # query, aggregate, fraction: holds, half width


def draw(options: argparse.Namespace, room: Path) -> dict[str, dict[str, Numbers]]:
    """Write the files, and compute the answers over all rows."""
    rng, rows, groups = np.random.default_rng(1), options.rows, options.groups
    sizes = 1 / np.arange(1, groups + 1)
    g, x = rng.choice(groups, rows, p=sizes / sizes.sum()), rng.exponential(10, rows)
    key, y = rng.integers(0, rows, rows), rng.random(rows)
    ids = np.arange(rows, dtype=np.int32)
    pq.write_table(pa.table({"id": ids, "g": g.astype(np.int32), "x": x}), room / "r.parquet")
    pq.write_table(pa.table({"id": ids, "r": key.astype(np.int32), "y": y}), room / "s.parquet")
    truths = dict[str, dict[str, Numbers]]()
    for name, (of, values) in zip(QUERIES, [(g, x), (g[key], x[key] * y)], strict=True):
        total, n = np.bincount(of, values, groups), np.bincount(of, minlength=groups)
        truths[name] = {"total": total, "n": n, "mean": total / n}
    return truths


def estimates(options: argparse.Namespace, room: Path, query: str, seed: int) -> Iterator[tuple[float, Any]]:
    """Read the files in a random order; yield after each batch the fraction of rows that were read, and the answer."""
    streams = 2 if "JOIN" in query else 1
    with squallpy.connect("local", settings={"batch_rows": options.rows * streams // options.batches}) as session:
        session.sql(STREAMS.format(room=room, seed=2 * seed, other=2 * seed + 1))
        session.sql(
            "CREATE MATERIALIZED VIEW found AS SELECT * FROM estimate("
            f"TABLE({query}), confidence => {options.confidence})"
        )
        for batch in range(1, options.batches + 1):
            session.step()
            yield batch / options.batches, session.view("found").to_arrow()


def count(seen: Seen, name: str, fraction: float, found: Any, truth: dict[str, Numbers]) -> None:
    """Note of each group whether its bounds hold the answer, and how wide they are."""
    groups = found["g"].to_numpy()
    for aggregate, answers in truth.items():
        low, high = (found[f"{aggregate}_{end}"].to_numpy(zero_copy_only=False) for end in ("low", "high"))
        answer = answers[groups]
        slack = 1e-9 * np.abs(answer)
        holds = (low <= answer + slack) & (answer - slack <= high)
        seen[name, aggregate, fraction] += zip(holds.tolist(), ((high - low) / 2 / answer).tolist(), strict=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 50_000), ("groups", 8), ("seeds", 100), ("batches", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--confidence", type=float, default=0.95)
    options = parser.parse_args()
    seen: Seen = defaultdict(list)
    started = time.process_time()
    with TemporaryDirectory() as folder:
        truths = draw(options, Path(folder))
        for name, query in QUERIES.items():
            for seed in range(options.seeds):
                for fraction, found in estimates(options, Path(folder), query, seed):
                    count(seen, name, fraction, found, truths[name])
    print(
        f"{options.seeds} orders of {options.rows:,} rows in {options.groups} groups, confidence {options.confidence};"
        f" {time.process_time() - started:.0f} s of processor time, load {os.getloadavg()[0]:.1f}"
    )
    print("| | read | SUM | COUNT | AVG |\n|---|--:|--:|--:|--:|")
    shown = sorted({1, 2, options.batches // 2, options.batches})
    for name in QUERIES:
        for batch in shown:
            cells = [cell(seen[name, aggregate, batch / options.batches]) for aggregate in ("total", "n", "mean")]
            print(f"| {name} | {batch / options.batches:.0%} | {' | '.join(cells)} |")


def cell(of: list[tuple[bool, float]]) -> str:
    """Write how many of 100 bounds hold, and the half of their width in hundredths of the answer."""
    holds, widths = zip(*of, strict=True)
    return f"{100 * np.mean(holds):.1f} of 100, ± {100 * float(np.median(widths)):.2g} %"


if __name__ == "__main__":
    main()
