"""Functions of ARRAYs and MAPs: their texts are parsed, each combination of arguments once.

array_position('[1,null]', '2', 'INT')           →  0
array_sorted('[2,null,1]', 'n', 'nulls last')    →  '[1,2,null]'
"""

import json
from collections.abc import Iterable
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError, counted, shorten
from squallpy.base.types import VARCHAR, Kind, Shape, Type
from squallpy.catalog.relation import Series
from squallpy.frontend.schema_text import read_schema
from squallpy.functions.generators import SERIES
from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.casts import cast
from squallpy.runtime.evaluate.evaluator_table import Evaluated, evaluator, parameter, value_evaluator
from squallpy.runtime.evaluate.held_values import held_text
from squallpy.runtime.evaluate.order_texts import order_text, order_with_value, order_writer, value_in_order
from squallpy.runtime.evaluate.scalar.json import READER, Number, held_element, join_parts, spark_text, write_json
from squallpy.runtime.evaluate.scalar.text import check_room, match_regex
from squallpy.runtime.evaluate.series import expand_series
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid, full, to_arrow

Elements = list[Any]


def elements_of(text: str) -> Elements:
    return READER.decode(text)  # type: ignore[no-any-return]


def key_of(value: Any, type: str) -> Any:
    """Return what stands for an element that is not NULL: equal if the elements are, and in their order if they have
    one."""
    if type == Kind.DOUBLE.value:
        number = float(value)
        return (True, 0.0) if number != number else (False, number)
    if type in _EXACT:
        return Decimal(value)
    return write_json(value) if type == "JSON" else value


_EXACT = {Kind.INT.value, Kind.BIGINT.value, Kind.DECIMAL.value}


def _keys(values: Iterable[Any], type: str) -> Elements:
    """Return what stands for each element, None for NULL."""
    return [None if value is None else key_of(value, type) for value in values]


def _first_of_each(values: Iterable[Any], type: str) -> dict[Any, Any]:
    """Map keys to elements, the first of each, in their order."""
    found = dict[Any, Any]()
    for value in values:
        found.setdefault(None if value is None else key_of(value, type), value)
    return found


@value_evaluator("array_position")
def array_position(text: str, sought: str, type: str) -> int:
    keys, key = _keys(elements_of(text), type), key_of(READER.decode(sought), type)
    return keys.index(key) + 1 if key in keys else 0


@value_evaluator("arrays_overlap")
def arrays_overlap(first: str, second: str, type: str) -> bool | None:
    one, other = set(_keys(elements_of(first), type)), set(_keys(elements_of(second), type))
    if (one & other) - {None}:
        return True
    return None if one and other and None in one | other else False


@value_evaluator("array_extreme")
def array_extreme(text: str, code: str, which: str) -> str | None:
    values = [value for value in elements_of(text) if value is not None]
    if not values:
        return None
    return held_element((min if which == "least" else max)(values, key=order_writer(code)))


@value_evaluator("array_distinct")
def array_distinct(text: str, type: str) -> str:
    return write_json(list(_first_of_each(elements_of(text), type).values()))


@value_evaluator("array_sorted")
def array_sorted(text: str, code: str, way: str) -> str:
    values = elements_of(text)
    nulls = [None] * values.count(None)
    known = sorted((v for v in values if v is not None), key=order_writer(code), reverse=way == "descending")
    return write_json(nulls + known if way == "nulls first" else known + nulls)


value_evaluator("order_text")(order_text)
value_evaluator("order_with_value")(order_with_value)
value_evaluator("value_in_order")(value_in_order)


@value_evaluator("array_compact")
def array_compact(text: str) -> str:
    return write_json([value for value in elements_of(text) if value is not None])


@value_evaluator("array_reverse")
def array_reverse(text: str) -> str:
    return write_json(elements_of(text)[::-1])


@value_evaluator("array_remove")
def array_remove(text: str, sought: str, type: str) -> str:
    values, key = elements_of(text), key_of(READER.decode(sought), type)
    return write_json([v for v, k in zip(values, _keys(values, type), strict=True) if k is None or k != key])


@value_evaluator("array_concat")
def array_concat(first: str, second: str) -> str:
    return write_json(elements_of(first) + elements_of(second))


@value_evaluator("array_union")
def array_union(first: str, second: str, type: str) -> str:
    return write_json(list(_first_of_each(elements_of(first) + elements_of(second), type).values()))


