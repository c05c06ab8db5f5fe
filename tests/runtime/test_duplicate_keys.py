"""Rows that break a PRIMARY KEY end the query, or are counted once where their source skips such rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import MULT
from squallpy.runtime.kernels.pool_layout import APPENDED
from squallpy.runtime.observers.report import BatchReport
from squallpy.testing.engines import MemoryEngine, PartitionedEngine, VolatileEngine

SCRIPT = """
CREATE STREAM p (k VARCHAR, d DECIMAL(5,2), v INT, PRIMARY KEY (d, k))
    USING csv OPTIONS (path 'some/p.csv', op 'op', on_error '{}');
SELECT k, d, SUM(v) AS s FROM p GROUP BY k, d;
"""
BATCHES = (  # (k, d, v), multiplicity; and the rows above one of a key that came in the batch
    ([(("a", "1.50", 1), 1), (("b", "1.50", 1), 1), (("a", "2.50", 1), 1)], 0),
    ([(("a", "1.50", 7), 1)], 1),
    ([(("a", "1.50", 7), -1), (("b", "1.50", 1), -1), (("b", "1.50", 2), 1)], 0),
    ([(("b", "1.50", 2), 1), (("b", "1.50", 3), 1), (("c", "0.00", 3), 1)], 2),
)


def push(engine: MemoryEngine, rows: list[tuple[tuple[str, str, int], int]]) -> None:
    (k, d, v), signs = zip(*(row for row, _ in rows), strict=True), [sign for _, sign in rows]
    decimals = pa.array(d).cast(pa.decimal128(5, 2))
    engine.push({"p": pa.table({"k": k, "d": decimals, "v": pa.array(v, pa.int32()), MULT: signs})})


@pytest.mark.parametrize("partitions", [1, 3])
def test_duplicates_are_counted(partitions: int, tmp_path: Path) -> None:
    engine = PartitionedEngine(partitions)
    engine.start(SCRIPT.format("skip"), tmp_path, {})
    counted = []
    for rows, _ in BATCHES:
        push(engine, rows)
        counted.append(engine.stats["duplicates"])
    assert counted == [count for _, count in BATCHES]


def test_a_duplicate_names_file_and_key(tmp_path: Path) -> None:
    engine = VolatileEngine()
    engine.start(SCRIPT.format("fail"), tmp_path, {})
    push(engine, BATCHES[0][0])
    with pytest.raises(SquallError, match=r"SQ4007 some/p.csv: 2 rows have PRIMARY KEY .*d = 1.50.*") as caught:
        push(engine, BATCHES[1][0])
    assert "k = a" in str(caught.value)


def test_duplicates_among_rows_that_are_not_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, rows of keys that hardly repeat stand one behind the other: one of them may be there twice."""
    engine = VolatileEngine(compile="wait")
    streams = """CREATE STREAM p (k INT, v INT NOT NULL, PRIMARY KEY (k))
        USING csv OPTIONS (path 'p', op 'op', on_error 'skip');
    CREATE STREAM t (k INT NOT NULL, w INT NOT NULL) USING csv OPTIONS (path 't', op 'op');"""
    engine.start(f"{streams} SELECT SUM(v * w) AS s FROM p JOIN t ON p.k = t.k;", tmp_path, {})
    executor = engine._executor
    direct, step, reports = executor._direct, executor.step, list[BatchReport]()
    assert direct

    def noting(*given: Any) -> Any:
        done = step(*given)
        reports.append(done[1])
        return done

    monkeypatch.setattr(executor, "step", noting)
    old, new = range(100), range(4500, 6000)
    appended = list[bool]()
    for keys in (range(1500), range(1500, 3000), range(3000, 4500), [*old, *new, *new[:50]]):
        engine.push({"p": pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array([1] * len(keys), pa.int32())})})
        (delta,) = (delta for name, delta in direct._sums.items() if name in direct._by_row and len(delta))
        appended.append(delta._area.head[APPENDED] == 1)
    assert [report.duplicates for report in reports] == [0, 0, 0, 150] and appended[-1]
