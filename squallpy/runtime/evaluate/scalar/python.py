"""Functions of Python that a script declares, called once for each combination of arguments that a batch has.

Values are those of the Python API: int, float, Decimal, str, bool, date, datetime, timedelta, list, dict, and None.
"""

import json
import traceback
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, NoReturn

import pyarrow as pa

from squallpy.base.errors import SquallError, shorten
from squallpy.base.python_functions import compile_definition
from squallpy.base.text_casts import parse
from squallpy.base.types import DAY_TO_SECOND, Kind, Shape, Type
from squallpy.functions.scalar.python import NAME
from squallpy.logical.expressions import Call, Literal
from squallpy.runtime.evaluate.evaluator_table import Evaluated, distinct_rows, evaluator, numbered_values
from squallpy.runtime.evaluate.held_values import held_text
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, arrow_type, from_arrow, to_arrow

_KEPT = 256  # compiled definitions in memory


READERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.DOUBLE: float,
    Kind.DECIMAL: Decimal,
    Kind.DATE: date.fromisoformat,
    Kind.TIMESTAMP: datetime.fromisoformat,
    Kind.DAY_TO_SECOND: lambda text: timedelta(microseconds=int(parse(text, DAY_TO_SECOND))),
}
"""Functions that make values of JSON those of Python, by kind."""
_compiled = lru_cache(_KEPT)(compile_definition)


@evaluator(NAME)
def python_function(call: Call, args: Evaluated) -> VectorFunction:
    definition, *given = call.args
    assert isinstance(definition, Literal)
    function = _compiled(definition.value)
    types = [each.type for each in given]

    def run(frame: VectorFrame) -> Vec:
        numbered = [_values(arg(frame), type, frame.rows) for arg, type in zip(args[1:], types, strict=True)]
        rows, of = distinct_rows(numbered, frame.rows)
        chosen = [[values[number] for number in numbers[rows].tolist()] for values, numbers in numbered]
        calls = zip(*chosen, strict=True) if chosen else [()] * len(rows)
        made = [_held(_call(function, each), call.type, function.__name__) for each in calls]
        return from_arrow(_array(made, call.type, function.__name__).take(pa.array(of)), call.type)

    return run


def _values(vec: Vec, type: Type, rows: int) -> tuple[list[Any], Any]:
    """List the values of a column that differ, as Python has them, with the number of each row's."""
    values, numbers = numbered_values(Vec(to_arrow(vec, type, rows)))
    return [value if value is None else _of_json(value, type) for value in values] if type.nested else values, numbers


def _of_json(text: str, type: Type) -> Any:
    return _of_parsed(json.loads(text, parse_float=Decimal), type)


def _of_parsed(value: Any, type: Type) -> Any:
    """Convert a value of JSON to that of a type."""
    nested = type.nested
    if value is None:
        return None
    if nested is None:
        return READERS[type.kind](value) if type.kind in READERS else value
    if nested.shape is Shape.ARRAY:
        return [_of_parsed(each, nested.types[0]) for each in value]
    if nested.shape is Shape.MAP:
        key, of = nested.types
        return {_of_parsed(_key(name, key), key): _of_parsed(each, of) for name, each in value.items()}
    named = zip(nested.names, nested.types, strict=True)
    return {name: _of_parsed(value.get(name), of) for name, of in named}


def _key(name: str, type: Type) -> Any:
    """Read the key of a MAP, a text in JSON."""
    return json.loads(name) if type.kind in (Kind.INT, Kind.BIGINT, Kind.BOOLEAN) else name


def _call(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    try:
        return function(*values)
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == f"<{function.__name__}>"]
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        called = f"{function.__name__}({', '.join(map(repr, values))})"
        hint = f"line {frames[-1].lineno} of {function.__name__}" if frames else ""
        raise SquallError("SQ5005", f"{shorten(called)}: {' '.join(told.split())}", hint=hint) from None


def _held(value: Any, type: Type, name: str) -> Any:
    """Convert a result to what Arrow takes for it, a nested one to its text; SQ5005 if it is of another type.

    NB: Arrow itself takes 1.5 for the integer 1, and a time for its day.
    """
    if value is None:
        return value
    try:
        if type.nested:
            return held_text(value, type)
        if type.is_integer and isinstance(value, float | Decimal):
            whole = int(value)
            return whole if whole == value else _refuse(value)
        if type.kind is Kind.DOUBLE and isinstance(value, int | Decimal):
            return float(value)
        if type.kind is Kind.TIMESTAMP and isinstance(value, date) and not isinstance(value, datetime):
            return datetime.combine(value, time())
        return _refuse(value) if type.kind is Kind.DATE and isinstance(value, datetime) else value
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise _mismatch(value, type, name) from None


def _refuse(value: Any) -> NoReturn:
    raise ValueError(value)


def _array(values: list[Any], type: Type, name: str) -> pa.Array:
    """Make results an array; SQ5005, which names the first that is not of the type."""
    make = partial(pa.array, type=arrow_type(type))
    try:
        made = make(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for value in values:
            try:
                make([value])
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                raise _mismatch(value, type, name) from None
        raise
    return made.cast(pa.int64()) if type.kind is Kind.INT else made


def _mismatch(value: Any, type: Type, name: str) -> SquallError:
    told = f"{name} returned {shorten(repr(value))}, which is no {type}"
    return SquallError("SQ5005", told, hint="convert it in the function, or declare what it RETURNS")
