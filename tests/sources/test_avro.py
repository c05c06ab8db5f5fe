"""Avro files: types as schemas have them, ranges over blocks, and files at fault."""

import datetime
import json
import sys
import uuid
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.catalog.relation import MULT, Field, Relation
from squallpy.runtime.formats import avro
from squallpy.runtime.formats.avro_program import program_of
from squallpy.runtime.sources import infer_fields, open_source
from squallpy.runtime.sources.source import FileSource

UTC = datetime.UTC
LONGS = {"type": "record", "name": "r", "fields": [{"name": "k", "type": "long"}]}


def write(path: Path, type: Any, *values: Any, name: str = "a", codec: str = "null", interval: int = 16_000) -> Path:
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": name, "type": type}]})
    with path.open("wb") as sink:
        fastavro.writer(sink, schema, [{name: value} for value in values], codec=codec, sync_interval=interval)
    return path


def relation(path: Path, fields: dict[str, Type], **options: str) -> Relation:
    made = tuple(Field(name, type) for name, type in fields.items())
    return Relation("r", made, True, "avro", {"path": str(path), **options})


def opened(path: Path, fields: dict[str, Type] | None = None, **options: str) -> FileSource:
    wanted = relation(path, fields or {}, **options)
    if fields is None:
        found = infer_fields(wanted, path.parent)
        wanted = relation(path, {field.name: field.type for field in found}, **options)
    source = open_source(wanted, path.parent, with_checksum=True)
    source.check([field.name for field in wanted.fields])
    return source


def read(source: FileSource) -> list[Any]:
    return list(source.read(0, source.rows, ("a",))["a"].to_pylist())


@pytest.mark.parametrize(
    ("type", "value", "inferred", "read_as"),
    [
        ("int", 5, INT, 5),
        (["null", "long"], 2**40, BIGINT, 2**40),
        ("float", 1.5, DOUBLE, 1.5),
        ("boolean", True, BOOLEAN, True),
        (["int", "null", "double"], 2, DOUBLE, 2.0),
        ("bytes", b"ab", VARCHAR, "ab"),
        ({"type": "fixed", "name": "f", "size": 2}, b"ab", VARCHAR, "ab"),
        ({"type": "enum", "name": "e", "symbols": ["x", "y"]}, "y", VARCHAR, "y"),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=5), VARCHAR, str(uuid.UUID(int=5))),
        ({"type": "int", "logicalType": "date"}, datetime.date(1969, 12, 31), DATE, datetime.date(1969, 12, 31)),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime.datetime(2026, 1, 1, 10, tzinfo=UTC),
            TIMESTAMP,
            datetime.datetime(2026, 1, 1, 10),
        ),
        (
            ["null", {"type": "long", "logicalType": "local-timestamp-micros"}],
            datetime.datetime(1950, 1, 1, 10, 0, 0, 7),
            TIMESTAMP,
            datetime.datetime(1950, 1, 1, 10, 0, 0, 7),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            Decimal("-1.50"),
            decimal(9, 2),
            Decimal("-1.50"),
        ),
    ],
)
def test_types(tmp_path: Path, type: Any, value: Any, inferred: Type, read_as: Any) -> None:
    source = opened(write(tmp_path / "r.avro", type, value))
    assert source.relation.fields[0].type == inferred
    assert read(source) == [read_as]
    nullable = type if isinstance(type, list) else ["null", type]
    assert read(opened(write(tmp_path / "r.avro", nullable, value, None))) == [read_as, None]


