"""The transitive closure of a graph whose edges change, beside DuckDB, which is asked again.

    python -m bench.recursion [--layers 9] [--width 6250] [--degree 2] [--changes 1000] [--batches 5]
    python -m bench.recursion --graph order --layers 5 --width 2000 --degree 1.6 --changes 40
    python -m bench.recursion --graph cycles --layers 3 --width 1000 --degree 3 --changes 20

Edges are between neighbouring layers; or from a node to one of those that come soon after it in an order, so that paths
between two nodes differ in length; or between any two nodes, so that there are cycles.

Each batch replaces edges by others. Both sides count the pairs of the closure, in turns in one process, on one thread
each; times are those of the processor.
"""

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.testing.compare_rows import rows_of
from squallpy.testing.engines import VolatileEngine
from squallpy.testing.oracle import MULT

Edges = npt.NDArray[Any]  # rows of x, y
CLOSURE = """
WITH RECURSIVE reach AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM reach r JOIN edge e ON r.y = e.x)
SELECT COUNT(*) AS pairs, SUM(x) AS sum_x, SUM(y) AS sum_y FROM reach
"""
SCRIPT = f"CREATE STREAM edge (x INT NOT NULL, y INT NOT NULL) USING csv OPTIONS (path 'edge', op 'op');{CLOSURE};"


def random_edges(rng: np.random.Generator, count: int, graph: str, layers: int, width: int) -> Edges:
    """Draw edges of a kind of graph."""
    nodes = layers * width
    if graph == "cycles":
        return rng.integers(0, nodes, (count, 2))
    if graph == "order":
        near = nodes // 20
        first = rng.integers(0, nodes - near, count)
        return np.column_stack([first, first + 1 + rng.integers(0, near, count)])
    layer = rng.integers(0, layers - 1, count)
    return np.column_stack(
        [layer * width + rng.integers(0, width, count), (layer + 1) * width + rng.integers(0, width, count)]
    )


def batches(options: argparse.Namespace) -> Iterator[tuple[Edges, Edges]]:
    """Yield the edges that go and come: first all of them, then `changes` at a time, half of them deletes."""
    rng = np.random.default_rng(1)
    shape = options.graph, options.layers, options.width
    edges = random_edges(rng, int((options.layers - 1) * options.width * options.degree), *shape)
    yield edges[:0], edges
    for _ in range(options.batches):
        gone = rng.choice(len(edges), options.changes // 2, replace=False)
        come = random_edges(rng, options.changes - len(gone), *shape)
        yield edges[gone], come
        edges = np.concatenate([np.delete(edges, gone, axis=0), come])


def as_table(gone: Edges, come: Edges) -> pa.Table:
    """Convert changes to a batch, of integers as sources read them."""
    rows = np.concatenate([gone, come])
    signs = np.repeat([-1, 1], [len(gone), len(come)])
    return pa.table({"x": rows[:, 0], "y": rows[:, 1], MULT: signs})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", choices=["layers", "order", "cycles"], default="layers")
    parser.add_argument("--degree", type=float, default=2.0)
    for name, default in (("layers", 9), ("width", 6250), ("changes", 1000), ("batches", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    given = list(batches(options))
    engine, database = VolatileEngine(compile="wait"), duckdb.connect(config={"threads": 1})
    database.execute("CREATE TABLE edge (x INT, y INT)")
    ours, theirs = list[float](), list[float]()
    with TemporaryDirectory() as folder:
        engine.start(SCRIPT, Path(folder), {})
        for gone, come in given:
            table = as_table(gone, come)
            started = time.process_time()
            engine.push({"edge": table})
            ours.append(time.process_time() - started)
            replace_rows(database, gone, come)
            started = time.process_time()
            answer = database.execute(CLOSURE).fetchall()
            theirs.append(time.process_time() - started)
            assert rows_of(engine.result()) == answer, (engine.result(), answer)
    pairs = answer[0][0]
    print(f"{len(given[0][1]):,} edges, {pairs:,} pairs; load {os.getloadavg()[0]:.1f}")
    print(f"first batch {ours[0]:.2f} s, DuckDB {theirs[0]:.2f} s")
    took, asked = float(np.median(ours[1:])), float(np.median(theirs[1:]))
    print(f"{options.changes:,} changes {took:.3f} s, DuckDB asked again {asked:.2f} s: {asked / took:.0f} x")


def replace_rows(database: duckdb.DuckDBPyConnection, gone: Edges, come: Edges) -> None:
    """Apply changes to DuckDB's table; of edges that are alike one goes for each delete."""
    old = pa.table({"x": gone[:, 0], "y": gone[:, 1]})
    new = pa.table({"x": come[:, 0], "y": come[:, 1]})
    database.register("old", old)
    database.register("new", new)
    numbered = "ROW_NUMBER() OVER (PARTITION BY x, y) AS n"
    of_edges = f"SELECT rowid AS id, x, y, {numbered} FROM edge"
    matches = f"SELECT id FROM ({of_edges}) JOIN (SELECT x, y, {numbered} FROM old) USING (x, y, n)"
    database.execute(f"DELETE FROM edge WHERE rowid IN ({matches})")
    database.execute("INSERT INTO edge FROM new")


if __name__ == "__main__":
    main()
