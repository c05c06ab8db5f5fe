"""Parquet: types as files have them, ranges over row groups and files, decoded once."""

import datetime
import pickle
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import squallpy.runtime.formats.parquet as parquet
from squallpy.base.errors import SquallError
from squallpy.base.text_casts import parse
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DAY_TO_SECOND, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.parquet import ParquetPart
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.sources import infer_fields, open_source
from squallpy.runtime.sources.source import FileSource

UUIDS = (0, 1, 0x123456789ABCDEF, 2**128 - 1)


def relation(fields: dict[str, Type], **options: str) -> Relation:
    columns = tuple(Field(name, type) for name, type in fields.items())
    return Relation("r", columns, True, "parquet", {"path": "r.parquet", **options})


def read(folder: Path, values: pa.Array, type: Type, **options: str) -> list[Any]:
    pq.write_table(pa.table({"a": values}), folder / "r.parquet")
    source = open_source(relation({"a": type}, **options), folder)
    return source.read(0, source.rows, ("a",))["a"].to_pylist()


@pytest.mark.parametrize(
    "values, type",
    [
        (pa.array([1, None, -5], pa.int16()), INT),
        (pa.array([1, 2], pa.int32()), BIGINT),
        (pa.array([1, 2], pa.int64()), decimal(15, 2)),
        (pa.array([1, 2], pa.uint64()), BIGINT),
        (pa.array(["1.5", None]).cast(pa.decimal128(20, 1)), decimal(10, 2)),
        (pa.array([1.25, 2.0]), decimal(10, 2)),
        (pa.array([1.5, 2.0], pa.float32()), DOUBLE),
        (pa.array(["x", None, "é"], pa.string_view()), VARCHAR),
        (pa.array(["x", None, "x"]).dictionary_encode(), VARCHAR),
        (pa.array([True, None]), BOOLEAN),
        (pa.array([datetime.date(2024, 1, 1)], pa.date64()), DATE),
        (pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("ns")), DATE),
        (pa.array([datetime.datetime(2024, 1, 1, 2)], pa.timestamp("ms", "UTC")), TIMESTAMP),
        (pa.array([datetime.timedelta(days=-2, seconds=1), None], pa.duration("ms")), DAY_TO_SECOND),
        (pa.array(["-1 23:59:59", None, "INTERVAL '0 00:00:00.000001' DAY TO SECOND"]), DAY_TO_SECOND),
        (pa.nulls(2), INT),
    ],
)
def test_a_files_types_become_the_declared_ones(tmp_path: Path, values: pa.Array, type: Type) -> None:
    def plain(value: Any) -> Any:
        if type == DAY_TO_SECOND and isinstance(value, str):
            return datetime.timedelta(microseconds=int(parse(value, type)))
        value = value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
        return value.date() if type == DATE and isinstance(value, datetime.datetime) else value

    assert read(tmp_path, values, type) == [plain(value) for value in values.to_pylist()]


@pytest.mark.parametrize(
    "values, type",
    [
        (pa.array([1, 2**40]), INT),
        (pa.array([1.0, 1.5]), BIGINT),
        (pa.array([1.0, 1.555]), decimal(10, 2)),
        (pa.array([1, 10**9]), decimal(5, 2)),
        (pa.array(["1.55", "1.555"]).cast(pa.decimal128(10, 3)), decimal(10, 2)),
        (pa.array([datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 2)]), DATE),
        (pa.array(["1", "x"]), INT),
        (pa.array(["0 00:00:00", "0 24:00:00"]), DAY_TO_SECOND),
        (pa.array([0, 2**60], pa.duration("s")), DAY_TO_SECOND),
        (pa.array([0, 2_932_897], pa.int32()).cast(pa.date32()), DATE),
        (pa.array([0, -719_163], pa.int32()).cast(pa.date32()), DATE),
        (pa.array([0, 253_402_300_800_000_000]).cast(pa.timestamp("us")), TIMESTAMP),
        (pa.array([0, 2**60]).cast(pa.timestamp("ms")), TIMESTAMP),
        (pa.array([0, 253_402_300_800_000]).cast(pa.timestamp("ms")), DATE),
    ],
)
def test_what_would_be_lost_is_an_error_or_left_out(tmp_path: Path, values: pa.Array, type: Type) -> None:
    with pytest.raises(SquallError, match=r'SQ4004 .*r.parquet, row 2: column "a": .* is not a valid'):
        read(tmp_path, values, type)
    assert len(read(tmp_path, values, type, on_error="skip")) == 1


