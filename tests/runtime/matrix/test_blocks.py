"""Matrices in blocks on partitions: what steps and random streams do not say. (test_streams has those.)"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.runtime.matrix.blocks import block_stage
from squallpy.runtime.matrix.drift import DRIFT
from squallpy.testing.engines import KilledEngine, PartitionedEngine, SparkEngine
from squallpy.testing.memory_source import with_mult
from squallpy.testing.step_tests import list_step_tests, run_steps
from tests.marks import long

STEPS = [path for name, path in list_step_tests().items() if name.startswith("matrix_")]
SHARES = [path for path in STEPS if path.stem in ("matrix_shares", "matrix_function_pagerank")]
STRATEGIES = ("auto", "incr")
Blocks = partial(PartitionedEngine, 3, matrix_place="blocks")


@pytest.mark.parametrize("strategy", ["auto", long("incr")])
@pytest.mark.parametrize("path", [path for path in STEPS if path not in SHARES], ids=lambda path: path.stem)
def step_in_blocks(path: Path, strategy: str, tmp_path: Path) -> None:
    run_steps(path, Blocks(matrix_strategy=strategy), tmp_path)


@pytest.mark.parametrize("path", SHARES, ids=lambda path: path.stem)
def test_shares_are_on_the_driver(path: Path, tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r"SQ7003 .* cannot be in blocks: its rows are kept, to know its shares"):
        run_steps(path, Blocks(), tmp_path)


@pytest.mark.parametrize("place", ["driver", "blocks"])
@pytest.mark.parametrize("name", ["matrix_join", "matrix_least_squares"])
def fault_driver_and_tasks_are_killed(name: str, place: str, tmp_path: Path) -> None:
    path = next(path for path in STEPS if path.stem == name)
    run_steps(path, KilledEngine(3, seed=1, kills=0.03, matrix_place=place), tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["matrix_join", "matrix_least_squares", "matrix_reachable"])
def step_spark(name: str, tmp_path: Path, cluster: Any) -> None:
    path = next(path for path in STEPS if path.stem == name)
    run_steps(path, SparkEngine(cluster, 2, matrix_place="blocks", matrix_strategy="incr"), tmp_path)


SQUARES = """
CREATE STREAM r (a BIGINT, b BIGINT, v DOUBLE) USING csv OPTIONS (path 'r', op '__op');
CREATE MATRIX X (4, 2) FROM STREAM r (a, b, v);
CREATE MATRIX PROGRAM p AS $$ S := inv(X' * X) $$;
SELECT i, j, value FROM p.S;
"""


def test_almost_singular_is_evaluated_and_told(tmp_path: Path) -> None:
    """All partitions find that an inverse cannot be told, in the middle of a trigger, and begin anew together."""
    running = Blocks(matrix_strategy="incr")
    running.start(SQUARES, tmp_path, {})
    told = []
    for rows, mult in (([(0, 0, 2.0), (1, 1, 4.0)], 1), ([(2, 0, 2.0)], 1), ([(1, 1, 4.0)], -1), ([(3, 1, 0.5)], 1)):
        running.push({"r": with_mult(_rows(rows), mult)})
        figures = running.stats["matrices"]["p"]
        told.append((figures["how"], figures["why"], figures.get("singular", "")))
    cells = sorted((row["i"], row["j"], row["value"]) for row in running.result().to_pylist())
    assert cells == [(0, 0, 0.125), (1, 1, 4.0)]
    assert told == [
        ("evaluated", "the first rows", ""),
        ("incremental", "", ""),
        ("evaluated", "a matrix was almost singular", "X' * X is singular and has no inverse"),
        ("evaluated", "a matrix had no value", ""),
    ]


def test_views_that_have_drifted_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition's rows that are off are seen by all at the next look, and mended in the same batch."""
    monkeypatch.setattr(block_stage, "CHECK", 2)
    running = Blocks(matrix_strategy="incr")
    running.start(COUNTED.replace("OVER counting", "").replace("v BIGINT", "v DOUBLE"), tmp_path, {})
    told = []
    for batch in range(7):
        running.push({"r": _rows([(batch % 4, 3, 0.5), (2, batch % 3, 0.25)])})
        if batch == 3:
            running._blocks._stores[1].blocks["p.B rows"].values[0, 1] += 1e-3  # what rounding would do in years
        figures = running.stats["matrices"]["p"]
        told.append((figures["why"], figures["drift"] > DRIFT))
    assert told == [("the first rows", False), *[("", False)] * 3, ("rounding had added up", True), *[("", False)] * 2]
    a = np.zeros((4, 4))
    for batch in range(7):
        for i, j, v in ((batch % 4, 3, 0.5), (2, batch % 3, 0.25)):
            a[i, j] += v
    found = {(row["i"], row["j"]): row["value"] for row in running.result().to_pylist()}
    assert found == {(int(i), int(j)): (a @ a)[i, j] for i, j in zip(*np.nonzero(a @ a), strict=True)}


COUNTED = """
CREATE STREAM r (a BIGINT, b BIGINT, v BIGINT) USING csv OPTIONS (path 'r', op '__op');
CREATE MATRIX A (n, n) FROM STREAM r (a, b, v);
CREATE MATRIX PROGRAM p OVER counting AS $$ B := A * A $$;
SELECT i, j, value FROM p.B;
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_overflow_is_told(strategy: str, tmp_path: Path) -> None:
    running = Blocks(matrix_strategy=strategy)
    running.start(COUNTED, tmp_path, {})
    running.push({"r": _rows([(0, 0, 2**31), (3, 1, 1)])})
    with pytest.raises(SquallError, match="SQ5001 a count in B is beyond BIGINT"):
        running.push({"r": _rows([(0, 1, 2**33), (1, 0, 2**31)])})


def test_rows_that_replace_each_other_are_on_the_driver(tmp_path: Path) -> None:
    script = COUNTED.replace("r (", "r (id INT PRIMARY KEY, ", 1).replace("op '__op'", "changelog 'upsert'")
    assert "PRIMARY KEY" in script and "upsert" in script
    with pytest.raises(SquallError, match="SQ7003 A cannot be in blocks: its rows are kept, the last of each key"):
        Blocks().start(script, tmp_path, {})
    PartitionedEngine(3).start(script, tmp_path, {})


def test_rows_that_are_kept_are_on_the_driver(tmp_path: Path) -> None:
    script = COUNTED.replace("OVER counting", "OVER min_plus")
    with pytest.raises(SquallError, match="SQ7003 p cannot be in blocks: its rows are kept"):
        Blocks(matrix_deletes="reevaluate").start(script, tmp_path, {})


def test_blocks_are_smaller_than_matrices(tmp_path: Path) -> None:
    """What is read by rows alone is kept by rows alone: two thirds of twice as much as there is, here."""
    running = Blocks()
    running.start(COUNTED, tmp_path, {})
    random = np.random.default_rng(3)
    places = {(int(i), int(j)) for i, j in random.integers(0, 400, (500, 2))} | {(399, 399)}
    running.push({"r": _rows([(i, j, 1) for i, j in places])})
    taken = running.stats["matrices"]["p"]["bytes"]
    cells = 400 * 400 * 8
    assert 4 * cells < taken < 4.2 * cells  # A by rows and by columns, B by rows; and B as it was told


def _rows(rows: list[tuple[int, int, float]]) -> pa.Table:
    a, b, v = zip(*rows, strict=True)
    return pa.table({"a": a, "b": b, "v": v})
