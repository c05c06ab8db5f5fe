"""GET_JSON_OBJECT: what stands at a path."""

import pytest

from squallpy.runtime.evaluate.scalar.json import parse_path, value_at_path

BOOK = '{"a": {"b": [1.50, "x\\"é", null, {"c" : [ true, 1e5 ], "d.e": ""}]}, "a": 7}'


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("$.a.b[0]", "1.50"),
        ("$.a.b[1]", 'x"é'),
        ("$.a.b[2]", None),
        ("$.a.b[3].c", "[true,1e5]"),
        ("$['a'].b[3]['d.e']", ""),
        ("$.a.b[3]", '{"c":[true,1e5],"d.e":""}'),
        ("$.a.b[1].c", None),
        ("$.a.b[9]", None),
        ("$.a[0]", None),
        ("$.A", None),
        ("$[0]", None),
        ("$.", None),
        ("a", None),
        ("", None),
    ],
)
def test_what_stands_at_a_path(where: str, expected: str | None) -> None:
    assert value_at_path(BOOK, parse_path(where)) == expected


@pytest.mark.parametrize("text", ["", "{", "[1,]", "NaN", "{'a': 1}", "[" * 100_000])
def test_what_is_no_json_has_nothing(text: str) -> None:
    assert value_at_path(text, parse_path("$")) is None


@pytest.mark.parametrize("text", ["1", "[]", '{"a":[{},"b",1.0]}', "true"])
def test_the_path_of_all(text: str) -> None:
    assert value_at_path(text, parse_path("$")) == text