def test_types_that_cannot_be_are_refused_at_once(tmp_path: Path) -> None:
    for value, type in (([1], INT), (1, BOOLEAN), (1, DATE), (1.5, VARCHAR)):
        with pytest.raises(SquallError, match=r'SQ4002 .*r.parquet: column "a" is .*, declared'):
            read(tmp_path, pa.array([value]), type)


def test_an_operation_column_that_says_nothing_is_refused_at_once(tmp_path: Path) -> None:
    pq.write_table(pa.table({"op": [[1]], "a": [1]}), tmp_path / "r.parquet")
    with pytest.raises(SquallError, match=r'SQ4002 .*r.parquet: column "op" is list<.*, which has no SQL type'):
        open_source(relation({"a": INT}, op="op"), tmp_path)


def test_any_range_over_row_groups_and_files_decodes_each_group_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in range(3):
        rows = pa.table({"n": range(part * 1000, part * 1000 + 1000), "other": ["x"] * 1000})
        pq.write_table(rows, tmp_path / f"part-{part}.parquet", row_group_size=300)
    source = pickle.loads(pickle.dumps(open_source(relation({"N": BIGINT, "other": VARCHAR}, path="."), tmp_path)))
    decoded, decode = [], parquet._decode
    monkeypatch.setattr(parquet, "_decode", lambda *group: decoded.append(group) or decode(*group))
    for start in range(0, 3000, 70):
        stop = min(3000, start + 70)
        assert source.read(start, stop, ("N",))["N"].to_pylist() == list(range(start, stop))
    assert len(decoded) == 3 * 4
    assert source.read(100, 2500, ()).num_rows == 2400


def test_change_streams_and_columns_that_are_not_declared(tmp_path: Path) -> None:
    rows = {
        "__op": [1, -1, 7],
        "d": pa.array(["1.5"] * 3).cast(pa.decimal128(5, 1)),
        "t": pa.array([0] * 3, pa.date32()),
    }
    pq.write_table(pa.table(rows), tmp_path / "r.parquet")
    fields = infer_fields(relation({}, op="__op"), tmp_path)
    assert [(f.name, f.type) for f in fields] == [("d", decimal(5, 1)), ("t", DATE)]
    source = open_source(Relation("r", fields, True, "parquet", {"path": "r.parquet", "op": "__op"}), tmp_path)
    with pytest.raises(SquallError, match=r"SQ4005 .*row 3"):
        source.read(0, 3, ())
    assert source.read(0, 2, ())["__mult"].to_pylist() == [1, -1]
    skipping = Relation("r", fields, True, "parquet", {"path": "r.parquet", "op": "__op", "on_error": "skip"})
    with pytest.raises(SquallError, match=r"SQ4005 .*row 3"):
        open_source(skipping, tmp_path).read(1, 3, ("d",))


def test_missing_columns_and_files_that_are_not_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"prize": [1]}), tmp_path / "r.parquet")
    with pytest.raises(SquallError, match=r'SQ4002 .* has no column "price", did you mean "prize"'):
        open_source(relation({"price": INT}), tmp_path)
    (tmp_path / "r.parquet").write_text("no parquet at all")
    with pytest.raises(SquallError, match=r"SQ4001 .*r.parquet is not a parquet file"):
        open_source(relation({"a": INT}), tmp_path)
    (tmp_path / "r.parquet").write_text("")
    assert open_source(relation({"a": INT}), tmp_path).rows == 0


def test_empty_row_groups(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.int32())}), tmp_path / "r.parquet")
    source = open_source(relation({"a": INT}), tmp_path)
    assert source.read(0, 0, ("a",)).schema.types == [pa.int64()]


