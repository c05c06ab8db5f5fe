"""Arithmetic: integers and scaled decimals are int64 if they fit, else Python integers, and always exact."""

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, Kind, Type
from squallpy.logical.expressions import ROUNDED, Call, Expr, Literal
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid

LIMIT = 2**63
EXACT = 2.0**49  # below it, ten times an integer plus five is exact as a double
EXACT_POWER = 22  # the greatest power of ten that is exact as a double
MOST_SHOWN = 17  # digits of a double


def largest_magnitude(values: Any) -> int:
    """Find the greatest magnitude among exact values."""
    if np.ndim(values) == 0:
        return abs(int(values))
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def is_word(values: Any) -> bool:
    """True if exact values fit 64 bits."""
    if np.ndim(values) == 0:
        return -LIMIT <= int(values) < LIMIT
    return not len(values) or (int(values.min()) >= -LIMIT and int(values.max()) < LIMIT)


def overflow_error(expr: Expr, type: Type, value: Any, hint: str = "") -> SquallError:
    """Describe an expression with a value that does not fit its type."""
    hint = hint or f"CAST to {'DOUBLE' if type.kind is Kind.DECIMAL else 'DECIMAL(38,0)'} first"
    return SquallError("SQ5001", f"{expr}: {Literal(int(value), type)} does not fit {type}", hint=hint)


def first_chosen(values: Any, chosen: Any) -> Any:
    """Return the first chosen value; one scalar stands for all."""
    return np.asarray(as_object_scalar(values)).reshape(-1)[np.argmax(chosen) if np.ndim(values) else 0]


def _first_outside(values: Any, least: int, end: int) -> Any:
    """Return the first exact value outside `least` … `end` − 1."""
    return first_chosen(values, np.less(values, least) | np.greater_equal(values, end))


def masked(vec: Vec) -> Any:
    """Replace values by 0 where they are NULL: they are arbitrary, and must not look like an overflow."""
    return vec.values if vec.valid is None else np.where(vec.valid, as_object_scalar(vec.values), 0)


def as_object_scalar(values: Any) -> Any:
    """Convert an exact scalar of more than 64 bits to an object array."""
    return np.asarray(values, object) if isinstance(values, int) and not is_word(values) else values


def _widen(values: Any) -> Any:
    return values.astype(object) if np.ndim(values) else np.asarray(int(values), object)


def _narrow(values: Any) -> Any:
    return values.astype(np.int64) if np.ndim(values) and is_word(values) else values


def digits_bound(type: Type) -> int:
    """Bound the magnitude of values of an exact type."""
    return {Kind.INT: 2**31, Kind.BIGINT: LIMIT}.get(type.kind) or int(10**type.precision)


def exact(
    operate: Callable[[Any, Any], Any], bound: Callable[[int, int], int], call: Call
) -> Callable[[Vec, Vec], Vec]:
    """Lift `operate` to exact numbers, in int64 where `bound` of the operands' magnitudes allows it."""
    safe = bound(digits_bound(call.args[0].type), digits_bound(call.args[1].type)) < LIMIT

    def wide(x: Any, y: Any) -> bool:
        m, n = largest_magnitude(x), largest_magnitude(y)
        return max(m, n, bound(m, n)) >= LIMIT  # NB: 0 times a wide constant fits, but the constant does not

    def run(a: Vec, b: Vec) -> Vec:
        x, y = a.values, b.values
        if not safe and wide(x, y):
            x, y = masked(a), masked(b)
        if not safe and wide(x, y):
            values = operate(_widen(x), _widen(y))
            if is_word(values):
                values = values.astype(np.int64) if np.ndim(values) else values
            elif call.type.kind is not Kind.DECIMAL:
                raise overflow_error(call, call.type, _first_outside(values, -LIMIT, LIMIT))
            elif largest_magnitude(values) >= 10**38:
                raise overflow_error(call, call.type, _first_outside(values, 1 - 10**38, 10**38))
            return Vec(values, all_valid(a.valid, b.valid))
        return Vec(operate(x, y), all_valid(a.valid, b.valid))

    return run


def negate_or_abs(arg: VectorFunction, operate: Callable[[Any], Any], call: Call) -> VectorFunction:
    """Evaluate negation or absolute value, which the least integer does not have."""

    def run(frame: VectorFrame) -> Vec:
        values, valid = vec = arg(frame)
        if call.type.is_exact and np.any(np.equal(masked(vec), -LIMIT)):
            if call.type.is_integer:
                raise overflow_error(call, call.type, LIMIT)
            values = np.asarray(values, object)
        return Vec(operate(values), valid)

    return run