@value_evaluator("array_intersect")
def array_intersect(first: str, second: str, type: str) -> str:
    others = set(_keys(elements_of(second), type))
    return write_json([v for k, v in _first_of_each(elements_of(first), type).items() if k in others])


@value_evaluator("array_except")
def array_except(first: str, second: str, type: str) -> str:
    others = set(_keys(elements_of(second), type))
    return write_json([v for k, v in _first_of_each(elements_of(first), type).items() if k not in others])


@value_evaluator("array_join")
def array_join(text: str, code: str, separator: str, null: str | None = None) -> str:
    shown = [null if value is None else spark_text(write_json(value), code) for value in elements_of(text)]
    return separator.join(each for each in shown if each is not None)


@value_evaluator("array_slice")
def array_slice(text: str, start: int, length: int) -> str | None:
    values = elements_of(text)
    first = start - 1 if start > 0 else len(values) + start
    if start == 0 or length < 0:
        return None
    return write_json(values[first : first + length] if 0 <= first < len(values) else [])


@value_evaluator("array_flatten")
def array_flatten(text: str) -> str | None:
    values = elements_of(text)
    return None if None in values else write_json([inner for value in values for inner in value])


@value_evaluator("array_repeat")
def array_repeat(element: str, count: int) -> str:
    check_room("array_repeat", max(count, 0) * (len(element.encode()) + 1))
    return f"[{','.join([element] * max(count, 0))}]"


def _key_value(key: str, type: str) -> Any:
    """Turn the name of an entry to an element: a number or a text."""
    return Number(key) if type in _EXACT or type in (Kind.DOUBLE.value, Kind.BOOLEAN.value) else key


@value_evaluator("map_keys")
def map_keys(text: str, type: str) -> str:
    return write_json([_key_value(key, type) for key in READER.decode(text)])


@value_evaluator("map_values")
def map_values(text: str) -> str:
    return write_json(list(READER.decode(text).values()))


@value_evaluator("map_contains_key")
def map_contains_key(text: str, key: str) -> bool:
    return key in READER.decode(text)


@value_evaluator("map_entries")
def map_entries(text: str, type: str) -> str:
    return write_json([{"key": _key_value(k, type), "value": v} for k, v in READER.decode(text).items()])


def check_keys(keys: Iterable[tuple[int, str | None]]) -> None:
    """Check the keys of MAPs, each with the number of its MAP; SQ5002 for one that is NULL or comes twice."""
    known = set[tuple[int, str]]()
    for number, key in keys:
        if key is None:
            raise SquallError("SQ5002", "a MAP has no key NULL")
        if (number, key) in known:
            raise SquallError("SQ5002", f"a MAP has one value for a key, not two for '{shorten(key)}'")
        known.add((number, key))


def _entries(pairs: Iterable[tuple[Any, Any]]) -> str:
    """Write a MAP of keys and values; SQ5002 for a key that is NULL or comes twice."""
    named = [(held_element(key), value) for key, value in pairs]
    check_keys((0, key) for key, _ in named)
    return write_json(dict(named))


@value_evaluator("map_from_arrays")
def map_from_arrays(keys: str, values: str) -> str:
    names, of = elements_of(keys), elements_of(values)
    if len(names) != len(of):
        raise SquallError(
            "SQ5002", f"a MAP of {counted(len(names), 'key', 'keys')} and {counted(len(of), 'value', 'values')}"
        )
    return _entries(zip(names, of, strict=True))


@value_evaluator("map_from_entries")
def map_from_entries(text: str) -> str | None:
    entries = elements_of(text)
    return None if None in entries else _entries(tuple(entry.values()) for entry in entries)


@value_evaluator("map_concat")
def map_concat(first: str, second: str) -> str:
    return _entries((*READER.decode(first).items(), *READER.decode(second).items()))


@value_evaluator("maps_zip")
def maps_zip(first: str, second: str) -> str:
    one, other = READER.decode(first), READER.decode(second)
    return write_json({key: {"first": one.get(key), "second": other.get(key)} for key in one | other})


@value_evaluator("str_to_map")
def str_to_map(text: str, pairs: str, key: str) -> str:
    parts = (_split(key, entry, 1) for entry in _split(pairs, text))
    return _entries((part[0], part[1] if len(part) > 1 else None) for part in parts)


