"""Row groups that are decoded ahead of time, by a thread."""

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import squallpy.runtime.formats.row_groups as row_groups
from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, TIMESTAMP, VARCHAR, Type
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.row_groups import RowGroup, RowGroupCache
from squallpy.runtime.sources import open_source

GROUP = 10  # rows


class Decoder:
    """A decoder of groups of ten rows, which notes the groups and its threads."""

    def __init__(self, damaged: int = -1) -> None:
        self.damaged = damaged
        self.decoded = list[tuple[int, bool]]()

    def __call__(self, group: int, is_ahead: bool = False) -> RowGroup:
        assert is_ahead == (threading.current_thread() is not threading.main_thread())
        self.decoded.append((group, is_ahead))
        if group == self.damaged:
            raise SquallError("SQ4001", "damaged")
        return RowGroup(pa.table({"a": range(GROUP * group, GROUP * (group + 1))}), {}, {}, None)

    def read(self, cache: RowGroupCache, start: int, stop: int) -> list[int]:
        """Read rows as a file does."""
        rows = list[int]()
        for group in range(start // GROUP, -(-stop // GROUP)):
            rows += cache.get("file", group, self).table["a"].to_pylist()
        cache.look_ahead("file", (start, stop), (group, GROUP * group, GROUP * (group + 1)), self)
        skip = start // GROUP * GROUP
        return rows[start - skip : stop - skip]


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_has_cores", lambda: True)


def test_rows_that_are_read_in_order_find_their_row_group_decoded() -> None:
    cache, decoder = RowGroupCache(), Decoder()
    for start in range(0, 65, 5):
        assert decoder.read(cache, start, start + 5) == list(range(start, start + 5))
    assert [number for number, _ in decoder.decoded] == [0, 1, 2, 3, 4, 5, 6]
    assert [number for number, is_ahead in decoder.decoded if not is_ahead] == [0, 1]


@pytest.mark.parametrize("starts", [(0, 30, 10, 50, 20), (0, 5, 20, 25, 40, 45)])
def test_rows_out_of_order_are_decoded_when_they_are_read(starts: tuple[int, ...]) -> None:
    cache, decoder = RowGroupCache(), Decoder()
    for start in starts:
        assert decoder.read(cache, start, start + 5) == list(range(start, start + 5))
    assert not any(is_ahead for _, is_ahead in decoder.decoded)


def test_tasks_that_read_the_same_batch_one_after_the_other_read_in_order() -> None:
    cache, decoder = RowGroupCache(), Decoder()
    for start in range(0, 65, 5):
        for _ in range(2):
            assert decoder.read(cache, start, start + 5) == list(range(start, start + 5))
    assert len(decoder.decoded) == 7 and any(is_ahead for _, is_ahead in decoder.decoded)


def test_rows_elsewhere_are_not_mistaken_for_those_decoded_ahead() -> None:
    cache, decoder = RowGroupCache(), Decoder()
    for start in range(0, 30, 5):
        decoder.read(cache, start, start + 5)
    assert decoder.read(cache, 52, 57) == list(range(52, 57))
    assert decoder.read(cache, 30, 35) == list(range(30, 35))
    assert {(5, False), (3, False)} <= {*decoder.decoded}


def test_a_fault_is_reported_when_its_rows_are_read_and_not_before() -> None:
    cache, decoder = RowGroupCache(), Decoder(damaged=3)
    for start in range(0, 30, 5):
        decoder.read(cache, start, start + 5)
    for is_ahead in (True, False):
        with pytest.raises(SquallError, match="damaged"):
            decoder.read(cache, 30, 35)
        assert decoder.decoded[-1] == (3, is_ahead)


def test_large_row_groups_are_decoded_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_AHEAD", 8 * GROUP - 1)
    cache, decoder = RowGroupCache(), Decoder()
    for start in range(0, 60, 5):
        decoder.read(cache, start, start + 5)
    assert not any(is_ahead for _, is_ahead in decoder.decoded)


@pytest.mark.parametrize("type, stored", [(BIGINT, pa.int64()), (TIMESTAMP, pa.timestamp("ns"))])
@pytest.mark.parametrize("with_checksum", [False, True])
@pytest.mark.parametrize("size", [30, 100, 250])
def test_a_file_is_read_the_same_ahead_of_time(
    tmp_path: Path, type: Type, stored: pa.DataType, with_checksum: bool, size: int
) -> None:
    values = pa.array([None if i % 7 == 3 else 1000 * i for i in range(1000)], pa.int64())
    table = pa.table({"a": values.cast(stored), "b": [f"text {i % 5}" for i in range(1000)]})
    pq.write_table(table, tmp_path / "r.parquet", row_group_size=100, use_deprecated_int96_timestamps=True)
    fields = (Field("a", type), Field("b", VARCHAR))
    source = open_source(Relation("r", fields, True, "parquet", {"path": "r.parquet"}), tmp_path, with_checksum)
    read = [source.read(at, min(1000, at + size), ("a", "b")) for at in range(0, 1000, size)]
    expected = table["a"].cast(pa.timestamp("us") if type == TIMESTAMP else pa.int64())
    assert [v for part in read for v in part["a"].cast(expected.type).to_pylist()] == expected.to_pylist()
    assert [v for part in read for v in part["b"].to_pylist()] == table["b"].to_pylist()