def rounded_decimals(call: Call) -> Callable[[Vec, Vec], Vec]:
    """Lift a DECIMAL operator that rounds half away from zero; SQ5001 where the result has more than 38 digits."""
    operator, scales, result = ROUNDED[call.name], [arg.type.scale for arg in call.args], call.type
    common = max(scales)
    ups = [1, 1] if operator == "*" else [10 ** (common - scale) for scale in scales]
    step = 10 ** ((sum(scales) if operator == "*" else common) - result.scale)
    operate: Any = {"+": np.add, "-": np.subtract, "*": np.multiply, "%": _remainder}[operator]

    def run(a: Vec, b: Vec) -> Vec:
        valid = all_valid(a.valid, b.valid, np.not_equal(b.values, 0) if operator == "%" else None)
        x, y = (np.asarray(_widen(masked(vec)) * up, object) for vec, up in zip((a, b), ups, strict=True))
        if operator == "%":
            y = np.where(np.equal(y, 0), 1, y)
        exact = np.asarray(operate(x, y), object)
        values = np.asarray(np.sign(exact) * ((np.abs(exact) + step // 2) // step), object)
        if largest_magnitude(values) >= (bound := digits_bound(result)):
            raise overflow_error(call, result, _first_outside(values, 1 - bound, bound))
        return Vec(values.astype(np.int64) if is_word(values) else values, valid)

    return run


def bit_count(values: Any) -> Any:
    """Count the 1 bits among 64."""
    words = np.asarray(values, np.int64).view(np.uint64)
    return np.bitwise_count(words).astype(np.int64)


def real(operate: Callable[[Any, Any], Any]) -> Callable[[Vec, Vec], Vec]:
    """Lift `operate` to doubles, by IEEE rules."""

    def run(a: Vec, b: Vec) -> Vec:
        with np.errstate(all="ignore"):
            return Vec(
                operate(np.float64(a.values) if np.ndim(a.values) == 0 else a.values, b.values),
                all_valid(a.valid, b.valid),
            )

    return run


def divide(a: Vec, b: Vec) -> Vec:
    """Divide doubles; NULL where the divisor is 0."""
    with np.errstate(all="ignore"):
        zero = np.equal(b.values, 0)
        return Vec(np.true_divide(a.values, b.values), all_valid(a.valid, b.valid, ~zero))


_remainder = np.frompyfunc(lambda x, y: abs(x) % abs(y) * (1 if x >= 0 else -1), 2, 1)
"""The remainder of Python integers, with the sign of the dividend."""


def remainder(a: Vec, b: Vec) -> Vec:
    """Compute the remainder with the sign of the dividend; NULL where the divisor is 0."""
    zero = np.equal(b.values, 0)
    with np.errstate(all="ignore"):
        divisor = np.where(zero, 1, as_object_scalar(b.values))
        if np.asarray(as_object_scalar(a.values)).dtype == object or divisor.dtype == object:
            values = _remainder(np.asarray(a.values, object), divisor.astype(object))
        else:
            values = np.fmod(a.values, divisor)
        return Vec(values, all_valid(a.valid, b.valid, ~zero))


def quotient(call: Call) -> Callable[[Vec, Vec], Vec]:
    """Divide exact numbers and truncate to an integer; NULL where the divisor is 0."""
    truncate_quotient = np.frompyfunc(lambda x, y: abs(int(x)) // abs(int(y)) * (-1 if (x < 0) != (y < 0) else 1), 2, 1)

    def run(a: Vec, b: Vec) -> Vec:
        zero = np.equal(b.values, 0)
        divisor = np.where(zero, 1, as_object_scalar(b.values))
        valid = all_valid(a.valid, b.valid, ~zero)
        values = np.where(valid, as_object_scalar(a.values), 0)
        if object in (values.dtype, divisor.dtype) or np.any(np.equal(values, -LIMIT) | np.equal(divisor, -LIMIT)):
            whole = np.asarray(truncate_quotient(values, divisor), object)
            if not is_word(whole):
                raise overflow_error(call, BIGINT, _first_outside(whole, -LIMIT, LIMIT), "use /")
        else:
            whole = np.abs(values) // np.abs(divisor) * np.where((values < 0) != (divisor < 0), -1, 1)
        return Vec(whole.astype(np.int64), valid)

    return run


def compare(name: str, double: bool) -> Callable[[Vec, Vec], Vec]:
    """Compare numbers, dates and booleans; NaN equals itself and is greater than all else, as in Spark."""
    operate: Any = {
        "=": np.equal,
        "<>": np.not_equal,
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
    }[name]

    def run(a: Vec, b: Vec) -> Vec:
        x, y = a.values, b.values
        if double:
            odd = np.isnan(x) | np.isnan(y)
            if np.any(odd):  # NB: SQL orders NaN above infinity
                rank_x = np.where(np.isnan(x), 2, np.where(np.isposinf(x), 1, 0))
                rank_y = np.where(np.isnan(y), 2, np.where(np.isposinf(y), 1, 0))
                return Vec(np.where(odd, operate(rank_x, rank_y), operate(x, y)), all_valid(a.valid, b.valid))
        result = operate(x, y)
        if np.asarray(result).dtype.kind == "O":
            result = result.astype(bool)
        return Vec(result, all_valid(a.valid, b.valid))

    return run


def check_sum(total: Vec, approximate: Vec, call: Call) -> Vec:
    """Check a sum mod 2¹²⁸ by the same sum in doubles, `near`; SQ5001 if it overflowed."""
    with np.errstate(all="ignore"):
        outside = np.greater(np.abs(masked(approximate)), 1.2 * 10.0 ** (38 - call.type.scale))
    if np.any(outside):
        raise SquallError("SQ5001", f"{call.args[0]} does not fit {call.type}", hint="CAST to DOUBLE first")
    return total


def logarithm(name: str, vec: Vec) -> Vec:
    """Compute a logarithm; NULL where the argument is not positive."""
    operate: Any = {"ln": np.log, "log10": np.log10, "log2": np.log2}[name]
    known = np.greater(vec.values, 0) | np.isnan(vec.values)
    return Vec(operate(np.where(known, vec.values, 1.0)), all_valid(vec.valid, known))


def round_real(values: Any, places: int) -> Any:
    """Round doubles as they are written, half away from zero: 1.005, which is less in binary, is 1.01; none to −0.0."""
    return _to_places(values, places, ROUND_HALF_UP) + 0.0


def truncate_real(values: Any, places: int) -> Any:
    """Cut doubles as they are written: 0.29, which is less in binary, stays 0.29."""
    return _to_places(values, places, ROUND_DOWN)


def _to_places(values: Any, places: int, rounding: str) -> Any:
    """Convert doubles to a number of decimal places, as their shortest decimal text says.

    The magnitude is counted in units of 10 ** -places; a double is next to k units, or k and a half, exactly if the
    quotient of integers is. Doubles too long for that go through their text.
    """
    if places > 308:  # NB: no double has digits there, or a larger power of ten
        return values
    if places < -308:
        return np.where(np.isfinite(values), np.copysign(0.0, values), values)
    with np.errstate(all="ignore"):
        size, scale = np.abs(values), np.float_power(10.0, abs(places))
        units = np.floor(size * scale if places >= 0 else size / scale)
        units = np.where(_doubles(units + 1, places) <= size, units + 1, units)
        units = np.where(_doubles(units, places) > size, units - 1, units)
        up = size >= _doubles(units * 10 + 5, places + 1) if rounding == ROUND_HALF_UP else 0
        known = (units < EXACT) & (abs(places) < EXACT_POWER)
        out = np.where(known, np.copysign(_doubles(units + up, places), values), values)
        if np.any(long := ~known & (units < 10.0**MOST_SHOWN)):
            step = Decimal(1).scaleb(-places)
            with localcontext(prec=400):
                by_text = np.frompyfunc(lambda x: float(Decimal(repr(float(x))).quantize(step, rounding)), 1, 1)
                out[long] = by_text(np.asarray(values)[long])
    return out


def _doubles(units: Any, places: int) -> Any:
    """Compute the doubles nearest to multiples of 10 ** -places."""
    scale = np.float_power(10.0, abs(places))
    return units / scale if places >= 0 else units * scale


def truncate_exact(vec: Vec, type: Type, places: int) -> Vec:
    """Truncate exact numbers to 10 ** -places; a DECIMAL loses these digits, tens stay."""
    values, step = masked(vec), 10 ** (type.scale - places)
    if step >= LIMIT or largest_magnitude(values) >= LIMIT:
        values = _widen(values)
    units = np.sign(values) * (np.abs(values) // step) * 10 ** max(-places, 0)
    return Vec(_narrow(units), vec.valid)


def round_exact(vec: Vec, type: Type, places: int, call: Call) -> Vec:
    """Round exact numbers to 10 ** -places, half away from zero."""
    values, places = np.asarray(masked(vec)).astype(object), max(places, -40)  # NB: all are 0 from there on
    step = 10 ** (type.scale - places)
    rounded = np.asarray(np.sign(values) * ((np.abs(values) + step // 2) // step) * 10**-places, object)
    if not is_word(rounded) if call.type.is_integer else largest_magnitude(rounded) >= digits_bound(call.type):
        bound = digits_bound(call.type)
        raise overflow_error(
            call, call.type, _first_outside(rounded, -bound if call.type.is_integer else 1 - bound, bound)
        )
    return Vec(rounded.astype(np.int64) if is_word(rounded) else rounded, vec.valid)


def floor_or_ceil(call: Call, vec: Vec, type: Type, rows: int) -> Vec:
    """Evaluate FLOOR or CEIL."""
    if type == DOUBLE:
        from squallpy.runtime.evaluate.casts import cast

        with np.errstate(all="ignore"):
            operate: Any = np.floor if call.name == "floor" else np.ceil
            return cast(Vec(operate(vec.values), vec.valid), DOUBLE, BIGINT, rows, call)
    values, step = masked(vec), 10**type.scale
    if step >= LIMIT or largest_magnitude(values) >= LIMIT:
        values = _widen(values)
    return Vec(_narrow(values // step if call.name == "floor" else -(-values // step)), vec.valid)