def test_texts_of_few_values_are_read_by_their_dictionary(tmp_path: Path) -> None:
    """Also where it is another one in the next row group, tells the operation, or holds bytes or a date."""
    few = ["x", None, "é", "", "x"] * 40
    columns = {
        "few": few,
        "other": ["a"] * 100 + ["b", None] * 50,
        "many": [f"{i} {i**99}" for i in range(200)],
        "day": ["2024-02-29", None] * 100,
        "bytes": pa.array([b"x", b"y"] * 100, pa.binary()),
        "op": ["+", "-"] * 100,
        "inside": [{"few": "x"}] * 200,
    }
    pq.write_table(pa.table(columns), tmp_path / "r.parquet", row_group_size=100)
    fields = {"few": VARCHAR, "OTHER": VARCHAR, "many": VARCHAR, "day": DATE, "bytes": VARCHAR}
    source = open_source(relation(fields, op="op"), tmp_path)
    (part,) = source.parts
    assert parquet._few_valued(part.file) == ("few", "other", "day", "bytes", "op")
    for with_checksum in (False, True):
        rows = part.read(0, 200, source.relation.fields, "op", with_checksum).table
        assert rows["few"].to_pylist() == few and rows["few"].type == pa.string()
        assert rows["OTHER"].to_pylist() == columns["other"] and rows["many"].to_pylist() == columns["many"]
        assert rows["day"].to_pylist() == [datetime.date(2024, 2, 29), None] * 100
        assert rows["bytes"].to_pylist() == ["x", "y"] * 100 and rows["__mult"].to_pylist() == [1, -1] * 100


def shares(source: FileSource, start: int, stop: int, count: int) -> list[tuple[int, int]]:
    return [(part.start, part.stop) for part in source.split({"row": start}, {"row": stop}, count)]


def test_readers_share_rows_where_row_groups_end(tmp_path: Path) -> None:
    """… which may be those of several files; but not where a share would have more than twice its part, or nothing."""
    for name, rows in (("r-0", 250), ("r-1", 150)):
        pq.write_table(pa.table({"a": range(rows)}), tmp_path / f"{name}.parquet", row_group_size=100)
    source = open_source(relation({"a": INT}, path="r-*.parquet"), tmp_path)
    assert shares(source, 0, 400, 2) == [(0, 200), (200, 400)]
    assert shares(source, 30, 400, 2) == [(30, 200), (200, 400)]
    assert shares(source, 0, 400, 4) == [(0, 100), (100, 200), (200, 300), (300, 400)]  # 250 and 350 are too far
    assert shares(source, 110, 190, 2) == [(110, 150), (150, 190)]
    assert shares(source, 199, 202, 3) == [(199, 200), (200, 201), (201, 202)]
    assert shares(source, 7, 7, 2) == [(7, 7), (7, 7)]


@given(
    ends=st.lists(st.integers(0, 200), min_size=2).map(sorted),
    rows=st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted),
    count=st.integers(1, 9),
)
def property_shares_are_all_rows_each_once(ends: list[int], rows: list[int], count: int) -> None:
    source = FileSource(relation({"a": INT}), (ParquetPart(File("r.parquet", 0, 0, "r.parquet"), (0, *ends)),))
    found = shares(source, rows[0], rows[1], count)
    assert [row for begin, end in found for row in range(begin, end)] == list(range(*rows))


def test_nanoseconds_are_cut_off(tmp_path: Path) -> None:
    times = pa.array([1_700_000_000_123_456_789, None, -1, -1000], pa.timestamp("ns"))
    first, last = (
        datetime.datetime(2023, 11, 14, 22, 13, 20, 123456),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    )
    assert read(tmp_path, times, TIMESTAMP) == [first, None, last, last]
    assert read(tmp_path, times.cast(pa.timestamp("ns", "Europe/Paris")), TIMESTAMP) == [first, None, last, last]


def test_int96_of_any_year(tmp_path: Path) -> None:
    times = [datetime.datetime(1, 1, 1), datetime.datetime(1500, 2, 3, 4, 5, 6, 7), datetime.datetime(9999, 12, 31, 23)]
    table = pa.table({"a": pa.array(times, pa.timestamp("us")), "n": [1, 2, 3]})
    pq.write_table(table, tmp_path / "r.parquet", use_deprecated_int96_timestamps=True)
    source = open_source(relation({"a": TIMESTAMP}), tmp_path)
    assert source.read(0, source.rows, ("a",))["a"].to_pylist() == times


