"""Rows that break a PRIMARY KEY end the query, or are counted once where their source skips such rows."""

from pathlib import Path

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import MULT
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
