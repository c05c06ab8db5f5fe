"""JSON in texts: the value at a path, each distinct text parsed once.

at('{"a": {"b": [1.50, "x"]}}', ("a", "b", 0))  →  '1.50'        … ("a", "b")  →  '[1.50,"x"]'
"""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.evaluator_table import (
    Evaluated,
    evaluator,
    integer_of_each_text,
    of_each,
    parameter,
    value_evaluator,
)
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid, full

Path = tuple[str | int, ...]
STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")


MISSING = object()  # what stands where nothing does


class Number(str):
    """A number in its original notation."""


def parse_path(text: str) -> Path | None:
    """Parse a path into steps: '$.a[0]["b c"]'; None if it is invalid."""
    steps, at = list[str | int](), 1
    while text.startswith("$") and at < len(text):
        found = STEP.match(text, at)
        if found is None:
            return None
        name, number, quoted = found.groups()
        steps.append(int(number) if number is not None else name if name is not None else quoted)
        at = found.end()
    return tuple(steps) if text.startswith("$") else None


def _decoded(text: str) -> Any:
    """Decode JSON; MISSING for what is none."""
    try:
        return READER.decode(text)
    except (ValueError, RecursionError):
        return MISSING


def value_at_path(text: str, steps: Path | None) -> str | None:
    """Extract the value at a path, a text unchanged, others as JSON; None for null, a missing value and invalid
    JSON."""
    found = find_at_path(text, steps)
    return None if found is MISSING else held_element(found)


def find_at_path(text: str, steps: Path | None) -> Any:
    """Find the value at a path; MISSING if there is none, and of invalid JSON."""
    found: Any = MISSING if steps is None else _decoded(text)
    try:
        for step in steps or ():
            fits = isinstance(found, list if isinstance(step, int) else dict)
            found = found[step] if fits else MISSING
    except LookupError:
        return MISSING
    return found


def held_element(value: Any) -> str | None:
    """Write what an element of its own is held as: a text unchanged, others as JSON; None for null."""
    return None if value is None else value if type(value) is str else write_json(value)


def write_json(value: Any) -> str:
    """Write a value as JSON, without spaces."""
    match value:
        case Number():
            return str(value)
        case dict():
            return "{" + ",".join(f"{write_json(name)}:{write_json(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(write_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; the first of equal names wins."""
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else dict(reversed(pairs))


def _no_number(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are not JSON


READER = json.JSONDecoder(object_pairs_hook=_fields, parse_int=Number, parse_float=Number, parse_constant=_no_number)


def element_at(text: str, step: str, way: str) -> str | None:
    """Extract one part of a nested value, as `value_at_path` does.

    Args:
        way: "{" for a key or a field, "[" for a position from 0 on, "]" from 1 on, or from −1 on from the end.
    """
    if way == "{":
        return value_at_path(text, (step,))
    at = int(step) - (way == "]" and int(step) > 0)
    return None if at < 0 and way == "[" else value_at_path(text, (at,))


def join_parts(parts: pa.Array, counts: Any, brackets: str) -> pa.Array:
    """Write the parts of each row between brackets."""
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    text = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), parts), ",")
    return pc.binary_join_element_wise(brackets[0], text, brackets[1], "").cast(pa.string())


def spark_text(text: str, code: str) -> str:
    """Write a nested value as CAST does: {"a":[1,null]} of code ([.)  →  {[1, null]}, of {[.  →  {a -> [1, null]}"""
    return _spark_text(READER.decode(text), code, 0)[0]


def nested_texts(texts: pa.Array, code: str) -> pa.Array:
    """Write nested values of one code as CAST does; NULL stays NULL."""
    written = of_each(texts, lambda text: spark_text(text, code), pa.string())
    return pc.if_else(texts.is_valid(), written, pa.scalar(None, pa.string()))