def test_int96_that_wraps_around_in_microseconds_is_refused(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"a": pa.array([None, 0, -1], pa.timestamp("us"))}), tmp_path / "r.parquet", compression="none",
        use_deprecated_int96_timestamps=True, use_dictionary=False, write_statistics=False,
    )  # fmt: skip
    day = (2_440_588).to_bytes(4, "little")  # Julian
    plain = (tmp_path / "r.parquet").read_bytes()
    table = open_source(relation({"a": TIMESTAMP}), tmp_path).read(0, 3, ("a",))
    assert table["a"].to_pylist() == [
        None,
        datetime.datetime(1970, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    ]
    assert plain.count(day) == 1
    (tmp_path / "r.parquet").write_bytes(plain.replace(day, (215_944_570).to_bytes(4, "little")))
    with pytest.raises(SquallError, match=r"SQ4004 .*outside the years 1 to 9999"):
        open_source(relation({"a": TIMESTAMP}), tmp_path).read(0, 3, ("a",))


@pytest.mark.parametrize(
    "values, type",
    [
        (pa.array([253_402_300_800_000_000], pa.timestamp("us")), TIMESTAMP),
        (pa.array([-62_135_596_800_000_001], pa.timestamp("us", "UTC")), TIMESTAMP),
        (pa.array([2**50], pa.timestamp("ms")), TIMESTAMP),
        (pa.array([2_932_897], pa.int32()).view(pa.date32()), DATE),
        (pa.array([2_932_897], pa.int32()).view(pa.date32()), TIMESTAMP),
        (pa.array([-719_163], pa.int32()).view(pa.date32()), DATE),
    ],
)
def test_years_outside_1_to_9999_are_refused_where_they_are_read(tmp_path: Path, values: pa.Array, type: Type) -> None:
    with pytest.raises(SquallError, match=r"SQ4004 .*outside the years 1 to 9999"):
        read(tmp_path, values, type)
    pq.write_table(pa.table({"a": values, "n": [5]}), tmp_path / "r.parquet")
    source = open_source(relation({"n": BIGINT}), tmp_path)
    assert source.read(0, 1, ("n",))["n"].to_pylist() == [5]


@pytest.mark.parametrize(
    "values, inferred, read_as",
    [
        (pa.array([1, 255], pa.uint8()), INT, [1, 255]),
        (pa.array([1, 2**32 - 1], pa.uint32()), BIGINT, [1, 2**32 - 1]),
        (pa.array([1, 2**64 - 1], pa.uint64()), decimal(20, 0), [1, 2**64 - 1]),
        (pa.array([b"ab", None], pa.binary()), VARCHAR, ["ab", None]),
        (pa.array([b"ab", None], pa.binary(2)), VARCHAR, ["ab", None]),
        (
            pa.array([uuid.UUID(int=2**127 + 5).bytes, None, bytes(16)], pa.uuid()),
            VARCHAR,
            ["80000000-0000-0000-0000-000000000005", None, "00000000-0000-0000-0000-000000000000"],
        ),
        (pa.array([uuid.UUID(int=n).bytes for n in UUIDS], pa.uuid()), VARCHAR, [str(uuid.UUID(int=n)) for n in UUIDS]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), VARCHAR, ["x", "y", "x"]),
        (
            pa.array([datetime.datetime(2026, 7, 1, 10), None], pa.timestamp("ms", "Europe/Vienna")),
            TIMESTAMP,
            [datetime.datetime(2026, 7, 1, 10), None],
        ),
    ],
)
def test_types_of_the_world(tmp_path: Path, values: pa.Array, inferred: Type, read_as: list[Any]) -> None:
    """Unsigned numbers, bytes, UUIDs, enums, and moments, which are in UTC."""
    assert read(tmp_path, values, inferred) == read_as
    assert infer_fields(relation({}), tmp_path) == (Field("a", inferred),)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r"SQ4004 .*row 2: column \"a\": .* is not a valid VARCHAR"):
        read(tmp_path, pa.array([b"ab", b"\xff\0"], pa.binary(2)), VARCHAR)
