"""Scans: the rows of a result as of the batch before the first piece, whatever batches do between the pieces."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from squallpy.catalog.relation import MULT
from squallpy.live.read_rows import read_rows
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.result import result, result_scan
from squallpy.runtime.result.result_scan import ResultScan, RowScan
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import LocalEngine, MemoryEngine, VolatileEngine

STREAM = "CREATE STREAM r (k INT, t VARCHAR, d DECIMAL(38,0), v INT) USING csv OPTIONS (path '-', op 'op');"
QUERIES = [
    "SELECT k, t, SUM(v) AS s, COUNT(*) AS n FROM r GROUP BY k, t",
    "SELECT k, t, d, v FROM r",
    "SELECT d, t, MAX(v) AS most FROM r GROUP BY d, t HAVING COUNT(*) > 1",
    "SELECT t, k, SUM(d) AS s FROM r GROUP BY t, k ORDER BY t DESC NULLS LAST, k",
]
Row = tuple[Any, ...]


class World:
    """An engine, and the rows that are there."""

    def __init__(self, engine: MemoryEngine, query: str, folder: Path, seed: int) -> None:
        self.engine, self.draw, self.rows = engine, Random(seed), list[Row]()
        engine.start(f"{STREAM} {query};", folder, {})

    def step(self, changes: int) -> None:
        """Apply a batch of inserts, and of deletes of rows that are there."""
        batch = list[Row]()
        for _ in range(self.draw.randrange(1, changes)):
            if self.rows and self.draw.random() < len(self.rows) / 80:
                batch.append((*self.rows.pop(self.draw.randrange(len(self.rows))), -1))
            else:
                digits = self.draw.choice((None, 7, 10**30 + self.draw.randrange(3)))
                row = self.draw.randrange(9), self.draw.choice((None, "", "é", f"t{self.draw.randrange(6)}")), digits
                self.rows.append((*row, self.draw.randrange(5)))
                batch.append((*self.rows[-1], 1))
        kinds = {"k": pa.int64(), "t": pa.string(), "d": pa.decimal128(38, 0), "v": pa.int64(), MULT: pa.int64()}
        columns = zip(kinds.items(), zip(*batch, strict=True), strict=True)
        self.engine.push_all({"r": pa.table({name: pa.array(some, kind) for (name, kind), some in columns})})

    def scan(self) -> RowScan:
        """Begin a scan of the query."""
        return self.engine._executor.scan(0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "query"),
    [
        *((make, query) for make in (VolatileEngine, LocalEngine) for query in QUERIES),
        (partial(VolatileEngine, compile="wait"), QUERIES[0]),
    ],
)
def property_scans_have_the_rows_of_their_begin(
    make: Any, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (result, result_scan):
        monkeypatch.setattr(module, "PIECE", 4)
    world, pieces = World(make(), query, tmp_path, 1), 0
    for _ in range(25):
        world.step(12)
        wanted, scan = world.engine.result(), world.scan()
        other, begun = world.scan(), world.engine.result()
        while scan.copy():
            pieces += 1
            world.step(4)
            other.copy()
        world.step(9)  # NB: what is copied is told of nothing more, also before it is ended
        scan.end()
        assert scan.is_valid and not difference(scan.table(), wanted)
        while other.copy():
            pass
        other.end()
        assert other.is_valid and not difference(other.table(), begun)
        if "ORDER BY" in query:
            assert scan.table().to_pylist() == wanted.to_pylist()
    assert pieces > 25


def test_a_scan_whose_pool_goes_to_others_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the last try copies all under one hold."""
    for module in (result, result_scan):
        monkeypatch.setattr(module, "PIECE", 1)
    world, scans = World(VolatileEngine(), QUERIES[0], tmp_path, 2), list[RowScan]()
    world.step(40)

    def begin() -> list[RowScan]:
        scans.append(world.scan())
        if len(scans) < 3:
            world.engine._executor.close()  # type: ignore[attr-defined]
        return scans[-1:]

    (rows,) = read_rows(nullcontext, begin)
    assert [scan.is_valid for scan in scans] == [False, False, True]
    assert isinstance(scans[0], ResultScan) and not difference(rows, world.engine.result())


def test_batches_note_nothing_for_a_scan_that_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are printed while they go on, without a hold."""
    for module in (result, result_scan):
        monkeypatch.setattr(module, "PIECE", 4)
    world = World(VolatileEngine(), QUERIES[0], tmp_path, 5)
    world.step(40)
    scan = world.scan()
    while scan.copy():
        pass
    assert isinstance(scan, ResultScan)
    monkeypatch.setattr(ResultScan, "note", lambda *_: pytest.fail("a batch notes what it changes"))
    world.step(40)


def test_rows_that_were_read_stay_as_they_were(tmp_path: Path) -> None:
    """Whatever later batches do to the memory of the result."""
    world = World(VolatileEngine(), "SELECT COUNT(*) AS n FROM r", tmp_path, 3)
    world.step(40)
    read, count = world.engine.result(), len(world.rows)
    world.step(40)
    assert read.to_pylist() == [{"n": count}] != world.engine.result().to_pylist()


def test_the_first_rows_of_one_that_is_told_of_no_change(tmp_path: Path) -> None:
    """Its memory of them is not up to date."""
    world = World(VolatileEngine(), "SELECT k, SUM(v) AS s FROM r GROUP BY k ORDER BY s DESC, k LIMIT 2", tmp_path, 4)
    plan, input = world.engine._compiled.plan, world.engine._executor.input  # type: ignore[attr-defined]
    unheard = LocalExecutor(plan, input, with_changes=False)
    for _ in range(6):
        world.step(20)
        unheard.step()
        assert unheard.final()[0].to_pylist() == world.engine.result().to_pylist()
