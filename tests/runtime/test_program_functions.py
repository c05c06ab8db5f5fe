"""Interpreted triggers that are one call a batch, beside the statements of a stage one by one."""

from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from squallpy.catalog.relation import MULT
from squallpy.runtime import local_executor
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.source import RowSource
from squallpy.testing.engines import VolatileEngine
from squallpy.testing.memory_source import PushedBatches, with_mult

STREAMS = """CREATE STREAM r (k BIGINT NOT NULL, x DOUBLE, w DOUBLE NOT NULL, u INT)
USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (k BIGINT NOT NULL, g INT NOT NULL, y DOUBLE NOT NULL) USING csv OPTIONS (path 's');
CREATE STREAM t (g INT NOT NULL, z DECIMAL(9, 2)) USING csv OPTIONS (path 't');
"""
OF = "TABLE(SELECT x, w, y, z FROM r NATURAL JOIN s NATURAL JOIN t WHERE u > 1)"
QUERIES = {
    "cells": f"SELECT * FROM cofactor({OF});",
    "regression": f"SELECT * FROM ols({OF}, 'y', ridge => 0.5);",
    "group": "SELECT * FROM cofactor(TABLE(SELECT g, x, y FROM r NATURAL JOIN s NATURAL JOIN t) PARTITION BY g);",
}
REFUSED = -(2**63)  # a BIGINT that stands for NULL among keys


def rows(draw: Random, keys: list[int]) -> dict[str, pa.Table]:
    """Rows of all streams, r and s with these keys, one in five of r a delete; some values are not finite."""
    x = [draw.choice((None, 0.1, 2.5, -3.0, 1e300, float("inf"), float("nan"))) for _ in keys]
    columns = {"w": [0.1 * draw.randrange(9) for _ in keys], "u": [draw.choice((None, 1, 2, 3)) for _ in keys]}
    mult, groups = [draw.choice((1, 1, 1, 1, -1)) for _ in keys], [draw.randrange(9) for _ in keys]
    z = pa.array([Decimal(draw.randrange(900)) / 100 for _ in range(9)], pa.decimal128(9, 2))
    return {
        "r": pa.table({"k": keys, "x": pa.array(x, pa.float64()), **columns, "__mult": mult}),
        "s": pa.table({"k": keys, "g": groups, "y": [draw.random() for _ in keys], "__mult": [1] * len(keys)}),
        "t": pa.table({"g": [*range(9)], "z": z, "__mult": [1] * 9}),
    }


def started(query: str, folder: Path, monkeypatch: pytest.MonkeyPatch, by_statement: bool) -> VolatileEngine:
    """Start an engine whose statements are run one by one, or all by one call."""
    engine = VolatileEngine()
    folder.mkdir()
    monkeypatch.setattr(local_executor, "LOADING", 0)  # from the first batch on, or never
    with monkeypatch.context() as patched:
        if by_statement:
            patched.setattr(local_executor, "open_programs", lambda plan: None)
        engine.start(STREAMS + QUERIES[query], folder, {})
    assert bool(engine._executor._direct) is not by_statement
    return engine


@pytest.mark.parametrize("query", QUERIES)
def differential_statements_in_one_call(query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, states to the last bit and figures of batches; a key that kernels refuse is up to the statements."""
    engines = [started(query, tmp_path / str(i), monkeypatch, by_statement=i == 1) for i in range(2)]
    for number in range(12):
        draw, many = Random(number), 2000 if number in (3, 9) else 20
        keys = [draw.randrange(4000) if many > 20 else draw.randrange(9) for _ in range(many)]
        pushed = rows(draw, [*keys[1:], REFUSED] if number == 6 else keys)
        found = [engine.push(pushed) for engine in engines]
        assert sorted_rows(found[0]) == sorted_rows(found[1])
    results = [sorted_rows(engine.result()) for engine in engines]
    assert results[0] and results[0] == results[1]
    stores = [engine._executor.store for engine in engines]
    for name in stores[0]:
        if hasattr(stores[1][name], "keys_of"):
            assert contents(stores[0][name]) == contents(stores[1][name])
    assert 0 < engines[0]._executor.work <= engines[1]._executor.work  # which adds rows of results by a statement


def differential_one_call_once_kernels_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two batches, of which the first's changes wait."""
    monkeypatch.setattr(local_executor, "are_programs_loaded", lambda: False)
    engines = [VolatileEngine(), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(STREAMS + QUERIES["cells"], tmp_path / str(number), {})
    draw, begun = Random(0), engines[0]._executor
    for number in range(6):
        monkeypatch.setattr(local_executor, "LOADING", begun._spent + 1e-9 if number == 2 else 1e9)
        pushed = rows(draw, [draw.randrange(9) for _ in range(20)])
        engines[0]._add_batch(pushed)
        [changes] = engines[0]._step()
        assert bool(begun._direct) is (number >= 2)
        monkeypatch.setattr(local_executor, "LOADING", 1e9)
        expected = engines[1].push(pushed)
        if number % 2:
            found = [with_mult(changes.deletes, -1), with_mult(changes.inserts, 1)]
            assert sorted_rows(pa.concat_tables(found)) == sorted_rows(expected)
    assert sorted_rows(engines[0].result()) == sorted_rows(engines[1].result())
    assert engines[1]._executor._direct is None


class Resident(RowSource):
    """Rows that are in memory in one piece."""

    def __init__(self, table: pa.RecordBatch) -> None:
        self._table = table

    @property
    def rows(self) -> int:
        return len(self._table)

    def read(self, start: int, stop: int, columns: Collection[str]) -> pa.RecordBatch:
        return self.resident(tuple(columns)).slice(start, stop - start)

    def resident(self, columns: tuple[str, ...]) -> pa.RecordBatch:
        return self._table.select([name for name in self._table.schema.names if name in columns or name == MULT])


def differential_figures_of_resident_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What batches report, of rows that no batch reads: comparisons and pairs, too."""
    reports, results = list[list[BatchReport]](), list[list[str]]()
    for by_statement in (False, True):
        engine, draw = started("cells", tmp_path / str(by_statement), monkeypatch, by_statement), Random(0)
        batches = PushedBatches()
        for number in range(8):
            engine._add_batch(rows(draw, [draw.randrange(30) for _ in range(9 + number)]))
            batches.push({name: source.rows for name, source in engine._sources.items()})
        tables = {name: source.table.combine_chunks().to_batches()[0] for name, source in engine._sources.items()}
        names = {name: [c for c in table.schema.names if c != MULT or name == "r"] for name, table in tables.items()}
        input = Input({name: Resident(table.select(names[name])) for name, table in tables.items()}, batches)
        with monkeypatch.context() as patched:
            if by_statement:
                patched.setattr(local_executor, "open_programs", lambda plan: None)
            executor = LocalExecutor(engine._compiled.plan, input)
        assert bool(executor._rows) is not by_statement
        reports.append([executor.step()[1] for _ in range(8)])
        results.append(sorted_rows(executor.final()[0]))
    assert results[0] == results[1]
    figures = [[(r.tuples, r.compared, r.pairs, r.unmatched, r.read_rows) for r in each] for each in reports]
    assert figures[0] == figures[1] and any(r.pairs for r in reports[0]) and any(r.unmatched for r in reports[0])


def contents(pool: object) -> list[tuple[bytes, bytes]]:
    """List the records of a pool, in the order of their bytes."""
    keys, words = pool.rows()  # type: ignore[attr-defined]
    return sorted((key.tobytes(), payload.tobytes()) for key, payload in zip(keys, words, strict=True))


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))
