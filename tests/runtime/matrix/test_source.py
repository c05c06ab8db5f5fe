"""Matrices as sources: what step tests do not say."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, VolatileEngine
from squallpy.testing.memory_source import with_mult
from squallpy.testing.step_tests import run_steps

ENGINES: dict[str, Callable[..., MemoryEngine]] = {
    "durable": LocalEngine, "volatile": VolatileEngine, "partitioned": partial(PartitionedEngine, 2)
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def step_rows_taken_away(engine: str, tmp_path: Path) -> None:
    """Where a semiring cannot subtract, cells are what the rows that are left make them."""
    run_steps(Path(__file__).parent / "taken_away.slt", ENGINES[engine](matrix_deletes="reevaluate"), tmp_path)


SCRIPT = """
CREATE STREAM r (a BIGINT, b BIGINT, v DOUBLE) USING csv OPTIONS (path 'r', op '__op');
CREATE MATRIX A ({dimensions}) {known} FROM STREAM r (a, b, v);
CREATE MATRIX PROGRAM p {over} AS $$ B := A * A $$;
SELECT * FROM p.B;
"""
Entry = tuple[int, int, float | None]
MISTAKES: dict[str, tuple[str, str, str, list[Entry], str]] = {
    "too large": ("3, 3", "", "", [(0, 2, 1.0), (1, 3, 1.0)], "SQ5010 row 3 of r: A has no column 3, 3 of them"),
    "negative": ("n, n", "", "", [(-1, 2, 1.0)], "SQ5010 row 2 of r: A has no row -1, numbered from 0"),
    "NaN": ("n, n", "", "", [(1, 2, float("nan"))], "SQ5012 row 2 of r: nan is no entry of A"),
    "infinite": ("n, n", "", "", [(1, 2, float("inf"))], "SQ5012 row 2 of r: inf is no entry of A"),
    "below all": ("n, n", "", "OVER min_plus", [(1, 2, float("-inf"))], "SQ5012 row 2 of r: -inf is no entry of A"),
    "NULL": ("n, n", "", "", [(1, 2, 1.0), (1, 2, None)], "SQ5012 row 3 of r: v is NULL"),
    "no memory": ("n, n", "", "", [(1, 10**12, 1.0)], "SQ5013 the matrices of p need"),
    "symmetric": ("n, n", "SYMMETRIC", "", [(1, 2, 1.0), (1, 1, 3.0)], "SQ5014 A is declared SYMMETRIC, but a batch"),
    "lower": ("n, n", "LOWER", "", [(2, 1, 1.0), (1, 2, 3.0)], r"SQ5014 A is declared LOWER, but a batch adds"),
    "diagonal": ("n, n", "DIAGONAL", "", [(2, 1, 1.0)], r"SQ5014 A is declared DIAGONAL, but a batch adds to \(2, 1"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("engine", ENGINES)
def test_mistakes_in_rows(mistake: str, engine: str, tmp_path: Path) -> None:
    dimensions, known, over, rows, told = MISTAKES[mistake]
    running = ENGINES[engine]()
    running.start(SCRIPT.format(dimensions=dimensions, known=known, over=over), tmp_path, {})
    running.push({"r": _rows([(0, 0, 1.0)])})
    with pytest.raises(SquallError, match=told):
        running.push({"r": _rows(rows)})


def test_declared_and_kept(tmp_path: Path) -> None:
    """What is declared of a matrix chooses kernels, and changes no result."""
    random = np.random.default_rng(5)
    rows = [(i, j, float(v)) for i, j, v in random.integers(0, 6, (60, 3)).tolist()]
    results = []
    for known in ("", "SYMMETRIC"):
        folder = tmp_path / f"as {known}"
        folder.mkdir()
        running = VolatileEngine()
        running.start(SCRIPT.format(dimensions="6, 6", known=known, over=""), folder, {})
        for start in range(0, 60, 10):
            some = [row for i, j, v in rows[start : start + 10] for row in ((i, j, v), (j, i, v))]
            running.push({"r": _rows(some)})
        results.append(sorted(running.result().to_pylist(), key=lambda row: (row["i"], row["j"])))
    assert results[0] == results[1] and len(results[0]) > 20


def test_changed_cells_alone_are_told(tmp_path: Path) -> None:
    """An edge far from others changes what it touches."""
    running = VolatileEngine()
    running.start(SCRIPT.format(dimensions="50, 50", known="", over=""), tmp_path, {})
    running.push({"r": _rows([(i, (i + 1) % 50, 1.0) for i in range(50)])})
    changes = running.push({"r": _rows([(10, 11, 0.5)])})
    assert sorted((row["i"], row["j"], row["value"], row["__mult"]) for row in changes.to_pylist()) == [
        (9, 11, 1.0, -1), (9, 11, 1.5, 1), (10, 12, 1.0, -1), (10, 12, 1.5, 1)
    ]  # fmt: skip


def test_rounding_leaves_no_cell(tmp_path: Path) -> None:
    """What cancels is gone, whatever rounding makes of it."""
    running = VolatileEngine()
    running.start(SCRIPT.format(dimensions="2, 2", known="", over=""), tmp_path, {})
    running.push({"r": _rows([(0, 1, 0.1), (1, 0, 1.0), (0, 1, 0.2)])})
    running.push({"r": with_mult(_rows([(0, 1, 0.2)]), -1)})
    running.push({"r": with_mult(_rows([(0, 1, 0.1)]), -1)})
    assert running.result().to_pylist() == []


@pytest.mark.parametrize("engine", ["durable", "volatile"])
def test_a_large_graph_is_never_a_whole_matrix(engine: str, tmp_path: Path) -> None:
    """60,000 places: 29 GB, if they were."""
    running, random, n = ENGINES[engine](), np.random.default_rng(2), 60_000
    running.start(RANKS, tmp_path, {})
    edges = np.unique(random.integers(0, n, (3_000, 2)), axis=0)
    for some in np.array_split(edges, 2):
        running.push({"e": pa.table({"a": some[:, 0], "b": some[:, 1]})})
    running.restart()
    running.push({"e": with_mult(pa.table({"a": edges[::7, 0], "b": edges[::7, 1]}), -1)})
    left, size = np.delete(edges, np.s_[::7], axis=0), int(edges.max()) + 1
    share, rank = 1 / np.bincount(left[:, 0], minlength=size)[left[:, 0]], np.full(size, 1 / size)
    for _ in range(20):
        led = 0.85 * np.bincount(left[:, 1], share * rank[left[:, 0]], size)
        rank = led + (1 - led.sum()) / size
    (row,) = running.result().to_pylist()
    assert [row["places"], row["all"], row["most"]] == pytest.approx([size, 1.0, rank.max()], rel=1e-9)


RANKS = """
CREATE STREAM e (a BIGINT, b BIGINT) USING csv OPTIONS (path 'e', op '__op');
SELECT COUNT(*) AS places, SUM(value) AS all, MAX(value) AS most FROM pagerank(TABLE(e), steps => 20);
"""


def _rows(rows: Sequence[Entry]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({"a": columns[0], "b": columns[1], "v": pa.array(columns[2], pa.float64())})
