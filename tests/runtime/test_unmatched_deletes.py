"""Deletes of rows that are not there are counted once, whoever reads them."""

from pathlib import Path

import pyarrow as pa
import pytest

from squallpy.catalog.relation import MULT
from squallpy.testing.engines import PartitionedEngine

SCRIPT = """
CREATE STREAM r (k INT, v VARCHAR) USING csv OPTIONS (path 'r', op 'op');
SELECT k, COUNT(*) AS n FROM r GROUP BY k;
"""
BATCHES = (  # k, multiplicity; the first half of a batch has one reader, the other half another
    ([(1, -1)] * 4, 4),
    ([(1, 1), (2, -1), (1, 1), (2, 1)], 0),
    ([(1, 1), (1, 1), (1, -1), (3, 1)], 0),
    ([(3, -1), (4, -1), (3, -1), (4, -1), (1, -1)], 4),
)


@pytest.mark.parametrize("partitions", [1, 3])
def test_deletes_that_several_readers_have(partitions: int, tmp_path: Path) -> None:
    engine, counted = PartitionedEngine(partitions), []
    engine.start(SCRIPT, tmp_path, {})
    for changes, _ in BATCHES:
        keys, signs = zip(*changes, strict=True)
        engine.push({"r": pa.table({"k": pa.array(keys, pa.int32()), "v": ["x"] * len(keys), MULT: signs})})
        counted.append(engine.stats["unmatched"])
    assert counted == [unmatched for _, unmatched in BATCHES]