def test_nested_types(tmp_path: Path) -> None:
    at = {"type": "long", "logicalType": "timestamp-millis"}
    inner = {
        "type": "record",
        "name": "i",
        "fields": [{"name": "x", "type": "int"}, {"name": "at", "type": ["null", at]}],
    }
    outer = {"type": "record", "name": "o", "fields": [
        {"name": "one", "type": inner}, {"name": "more", "type": {"type": "array", "items": ["null", "i"]}},
        {"name": "m", "type": {"type": "map", "values": "double"}},
    ]}  # fmt: skip
    value = {
        "one": {"x": 1, "at": datetime.datetime(2026, 1, 1, tzinfo=UTC)},
        "more": [None, {"x": 2}],
        "m": {"k": 0.5},
    }
    path = write(tmp_path / "r.avro", outer, value)
    inside = "STRUCT<x: INT, at: TIMESTAMP>"
    found = f"STRUCT<one: {inside}, more: ARRAY<{inside}>, m: MAP<VARCHAR, DOUBLE>>"
    assert str(opened(path).relation.fields[0].type) == found
    assert read(opened(path)) == [
        '{"one":{"x":1,"at":"2026-01-01 00:00:00"},"more":[null,{"x":2,"at":null}],"m":{"k":0.5}}'
    ]
    columns = (Field("a", INT, nested=("A", "one", "X")),)
    assert read(open_source(Relation("r", columns, True, "avro", {"path": str(path)}), tmp_path)) == [1]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2"])
@given(rows=st.integers(0, 400), interval=st.integers(1, 300), cuts=st.lists(st.integers(0, 400), max_size=3))
def property_any_range_over_blocks(
    tmp_path_factory: pytest.TempPathFactory, codec: str, rows: int, interval: int, cuts: list[int]
) -> None:
    """Checksums of ranges add up to that of all rows."""
    path = write(tmp_path_factory.mktemp("a") / "r.avro", "long", *range(rows), codec=codec, interval=interval)
    source, at = opened(path, {"a": BIGINT}), sorted({0, rows, *(cut for cut in cuts if cut < rows)})
    found, sum = list[int](), 0
    for start, stop in pairwise(at):
        piece = source.parts[0].read(start, stop, source.relation.fields, None, True)
        found += piece.table["a"].to_pylist()
        sum = (sum + piece.checksums[""]) % (1 << 64)
    assert found == list(range(rows))
    assert not rows or sum == source.parts[0].checksum(rows, ("a",))


def test_short_blocks_are_decoded_together(tmp_path: Path) -> None:
    path = write(tmp_path / "r.avro", ["null", "long"], *range(30_000), None, interval=100)
    source = opened(path, {"a": BIGINT})
    avro._decoded.cache_clear()
    source.parts[0].read(100, 200, source.relation.fields, None)
    assert read(source) == [*range(30_000), None]
    assert len(source.parts[0].seams) > 100
    assert avro._decoded.cache_info().misses == 2


def oracle_programs_read_what_the_library_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of a change stream, within records, of Debezium's types, and one that the file lacks."""
    day = {"type": "int", "connect.name": "io.debezium.time.Date"}
    inner = {"type": "record", "name": "i", "namespace": "x.y", "fields": [
        {"name": "Day", "type": ["null", day]}, {"name": "name", "type": "string"}]}  # fmt: skip
    more = {"type": "map", "values": {"type": "array", "items": ["null", "x.y.i"]}}
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "MZ_diff", "type": "long"}, {"name": "one", "type": ["null", inner]}, {"name": "two", "type": "x.y.i"},
        {"name": "more", "type": more},
    ]}  # fmt: skip
    ones = [{"Day": i, "name": f"é{i}"} if i % 2 else None for i in range(500)]
    two = {"Day": None, "name": ""}
    rows = [
        {"tags": ["x"] * (i % 3), "MZ_diff": 1 if i % 3 else -1, "one": one, "two": two,
         "more": {f"{n}": [two, None] * (i % 4) for n in range(i % 2)}}
        for i, one in enumerate(ones)
    ]  # fmt: skip
    assert program_of(json.dumps(schema), (("one", "name"),)) and not program_of(json.dumps(schema), (("tags",),))
    with (tmp_path / "r.avro").open("wb") as sink:
        fastavro.writer(sink, schema, rows, codec="deflate", sync_interval=200)
    paths = {"d": (DATE, "one.day"), "n": (VARCHAR, "one.NAME"), "m": (VARCHAR, "two.name"), "gone": (INT, "one.gone")}
    fields = tuple(Field(name, type, nested=tuple(path.split("."))) for name, (type, path) in paths.items())
    source = open_source(Relation("r", fields, True, "avro", {"path": str(tmp_path), "op": "mz_diff"}), tmp_path)
    source.check([*paths])

    def rows_read() -> Any:
        avro._decoded.cache_clear()
        return source.read(0, 500, tuple(paths)).to_pylist()

    found = rows_read()
    assert found[499] == {"d": datetime.date(1971, 5, 15), "n": "é499", "m": "", "gone": None, MULT: 1}
    monkeypatch.setattr(avro, "program_of", lambda *_: None)
    assert rows_read() == found


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("03 04 02 04 02 06 00 0e", 7),  # two items with their bytes before them, then one
        ("00 0e", 7),
        ("fe ff ff ff ff ff ff ff ff 01 0e", None),  # more items than there are bytes
        ("03 fe 01 02 04 00 0e", None),  # more bytes than there are
        ("03 01 00 0e", None),
        ("04 02", None),
    ],
)
def test_blocks_of_arrays(data: str, value: int | None) -> None:
    numbers = {"name": "a", "type": {"type": "array", "items": "int"}}
    schema = {"type": "record", "name": "r", "fields": [numbers, {"name": "b", "type": "long"}]}
    program, record = program_of(json.dumps(schema), (("b",),)), np.frombuffer(bytes.fromhex(data), np.uint8)
    assert program
    (column,), wrong = program.run(record, np.array([0]), np.array([len(record)]))
    assert column.to_pylist() == [value] and bool(wrong[0]) == (value is None)


