"""JSON in texts: what stands at a path, each distinct text read once.

at('{"a": {"b": [1.50, "x"]}}', ("a", "b", 0))  →  '1.50'        … ("a", "b")  →  '[1.50,"x"]'
"""

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.evaluators import Evaluated, Function, evaluator, of_each, parameter
from squallpy.runtime.evaluate.vectors import Frame, Vec, both, full

Path = tuple[str | int, ...]
STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")


class _Number(str):
    """A number as it was written."""


def path(text: str) -> Path | None:
    """The steps of a path: '$.a[0]["b c"]'; None if it is none."""
    steps, at = list[str | int](), 1
    while text.startswith("$") and at < len(text):
        found = STEP.match(text, at)
        if found is None:
            return None
        name, number, quoted = found.groups()
        steps.append(int(number) if number is not None else name if name is not None else quoted)
        at = found.end()
    return tuple(steps) if text.startswith("$") else None


def at(text: str, steps: Path | None) -> str | None:
    """What stands at a path: a text as it is, all else as JSON; None for null, nothing, and what is no JSON or path."""
    try:
        found: Any = None if steps is None else _READER.decode(text)
        for step in steps or ():
            fits = isinstance(found, list if isinstance(step, int) else dict)
            found = found[step] if fits else None
    except (ValueError, LookupError, RecursionError):
        return None
    return None if found is None else found if type(found) is str else spelled(found)


def spelled(value: Any) -> str:
    """A value as JSON, without spaces."""
    match value:
        case _Number():
            return str(value)
        case dict():
            return "{" + ",".join(f"{spelled(name)}:{spelled(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(spelled, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of fields of one name the first counts."""
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else dict(reversed(pairs))


def _no_number(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are no JSON


_READER = json.JSONDecoder(object_pairs_hook=_fields, parse_int=_Number, parse_float=_Number, parse_constant=_no_number)


@evaluator("json_at")
def json_at(call: Call, args: Evaluated) -> Function:
    steps = path(parameter(call, 1))

    def run(frame: Frame) -> Vec:
        vec = full(args[0](frame), call.args[0].type, frame.rows)
        found = of_each(vec.values, lambda document: at(document, steps), pa.string())
        return Vec(found, both(vec.valid, np.asarray(found.is_valid()) if found.null_count else None))

    return run
