"""Changes of a batch are printed when they are read: under the state of their batch, and with its errors."""

from pathlib import Path

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.testing.engines import VolatileEngine

SUMS = "CREATE STREAM r (k VARCHAR, v BIGINT);\nSELECT k, SUM(v) AS s FROM r GROUP BY k;"


def engine(tmp_path: Path, script: str = SUMS) -> VolatileEngine:
    made = VolatileEngine()
    made.start(script.replace(");", ") USING csv OPTIONS (path 'r', op 'op');", 1), tmp_path, {})
    return made


def rows(*values: tuple[str, int]) -> dict[str, pa.Table]:
    keys, numbers = zip(*values, strict=True)
    return {
        "r": pa.table({"k": pa.array(keys, pa.string()), "v": pa.array(numbers, pa.int64()), "__mult": [1] * len(keys)})
    }


def test_changes_hold_after_the_next_batch(tmp_path: Path) -> None:
    running = engine(tmp_path)
    running._add_batch(rows(("a", 1), ("b", 2)))
    (first,) = running._step()
    running._add_batch(rows(("a", 10)))
    (second,) = running._step()
    assert first and second
    assert second.deletes.to_pylist() == [{"k": "a", "s": 1}] and second.inserts.to_pylist() == [{"k": "a", "s": 11}]
    assert not len(first.deletes) and first.inserts.to_pylist() == [{"k": "a", "s": 1}, {"k": "b", "s": 2}]


def test_a_sum_without_room_is_an_error_where_it_is_printed(tmp_path: Path) -> None:
    running = engine(tmp_path)
    running._add_batch(rows(("a", 2**62), ("a", 2**62)))
    (changes,) = running._step()
    assert changes
    with pytest.raises(SquallError, match="SQ5001"):
        assert changes.inserts


def test_changes_of_one_result_under_two_names(tmp_path: Path) -> None:
    running = engine(tmp_path, SUMS + "\nSELECT k AS a, SUM(v) AS b FROM r GROUP BY k;")
    running._add_batch(rows(("a", 1)))
    assert [some.inserts.to_pylist() for some in running._step() if some] == [
        [{"k": "a", "s": 1}],
        [{"a": "a", "b": 1}],
    ]
