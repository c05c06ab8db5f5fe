"""Band joins by ranges beside the join matrix: `python -m bench.joins.ranges`.

    --tuples N   of each relation, routed                      [default: 200,000]
    --rows N     of each stream of the join that is run        [default: 50,000]

Tuples are routed by the engine's own ranges and counted at each joiner, under even, skewed and clustered values; a
second table runs a band join in this process, by ranges and by an adaptive grid.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.physical.joins.mapping import Numbers, Side
from squallpy.physical.joins.range_partitioning import (
    Band,
    Histogram,
    Positions,
    RangePartitioning,
    find_best_ranges,
    histogram_of,
    matrix_load,
    summarise,
)
from squallpy.runtime.joiners.band_positions import BUCKETS
from squallpy.testing.engines import PartitionedEngine

JOINERS, WIDTHS, DOMAIN, KEYS = (8, 64), (1, 100, 5_000, 30_000), 100_000, 10_000
RUN_JOINERS, RUN_WIDTH, BATCHES = 16, 20, 20
Draw = Callable[[np.random.Generator, int], Numbers]
SCRIPT = """
CREATE STREAM r (a BIGINT, x BIGINT) USING csv OPTIONS (path 'r');
CREATE STREAM s (b BIGINT, y BIGINT) USING csv OPTIONS (path 's');
SELECT COUNT(*) AS n, SUM(a) AS t FROM r JOIN s ON ABS(x - y) <= WIDTH AND a <> b;
"""
HEAD = f"""# Band joins by ranges

Made by `python -m bench.joins.ranges`; do not edit. *L*: what any partitioning needs at least, an even part of all
tuples and 2√(an even part of the pairs). *Grid*: the load of the best join matrix by L. *Ranges*: the tuples of the
busiest joiner by L, each tuple routed by the best ranges for histograms of {BUCKETS} buckets. *Without grids*: ranges
of one joiner each, as they would be if none that is heavy were cut by rows and columns. The band is |r.x − s.x| <=
width, of values from 0 to {DOMAIN:,}; Zipf's law is that of {KEYS:,} values, in their order, where neighbours are
frequent, or in any.
"""


def _zipf(z: float, is_ordered: bool) -> Draw:
    weights = 1 / np.arange(1, KEYS + 1) ** z
    order = np.arange(KEYS) if is_ordered else np.random.default_rng(1).permutation(KEYS)

    def draw(random: np.random.Generator, count: int) -> Numbers:
        return DOMAIN // KEYS * order[random.choice(KEYS, count, p=weights / weights.sum())]

    return draw


def _even(random: np.random.Generator, count: int) -> Numbers:
    return random.integers(0, DOMAIN, count)


def _clusters(random: np.random.Generator, count: int) -> Numbers:
    centres = random.choice([5_000, 40_000, 41_000, 90_000], count)
    return (centres + random.normal(0, 300, count)).astype(np.int64)


def _one(random: np.random.Generator, count: int) -> Numbers:
    return np.where(random.random(count) < 0.5, 7_777, _even(random, count))


VALUES: dict[str, Draw] = {
    "even": _even,
    "Zipf, z = 1": _zipf(1.0, is_ordered=False),
    "Zipf, z = 1, in order": _zipf(1.0, is_ordered=True),
    "Zipf, z = 1.5": _zipf(1.5, is_ordered=False),
    "clusters": _clusters,
    "half of them one": _one,
}


def simulated(tuples: int) -> list[str]:
    """Tabulate the loads of ranges and of the matrix by the least load."""
    out = [f"\n## Loads of {tuples:,} tuples of each relation\n"]
    out += ["| values | width | joiners | pairs of a tuple | grid | ranges | without grids | regions | of grids |"]
    out += ["|---|" + "--:|" * 8]
    worst = 0.0
    for name, draw in VALUES.items():
        random = np.random.default_rng(0)
        r, s = draw(random, tuples), draw(random, tuples)
        counted = _histogram(r), _histogram(s)
        for width in WIDTHS:
            pairs = _pairs(r, s, width)
            for joiners in JOINERS:
                least = max(2 * tuples / joiners, 2 * float(np.sqrt(pairs / joiners)))
                ranges, _ = find_best_ranges(joiners, Band(-width, width), *counted)
                busiest = _busiest(ranges, joiners, r, s)
                plain = _busiest(_without_grids(joiners, Band(-width, width), counted), joiners, r, s)
                worst = max(worst, busiest / least)
                grids = sum(grid.joiners > 1 for grid in ranges.grids)
                cells = [name, f"{width:,}", f"{joiners}", f"{pairs / tuples:,.0f}"]
                cells += [f"{load / least:.2f}" for load in (matrix_load(joiners, tuples, tuples), busiest, plain)]
                out.append(f"| {' | '.join([*cells, str(len(ranges.grids)), str(grids)])} |")
    return [*out, "", f"Ranges by L: {worst:.2f} at worst."]


def _histogram(ranks: Numbers) -> Histogram:
    return histogram_of(list(summarise(_positions(ranks), BUCKETS)))


def _positions(ranks: Numbers) -> Positions:
    return Positions(np.zeros(len(ranks), np.uint64), ranks)


def _pairs(r: Numbers, s: Numbers, width: int) -> int:
    ordered = np.sort(r)
    return int((np.searchsorted(ordered, s + width, "right") - np.searchsorted(ordered, s - width, "left")).sum())


def _busiest(ranges: RangePartitioning, joiners: int, r: Numbers, s: Numbers) -> float:
    """Route all tuples, and count those of the busiest joiner."""
    held, random = np.zeros(joiners, np.int64), np.random.default_rng(1)
    for side, ranks in ((Side.R, r), (Side.S, s)):
        tickets = random.integers(0, 1 << 64, len(ranks), np.uint64)
        held += np.bincount(ranges.route(side, _positions(ranks), tickets)[1], minlength=joiners)
    return float(held.max())


def _without_grids(joiners: int, band: Band, counted: tuple[Histogram, Histogram]) -> RangePartitioning:
    """Draw the best ranges of one joiner each."""
    found = [find_best_ranges(joiners, band, *counted, home=side, with_grids=False) for side in Side]
    return min(found, key=lambda each: each[1])[0]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of the join has cost."""

    busiest: int
    held: int
    received: int
    seconds: float
    result: list[tuple[int, int]]


