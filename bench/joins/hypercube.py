"""Joins of many streams on a hypercube of joiners: `python -m bench.joins.hypercube`.

Tuples are routed by the engine's own hypercubes, and counted at each joiner; a second table runs a query in this
process on eight partitions. Beside them: copies of all streams but the largest everywhere, and a tree of two-way joins.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from squallpy.physical.distribute.heavy_key_placement import HEAVY_FRACTION
from squallpy.physical.joins.heavy_cells import Counted, HeavyCell, find_heavy_cells, route_to_cells
from squallpy.physical.joins.hypercube import ROUNDING, Hypercube, JoinInput, find_best_hypercube, least_load
from squallpy.physical.joins.mapping import Tickets, find_best_mapping
from squallpy.runtime.spark.coordinator import SAMPLE
from squallpy.testing.engines import PartitionedEngine

JOINERS = (8, 64, 512)
SKEWS = (0.0, 0.5, 1.0, 1.5)
Keys = dict[str, dict[int, Tickets]]  # of relations, by dimension
SHAPES = {  # sizes of relations, as fractions of the largest
    "three, equal": (1.0, 1.0, 1.0),
    "three, 4 : 2 : 1": (1.0, 0.5, 0.25),
    "three, 100 : 10 : 1": (1.0, 0.1, 0.01),
    "four, equal": (1.0, 1.0, 1.0, 1.0),
    "five, equal": (1.0, 1.0, 1.0, 1.0, 1.0),
}
SCRIPT = """
CREATE STREAM r (a BIGINT, x BIGINT) USING csv OPTIONS (path 'r');
CREATE STREAM s (b BIGINT, x BIGINT, y BIGINT) USING csv OPTIONS (path 's');
CREATE STREAM t (c BIGINT, y BIGINT) USING csv OPTIONS (path 't');
SELECT a, b, c FROM r JOIN s ON ABS(r.x - s.x) <= 1 JOIN t ON s.y < t.y AND t.y < s.y + 20;
"""
WAYS = {"HyperCube": {}, "copies everywhere": {"partition": (("M_R", "everywhere"), ("M_T", "everywhere"))}}
HEAD = """# Joins of many streams on a hypercube