def _spark_text(value: Any, code: str, at: int) -> tuple[str, int]:
    """Write a value whose code begins at a place, and return the end of the code."""
    kind, at = code[at], at + 1
    if kind == "(":
        fields, parts = list(value.values()) if value else [], list[str]()
        while code[at] != ")":
            text, at = _spark_text(fields[len(parts)] if fields else None, code, at)
            parts.append(text)
        return ("null" if value is None else f"{{{', '.join(parts)}}}"), at + 1
    if kind == ".":
        shown = {None: "null", True: "true", False: "false"}.get(value) if not isinstance(value, str) else str(value)
        return shown or "", at
    end = _spark_text(None, code, at)[1]
    if value is None:
        return "null", end
    if kind == "[":
        return f"[{', '.join(_spark_text(each, code, at)[0] for each in value)}]", end
    return f"{{{', '.join(f'{key} -> {_spark_text(each, code, at)[0]}' for key, each in value.items())}}}", end


@evaluator("nested_at")
def nested_at(call: Call, args: Evaluated) -> VectorFunction:
    step, way = parameter(call, 1), parameter(call, 2)
    return _of_documents(call, args, lambda document: element_at(document, step, way))


@evaluator("nested_text")
def nested_text(call: Call, args: Evaluated) -> VectorFunction:
    code = parameter(call, 1)
    return _of_documents(call, args, lambda document: spark_text(document, code))


@evaluator("json_quoted")
def json_quoted(call: Call, args: Evaluated) -> VectorFunction:
    return _of_documents(call, args, lambda text: json.dumps(text, ensure_ascii=False))


@evaluator("nested_size")
def nested_size(call: Call, args: Evaluated) -> VectorFunction:
    count = integer_of_each_text(lambda document: len(READER.decode(document)))

    def run(frame: VectorFrame) -> Vec:
        vec = full(args[0](frame), call.args[0].type, frame.rows)
        return Vec(count(_known(vec)), vec.valid)

    return run


@evaluator("json_at")
def json_at(call: Call, args: Evaluated) -> VectorFunction:
    steps = parse_path(parameter(call, 1))
    return _of_documents(call, args, lambda document: value_at_path(document, steps))


@evaluator("json_extract")
def json_extract(call: Call, args: Evaluated) -> VectorFunction:
    steps = parse_path(parameter(call, 1))

    def part(document: str) -> str | None:
        found = find_at_path(document, steps)
        return None if found is MISSING else write_json(found)

    return _of_documents(call, args, part)


@evaluator("json_value")
def json_value(call: Call, args: Evaluated) -> VectorFunction:
    steps = parse_path(parameter(call, 1))

    def scalar(document: str) -> str | None:
        found = find_at_path(document, steps)
        return None if found is MISSING or isinstance(found, list | dict) else held_element(found)

    return _of_documents(call, args, scalar)


@evaluator("json_query")
def json_query(call: Call, args: Evaluated) -> VectorFunction:
    steps = parse_path(parameter(call, 1))

    def composed(document: str) -> str | None:
        found = find_at_path(document, steps)
        return write_json(found) if isinstance(found, list | dict) else None

    return _of_documents(call, args, composed)


@evaluator("json_exists")
def json_exists(call: Call, args: Evaluated) -> VectorFunction:
    steps = parse_path(parameter(call, 1))
    return _of_documents(call, args, lambda document: None if find_at_path(document, steps) is MISSING else "1")


@value_evaluator("json_array_length")
def json_array_length(text: str) -> int | None:
    found = _decoded(text)
    return len(found) if isinstance(found, list) else None


@value_evaluator("json_object_keys")
def json_object_keys(text: str) -> str | None:
    found = _decoded(text)
    return write_json([*found]) if isinstance(found, dict) else None


def _known(vec: Vec) -> pa.Array:
    """Return texts with NULL where what is held is arbitrary."""
    return vec.values if vec.valid is None else pc.if_else(pa.array(vec.valid), vec.values, None)


def _of_documents(call: Call, args: Evaluated, function: Callable[[str], str | None]) -> VectorFunction:
    """Apply a function to the first argument; its result may be NULL."""

    def run(frame: VectorFrame) -> Vec:
        vec = full(args[0](frame), call.args[0].type, frame.rows)
        found = of_each(_known(vec), function, pa.string())
        return Vec(found, all_valid(vec.valid, np.asarray(found.is_valid()) if found.null_count else None))

    return run