def _split(pattern: str, text: str, most: int | None = None) -> list[str]:
    return match_regex(pc.split_pattern_regex, pa.array([text]), pattern, max_splits=most)[0].as_py()  # type: ignore[no-any-return]


@value_evaluator("arrays_zip")
def arrays_zip(names: str, *texts: str) -> str:
    fields, lists = READER.decode(names), [elements_of(text) for text in texts]
    return write_json([dict(zip(fields, each, strict=True)) for each in zip_longest(*lists)])


@value_evaluator("array_insert")
def array_insert(text: str, position: int, element: str) -> str | None:
    values, new = elements_of(text), READER.decode(element)
    check_room("array_insert", 5 * abs(position))
    if position == 0:
        return None
    if position > 0:
        values += [None] * (position - 1 - len(values))
        return write_json([*values[: position - 1], new, *values[position - 1 :]])
    values = [None] * (-position - 1 - len(values)) + values
    at = len(values) + position + 1
    return write_json([*values[:at], new, *values[at:]])


@value_evaluator("to_json")
def to_json(text: str, code: str) -> str:
    return write_json(_without_nulls(READER.decode(text), code, 0)[0])


def _without_nulls(value: Any, code: str, at: int) -> tuple[Any, int]:
    """Take fields that are NULL out of a value whose code begins at a place, and return the end of the code."""
    kind, at = code[at], at + 1
    if kind == "(":
        fields = dict[str, Any]()
        for name, each in value.items() if value else ():
            kept, at = _without_nulls(each, code, at)
            fields |= {} if kept is None else {name: kept}
        if value is None:
            return None, _end(code, at)
        return fields, at + 1
    if kind in ".t":
        return (_json_time(value) if kind == "t" and value else value), at
    end = _without_nulls(None, code, at)[1]
    if value is None:
        return None, end
    if kind == "[":
        return [_without_nulls(each, code, at)[0] for each in value], end
    return {key: _without_nulls(each, code, at)[0] for key, each in value.items()}, end


def _json_time(text: str) -> str:
    """Write a TIMESTAMP as JSON has it, with milliseconds: 2026-01-31 10:00:00  →  2026-01-31T10:00:00.000"""
    moment, _, fraction = text.replace(" ", "T").partition(".")
    return f"{moment}.{fraction:0<3}"


def _end(code: str, at: int) -> int:
    """Find the place behind the bracket that closes a STRUCT."""
    while code[at] != ")":
        at = _without_nulls(None, code, at)[1]
    return at + 1


@value_evaluator("from_json")
def from_json(text: str, schema: str) -> str | None:
    type = read_schema(schema)
    try:
        value = READER.decode(text)
        if isinstance(value, dict) and _is_array_of_structs(type):
            value = [value]
        return None if value is None else _plain_text(held_text(value, type, exact=True, lenient=True))
    except (ValueError, RecursionError):
        is_struct = type.nested is not None and type.nested.shape is Shape.STRUCT
        return held_text({}, type) if is_struct else None


def _is_array_of_structs(type: Type) -> bool:
    """True if one object stands for an ARRAY of it, as in Spark."""
    parts = type.nested.types if type.nested is not None and type.nested.shape is Shape.ARRAY else ()
    return any(part.nested is not None and part.nested.shape is Shape.STRUCT for part in parts)


def _plain_text(held: str) -> str:
    """Return a value that is no part of another as it is held: a text without quotes."""
    return str(json.loads(held)) if held.startswith('"') else held


@evaluator("series_array")
def series_array(call: Call, args: Evaluated) -> VectorFunction:
    """Write series as ARRAYs."""
    function, type = parameter(call, 0), call.args[1].type
    series = Series(function, *SERIES[function])

    def run(frame: VectorFrame) -> Vec:
        vecs = [full(arg(frame), given.type, frame.rows) for arg, given in zip(args[1:], call.args[1:], strict=True)]
        valid = all_valid(*(vec.valid for vec in vecs))
        there = np.arange(frame.rows) if valid is None else np.flatnonzero(valid)
        counts, values = expand_series([np.asarray(vec.values)[there] for vec in vecs], series, type)
        texts = to_arrow(cast(Vec(values), type, VARCHAR, len(values), call), VARCHAR, len(values))
        parts = pc.binary_join_element_wise('"', texts, '"', "") if type.is_temporal else texts
        of_rows = np.zeros(frame.rows, np.int64)
        of_rows[there] = counts
        return Vec(join_parts(parts, of_rows, "[]"), valid)

    return run
