"""Evaluators of functions of numbers; `evaluate/exact_arithmetic.py` has the arithmetic."""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate import exact_arithmetic
from squallpy.runtime.evaluate.evaluator_table import Evaluated, binary, evaluator, parameter, unary, value_evaluator
from squallpy.runtime.evaluate.vectors import Vec, VectorFunction, all_valid

_REALS: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt, "exp": np.exp, "sign": np.sign, "cbrt": np.cbrt, "degrees": np.degrees, "radians": np.radians,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "log1p": np.log1p, "expm1": np.expm1, "rint": np.rint,
}  # fmt: skip
_PAIRS: dict[str, Callable[[Any, Any], Any]] = {"power": np.power, "atan2": np.arctan2, "hypot": np.hypot}


@evaluator(*_REALS)
def real(call: Call, args: Evaluated) -> VectorFunction:
    """Apply a function of doubles, by IEEE rules, without warnings."""
    operate = _REALS[call.name]

    def run(values: Any) -> Any:
        with np.errstate(all="ignore"):
            return operate(np.float64(values) if np.ndim(values) == 0 else values)

    return unary(args[0], run)


@evaluator(*_PAIRS)
def real_of_two(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, exact_arithmetic.real(_PAIRS[call.name]))


@evaluator("ln", "log10", "log2")
def logarithm(call: Call, args: Evaluated) -> VectorFunction:
    return lambda frame: exact_arithmetic.logarithm(call.name, args[0](frame))


@evaluator("abs")
def magnitude(call: Call, args: Evaluated) -> VectorFunction:
    return exact_arithmetic.negate_or_abs(args[0], np.abs, call)


@evaluator("div")
def quotient(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, exact_arithmetic.quotient(call))


@evaluator("floor", "ceil")
def whole(call: Call, args: Evaluated) -> VectorFunction:
    return lambda frame: exact_arithmetic.floor_or_ceil(call, args[0](frame), call.args[0].type, frame.rows)


@evaluator("round")
def rounded(call: Call, args: Evaluated) -> VectorFunction:
    type, places = call.args[0].type, parameter(call, 1)
    if type.is_exact:
        return lambda frame: exact_arithmetic.round_exact(args[0](frame), type, places, call)
    return unary(args[0], lambda x: exact_arithmetic.round_real(x, places))


@evaluator("truncate")
def truncated(call: Call, args: Evaluated) -> VectorFunction:
    type, places = call.args[0].type, parameter(call, 1)
    if type.is_exact:
        return lambda frame: exact_arithmetic.truncate_exact(args[0](frame), type, places)
    return unary(args[0], lambda x: exact_arithmetic.truncate_real(x, places))


@evaluator("shift_left", "shift_right")
def shifted(call: Call, args: Evaluated) -> VectorFunction:
    move: Any = np.left_shift if call.name == "shift_left" else np.right_shift
    return binary(args, lambda a, b: Vec(move(a.values, np.bitwise_and(b.values, 63)), all_valid(a.valid, b.valid)))


@evaluator("shift_right_unsigned")
def shifted_without_sign(call: Call, args: Evaluated) -> VectorFunction:
    def move(a: Vec, b: Vec) -> Vec:
        words = np.atleast_1d(np.asarray(a.values, np.int64)).view(np.uint64)
        moved = np.right_shift(words, np.bitwise_and(b.values, 63).astype(np.uint64)).view(np.int64)
        is_single = np.ndim(a.values) == 0 and np.ndim(b.values) == 0
        return Vec(moved[0] if is_single else moved, all_valid(a.valid, b.valid))

    return binary(args, move)


@evaluator("bit_get")
def bit_at(call: Call, args: Evaluated) -> VectorFunction:
    def bit(a: Vec, b: Vec) -> Vec:
        if np.any(outside := (np.asarray(b.values) < 0) | (np.asarray(b.values) > 63)):
            there = outside if b.valid is None else outside & b.valid
            if np.any(there):
                raise SquallError("SQ5001", "BIT_GET of a place outside of 0 to 63")
        return Vec(np.bitwise_and(np.right_shift(a.values, b.values), 1), all_valid(a.valid, b.valid))

    return binary(args, bit)


@value_evaluator("factorial")
def factorial_of(number: int) -> int | None:
    return factorial(number) if 0 <= number <= 20 else None


@evaluator("bit_count")
def bit_count(call: Call, args: Evaluated) -> VectorFunction:
    return unary(args[0], exact_arithmetic.bit_count)
