"""What a plan is estimated to send, and what a row of a delta really takes in a message."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.rings import Payload, Ring
from squallpy.base.types import BIGINT, VARCHAR, Type
from squallpy.logical.expressions import Column
from squallpy.physical.network_cost import row_bytes, traffic
from squallpy.physical.plan import PoolPlan
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.messages.deltas import Delta, pack_deltas
from squallpy.script_session import ScriptSession

STREAMS = """
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (b INT NOT NULL, c VARCHAR NOT NULL) USING csv OPTIONS (path 's.csv');
"""
SIZES = {"r": 100_000, "s": 100_000}


def estimate(tmp_path: Path, query: str, partitions: int = 4) -> dict[str, float]:
    (tmp_path / "q.sql").write_text(STREAMS + query)
    session = ScriptSession(tmp_path / "q.sql")
    return traffic(session.compile(session.script.queries[0], partitions, SIZES).plan)


@pytest.mark.parametrize(
    ("query", "bytes"),
    [
        # ΔR(b)⟨1⟩ and ΔS(b)⟨1⟩, each to one of the partitions
        ("SELECT r.b, COUNT(*) FROM r JOIN s ON r.b = s.b GROUP BY r.b;", {"r": 5, "s": 5}),
        # a text, and where it starts
        ("SELECT c, COUNT(*) FROM r JOIN s ON r.b = s.b GROUP BY c;", {"r": 5, "s": 5 + 20}),
        # readers do it all
        ("SELECT b, COUNT(*) FROM r GROUP BY b;", {"r": 0}),
    ],
)
def golden_bytes_per_tuple(tmp_path: Path, query: str, bytes: dict[str, int]) -> None:
    assert estimate(tmp_path, query) == bytes


def golden_what_goes_to_several_partitions_counts_for_each(tmp_path: Path) -> None:
    query = "SELECT COUNT(*) FROM r JOIN s ON r.b < s.b;"
    one, two, eight = (estimate(tmp_path, query, partitions) for partitions in (1, 2, 8))
    assert one == {"r": 5, "s": 5}
    assert two == {"r": 2 * 5, "s": 5}
    assert eight == {"r": 4 * 5, "s": 2 * 5}


@pytest.mark.parametrize("types", [(), (BIGINT,), (BIGINT, VARCHAR), (VARCHAR, VARCHAR, BIGINT)])
def oracle_a_row_takes_that_in_a_message(types: tuple[Type]) -> None:
    columns = tuple(Column(i, f"c{i}", type) for i, type in enumerate(types))
    pool, names = PoolPlan("ΔR", columns, Payload((Ring.COUNT, Ring.EXACT))), Dictionary()
    texts = names.intern(pa.array([f"a text of 16 {i:03d}" for i in range(640)]))

    def message(rows: int) -> int:
        keys = np.zeros((rows, len(types)), np.int64)
        for i, type in enumerate(types):
            keys[:, i] = texts[:rows] if type is VARCHAR else np.arange(rows) << 21
        words = np.zeros((rows, pool.payload.width), np.int64)
        words[:, 0], words[:, 1] = np.arange(rows) % 200, np.arange(rows) << 21
        return len(pack_deltas([(Delta("ΔR", keys, words), columns)], names, {}))

    assert (message(640) - message(320)) / 320 == pytest.approx(row_bytes(pool), rel=0.02)
