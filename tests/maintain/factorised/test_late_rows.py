"""Rows that are late for a window count in a cofactor matrix of the same stream, which has none."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, VolatileEngine

STREAMS = """CREATE STREAM t (k BIGINT NOT NULL, x DOUBLE NOT NULL, at TIMESTAMP NOT NULL)
    USING csv OPTIONS (path 't') TIMESTAMP BY at;
CREATE STREAM s (k BIGINT NOT NULL, y DOUBLE NOT NULL) USING csv OPTIONS (path 's', op 'op');
"""
CELLS = "SELECT * FROM cofactor(TABLE(SELECT x, y FROM t NATURAL JOIN s))"
RECENT = "SELECT COUNT(*) AS n FROM t RANGE 20 SEC"
BEGIN = datetime(2026, 1, 1)
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "local": LocalEngine,
    "in memory": VolatileEngine,
    "three partitions": partial(PartitionedEngine, 3),
}


def matrix(t: list[tuple[int, float]], s: list[tuple[int, float, int]]) -> dict[tuple[str, str], float]:
    """The sums over the join of all rows, by NumPy."""
    pairs = [(x, y, n) for k, x in t for other, y, n in s if k == other]
    one, n = np.array([(1.0, x, y) for x, y, _ in pairs]), np.array([n for *_, n in pairs])
    sums, names = (one.T * n) @ one, ("", "x", "y")
    return {(names[i], names[j]): sums[i, j] for i in range(3) for j in range(i + 1)}


@pytest.mark.parametrize("name", ENGINES)
def oracle_late_rows_count_where_no_window_is(name: str, tmp_path: Path) -> None:
    engine, draw = ENGINES[name](), Random(3)
    engine.start(f"{STREAMS}{CELLS};\n{RECENT};", tmp_path, {})
    every_t, every_s = list[tuple[int, float]](), list[tuple[int, float, int]]()
    latest, late, visible = 0, 0, list[int]()
    for number in range(12):
        seconds = [max(0, 8 * number + draw.randrange(8) - draw.choice((0, 0, 0, 60))) for _ in range(10)]
        rows = [(draw.randrange(4), float(draw.randrange(9))) for _ in seconds]
        late += sum(at <= latest - 20 for at in seconds)
        visible += [at for at in seconds if at > latest - 20]
        latest = max(latest, *seconds)
        visible = [at for at in visible if at > latest - 20]
        added = [(draw.randrange(4), float(draw.randrange(9)), 1)]
        added += [(k, y, -1) for k, y, n in draw.sample(every_s, min(1, len(every_s))) if n == 1]
        every_t, every_s = every_t + rows, every_s + added
        times = pa.array([BEGIN + timedelta(seconds=at) for at in seconds], pa.timestamp("us"))
        k, y, mult = zip(*added, strict=True)
        s = pa.table({"k": k, "y": y, "__mult": mult})
        engine.push_all({"t": pa.table({"k": [k for k, _ in rows], "x": [x for _, x in rows], "at": times}), "s": s})
        cells, recent = engine.results()
        found = {(row["a"], row["b"]): row["value"] for row in cells.to_pylist()}
        assert found == pytest.approx(matrix(every_t, every_s), rel=1e-9)
        assert recent["n"].to_pylist() == [len(visible)]
    assert late >= 15


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM cofactor(TABLE(SELECT a.x, b.x AS y FROM t AS a JOIN t AS b ON a.k = b.k)) RANGE 20 SEC",
        "WITH r AS (SELECT k, x FROM t RANGE 20 SEC) SELECT * FROM cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s))",
    ],
)
def test_windows_are_refused_by_name(query: str, tmp_path: Path) -> None:
    """So no row is late for a cofactor matrix."""
    with pytest.raises(SquallError, match=r"a window inside TABLE\(…\) of cofactor is not supported"):
        VolatileEngine().start(f"{STREAMS}{query};", tmp_path, {})
