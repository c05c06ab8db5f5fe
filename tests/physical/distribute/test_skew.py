"""One hot key does not make one hot partition: nine of ten rows have the same, and are spread all the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.messages.deltas import unpack_deltas
from squallpy.testing.engines import PartitionedEngine

STREAMS = """
CREATE STREAM s (k BIGINT, u BIGINT, v BIGINT, d BIGINT) USING csv OPTIONS (path 's.csv');
CREATE STREAM d (d BIGINT, w BIGINT) USING csv OPTIONS (path 'd.csv');
"""
ROWS, PARTITIONS, DAYS = 20_000, 3, 500


class Weighed(PartitionedEngine):
    """How many rows each partition is sent by the readers of a batch."""

    def sent(self, batch: int) -> list[int]:
        rows = [0] * PARTITIONS
        for split, slices in enumerate(self._input.split(self._input.step(batch), self.SPLITS)):
            for target, message in self._sender.messages(split, slices):
                rows[target] += sum(len(delta.keys) for delta in unpack_deltas(message, Dictionary())[1])
        return rows


@pytest.fixture
def sent(tmp_path: Path) -> Callable[..., Any]:
    """The rows that a query's partitions are sent."""

    def run(sql: str) -> NDArray[np.int64]:
        random = np.random.default_rng(7)
        hot = random.random(ROWS) < 0.9
        s = pa.table(
            {
                "k": np.where(hot, 7, random.integers(0, 1000, ROWS)),
                "u": random.integers(0, 10**6, ROWS),
                "v": random.integers(0, 100, ROWS),
                "d": random.integers(0, DAYS, ROWS),
            }
        )
        engine = Weighed(PARTITIONS)
        engine.start(STREAMS + sql, tmp_path, {})
        engine.push({"s": s, "d": pa.table({"d": np.arange(DAYS), "w": np.arange(DAYS)})})
        return np.array(engine.sent(0))

    return run


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, COUNT(DISTINCT u) FROM s GROUP BY k;",
        "SELECT s.k, SUM(s.v * d.w) FROM s, d WHERE s.d = d.d GROUP BY s.k;",
        "SELECT s.k, COUNT(DISTINCT s.u) FROM s, d WHERE s.d = d.d GROUP BY s.k;",
    ],
)
def oracle_a_hot_group_is_spread(sent: Callable[..., Any], sql: str) -> None:
    rows = sent(sql)
    assert rows.max() < 1.2 * rows.mean()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, COUNT(*), SUM(v) FROM s GROUP BY k;",
        "SELECT a.k, SUM(a.v + b.v) FROM s a, s b WHERE a.k = b.k GROUP BY a.k;",
    ],
)
def oracle_a_hot_key_is_added_up_before_it_is_sent(sent: Callable[..., Any], sql: str) -> None:
    assert sent(sql).max() < ROWS / 5
