"""Cells of a cofactor matrix, which compiled code derives when somebody reads them, beside the interpreter's."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from squallpy.runtime.local_executor import LocalExecutor
from squallpy.testing.engines import VolatileEngine
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


@pytest.mark.parametrize("query", QUERIES)
def differential_changes_are_of_their_batch(query: str, tmp_path: Path) -> None:
    """Whichever batches' changes are read, and whoever has read the whole result before."""
    compiled, other = started(query, tmp_path / "0", "wait"), started(query, tmp_path / "1", "off")
    direct, draw = compiled._executor._direct, Random(1)
    assert direct and direct._deferred == 1
    for number in range(60):
        rows = batch(draw, number)
        expected = other.push(rows)
        compiled._add_batch(rows)
        [changes] = compiled._step()
        if draw.random() < 0.2:
            assert rows_of(compiled.result()) == rows_of(other.result())
        if draw.random() < 0.5:
            assert changes
            found = [with_mult(changes.deletes, -1), with_mult(changes.inserts, 1)]
            assert rows_of(pa.concat_tables(found)) == rows_of(expected)
    assert rows_of(compiled.result()) == rows_of(other.result())
    assert compiled.row_counts() == other.row_counts()


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
    assert direct._waits
    assert rows_of(engine.result()) == rows_of(other.result()) != before
    assert not direct._waits and len(pool) >= held