def run(rows: int) -> list[str]:
    """Run a band join by ranges and on an adaptive grid."""
    out = [f"\n## A band join of {rows:,} rows a stream on {RUN_JOINERS} joiners in this process, {BATCHES} batches\n"]
    out += [f"```sql{SCRIPT.replace('WIDTH', str(RUN_WIDTH))}```\n"]
    out += ["Tuples at the end of the run; processor seconds of all joiners, readers and the driver.\n"]
    out += ["| values | | tuples of the busiest | of all | received by all | seconds |", "|---|---|" + "--:|" * 4]
    for name, draw in VALUES.items():
        found = {operator: _run(operator, draw, rows) for operator in ("Dynamic", "Range")}
        assert found["Dynamic"].result == found["Range"].result, name
        for operator, each in found.items():
            cells = [f"{each.busiest:,}", f"{each.held:,}", f"{each.received:,}", f"{each.seconds:.1f}"]
            out.append(f"| {name} | {operator} | {' | '.join(cells)} |")
    return out


def _run(operator: str, draw: Draw, rows: int) -> Run:
    random, received, begin = np.random.default_rng(2), 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        engine = PartitionedEngine(RUN_JOINERS, join_operator=operator)
        engine.start(SCRIPT.replace("WIDTH", str(RUN_WIDTH)), Path(folder), {})
        each = rows // BATCHES
        for batch in range(BATCHES):
            ids = np.arange(batch * each, (batch + 1) * each)
            pushed = {
                name: pa.table({own: ids, value: draw(random, each)})
                for name, own, value in (("r", "a", "x"), ("s", "b", "y"))
            }
            before = process_time()
            engine.push(pushed)
            begin += process_time() - before if batch else 0.0  # NB: the first loads kernels
            received += sum(engine.stats["received_rows"]["0"].values())
        held = [joiner["R"] + joiner["S"] for joiner in engine.stats["joiners"].values()]
        return Run(max(held), sum(held), received, begin, [tuple(row.values()) for row in engine.result().to_pylist()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuples", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results")
    given = parser.parse_args()
    page = "\n".join([HEAD, *simulated(given.tuples), *run(given.rows)]) + "\n"
    (given.out / "joins-ranges.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