def test_change_streams(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": "string"} for n in ("Op", "a")]}
    with (tmp_path / "r.avro").open("wb") as sink:
        fastavro.writer(sink, schema, [{"Op": "c", "a": "x"}, {"Op": "d", "a": "x"}])
    source = opened(tmp_path / "r.avro", {"a": VARCHAR}, op="op")
    assert source.read(0, 2, ("a",)).to_pylist() == [{"a": "x", MULT: 1}, {"a": "x", MULT: -1}]
    upserts = relation(tmp_path / "r.avro", {"a": VARCHAR}, changelog="upsert", tombstone="op")
    assert open_source(upserts, tmp_path).read(0, 2, ("a",))[MULT].to_pylist() == [1, -1]


def fault_types(tmp_path: Path) -> None:
    odd = write(tmp_path / "odd.avro", ["int", "string"], 5)
    with pytest.raises(SquallError, match=r'SQ4002 .*odd\.avro: column "a" is dense_union.*, which has no SQL type'):
        opened(odd)
    with pytest.raises(SquallError, match=r'SQ4002 .*a\.avro: column "a" is list<.*>, declared VARCHAR'):
        opened(write(tmp_path / "a.avro", {"type": "array", "items": "int"}, [1]), {"a": VARCHAR})


def fault_a_column_of_another_type_in_a_later_file(tmp_path: Path) -> None:
    write(tmp_path / "1.avro", "long", 5)
    write(tmp_path / "2.avro", "boolean", True)
    with pytest.raises(SquallError, match=r'SQ4002 .*2\.avro: column "a" is bool, declared BIGINT'):
        opened(tmp_path, {"a": BIGINT})


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: data[:-5], r"SQ4001 cannot read .*r\.avro as Avro: expected sync marker"),
        (lambda data: b"PAR1" + data[4:], r"SQ4001 cannot read .*r\.avro as Avro: it does not begin as"),
        (lambda data: data[:100] + b"~" * 20 + data[120:], "SQ4001 cannot read"),
    ],
)
def fault_damaged_files(tmp_path: Path, damage: Any, problem: str) -> None:
    path = write(tmp_path / "r.avro", "long", *range(100))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(SquallError, match=problem):
        read(opened(path, {"a": BIGINT}))


def fault_values_and_no_records(tmp_path: Path) -> None:
    with (tmp_path / "r.avro").open("wb") as sink:
        fastavro.writer(sink, "long", [1, 2])
    with pytest.raises(SquallError, match=r"SQ4002 .*r\.avro has values and no records"):
        opened(tmp_path / "r.avro")


def fault_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    avro._layout.cache_clear()
    monkeypatch.setitem(sys.modules, "fastavro", None)
    path = write(tmp_path / "r.avro", "long", 1)
    with pytest.raises(SquallError, match=r"SQ8009 .* needs the package fastavro, .*pip install 'squallpy\[avro\]'"):
        opened(path)
