"""Large batches of wide payloads, which compiled triggers apply piece by piece, beside the generic kernels."""

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from squallpy.runtime.kernels.kernel_compiler import VECTOR, Vector, address, kernel
from squallpy.runtime.kernels.key_marks import MARKS, clear_marks, mark_key
from squallpy.testing.engines import VolatileEngine

FEATURES = tuple(f"x{i}" for i in range(8))
SCRIPT = f"""CREATE STREAM r (k BIGINT NOT NULL, {", ".join(f"{x} DOUBLE NOT NULL" for x in FEATURES)})
USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (k BIGINT NOT NULL, g INT NOT NULL, y DOUBLE) USING csv OPTIONS (path 's');
CREATE STREAM t (g INT NOT NULL, z DOUBLE NOT NULL) USING csv OPTIONS (path 't');
SELECT * FROM cofactor(TABLE(SELECT {", ".join(FEATURES)}, y, z FROM r NATURAL JOIN s NATURAL JOIN t));"""
REFUSED = -(2**63) + 5  # a BIGINT that compiled code leaves to the generic evaluators


def rows(draw: Random, keys: list[int]) -> dict[str, pa.Table]:
    """Rows of all streams, r and s with these keys; one in five of r is a delete of a row that is not there."""
    values = {x: [float(draw.randrange(-9, 9)) for _ in keys] for x in FEATURES}
    mult = [draw.choice((1, 1, 1, 1, -1)) for _ in keys]
    groups, y = [draw.randrange(30) for _ in keys], [draw.choice((None, 1.0, 2.0)) for _ in keys]
    return {
        "r": pa.table({"k": keys, **values, "__mult": mult}),
        "s": pa.table({"k": keys, "g": groups, "y": pa.array(y, pa.float64()), "__mult": [1] * len(keys)}),
        "t": pa.table({"g": [*range(30)], "z": [float(i % 7) for i in range(30)], "__mult": [1] * 30}),
    }


def differential_batches_in_pieces(tmp_path: Path) -> None:
    """Keys that are distinct, that repeat, and one for which compiled code has no answer, in the last row: then nothing
    was applied before."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(SCRIPT, tmp_path / str(number), {})
    direct, draw = engines[0]._executor._direct, Random(0)
    assert direct and direct._copies  # the change of the result is the delta of the matrix
    distinct, repeated = draw.sample(range(5000), 3000), [draw.randrange(50) for _ in range(3000)]
    widest = max(direct._sums.values(), key=lambda pool: pool.payload.width)
    for keys in (distinct[:20], distinct, repeated, [*distinct[1:], REFUSED], draw.sample(range(5000), 3000)):
        found = [engine.push(rows(Random(len(keys) + keys[0]), keys)) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])
        assert len(widest) == 0 if keys is distinct else len(widest) < 200
    assert sorted_rows(engines[0].result()) == sorted_rows(engines[1].result())
    assert engines[0].row_counts() == engines[1].row_counts()


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@kernel(f"int64({VECTOR}, {VECTOR})")
def count_fresh(marks: Vector, keys: Vector) -> int:
    """Estimate how many keys are distinct."""
    shift, fresh = clear_marks(address(marks), keys.shape[0]), 0
    for i in range(keys.shape[0]):
        fresh += mark_key(address(marks), shift, address(keys) + 8 * i, 1)
    return fresh


def test_distinct_keys_are_estimated() -> None:
    marks, random = np.full(MARKS, -1, np.int64), np.random.default_rng(0)
    for n in (1, 100, 3000, 30_000):
        keys = random.permutation(n) * 1000
        assert 0.9 * n <= count_fresh(marks, keys) <= n
        assert count_fresh(marks, keys % 7) <= 7
    assert count_fresh(marks, np.arange(1_000_000)) <= 64 * MARKS
