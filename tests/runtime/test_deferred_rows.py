"""Cells of a cofactor matrix that are derived when somebody reads them, beside an executor that always derives them."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from squallpy.runtime.batch.direct_batch import DirectBatch
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.state.state_store import Store
from squallpy.runtime.triggers.stage_executor import StageExecutor
from squallpy.testing.engines import LocalEngine, VolatileEngine
from squallpy.testing.memory_source import memory_input, with_mult

STREAMS = """CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE, w DOUBLE NOT NULL) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (k BIGINT NOT NULL, y DOUBLE NOT NULL) USING csv OPTIONS (path 's');
"""
CELLS = "SELECT * FROM cofactor(TABLE(SELECT x, w, y FROM r NATURAL JOIN s))"
QUERIES = {"cells": f"{CELLS};", "first": f"{CELLS} ORDER BY value DESC, a, b LIMIT 3;"}
REFUSED = -(2**63) + 5  # a BIGINT that compiled code leaves to the generic evaluators


def batch(draw: Random, number: int) -> dict[str, pa.Table]:
    """Rows of both streams, sometimes none that meet, sometimes a value that is not finite, or a key of REFUSED."""
    count = draw.randrange(1, 9)
    keys = [draw.randrange(5) for _ in range(count)] if number % 5 else [100 + number]
    if number % 7 == 6:
        keys[-1] = REFUSED
    x = [draw.choice((None, 1.0, 2.5, -3.0, 1e300 if number % 4 else float("inf"))) for _ in keys]
    mult = [draw.choice((1, 1, 1, -1)) for _ in keys]
    r = {"k": keys, "x": pa.array(x, pa.float64()), "w": [float(draw.randrange(9)) for _ in keys], "__mult": mult}
    s = {"k": [draw.randrange(5)], "y": [float(draw.randrange(3))], "__mult": [1]}
    return {"r": pa.table(r), "s": pa.table(s)}


def started(query: str, folder: Path, compile: str, with_changes: bool = True) -> VolatileEngine:
    engine = VolatileEngine(compile=compile)
    folder.mkdir()
    engine.start(STREAMS + QUERIES[query], folder, {})
    if not with_changes:
        input = memory_input(engine._sources, engine._batches)
        engine._executor = LocalExecutor(engine._compiled.plan, input, False, compiled=engine._code)
    return engine


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def derived_at_once(query: str, folder: Path) -> LocalEngine:
    """An executor with a checkpoint, where nothing waits."""
    engine = LocalEngine()
    folder.mkdir()
    engine.start(STREAMS + QUERIES[query], folder, {})
    return engine


@pytest.mark.parametrize("share", [0.5, 0.1], ids=["often", "seldom"])
@pytest.mark.parametrize("compile", ["wait", "off"])
@pytest.mark.parametrize("query", QUERIES)
def differential_changes_are_of_their_batch(query: str, compile: str, share: float, tmp_path: Path) -> None:
    """Whichever batches' changes are read, and whoever has read the whole result before."""
    engine, other, draw = started(query, tmp_path / "0", compile), derived_at_once(query, tmp_path / "1"), Random(1)
    direct, stages = engine._executor._direct, engine._executor._stages
    assert direct._deferred == 1 if direct else stages.may_wait
    for number in range(60):
        rows = batch(draw, number)
        expected = other.push(rows)
        engine._add_batch(rows)
        [changes] = engine._step()
        if draw.random() < 0.4 * share:
            assert rows_of(engine.result()) == rows_of(other.result())
        if draw.random() < share:
            assert changes
            found = [with_mult(changes.deletes, -1), with_mult(changes.inserts, 1)]
            assert rows_of(pa.concat_tables(found)) == rows_of(expected)
    assert rows_of(engine.result()) == rows_of(other.result())
    [result], store = engine._compiled.plan.results, engine._executor.store
    assert rows_of_pool(store, result.name) == rows_of_pool(other._executor._result.store(), result.name)


@pytest.mark.parametrize("compile", ["wait", "off"])
def differential_changes_beside_a_query_nobody_follows(compile: str, tmp_path: Path) -> None:
    script = f"{CELLS};\nSELECT * FROM cofactor(TABLE(SELECT x, y FROM r NATURAL JOIN s));"
    engine, other, draw = VolatileEngine(compile=compile), LocalEngine(), Random(5)
    for number, each in enumerate((engine, other)):
        (tmp_path / str(number)).mkdir()
        each.start(STREAMS + script, tmp_path / str(number), {})
    input = memory_input(engine._sources, engine._batches)
    engine._executor = LocalExecutor(engine._compiled.plan, input, (True, False), compiled=engine._code)
    for number in range(20):
        rows = batch(draw, number)
        expected, _ = other.push_all(rows)
        engine._add_batch(rows)
        changes, none = engine._step()
        assert changes and none is None
        if number % 3 == 2:
            found = [with_mult(changes.deletes, -1), with_mult(changes.inserts, 1)]
            assert rows_of(pa.concat_tables(found)) == rows_of(expected)
    assert list(map(rows_of, engine.results())) == list(map(rows_of, other.results()))


def rows_of_pool(store: Store, name: str) -> int:
    return len(store.pool(name))


@pytest.mark.parametrize("compile", ["wait", "off"])
def test_what_nobody_reads_is_not_derived(compile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though somebody may read changes; those of the last batch are its own."""
    settled = list[int]()
    for name in ("_apply_deferred", "_derive_deferred"):
        monkeypatch.setattr(DirectBatch, name, noting(getattr(DirectBatch, name), settled))
    monkeypatch.setattr(StageExecutor, "derive", noting(StageExecutor.derive, settled))
    engine, other, draw = started("cells", tmp_path / "0", compile), derived_at_once("cells", tmp_path / "1"), Random(4)
    for number in range(12):
        rows = batch(draw, number if number % 7 < 6 else 1)
        expected = other.push(rows)
        engine._add_batch(rows)
        [changes] = engine._step()
    assert changes and not settled
    assert rows_of(pa.concat_tables([with_mult(changes.deletes, -1), with_mult(changes.inserts, 1)])) == rows_of(
        expected
    )
    assert settled


def noting(function: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    """Let calls of a function be noted."""

    def noted(*given: Any) -> Any:
        calls.append(1)
        return function(*given)

    return noted


def test_nothing_is_derived_before_it_is_read(tmp_path: Path) -> None:
    """Where nobody reads changes, once for many batches."""
    engine, draw = started("cells", tmp_path / "0", "wait", with_changes=False), Random(2)
    other, direct = started("cells", tmp_path / "1", "off"), engine._executor._direct
    assert direct and direct._deferred == 1
    [result] = engine._compiled.plan.results
    for number in range(20):
        rows = batch(draw, number + 1 if number % 7 < 5 else 1)
        engine._add_batch(rows)
        engine._step()
        other.push(rows)
        if number == 0:
            before = rows_of(engine.result())
    pool = engine._executor._store.pool(result.name)
    held = len(pool)
    assert direct._later.waits
    assert rows_of(engine.result()) == rows_of(other.result()) != before
    assert not direct._later.waits and len(pool) >= held
