"""JSON in texts: the value at a path, each distinct text parsed once.

at('{"a": {"b": [1.50, "x"]}}', ("a", "b", 0))  →  '1.50'        … ("a", "b")  →  '[1.50,"x"]'
"""

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.evaluator_table import Evaluated, Function, evaluator, of_each, parameter
from squallpy.runtime.evaluate.vectors import Frame, Vec, all_valid, full

Path = tuple[str | int, ...]
STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")


class _Number(str):
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


def value_at_path(text: str, steps: Path | None) -> str | None:
    """Extract the value at a path, a text unchanged, others as JSON; None for null, a missing value and invalid
    JSON."""
    try:
        found: Any = None if steps is None else _READER.decode(text)
        for step in steps or ():
            fits = isinstance(found, list if isinstance(step, int) else dict)
            found = found[step] if fits else None
    except (ValueError, LookupError, RecursionError):
        return None
    return None if found is None else found if type(found) is str else write_json(found)


def write_json(value: Any) -> str:
    """Write a value as JSON, without spaces."""
    match value:
        case _Number():
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


_READER = json.JSONDecoder(object_pairs_hook=_fields, parse_int=_Number, parse_float=_Number, parse_constant=_no_number)


@evaluator("json_at")
def json_at(call: Call, args: Evaluated) -> Function:
    steps = parse_path(parameter(call, 1))

    def run(frame: Frame) -> Vec:
        vec = full(args[0](frame), call.args[0].type, frame.rows)
        found = of_each(vec.values, lambda document: value_at_path(document, steps), pa.string())
        return Vec(found, all_valid(vec.valid, np.asarray(found.is_valid()) if found.null_count else None))

    return run
