"""JSON lines: values as their texts would be, lines at fault by name, whatever they are."""

import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats import json_reader, json_template
from squallpy.runtime.formats.skipped_rows import SkippedRows, skipped
from squallpy.runtime.sources.source import FileSource, infer_fields, open_source


def relation(fields: dict[str, Type | tuple[Type, str]], **options: str) -> Relation:
    """Fields by name, with their path where that is another one."""
    made = []
    for name, given_type in fields.items():
        type, path = given_type if isinstance(given_type, tuple) else (given_type, "")
        made.append(Field(name, type, nested=tuple(path.split(".")) if path else ()))
    return Relation("r", tuple(made), True, "json", {"path": "r.json"} | options)


def read(folder: Path, text: str, fields: dict[str, Any], **options: str) -> list[tuple[Any, ...]]:
    (folder / "r.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    table = opened(folder, fields, **options).read(0, text.count("\n"), tuple(fields))
    return [tuple(row.values()) for row in table.to_pylist()]


def opened(folder: Path, fields: dict[str, Any], **options: str) -> FileSource:
    return open_source(relation(fields, **options), folder)


def test_columns_are_fields_by_name(tmp_path: Path) -> None:
    text = '{"k": 1, "s": "x", "other": [1]}\n{"s": "é\\u00e9", "k": null}\n{}\n'
    assert read(tmp_path, text, {"k": BIGINT, "s": VARCHAR}) == [(1, "x"), (None, "éé"), (None, None)]


def test_nested_fields_by_their_path(tmp_path: Path) -> None:
    text = '{"a": {"b": {"c": 5}, "d": "x"}}\n{"a": null}\n{"a": {"b": {}}}\n{"a": {"b": 7}}\n{"a": [1]}\n'
    fields = {"c": (BIGINT, "a.b.c"), "d": (VARCHAR, "a.d"), "whole": (VARCHAR, "a.b")}
    assert read(tmp_path, text, fields) == [
        (5, "x", '{"c":5}'), (None, None, None), (None, None, "{}"), (None, None, "7"), (None, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("type", "texts", "values"),
    [
        (BIGINT, ["1", '"2"', "-9223372036854775808", "null"], [1, 2, -(2**63), None]),
        (
            decimal(6, 2),
            ["1.50", '"2"', "3", "0.1"],
            [Decimal("1.50"), Decimal("2.00"), Decimal("3.00"), Decimal("0.10")],
        ),
        (DOUBLE, ["1", "2.5", '"NaN"', "1e300"], [1.0, 2.5, None, 1e300]),
        (BOOLEAN, ["true", "false", '"true"'], [True, False, True]),
        (VARCHAR, ['"x"', "1.50", "true", '{"a": 1.0}', "[]"], ["x", "1.50", "true", '{"a":1.0}', "[]"]),
    ],
)
def test_values_are_those_of_their_texts(tmp_path: Path, type: Type, texts: list[str], values: list[Any]) -> None:
    """… whether all of a batch have the type of the column, and are parsed at once, or not."""
    for some in ([*zip(texts, values, strict=True)], *([pair] for pair in zip(texts, values, strict=True))):
        found = read(tmp_path, "".join(f'{{"x": {text}}}\n' for text, _ in some), {"x": type})
        for (value,), (text, wanted) in zip(found, some, strict=True):
            assert value == wanted or (text == '"NaN"' and value != value)


def test_times_are_texts(tmp_path: Path) -> None:
    (value,) = read(tmp_path, '{"t": "2024-01-02 03:04:05.5"}\n', {"t": TIMESTAMP})
    assert str(value[0]) == "2024-01-02 03:04:05.500000"


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('\r\n{"k": 1}\r\n\n   \n {"k": 2}')
    source = opened(tmp_path, {"k": BIGINT})
    assert source.read(0, source.rows, ("k",)).column("k").to_pylist() == [1, 2]
    assert source.read(0, source.rows, ()).num_rows == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("null", "SQ4003 .*r.json:2: 'null' is not a JSON object"),
        ("[1]", "SQ4003 .*r.json:2: '\\[1\\]' is not a JSON object"),
        ('{"k": 1', "SQ4003 .*r.json:2: .* is not JSON"),
        ('{"k": 1} {"k": 2}', "SQ4003 .*r.json:2: .* is not JSON: extra data"),
        ('{"k": "x"}', "SQ4004 .*r.json:2: column \"k\": 'x' is not a valid INT"),
        ('{"k": 3000000000}', 'SQ4004 .*r.json:2: column "k": .*3000000000.* is not a valid INT'),
        ('{"k": {"a": 1}}', 'SQ4004 .*r.json:2: column "k"'),
        ("[" * 100_000, "SQ4003 .*r.json:2: "),
    ],
)
@pytest.mark.parametrize("before", ['{"k": 1}', '{"k": "1"}'], ids=["at once", "by line"])
def fault_a_line(tmp_path: Path, line: str, why: str, before: str) -> None:
    text = f"{before}\n{line}\n" + '{"k": 9}\n'
    with pytest.raises(SquallError, match=why):
        read(tmp_path, text, {"k": INT})
    (tmp_path / "r.json").write_text(text)
    table = opened(tmp_path, {"k": INT}, on_error="skip").read(0, 3, ("k",))
    assert table.column("k").to_pylist() == [1, 9] and skipped(table).count == 1


def fault_the_first_line_is_null(tmp_path: Path) -> None:
    for line in ("null", " null", "nullx", "3", '"x"'):
        with pytest.raises(SquallError, match="SQ4003"):
            read(tmp_path, f'{line}\n{{"k": 1}}\n', {"k": INT})
        with pytest.raises(SquallError, match="SQ4003"):
            infer_fields(relation({}), tmp_path)


