"""ARRAYs, MAPs and STRUCTs of files: held as JSON in one spelling, whatever file they come from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    TIMESTAMP,
    VARCHAR,
    Shape,
    Type,
    decimal,
    nested_type,
)
from squallpy.catalog.relation import Field, Relation
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import CreateRelation
from squallpy.runtime.evaluate.held_values import held_text
from squallpy.runtime.evaluate.nested_elements import take_apart
from squallpy.runtime.evaluate.scalar.json import element_at, spark_text
from squallpy.runtime.formats.csv_writer import csv_rows
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.formats.skipped_rows import skipped
from squallpy.runtime.formats.text_columns import NESTED
from squallpy.runtime.sources.source import infer_fields, open_source


def typed(text: str) -> Type:
    (statement,) = parse_script(f"CREATE STREAM z (a {text}) USING json OPTIONS (path 'x')", "q.sql")
    assert isinstance(statement, CreateRelation)
    return statement.relation.fields[0].type


def relation(path: Path, type: Type | None, nested: str = "", **options: str) -> Relation:
    fields = () if type is None else (Field("a", type, nested=tuple(nested.split(".")) if nested else ()),)
    return Relation("r", fields, True, path.suffix[1:], {"path": str(path), **options})


def read(path: Path, type: Type, nested: str = "", **options: str) -> list[Any]:
    source = open_source(relation(path, type, nested, **options), path.parent)
    source.check(("a",))
    return list(source.read(0, source.rows, ("a",))["a"].to_pylist())


def from_json(folder: Path, type: Type, *values: str, **options: str) -> list[Any]:
    path = folder / "r.json"
    path.write_text("".join(f'{{"a": {value}}}\n' for value in values))
    return read(path, type, **options)


@pytest.mark.parametrize("text", ["ARRAY<INT>", "MAP<VARCHAR, ARRAY<INT>>", "STRUCT<a: INT, B: DECIMAL(8,2)>"])
def test_types_are_declared_and_written(text: str) -> None:
    assert str(typed(text)) == text
    assert typed(text.lower().replace(": ", " ")) == typed(text.lower())


@pytest.mark.parametrize(
    ("type", "written", "held"),
    [
        ("ARRAY<INT>", '[1, "2", null]', "[1,2,null]"),
        ("ARRAY<VARCHAR>", '["a\\u00e9\\"", 1.50, {"x": [1]}, true]', '["aé\\"","1.50","{\\"x\\":[1]}","true"]'),
        ("ARRAY<DECIMAL(5,2)>", '[1, "2.5", 0.10]', "[1.00,2.50,0.10]"),
        ("ARRAY<DOUBLE>", '[1, 2.5, "NaN"]', '[1.0,2.5,"NaN"]'),
        ("ARRAY<DOUBLE>", '["-Infinity", "inf"]', '["-Infinity","Infinity"]'),
        ("ARRAY<BOOLEAN>", '[true, "false", null]', "[true,false,null]"),
        ("ARRAY<DATE>", '["2026-01-31"]', '["2026-01-31"]'),
        ("ARRAY<TIMESTAMP>", '["2026-01-31T10:00:00+02:00"]', '["2026-01-31 08:00:00"]'),
        ("ARRAY<ARRAY<INT>>", "[[1], [], null]", "[[1],[],null]"),
        ("STRUCT<x: INT, y: VARCHAR>", '{"y": "b", "X": 1, "x": 5}', '{"x":5,"y":"b"}'),
        ("STRUCT<x: INT>", "{}", '{"x":null}'),
        ("MAP<VARCHAR, INT>", '{"k": 1, "": null}', '{"k":1,"":null}'),
        ("MAP<INT, ARRAY<INT>>", '{"07": [1]}', '{"7":[1]}'),
        ("ARRAY<INT>", "null", None),
        ("ARRAY<INT>", '"[1, 2]"', "[1,2]"),
    ],
)
def test_json_is_held_in_one_spelling(tmp_path: Path, type: str, written: str, held: str | None) -> None:
    assert from_json(tmp_path, typed(type), written) == [held]
    assert from_json(tmp_path, typed(type), written, "null") == [held, None]


@pytest.mark.parametrize(
    ("type", "written"),
    [
        ("ARRAY<INT>", '["x"]'), ("ARRAY<INT>", "[3000000000]"), ("ARRAY<INT>", "5"), ("ARRAY<INT>", '{"a": 1}'),
        ("STRUCT<x: INT>", "[1]"), ("STRUCT<x: DATE>", '{"x": "yesterday"}'), ("MAP<INT, INT>", '{"k": 1}'),
        ("ARRAY<INT>", '"[1"'),
    ],
)  # fmt: skip
def fault_values(tmp_path: Path, type: str, written: str) -> None:
    with pytest.raises(SquallError, match=r"SQ4004 .*r\.json:2: column \"a\": .* is not a valid (ARRAY|MAP|STRUCT)<"):
        from_json(tmp_path, typed(type), "null", written)
    assert from_json(tmp_path, typed(type), "null", written, on_error="skip") == [None]
    source = open_source(relation(tmp_path / "r.json", typed(type), on_error="skip"), tmp_path)
    assert skipped(source.read(0, 2, ("a",))).count == 1


VALUES = pa.array(
    [{"x": 1, "l": [[1, None], None], "m": [("k", 2.5)]}, None, {"x": None, "l": [], "m": []}],
    pa.struct([("x", pa.int16()), ("l", pa.list_(pa.list_(pa.int64()))), ("m", pa.map_(pa.string(), pa.float64()))]),
)
HELD = ['{"x":1,"l":[[1,null],null],"m":{"k":2.5}}', None, '{"x":null,"l":[],"m":{}}']


def test_parquet_is_held_like_json(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"a": VALUES, "b": [1, 2, 3]}), path)
    (field, _) = infer_fields(relation(path, None), tmp_path)
    assert str(field.type) == "STRUCT<x: INT, l: ARRAY<ARRAY<BIGINT>>, m: MAP<VARCHAR, DOUBLE>>"
    assert read(path, field.type) == HELD
    assert read(path, typed("STRUCT<X: BIGINT>")) == ['{"X":1}', None, '{"X":null}']


def test_paths_into_parquet(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(
        pa.table({"s": pa.array([{"a": VALUES[0].as_py()}, {"a": None}, None], pa.struct([("a", VALUES.type)]))}), path
    )
    assert read(path, INT, "s.a.x") == read(path, INT, "S.A.X") == [1, None, None]
    assert read(path, typed("ARRAY<ARRAY<INT>>"), "s.a.l") == ["[[1,null],null]", None, None]
    assert read(path, INT, "s.a.nothing") == [None, None, None]
    with pytest.raises(SquallError, match=r'SQ4002 .*column "a" is struct<.*declared DATE'):
        read(path, DATE, "s.a")


def fault_shapes_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"a": pa.array([[1]])}), path)
    for type in ("STRUCT<x: INT>", "MAP<INT, INT>", "VARCHAR", "INT"):
        with pytest.raises(SquallError, match=r'SQ4002 .*column "a" is list<element: int64>, declared'):
            read(path, typed(type))
    with pytest.raises(SquallError, match=r'SQ4004 .*row 1: column "a": \[1\] is not a valid ARRAY<DATE>'):
        read(path, typed("ARRAY<DATE>"))


@pytest.mark.parametrize(
    ("type", "held", "text"),
    [
        ("ARRAY<INT>", "[1,null]", "[1, null]"),
        ("ARRAY<ARRAY<VARCHAR>>", '[["a b"],null,[]]', "[[a b], null, []]"),
        ("MAP<VARCHAR, STRUCT<x: INT, y: INT>>", '{"k":{"x":1,"y":null},"l":null}', "{k -> {1, null}, l -> null}"),
        ("STRUCT<a: BOOLEAN, b: STRUCT<c: ARRAY<INT>, d: DATE>, e: DECIMAL(5,2)>",
         '{"a":true,"b":{"c":[1],"d":"2026-01-31"},"e":1.50}', "{true, {[1], 2026-01-31}, 1.50}"),
        ("STRUCT<b: STRUCT<c: INT, d: INT>, e: INT>", '{"b":null,"e":1}', "{null, 1}"),
    ],
)  # fmt: skip
def test_csv_is_written_as_cast_does_and_json_as_json(type: str, held: str, text: str) -> None:
    assert spark_text(held, typed(type).code) == text
    schema = pa.schema([pa.field("a", pa.string(), metadata={NESTED: typed(type).code})])
    rows = pa.table([[held, None]], schema)
    quoted = '"' + text.replace('"', '""') + '"' if "," in text else text
    assert b"".join(csv_rows(rows)).decode() == f"{quoted}\n\n"
    assert b"".join(json_rows(rows)).decode() == f'{{"a": {held}}}\n{{"a": null}}\n'


def test_parts_of_a_value() -> None:
    assert [element_at("[1,2]", str(at), "[") for at in (0, 1, 2, -1)] == ["1", "2", None, None]
    assert [element_at("[1,2]", str(at), "]") for at in (1, 2, 3, -1, -2, -3)] == ["1", "2", None, "2", "1", None]
    assert element_at('{"k":{"x":null}}', "k", "{") == '{"x":null}'
    entries = take_apart(pa.array(['{"k":1.50,"l":null}']), None, None, with_parts=True)
    assert entries.keys is not None and (entries.keys.to_pylist(), entries.values.to_pylist()) == (
        ["k", "l"],
        ["1.50", None],
    )
    assert entries.parts is not None and entries.parts.to_pylist() == ['"k":1.50', '"l":null']
    flat = take_apart(pa.array(['[1.50,"x"]']), None, typed("ARRAY<INT>"))
    assert (flat.positions.tolist(), flat.values.to_pylist()) == ([0, 1], ["1.50", "x"])


PLAIN = {
    INT: st.integers(-(2**31), 2**31 - 1), BIGINT: st.integers(-(2**63), 2**63 - 1), BOOLEAN: st.booleans(),
    VARCHAR: st.text(st.characters(codec="utf-8"), max_size=5), DATE: st.dates().map(str),
    TIMESTAMP: st.datetimes().map(lambda at: at.isoformat(" ", "seconds")),
    DOUBLE: st.sampled_from([0.5, -2.25, 1e300]),
    decimal(6, 2): st.integers(-999_999, 999_999).map(lambda n: n / 100),
}  # fmt: skip
NAMES = st.lists(st.text("abcXYZ_", min_size=1, max_size=3), min_size=1, max_size=3, unique_by=str.lower)


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> Type:
    """Any type, nested or not."""
    shape = draw(st.sampled_from([None, *Shape])) if depth else None
    if shape is None:
        return draw(st.sampled_from(sorted(PLAIN, key=str)))
    if shape is Shape.STRUCT:
        names = draw(NAMES)
        return nested_type(shape, [draw(types(depth - 1)) for _ in names], names)
    return nested_type(shape, [*([VARCHAR] if shape is Shape.MAP else []), draw(types(depth - 1))])


def values(type: Type) -> st.SearchStrategy[Any]:
    """Values of a type as JSON has them, or NULL."""
    nested = type.nested
    if nested is None:
        return st.none() | PLAIN[type]
    match nested.shape:
        case Shape.ARRAY:
            return st.none() | st.lists(values(nested.types[0]), max_size=3)
        case Shape.MAP:
            return st.none() | st.dictionaries(st.text('abé"\\ ', max_size=3), values(nested.types[1]), max_size=3)
    return st.none() | st.fixed_dictionaries({n: values(t) for n, t in zip(nested.names, nested.types, strict=True)})


def normal(value: Any, type: Type) -> Any:
    """A value as it can be compared, whatever its spelling."""
    nested = type.nested
    if value is None or nested is None:
        return float(value) if type in (DOUBLE, decimal(6, 2)) and value is not None else value
    match nested.shape:
        case Shape.ARRAY:
            return [normal(each, nested.types[0]) for each in value]
        case Shape.MAP:
            return {key: normal(each, nested.types[1]) for key, each in value.items()}
    return {n: normal(value[n], t) for n, t in zip(nested.names, nested.types, strict=True)}


@given(data=st.data(), type=st.sampled_from(sorted(PLAIN, key=str)))
def property_arrays_are_split_as_they_are_decoded(data: st.DataObject, type: Type) -> None:
    """Where commas are only between elements nothing is decoded."""
    some = data.draw(st.lists(st.none() | st.lists(st.none() | PLAIN[type], max_size=3), max_size=4))
    array = nested_type(Shape.ARRAY, [type])
    texts = pa.array(["" if each is None else held_text(each, array) for each in some], pa.string())
    there = np.array([each is not None for each in some], np.bool_)
    split, decoded = (take_apart(texts, there, element, with_parts=True) for element in (type, array))
    assert split.rows.tolist() == decoded.rows.tolist() and split.counts.tolist() == decoded.counts.tolist()
    assert split.values.to_pylist() == decoded.values.to_pylist()
    assert split.parts is not None and decoded.parts is not None
    assert split.parts.to_pylist() == decoded.parts.to_pylist()


@given(data=st.data(), type=types())
def property_any_json_is_read_as_its_type(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, type: Type
) -> None:
    """In lines that Arrow parses, and beside one that it does not."""
    some = data.draw(st.lists(values(type), min_size=1, max_size=5))
    folder = tmp_path_factory.mktemp("n")
    lines = [json.dumps(value, ensure_ascii=data.draw(st.booleans())) for value in some]
    found = from_json(folder, type, *lines)
    assert from_json(folder, type, *lines, "null", '{"a": 1}, "a": null') == [*found, None, None]
    assert (
        from_json(folder, type, *(json.dumps(json.loads(line), indent=" ").replace("\n", " ") for line in lines))
        == found
    )
    if type.nested:
        held = [value and json.loads(value) for value in found]
        assert [normal(value, type) for value in held] == [normal(value, type) for value in some]
