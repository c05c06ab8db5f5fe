"""Values of Python as the text that is held for an ARRAY, MAP or STRUCT: JSON without spaces, fields as declared.

[1, "2"] as ARRAY<BIGINT>   →   [1,2]            {"b": 1} as STRUCT<a: INT, b: DATE>   →   {"a":null,"b":…}: no DATE
"""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.types import VARCHAR, Kind, Shape, Type
from squallpy.logical.coercion import NO_NUMBERS, convert
from squallpy.logical.expressions import show_day_to_second
from squallpy.runtime.evaluate.scalar.json import READER, write_json


def held_text(value: Any, type: Type, exact: bool = False, lenient: bool = False) -> str:
    """Write a value, as Arrow and JSON have it in Python, as it is held; ValueError if it is not of the type.

    Args:
        exact: Fields have their names in the same case, as in JSON.
        lenient: A field of a STRUCT that is not of its type is null, as a text for a number is.
    """
    if value is None:
        return "null"
    nested = type.nested
    if nested is None:
        if lenient and type.kind not in TEXTS and _is_text(value):
            raise ValueError(value)
        return _plain(value, type)
    if isinstance(value, str):  # JSON in a text
        value, exact = READER.decode(value), True

    def part(value: Any, type: Type) -> str:
        return held_text(value, type, exact, lenient)

    def of_field(value: Any, type: Type) -> str:
        try:
            return part(value, type)
        except ValueError:
            if not lenient:
                raise
            return "null"

    match nested.shape:
        case Shape.ARRAY if isinstance(value, list):
            return f"[{','.join(part(each, nested.types[0]) for each in value)}]"
        case Shape.MAP if isinstance(value, dict | list):
            pairs = value.items() if isinstance(value, dict) else value
            key_type, value_type = nested.types
            return _object((_key(key, key_type), part(each, value_type)) for key, each in pairs)
        case Shape.STRUCT if isinstance(value, dict):
            named = zip(nested.names, nested.types, strict=True)
            return _object((write_json(name), of_field(_field(value, name, exact), of)) for name, of in named)
    raise ValueError(value)


TEXTS = (Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.DAY_TO_SECOND)
"""Kinds whose values are texts in JSON."""


def _is_text(value: Any) -> bool:
    """True if JSON has a text there, which is no number that JSON has not."""
    return type(value) is str and value not in ("NaN", "Infinity", "-Infinity")


def _object(pairs: Iterable[tuple[str, str]]) -> str:
    return f"{{{','.join(f'{name}:{value}' for name, value in pairs)}}}"


def _field(value: Mapping[str, Any], name: str, exact: bool) -> Any:
    """Find a field by its name, or else in any case."""
    if exact or name in value:
        return value.get(name)
    return next((v for n, v in value.items() if n.lower() == name.lower()), None)


def _key(value: Any, type: Type) -> str:
    if value is None:
        raise ValueError("a MAP has no key NULL")
    text = _plain(value, type)
    return text if text.startswith('"') else f'"{text}"'


def _plain(value: Any, type: Type) -> str:
    """Write a value that has no parts."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, dict | list):
        value = write_json(value)
    elif isinstance(value, bytes):
        value = value.decode()
    elif isinstance(value, timedelta):
        value = show_day_to_second(value // timedelta(microseconds=1))
    try:
        text = convert(convert(str(value), VARCHAR, type), type, VARCHAR)
    except SquallError:
        raise ValueError(value) from None
    if text in NO_NUMBERS:
        return f'"{NO_NUMBERS[text]}"'
    return text if type.is_numeric or type.kind is Kind.BOOLEAN else json.dumps(text, ensure_ascii=False)
