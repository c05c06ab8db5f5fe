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
from squallpy.physical.joins.band_histograms import Band, Histogram, Positions, histogram_of, summarise
from squallpy.physical.joins.mapping import Numbers, Side
from squallpy.physical.joins.range_partitioning import RangePartitioning, find_best_ranges, matrix_load
from squallpy.runtime.joiners.band_positions import BUCKETS
from squallpy.runtime.state.state_store import Store
from squallpy.testing.engines import PartitionedEngine

JOINERS, WIDTHS, DOMAIN, KEYS = (8, 64), (1, 100, 5_000, 30_000), 100_000, 10_000
RUN_JOINERS, RUN_WIDTH, BATCHES = 16, 20, 20
GROWTH = 5_000  # the values of a batch, where later ones have other values
MANY_ROWS, MANY_WIDTH = 800_000, 1  # of few pairs
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
            pairs, band = _pairs(r, s, width), Band(-width, width)
            for joiners in JOINERS:
                least = max(2 * tuples / joiners, 2 * float(np.sqrt(pairs / joiners)))
                ranges, _ = find_best_ranges(joiners, band, *counted)
                busiest = _busiest(ranges, joiners, r, s)
                plain = _busiest(_without_grids(joiners, band, counted), joiners, r, s)
                worst = max(worst, busiest / least)
                grids = sum(grid.joiners > 1 for grid in ranges.grids)
                cells = [name, f"{width:,}", f"{joiners}", f"{pairs / tuples:,.0f}"]
                cells += [
                    f"{load / least:.2f}" for load in (matrix_load(joiners, band, *counted).tuples, busiest, plain)
                ]
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
    return min(found, key=lambda each: each[1].tuples)[0]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of the join has cost.

    Args:
        seconds: Of the processor, of the busiest joiner in each batch.
        total: Of all joiners, readers and the driver.
    """

    busiest: int
    held: int
    received: int
    seconds: float
    total: float
    result: list[tuple[int, int]]


def run(rows: int) -> list[str]:
    """Run a band join by ranges and on an adaptive grid."""
    out = [f"\n## A band join of {rows:,} rows a stream on {RUN_JOINERS} joiners in this process, {BATCHES} batches\n"]
    out += [f"```sql{SCRIPT.replace('WIDTH', str(RUN_WIDTH))}```\n"]
    out += [
        "Tuples at the end of the run. Seconds are the processor's: of the busiest joiner, summed over batches, as on"
    ]
    out[-1] += " machines of their own; and of all joiners, readers and the driver.\n"
    heads = ["| values | | tuples of the busiest | of all | received by all | seconds of the busiest | of all |"]
    heads += ["|---|---|" + "--:|" * 5]
    out += heads
    for name, draw in VALUES.items():
        out += _compare(name, draw, RUN_WIDTH, rows)
    out += _compare("grow with time", lambda random, count: random.integers(0, GROWTH, count), RUN_WIDTH, rows, GROWTH)
    out += [f"\n{MANY_ROWS:,} rows a stream, and a band of {MANY_WIDTH}:\n", *heads]
    return [*out, *_compare("even", _even, MANY_WIDTH, MANY_ROWS)]


def _compare(name: str, draw: Draw, width: int, rows: int, step: int = 0) -> list[str]:
    """Run a band join on an adaptive grid, and by ranges; values grow by a step with each batch."""
    found = {operator: _run(operator, draw, width, rows, step) for operator in ("Dynamic", "Range")}
    assert found["Dynamic"].result == found["Range"].result, name
    out = []
    for operator, each in found.items():
        cells = [
            f"{each.busiest:,}",
            f"{each.held:,}",
            f"{each.received:,}",
            f"{each.seconds:.2f}",
            f"{each.total:.1f}",
        ]
        out.append(f"| {name} | {operator} | {' | '.join(cells)} |")
    return out


def _timed(run: Callable[[Store, list[bytes]], bytes], took: np.ndarray, number: int) -> Callable[..., bytes]:
    """Add the processor seconds of a joiner's stage to what it took."""

    def timed(store: Store, messages: list[bytes]) -> bytes:
        before = process_time()
        out = run(store, messages)
        took[number] += process_time() - before
        return out

    return timed


def _run(operator: str, draw: Draw, width: int, rows: int, step: int) -> Run:
    random, received, total, busiest = np.random.default_rng(2), 0, 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        engine = PartitionedEngine(RUN_JOINERS, join_operator=operator)
        engine.start(SCRIPT.replace("WIDTH", str(width)), Path(folder), {})
        each, took = rows // BATCHES, np.zeros(RUN_JOINERS)
        engine._nodes = [
            (tuple(_timed(run, took, number) for run in runs), store)
            for number, (runs, store) in enumerate(engine._nodes)
        ]
        for batch in range(BATCHES):
            ids = np.arange(batch * each, (batch + 1) * each)
            pushed = {
                name: pa.table({own: ids, value: draw(random, each) + batch * step})
                for name, own, value in (("r", "a", "x"), ("s", "b", "y"))
            }
            before = process_time()
            took[:] = 0.0
            engine.push(pushed)
            if batch:  # NB: the first loads kernels
                total += process_time() - before
                busiest += took.max()
            received += sum(engine.stats["received_rows"]["0"].values())
        held = [joiner["R"] + joiner["S"] for joiner in engine.stats["joiners"].values()]
        return Run(
            max(held), sum(held), received, busiest, total, [tuple(row.values()) for row in engine.result().to_pylist()]
        )


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
