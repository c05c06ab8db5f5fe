"""Equi-joins whose heavy keys get grids though nobody asked: where, where not, and why, as explain says."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.settings import Settings
from squallpy.catalog.relation import MULT
from squallpy.physical.explain_partitioning import join_lines
from squallpy.script_session import ScriptSession
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import PartitionedEngine
from squallpy.testing.step_tests import list_step_tests, run_steps
from tests.runtime.test_batch_plans import assert_records_are_at_home

STREAMS = """
CREATE STREAM r (k BIGINT, v BIGINT) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (k BIGINT, w BIGINT) USING csv OPTIONS (path 's', op 'op');
CREATE STREAM t (k BIGINT, x BIGINT) USING csv OPTIONS (path 't', op 'op');
CREATE STREAM a (i BIGINT PRIMARY KEY, v BIGINT) USING csv OPTIONS (path 'a');
CREATE STREAM b (i BIGINT PRIMARY KEY, w BIGINT) USING csv OPTIONS (path 'b');
CREATE TABLE c (k BIGINT, name VARCHAR) USING csv OPTIONS (path 'c');
"""
GRID = "a key with more than 1/16 of the mean joiner's work gets a grid"
ROWS = {"r": 900_000, "s": 800_000, "t": 700_000, "a": 900_000, "b": 800_000, "c": 10}


def joins(tmp_path: Path, query: str, operator: str = "auto", **settings: Any) -> list[str]:
    (tmp_path / "q.sql").write_text(STREAMS + query)
    session = ScriptSession(tmp_path / "q.sql", Settings(join_operator=operator, **settings))
    compiled = session.compile(session.script.queries[0], 16, ROWS)
    return join_lines(compiled.plan)


@pytest.mark.parametrize(
    ("query", "operator", "line"),
    [
        ("SELECT v, w FROM r JOIN s ON r.k = s.k;", "auto", f"JOIN M_S, M_R by k, an equality: {GRID}"),
        ("SELECT v, w FROM r JOIN s ON r.k = s.k;", "Hybrid", f"JOIN M_S, M_R by k, an equality: {GRID}"),
        ("SELECT v, w FROM r JOIN s ON r.k = s.k;", "SHJ", "JOIN M_S, M_R by k, an equality: join.operator=SHJ"),
        ("SELECT v, w FROM r JOIN s ON r.k = s.k;", "Dynamic", "JOIN M_S, M_R on the grid: join.operator=Dynamic"),
        ("SELECT v, w FROM r JOIN s ON r.k < s.k;", "auto", "JOIN M_S, M_R on the grid: no equality compares them"),
        ("SELECT a.v, b.w FROM a JOIN b ON a.i = b.i;", "auto", "JOIN M_B, M_A by i, an equality: keys are unique"),
        ("SELECT a.v, s.w FROM a JOIN s ON a.i = s.k;", "auto", f"JOIN M_S, M_A by k, an equality: {GRID}"),
        ("SELECT v, name FROM r JOIN c ON r.k = c.k;", "auto", "JOIN M_C by k, an equality: " + GRID),
        (
            "SELECT v, COUNT(*) AS n FROM r JOIN s ON r.k = s.k GROUP BY v;", "auto",
            "JOIN M_S, M_R by k, an equality: pre-aggregated deltas have few records per key",
        ),
        (
            "SELECT v, w, x FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k;", "auto",
            "an equality: grids for its heavy keys would take more exchanges",
        ),
        (
            "SELECT x.v, y.v AS v2 FROM r x JOIN r y ON x.k = y.k;", "auto",
            "JOIN M_R by k, an equality: grids for its heavy keys would take more exchanges",
        ),
    ],
)  # fmt: skip
def golden_why(query: str, operator: str, line: str, tmp_path: Path) -> None:
    found = joins(tmp_path, query, operator)
    assert any(line in one for one in found), found


def golden_why_as_set(tmp_path: Path) -> None:
    query = "SELECT v, w FROM r JOIN s ON r.k = s.k;"
    assert joins(tmp_path, query, partition=(("M_S", "everywhere"),))[0] == "JOIN M_S everywhere: partition.M_S is set"
    assert joins(tmp_path, query, partition=(("M_S", "k"),)) == [
        "JOIN M_S by k, an equality: partition.M_S is set",
        "JOIN M_R by k, an equality: placements of other views are set",
    ]


@pytest.mark.parametrize("name", ["join_on", "join_null_keys", "delete_first_join", "join_texts", "keys_wide_join"])
def differential_steps(name: str, tmp_path: Path) -> None:
    run_steps(list_step_tests()[name], PartitionedEngine(5), tmp_path)


def differential_skew_is_observed(tmp_path: Path) -> None:
    """No key has a grid until one is heavy, nor any more when it is gone; every batch has the rows that SHJ has."""
    engines, plans = (PartitionedEngine(8), PartitionedEngine(8, join_operator="SHJ")), []
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        script = STREAMS + "SELECT v, w FROM r JOIN s ON r.k = s.k;"
        engine.start(script, tmp_path / str(number), {})
    random = np.random.default_rng(4)
    for hot, sign in ((0.0, 1), (0.0, 1), (0.5, 1), (0.5, 1), (1.0, -1), (1.0, -1), (0.0, 1)):
        batch = {}
        for name, value in (("r", "v"), ("s", "w")):
            key = np.where(random.random(200) < hot, 7, random.integers(0, 5000, 200))
            values = random.integers(0, 9, 200)
            batch[name] = pa.table({"k": key, value: values, MULT: np.full(200, sign)})
        ours, plain = (engine.push(batch) for engine in engines)
        assert not difference(ours, plain)
        plans.append(engines[0].policy.plan)
        assert_records_are_at_home(engines[0], plans[-1])
    assert [len(plan.heavy) + len(plan.moves) for plan in plans[:2]] == [0, 0], "a key was heavy without skew"
    assert max(len(plan.heavy) for plan in plans) == 1