def test_columns_are_inferred(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(
        '{"k": 1, "s": "x", "d": 1.5, "b": true, "n": {"x": 1}, "l": [1]}\n{"more": null}\n'
    )
    fields = [(f.name, f.type) for f in infer_fields(relation({}), tmp_path)]
    assert fields == [("k", BIGINT), ("s", VARCHAR), ("d", DOUBLE), ("b", BOOLEAN), ("more", VARCHAR)]


def test_operations_of_changes(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"k": 1, "op": "+"}\n{"op": "-", "k": 1}\n')
    table = opened(tmp_path, {"k": BIGINT}, op="op").read(0, 2, ("k",))
    assert table.to_pylist() == [{"k": 1, "__mult": 1}, {"k": 1, "__mult": -1}]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), values), min_size=1, max_size=4))
def property_texts_are_those_of_python(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    def text(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    lines = "".join(json.dumps(row) + "\n" for row in rows)
    found = read(tmp_path_factory.mktemp("json"), lines, {"a": VARCHAR, "b": VARCHAR})
    assert found == [(text(row.get("a")), text(row.get("b"))) for row in rows]


SPELLED = [
    "0", "-0", "7", "-12", "1.5", "-0.25", "1e3", "1E-2", "1.50", "123456789012", "99999999999999999999", "12345.678",
    "null", "true", "false", '"x"', '""', '"7"', '" 7"', '"a,b"', '"é€😀"', '"a b"', '"true"', '"null"', '"2024-05-01"',
    '"a\\"b"', '"a\\n"', "01", "+1", ".5", "1.", "nan", "Infinity", "0x1f", "tru", "nul", "-", "1e", "[1]", "{}",
    '"\t"', "''", '"2024-05-01 10:11:12"', '"2024-05-01T10:11:12.123456Z"', '"2024-5-1"', '"2024-02-30"',
    '"10:00"', "20240501",
    '"2024-05-01 10:11"', '"2024-05-01T10:11:12+02:00"', '"0001-01-01"', '"99999-01-01"', '"2024-05-01 "',
    '"now"', '"2024"',
]  # fmt: skip
EVEN = [text for text in SPELLED if text not in ("[1]", "{}")]
TYPES = {"a": BIGINT, "b": INT, "c": DOUBLE, "d": decimal(7, 2), "e": VARCHAR, "f": BOOLEAN, "g": (VARCHAR, "o.g")}
TYPES |= {"x": DATE, "y": TIMESTAMP}


@pytest.mark.parametrize(
    ("text", "is_alike"),
    [
        ('{"k": 1, "o": {"s": "a"}}\n{"k": null, "o": {"s": "b"}}\n', True),
        ('{"k": 1, "o": {"s": "a"}}\n{"k": 2,"o": {"s": "b"}}\n', False),
        ('{"k": 1, "o": {"s": "a"}}\n{"k": 2, "o": {"s": "\\n"}}\n', False),
        ('{"k": 1, "o": {"s": "a"}}\n{"k": 2, "o": null}\n', False),
        ('{"k": 1, "k": 2}\n{"k": 1, "k": 2}\n', False),
        ('{"k": [1]}\n{"k": [2]}\n', False),
    ],
)
def test_lines_of_one_shape_are_parsed_as_csv(text: str, is_alike: bool) -> None:
    found = json_template.parse_alike(text.encode(), 2, {("k",): pa.int64(), ("o", "s"): pa.string()})
    assert (found is not None) is is_alike


@settings(max_examples=10 * settings().max_examples)
@given(seed=st.integers(0, 1 << 30))
def differential_lines_of_one_shape_are_as_each_for_itself(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whether Arrow parses them as csv or as JSON: the same rows, and the same faults."""
    draw, folder = Random(seed), tmp_path_factory.mktemp("json")
    names, gap = draw.sample([*"abcdefxyz"], draw.randrange(1, 7)), draw.choice(["", " "])
    odd, few = draw.choice([0.0, 0.02, 0.3]), draw.sample(EVEN, draw.randrange(1, 6))

    def line() -> str:
        known = SPELLED if draw.random() < odd else few
        given = [f'"{name}":{gap}{draw.choice(known)}' for name in names]
        nested = f'"o":{gap}{{"g":{gap}{draw.choice(known)},{gap}"h":{gap}{draw.choice(known)}}}'
        given += [nested] if shape == "nested" else []
        if draw.random() < odd:
            return draw.choice(["{}", "null", f"{{{','.join(given[:1])}}}", "  ", "{" + ", ".join(given) + " }"])
        return "{" + f",{gap}".join(given) + "}"

    shape = draw.choice(["flat", "nested"])
    end = draw.choice(["\n", "\r\n", "\n\n"])
    text = "".join(line() + end for _ in range(draw.randrange(1, 9)))
    (folder / "r.json").write_text(text, newline="")
    fields = {name: TYPES[name] for name in draw.sample([*TYPES], draw.randrange(8))}
    found = _read_all(folder, fields)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "parse_alike", lambda *_: None)
        assert found == _read_all(folder, fields), (text, fields)


def _read_all(folder: Path, fields: dict[str, Any]) -> tuple[str, SkippedRows]:
    source = opened(folder, fields, on_error="dead-letter", dead_letter="letters.jsonl")
    table = source.read(0, source.rows, tuple(fields))
    return repr(table.to_pylist()), skipped(table)
