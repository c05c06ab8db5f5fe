"""Decisions as JSON, and back, for checkpoints and messages.

    to_json(Mapping(8, 2))                      →   {"rows": 8, "columns": 2}
    from_json(Mapping, {"rows": 8, "columns": 2}) → Mapping(8, 2)

The class of a value determines its form: dataclasses are objects of their fields, tuples and arrays of numbers are
lists. In a union of dataclasses the fields determine the class.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Convert a value to numbers, texts, lists and dicts."""
    if is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def from_json(cls: type[T], data: Any) -> T:
    """Restore a value of a class from its JSON."""
    return decode(cls, data)  # type: ignore[no-any-return]


def decode(kind: Any, data: Any) -> Any:
    kind = _without_alias(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:
        some = [part for part in parts if part is not NoneType]
        if len(some) > 1:  # dataclasses
            some = [part for part in some if {f.name for f in fields(part)} == data.keys()]
        return None if data is None else decode(some[0], data)
    if origin is tuple:
        kinds = [parts[0]] * len(data) if parts[-1] is Ellipsis else parts
        return tuple(decode(part, item) for part, item in zip(kinds, data, strict=True))
    if origin is np.ndarray:
        return np.array(data, get_args(parts[1])[0])
    if is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        return kind(**{name: decode(hints[name], item) for name, item in data.items()})  # type: ignore[operator]
    assert origin in (None, dict), kind
    return data


def _without_alias(kind: Any) -> Any:
    """Replace an alias by the type that it stands for: NDArray[int64] is one from numpy 2.5 on."""
    while hasattr(origin := get_origin(kind) or kind, "__value__"):
        parts = get_args(kind)
        kind = origin.__value__[parts] if parts else origin.__value__
    return kind


@cache  # NB: each message of a batch carries the same classes
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
