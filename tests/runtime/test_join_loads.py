"""Every join has a mapping and an input-load factor in metrics, whatever its operator."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from squallpy.runtime.observers.join_loads import JoinLoads
from squallpy.runtime.observers.metrics import source_figures
from squallpy.runtime.observers.report import BatchReport, JoinReport
from squallpy.runtime.sources.protocol import Backlog
from squallpy.runtime.sources.source_report import SourceReport
from squallpy.testing.engines import PartitionedEngine

BAND, EQUAL = "ABS(r.k - s.k) <= 3", "r.k = s.k"
SCRIPT = """
CREATE STREAM r (k BIGINT, a BIGINT) USING csv OPTIONS (path 'r');
CREATE STREAM s (k BIGINT, b BIGINT) USING csv OPTIONS (path 's');
SELECT a, b FROM r JOIN s ON ON_;
"""


@pytest.mark.parametrize(
    ("on", "partitions", "settings", "kind", "mapping"),
    [
        (EQUAL, 4, {"join_operator": "SHJ"}, "hash", [(1, 4)]),
        (BAND, 4, {"join_operator": "StaticMid"}, "fixed", [(2, 2)]),
        (BAND, 4, {"join_operator": "StaticOpt"}, "fixed", [(2, 2)]),
        (BAND, 4, {"join_operator": "Dynamic"}, "grid", [(4, 1)]),
        (BAND, 6, {"join_operator": "Dynamic", "join_groups": True}, "grid", [(4, 1), (2, 1)]),
        (EQUAL, 4, {"join_operator": "Hybrid"}, "keys", [(1, 4)]),
    ],
)
def test_every_join_operator(
    tmp_path: Path, on: str, partitions: int, settings: dict[str, Any], kind: str, mapping: list[tuple[int, int]]
) -> None:
    engine, draw = PartitionedEngine(partitions, **settings), np.random.default_rng(3)
    engine.start(SCRIPT.replace("ON_", on), tmp_path, {})
    loads, many, few = JoinLoads(engine._compiled.plan), 0, 0
    for _ in range(4):
        counts = {"r": 400, "s": 20}
        many, few = many + counts["r"], few + counts["s"]
        pushed = {
            name: pa.table({"k": draw.integers(0, 500, count), other: np.arange(count)})
            for (name, count), other in zip(counts.items(), "ab", strict=True)
        }
        engine.push(pushed)
        (load,) = loads.note(BatchReport.of({**engine.stats, **getattr(engine, "figures", {})}))
    assert (load.kind, [*load.mapping]) == (kind, mapping)
    assert load.bound == ({1: 1.25, 2: 3.75}[len(mapping)] if kind == "grid" else None)
    assert len(load.loads) == partitions
    if kind in ("fixed", "hash"):
        assert max(load.loads) == load.ilf
    if len(mapping) == 1:  # R is at each column of joiners, S at each row; rows that are equal are one
        ((n, m),) = mapping if kind in ("fixed", "grid") else [(1, 1)]
        assert sum(load.loads) == pytest.approx(many * m + few * n, rel=0.01)
    else:  # each is stored in one group, at least once
        assert many + few <= sum(load.loads) <= 4 * (many + few)
    if kind == "fixed":  # a grid of 2 × 2 is (R/2 + S/2) / (R/4 + S) from the best, and joiners are nearly even
        least = many / 4 + few
        assert (many + few) / 2 <= load.ilf <= 1.2 * (many + few) / 2
        assert (many + few) / 2 / least <= load.ratio <= 1.2 * (many + few) / 2 / least
    else:
        assert load.ilf >= (many + few) / partitions / 2 and 1.0 <= load.ratio < 1.6


@pytest.mark.parametrize(
    ("options", "window", "bound"), [("", "", 1.25), (", op 'op'", "", 1.4), ("", " RANGE 1 MIN", 1.4)]
)
def test_the_bound_is_that_of_deletes_where_tuples_go(options: str, window: str, bound: float, tmp_path: Path) -> None:
    clock = " TIMESTAMP BY at" if window else ""
    script = SCRIPT.replace("BIGINT)", "BIGINT, at TIMESTAMP)").replace("')", f"'{options}){clock}")
    engine = PartitionedEngine(4, join_operator="Dynamic")
    engine.start(script.replace("ON_", BAND + window), tmp_path, {})
    (load,) = JoinLoads(engine._compiled.plan).note(BatchReport(join=JoinReport([2, 2])))
    assert load.bound == bound


def test_joiners_without_tuples_count(tmp_path: Path) -> None:
    engine = PartitionedEngine(4, join_operator="SHJ")
    engine.start(SCRIPT.replace("ON_", EQUAL), tmp_path, {})
    loads, one = JoinLoads(engine._compiled.plan), np.full(50, 7)
    engine.push({"r": pa.table({"k": one, "a": np.arange(50)}), "s": pa.table({"k": one[:1], "b": [1]})})
    (load,) = loads.note(BatchReport.of(engine.stats))
    assert sorted(load.loads) == [0, 0, 0, 51] and load.ratio == 4


def test_the_load_of_a_hypercube(tmp_path: Path) -> None:
    """Three streams on 8 joiners: each row at four, so that a joiner gets half of each relation."""
    script = SCRIPT.replace(
        "SELECT a, b", "CREATE STREAM t (k BIGINT, c BIGINT) USING csv OPTIONS (path 't');\nSELECT a, b"
    )
    engine, draw, rows = PartitionedEngine(8), np.random.default_rng(3), 0
    engine.start(script.replace("ON_", "ABS(r.k - s.k) <= 1 JOIN t ON b = c + r.k AND t.k < s.k"), tmp_path, {})
    loads = JoinLoads(engine._compiled.plan)
    for _ in range(3):
        rows += 300
        own = {"k": draw.integers(0, 500, 300), "x": np.arange(rows - 300, rows)}
        engine.push(
            {name: pa.table({"k": own["k"], other: own["x"]}) for name, other in zip("rst", "abc", strict=True)}
        )
        (load,) = loads.note(BatchReport.of(engine.stats))
    (adaptive,) = loads.note(BatchReport.of({**engine.stats, **engine.figures}))
    assert (load.bound, adaptive.bound, adaptive.mapping) == (None, 1.25, load.mapping)
    assert (load.kind, load.mapping, load.axes) == ("hypercube", ((2, 2, 2),), ("r", "s", "t"))
    assert 3 / 2 * rows <= load.ilf <= 1.2 * 3 / 2 * rows
    assert sum(load.loads) == sum(adaptive.loads) == 12 * rows
    assert 1.0 <= load.ratio <= 1.2


def test_how_far_behind_sources_are() -> None:
    report = BatchReport(
        sources={
            "a": SourceReport(committed=90.0, backlog=Backlog(5, 95.0)),
            "b": SourceReport(committed=99.5, backlog=Backlog(0)),
            "c": SourceReport(),
        }
    )
    assert source_figures(report, 100.0) == {
        "a": {"freshness": 10.0, "lag_rows": 5, "lag_seconds": 5.0},
        "b": {"freshness": 0.5, "lag_rows": 0, "lag_seconds": 0.0},
        "c": {"freshness": None, "lag_rows": None, "lag_seconds": None},
    }