Made by `python -m bench.joins.hypercube`; do not edit. A relation is cut along its own dimension and copied along the
others. *L* is the least load of a joiner by any shares: k (|R₁| … |Rₖ| / J)^(1/k) for the k relations that are cut, and
all of the others (Afrati and Ullman, EDBT 2010). *Busiest*: the tuples of the joiner with most, each tuple routed by
the engine's hypercube. *Everywhere*: the largest relation cut by J, the others at each joiner. *Tree*: R ⋈ S on a
grid, then its pairs and T on a grid, if each tuple of R has so many pairs; a joiner's tuples in both.
"""


@dataclass(frozen=True)
class Loads:
    """The loads of a shape of relations on some joiners, in tuples."""

    cube: Hypercube
    least: float
    busiest: float
    everywhere: float
    trees: tuple[float, ...]

    @property
    def sent(self) -> float:
        """Tuples that all joiners receive."""
        return self.busiest * self.cube.joiners


PAIRS = (1, 10, 100)


def measure(joiners: int, sizes: tuple[int, ...], draw: np.random.Generator) -> Loads:
    """Route all tuples and count them at each joiner."""
    cube = find_best_hypercube(joiners, len(sizes), [(float(size), (i,)) for i, size in enumerate(sizes)])
    held = np.zeros(joiners, np.int64)
    for i, size in enumerate(sizes):
        tickets = draw.integers(0, 1 << 64, size, np.uint64)
        held += _received(cube, (), "", {i: tickets}, tickets)
    rest = sum(sizes) - max(sizes)
    trees = tuple(_tree(joiners, sizes, pairs) for pairs in PAIRS)
    return Loads(cube, least_load(joiners, sizes), float(held.max()), max(sizes) / joiners + rest, trees)


def _tree(joiners: int, sizes: tuple[int, ...], pairs: int) -> float:
    """Add up the loads of grids for two relations at a time, the smallest ones first."""
    left, *others = sorted(sizes)
    load = 0.0
    for right in others:
        load += find_best_mapping(joiners, left, right).load(left, right)
        left *= pairs
    return load


def simulated(tuples: int) -> list[str]:
    """Tabulate loads of all shapes on all numbers of joiners."""
    trees = " | ".join(f"tree, {pairs} a tuple" for pairs in PAIRS)
    out = [f"## Simulated: the largest relation has {tuples:,} tuples\n"]
    out += [f"| relations | joiners | parts | copies of a tuple | L | busiest | busiest / L | everywhere | {trees} |"]
    out += ["|---|" + "--:|" * (7 + len(PAIRS))]
    draw, worst = np.random.default_rng(0), 0.0
    for name, shape in SHAPES.items():
        sizes = tuple(int(tuples * part) for part in shape)
        for joiners in JOINERS:
            found = measure(joiners, sizes, draw)
            copies = sum(size * found.cube.copies((i,)) for i, size in enumerate(sizes)) / sum(sizes)
            worst = max(worst, found.busiest / found.least)
            cells = [name, f"{joiners}", str(found.cube), f"{copies:.1f}", f"{found.least:,.0f}"]
            cells += [f"{found.busiest:,.0f}", f"{found.busiest / found.least:.3f}", f"{found.everywhere:,.0f}"]
            out.append(f"| {' | '.join([*cells, *(f'{load:,.0f}' for load in found.trees)])} |")
    verdict = "pass" if worst <= ROUNDING * 1.02 else "FAIL"
    out += [
        "",
        f"Bound of busiest / L: 2/(e ln 2) = {ROUNDING:.4f} for parts that are powers of two, and 2 % for hashes",
    ]
    out[-1] += f" that are not quite even: {worst:.3f} at worst, {verdict}."
    return out


def skewed(tuples: int) -> list[str]:
    """Tabulate the busiest joiner of R(a) ⋈ S(a, b) ⋈ T(b) by the mean, with and without cells of heavy keys."""
    out = [f"\n## Heavy keys: R(a) ⋈ S(a, b) ⋈ T(b), {tuples:,} tuples each, {SAMPLE:,} of them sampled\n"]
    out += ["R's and T's keys follow Zipf's law, of 10,000; S has each as often. The busiest joiner by the mean, and"]
    out[-1] += " the tuples that all get by those without heavy keys.\n"
    out += ["| z | joiners | parts | heavy keys | busiest, hashed | busiest, heavy keys cut | tuples sent |"]
    out += ["|--:|--:|--:|--:|--:|--:|--:|"]
    for z in SKEWS:
        draw = np.random.default_rng(0)
        names = draw.integers(0, 1 << 64, (2, 10_000), np.uint64)
        weights = 1 / np.arange(1, 10_001) ** z
        of_r, of_t = (draw.choice(keys, tuples, p=weights / weights.sum()) for keys in names)
        of_s = {dimension: draw.choice(keys, tuples) for dimension, keys in enumerate(names)}
        rows = {"r": {0: of_r}, "s": of_s, "t": {1: of_t}}
        for joiners in JOINERS:
            inputs: list[JoinInput] = [(float(tuples), tuple(hashed)) for hashed in rows.values()]
            cube = find_best_hypercube(joiners, 2, inputs)
            limit = HEAVY_FRACTION * cube.load([(float(SAMPLE), on) for _, on in inputs])
            heavy = [cell for dimension in (0, 1) for cell in _heavy_cells(cube, dimension, rows, limit)]
            held = [_held(cube, cells, rows) for cells in ((), heavy)]
            ratios = [f"{each.max() / each.mean():.2f}" for each in held]
            sent = held[1].sum() / held[0].sum()
            out.append(f"| {z:g} | {joiners} | {cube} | {len(heavy)} | {' | '.join(ratios)} | {sent:.2f} |")
    return out


def _heavy_cells(cube: Hypercube, dimension: int, rows: Keys, limit: float) -> tuple[HeavyCell, ...]:
    """Find heavy keys in the first tuples of each relation."""
    on = {name: hashed for name, hashed in rows.items() if dimension in hashed}
    counts = {name: np.unique(hashed[dimension][:SAMPLE], return_counts=True) for name, hashed in on.items()}
    counted = [Counted(name, dict(zip(*map(np.ndarray.tolist, found), strict=True))) for name, found in counts.items()]
    cuts = {name: float(cube.cuts(each for each in hashed if each != dimension)) for name, hashed in on.items()}
    return find_heavy_cells(cube, dimension, counted, cuts, limit)


def _held(cube: Hypercube, heavy: Sequence[HeavyCell], rows: Keys) -> np.ndarray:
    """Count the tuples of each joiner."""
    held, draw = np.zeros(cube.joiners, np.int64), np.random.default_rng(1)
    for name, hashed in rows.items():
        own = draw.integers(0, 1 << 64, len(next(iter(hashed.values()))), np.uint64)
        held += _received(cube, heavy, name, hashed, own)
    return held


def _received(
    cube: Hypercube, heavy: Sequence[HeavyCell], relation: str, hashed: dict[int, Tickets], own: Tickets
) -> np.ndarray:
    """Count the tuples of a relation that each joiner receives."""
    held = np.zeros(cube.joiners, np.int64)
    for _, firsts, copies in route_to_cells(cube, heavy, relation, hashed, own):
        counts = np.bincount(firsts, minlength=cube.joiners)
        for copy in copies.tolist():
            held[copy:] += counts[: cube.joiners - copy]
    return held


def run(rows: int, batches: int) -> list[str]:
    """Run a query on eight partitions in this process, and count the rows and bytes that they receive."""
    out = [f"\n## A query on 8 partitions, {rows:,} rows a stream in {batches} batches\n", f"```sql{SCRIPT}```\n"]
    out += ["| | rows at the busiest | at all | bytes received | records stored |", "|---|--:|--:|--:|--:|"]
    results = set()
    for name, settings in WAYS.items():
        draw, received, total = np.random.default_rng(1), np.zeros(8, np.int64), 0
        with tempfile.TemporaryDirectory() as folder:
            engine = PartitionedEngine(8, **settings)  # type: ignore[arg-type]
            engine.start(SCRIPT, Path(folder), {})
            for batch in range(batches):
                engine.push(_rows(draw, batch * rows // batches, rows // batches))
                total += engine.stats["received_bytes"]
                counts = engine.stats["received_rows"]["0"]
                received += np.array([counts[str(partition)] for partition in range(8)])
            stored = sum(view["records"] for name, view in engine.stats["views"].items() if name.startswith("M_"))
            results.add(engine.result().num_rows)
        out.append(f"| {name} | {received.max():,} | {received.sum():,} | {total:,} | {stored:,} |")
    assert len(results) == 1, f"not the same result: {results}"
    return [*out, "", f"Both have the same {results.pop():,} rows."]


def _rows(draw: np.random.Generator, start: int, count: int) -> dict[str, pa.Table]:
    ids = np.arange(start, start + count)
    x, y = (draw.integers(0, 20_000, count) for _ in range(2))
    z, w = (draw.integers(0, 20_000, count) for _ in range(2))
    return {
        "r": pa.table({"a": ids, "x": x}),
        "s": pa.table({"b": ids, "x": z, "y": y}),
        "t": pa.table({"c": ids, "y": w}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuples", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results")
    asked = parser.parse_args()
    page = "\n".join([HEAD, *simulated(asked.tuples), *skewed(asked.tuples), *run(asked.rows, 10)]) + "\n"
    (asked.out / "joins-hypercube.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
