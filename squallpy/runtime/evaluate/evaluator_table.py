"""The table of evaluators, one for each operation of the registry, and helpers to write them.

@evaluator("bit_count")
def bit_count(call: Call, args: Evaluated) -> Function:
    return unary(args[0], numbers.bit_count)

@text_evaluator("soundex")
@of_each_text
def soundex(text: str) -> str: …
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.functions.registry import OPERATIONS
from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, arrow_type, from_arrow, full

Evaluated = list[VectorFunction]
"""The compiled arguments of a call."""
Values = Callable[..., Any]
"""A function from an Arrow array of texts, and constants, to an Arrow or numpy array."""
Evaluator = Callable[[Call, Evaluated], VectorFunction]
EVALUATORS: dict[str, Evaluator] = {}
"""Compilers of calls, by the operation's name."""


def evaluator(*names: str) -> Callable[[Evaluator], Evaluator]:
    """Register the evaluator of operations of the registry."""

    def register(make: Evaluator) -> Evaluator:
        for name in names:
            assert name in OPERATIONS and name not in EVALUATORS, name
            EVALUATORS[name] = make
        return make

    return register


def parameter(call: Call, position: int) -> Any:
    """Return the value of a constant argument; SQ3001 for any other."""
    literal = fold_constant(call.args[position])
    if literal is not None and literal.value is not None:
        return literal.value
    raise SquallError("SQ3001", f"{call.name.upper()} with a computed argument {position + 1} is not supported yet")


def unary(arg: VectorFunction, operate: Callable[[Any], Any]) -> VectorFunction:
    """Make an evaluator from a function of values; NULL yields NULL."""

    def run(frame: VectorFrame) -> Vec:
        vec = arg(frame)
        return Vec(operate(vec.values), vec.valid)

    return run


def binary(args: Evaluated, operate: Callable[[Vec, Vec], Vec]) -> VectorFunction:
    left, right = args
    return lambda frame: operate(left(frame), right(frame))


def of_text(arg: VectorFunction, operate: Callable[[Any], Any]) -> VectorFunction:
    """Make an evaluator from a function of Arrow texts; NULL yields NULL."""

    def run(frame: VectorFrame) -> Vec:
        vec = arg(frame)
        if isinstance(vec.values, str):
            return Vec(_single(operate(pa.array([vec.values]))), vec.valid)
        return Vec(operate(vec.values), vec.valid)

    return run


def text_evaluator(name: str) -> Callable[[Values], Values]:
    """Register the evaluator of an operation whose first argument is a text and whose others are constants."""

    def register(operate: Values) -> Values:
        @evaluator(name)
        def make(call: Call, args: Evaluated) -> VectorFunction:
            parameters = [parameter(call, position) for position in range(1, len(args))]
            return of_text(args[0], lambda values: operate(values, *parameters))

        return operate

    return register


def of_each(values: Any, function: Callable[[str], Any], type: pa.DataType) -> Any:
    """Apply a Python function once to each distinct text; for NULL the result is arbitrary."""
    known = pc.dictionary_encode(values)
    known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    made = pa.array([function(text) for text in known.dictionary.to_pylist()] or [None], type)
    return made.take(pc.fill_null(known.indices, 0))


def of_each_combination(call: Call, args: Evaluated, function: Callable[..., Any]) -> VectorFunction:
    """Apply a function once to each combination of arguments; its result may be None, and is where an argument is."""

    def run(frame: VectorFrame) -> Vec:
        vecs = [full(arg(frame), given.type, frame.rows) for arg, given in zip(args, call.args, strict=True)]
        numbered = [numbered_values(vec) for vec in vecs]
        rows, of = distinct_rows(numbered, frame.rows)
        given = [[values[number] for number in numbers[rows].tolist()] for values, numbers in numbered]
        made = [None if None in each else function(*each) for each in zip(*given, strict=True)]
        type = pa.int64() if call.type.is_integer else arrow_type(call.type)
        return from_arrow(pa.array(made, type).take(pa.array(of)), call.type)

    return run


def distinct_rows(numbered: list[tuple[list[Any], Any]], rows: int) -> tuple[Any, Any]:
    """Find a row of each combination of values that are numbered in columns, and the combination of each row."""
    codes = np.zeros(rows, np.int64)
    for values, numbers in numbered:
        codes = np.unique(codes * len(values) + numbers, return_inverse=True)[1]
    return np.unique(codes, return_index=True, return_inverse=True)[1:]


def numbered_values(vec: Vec) -> tuple[list[Any], Any]:
    """List the values that differ, with None behind them, and the number of each row's."""
    known = pc.dictionary_encode(pa.array(vec.values) if isinstance(vec.values, np.ndarray) else vec.values)
    known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    values = [*known.dictionary.to_pylist(), None]
    numbers = np.asarray(pc.fill_null(known.indices, len(values) - 1)).astype(np.int64)
    return values, numbers if vec.valid is None else np.where(vec.valid, numbers, len(values) - 1)


def value_evaluator(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a Python function of the values of all arguments, which may return None, as an operation's evaluator."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        evaluator(name)(lambda call, args: of_each_combination(call, args, function))
        return function

    return register


def of_each_text(function: Callable[..., str]) -> Values:
    """Lift a Python function from a text and constants to a text, onto Arrow texts."""
    return lambda values, *constants: of_each(values, lambda text: function(text, *constants), pa.string())


def integer_of_each_text(function: Callable[..., int]) -> Values:
    """Lift a Python function from a text and constants to an integer, onto Arrow texts."""
    return lambda values, *constants: integers(of_each(values, lambda text: function(text, *constants), pa.int64()))


def integers(result: Any) -> Any:
    """Convert an Arrow array of integers to numpy, NULL to 0."""
    return np.asarray(pc.fill_null(result, 0)).astype(np.int64)


def mask(result: Any) -> Any:
    """Convert an Arrow boolean array or scalar to numpy, NULL to FALSE: validity is held separately."""
    if isinstance(result, pa.Scalar):
        return bool(result.as_py())
    return np.asarray(pc.fill_null(result, False))


def _single(result: Any) -> Any:
    return result[0].as_py() if isinstance(result, pa.Array) else result[0]
