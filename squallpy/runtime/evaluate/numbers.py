"""Arithmetic. Integers and scaled decimals are int64 where that is safe, else Python integers: always exact."""

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, Kind, Type
from squallpy.logical.expressions import ROUNDED, Call, Expr, Literal
from squallpy.runtime.evaluate.vectors import Frame, Vec, both

LIMIT = 2**63
EXACT = 2.0**49  # below it, ten times a whole number and five are exact as doubles
EXACT_POWER = 22  # the last power of ten, and those below, that are
MOST_SHOWN = 17  # digits of a double


def largest(values: Any) -> int:
    """The greatest magnitude among exact values."""
    if np.ndim(values) == 0:
        return abs(int(values))
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def is_word(values: Any) -> bool:
    """True if exact values fit 64 bits."""
    if np.ndim(values) == 0:
        return -LIMIT <= int(values) < LIMIT
    return not len(values) or (int(values.min()) >= -LIMIT and int(values.max()) < LIMIT)


def overflow(expr: Expr, type: Type, value: Any, hint: str = "") -> SquallError:
    """The error for an expression of which a value, held as its type holds it, has no room in the type."""
    hint = hint or f"CAST to {'DOUBLE' if type.kind is Kind.DECIMAL else 'DECIMAL(38,0)'} first"
    return SquallError("SQ5001", f"{expr}: {Literal(int(value), type)} does not fit {type}", hint=hint)


def first_of(values: Any, chosen: Any) -> Any:
    """The first of the values that are chosen; one scalar stands for all."""
    return np.asarray(boxed(values)).reshape(-1)[np.argmax(chosen) if np.ndim(values) else 0]


def _first_beyond(values: Any, least: int, end: int) -> Any:
    """The first exact value that is not from `least` to before `end`."""
    return first_of(values, np.less(values, least) | np.greater_equal(values, end))


def masked(vec: Vec) -> Any:
    """Values with 0 where they are NULL: what stands there is arbitrary, and must not look like an overflow."""
    return vec.values if vec.valid is None else np.where(vec.valid, boxed(vec.values), 0)


def boxed(values: Any) -> Any:
    """Values as numpy takes them: an exact scalar of more than 64 bits is an object."""
    return np.asarray(values, object) if isinstance(values, int) and not is_word(values) else values


def _widen(values: Any) -> Any:
    return values.astype(object) if np.ndim(values) else np.asarray(int(values), object)


def _narrowed(values: Any) -> Any:
    return values.astype(np.int64) if np.ndim(values) and is_word(values) else values


def digits_bound(type: Type) -> int:
    """The greatest magnitude that a value of an exact type can have."""
    return {Kind.INT: 2**31, Kind.BIGINT: LIMIT}.get(type.kind) or int(10**type.precision)


def exact(
    operate: Callable[[Any, Any], Any], bound: Callable[[int, int], int], call: Call
) -> Callable[[Vec, Vec], Vec]:
    """`operate` on exact numbers, in int64 where `bound` of the operands' magnitudes allows it."""
    safe = bound(digits_bound(call.args[0].type), digits_bound(call.args[1].type)) < LIMIT

    def wide(x: Any, y: Any) -> bool:
        m, n = largest(x), largest(y)
        return max(m, n, bound(m, n)) >= LIMIT  # NB: 0 times a wide constant fits, and the constant does not

    def run(a: Vec, b: Vec) -> Vec:
        x, y = a.values, b.values
        if not safe and wide(x, y):
            x, y = masked(a), masked(b)
        if not safe and wide(x, y):
            values = operate(_widen(x), _widen(y))
            if is_word(values):
                values = values.astype(np.int64) if np.ndim(values) else values
            elif call.type.kind is not Kind.DECIMAL:
                raise overflow(call, call.type, _first_beyond(values, -LIMIT, LIMIT))
            elif largest(values) >= 10**38:
                raise overflow(call, call.type, _first_beyond(values, 1 - 10**38, 10**38))
            return Vec(values, both(a.valid, b.valid))
        return Vec(operate(x, y), both(a.valid, b.valid))

    return run


def signed(arg: Callable[[Frame], Vec], operate: Callable[[Any], Any], call: Call) -> Callable[[Frame], Vec]:
    """Negation and absolute value, which the least integer does not have."""

    def run(frame: Frame) -> Vec:
        values, valid = vec = arg(frame)
        if call.type.is_exact and np.any(np.equal(masked(vec), -LIMIT)):
            if call.type.is_integer:
                raise overflow(call, call.type, LIMIT)
            values = np.asarray(values, object)
        return Vec(operate(values), valid)

    return run


def rounded_decimals(call: Call) -> Callable[[Vec, Vec], Vec]:
    """An operator of DECIMALs whose result is rounded, half away from zero; SQ5001 where it has more than 38 digits."""
    operator, scales, result = ROUNDED[call.name], [arg.type.scale for arg in call.args], call.type
    common = max(scales)
    ups = [1, 1] if operator == "*" else [10 ** (common - scale) for scale in scales]
    step = 10 ** ((sum(scales) if operator == "*" else common) - result.scale)
    operate: Any = {"+": np.add, "-": np.subtract, "*": np.multiply, "%": _remainder}[operator]

    def run(a: Vec, b: Vec) -> Vec:
        valid = both(a.valid, b.valid, np.not_equal(b.values, 0) if operator == "%" else None)
        x, y = (np.asarray(_widen(masked(vec)) * up, object) for vec, up in zip((a, b), ups, strict=True))
        if operator == "%":
            y = np.where(np.equal(y, 0), 1, y)
        exact = np.asarray(operate(x, y), object)
        values = np.asarray(np.sign(exact) * ((np.abs(exact) + step // 2) // step), object)
        if largest(values) >= (bound := digits_bound(result)):
            raise overflow(call, result, _first_beyond(values, 1 - bound, bound))
        return Vec(values.astype(np.int64) if is_word(values) else values, valid)

    return run


def bit_count(values: Any) -> Any:
    """How many bits of 64 are 1."""
    words = np.asarray(values, np.int64).view(np.uint64)
    return np.bitwise_count(words).astype(np.int64)


def real(operate: Callable[[Any, Any], Any]) -> Callable[[Vec, Vec], Vec]:
    """`operate` on doubles, by IEEE rules."""

    def run(a: Vec, b: Vec) -> Vec:
        with np.errstate(all="ignore"):
            return Vec(
                operate(np.float64(a.values) if np.ndim(a.values) == 0 else a.values, b.values), both(a.valid, b.valid)
            )

    return run


def divide(a: Vec, b: Vec) -> Vec:
    """Quotient of doubles; NULL where the divisor is 0."""
    with np.errstate(all="ignore"):
        zero = np.equal(b.values, 0)
        return Vec(np.true_divide(a.values, b.values), both(a.valid, b.valid, ~zero))


_remainder = np.frompyfunc(lambda x, y: abs(x) % abs(y) * (1 if x >= 0 else -1), 2, 1)
"""The remainder of Python integers, with the sign of the dividend."""


def remainder(a: Vec, b: Vec) -> Vec:
    """Remainder with the sign of the dividend; NULL where the divisor is 0."""
    zero = np.equal(b.values, 0)
    with np.errstate(all="ignore"):
        divisor = np.where(zero, 1, boxed(b.values))
        if np.asarray(boxed(a.values)).dtype == object or divisor.dtype == object:
            values = _remainder(np.asarray(a.values, object), divisor.astype(object))
        else:
            values = np.fmod(a.values, divisor)
        return Vec(values, both(a.valid, b.valid, ~zero))


def quotient(call: Call) -> Callable[[Vec, Vec], Vec]:
    """Quotient of exact numbers, cut to a whole one; NULL where the divisor is 0."""
    cut = np.frompyfunc(lambda x, y: abs(int(x)) // abs(int(y)) * (-1 if (x < 0) != (y < 0) else 1), 2, 1)

    def run(a: Vec, b: Vec) -> Vec:
        zero = np.equal(b.values, 0)
        divisor = np.where(zero, 1, boxed(b.values))
        valid = both(a.valid, b.valid, ~zero)
        values = np.where(valid, boxed(a.values), 0)
        if object in (values.dtype, divisor.dtype) or np.any(np.equal(values, -LIMIT) | np.equal(divisor, -LIMIT)):
            whole = np.asarray(cut(values, divisor), object)
            if not is_word(whole):
                raise overflow(call, BIGINT, _first_beyond(whole, -LIMIT, LIMIT), "use /")
        else:
            whole = np.abs(values) // np.abs(divisor) * np.where((values < 0) != (divisor < 0), -1, 1)
        return Vec(whole.astype(np.int64), valid)

    return run


def compare(name: str, double: bool) -> Callable[[Vec, Vec], Vec]:
    """Comparison of numbers, dates and booleans; NaN equals itself and is greater than all else, as in Spark."""
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
            if np.any(odd):  # order NaN above infinity
                rank_x = np.where(np.isnan(x), 2, np.where(np.isposinf(x), 1, 0))
                rank_y = np.where(np.isnan(y), 2, np.where(np.isposinf(y), 1, 0))
                return Vec(np.where(odd, operate(rank_x, rank_y), operate(x, y)), both(a.valid, b.valid))
        result = operate(x, y)
        if np.asarray(result).dtype.kind == "O":
            result = result.astype(bool)
        return Vec(result, both(a.valid, b.valid))

    return run


def checked(total: Vec, near: Vec, call: Call) -> Vec:
    """A sum mod 2 ** 128, if the same sum of doubles says that it is the sum itself."""
    with np.errstate(all="ignore"):
        outside = np.greater(np.abs(masked(near)), 1.2 * 10.0 ** (38 - call.type.scale))
    if np.any(outside):
        raise SquallError("SQ5001", f"{call.args[0]} does not fit {call.type}", hint="CAST to DOUBLE first")
    return total


def variance(sums: list[Vec], scale: int, sample: bool) -> Vec:
    """(n·Σx² − (Σx)²) / (n·(n − 1)), or / n²: exact up to the division if the sums are."""
    count, total, squares = sums
    values, valid = covariance([count, total, total, squares], 2 * scale, sample)
    return Vec(np.maximum(values, 0), valid)


def covariance(sums: list[Vec], scale: int, sample: bool) -> Vec:
    """(n·Σxy − Σx·Σy) / (n·(n − 1)), or / n²; `scale` is that of the product."""
    n, first, second, product = (np.asarray(masked(vec)) for vec in sums)
    if product.dtype.kind != "f":
        n, first, second, product = (values.astype(object) for values in (n, first, second, product))
    with np.errstate(all="ignore"):
        spread = np.asarray(n * product - first * second, np.float64) / 10.0**scale
        count = np.asarray(n, np.float64)
        pairs = count * (count - sample)
        known = pairs > 0
        return Vec(spread / np.where(known, pairs, 1), both(known, *(vec.valid for vec in sums)))


def logarithm(name: str, vec: Vec) -> Vec:
    """NULL of what is not positive."""
    operate: Any = {"ln": np.log, "log10": np.log10, "log2": np.log2}[name]
    known = np.greater(vec.values, 0) | np.isnan(vec.values)
    return Vec(operate(np.where(known, vec.values, 1.0)), both(vec.valid, known))


def rounded(values: Any, places: int) -> Any:
    """Round doubles as they are written, half away from zero: 1.005, which is less in binary, is 1.01."""
    return _to_places(values, places, ROUND_HALF_UP)


def truncated(values: Any, places: int) -> Any:
    """Cut doubles as they are written: 0.29, which is less in binary, stays 0.29."""
    return _to_places(values, places, ROUND_DOWN)


def _to_places(values: Any, places: int, rounding: str) -> Any:
    """Doubles to a number of decimal places, as their shortest decimal text says.

    The magnitude is counted in units of 10 ** -places; a double is next to k units, or k and a half, exactly if the
    quotient of whole numbers is. What is too long for that goes through its text.
    """
    if places > 308:  # a double has no digits there, and no larger power of ten
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
    """The doubles next to so many units of 10 ** -places."""
    scale = np.float_power(10.0, abs(places))
    return units / scale if places >= 0 else units * scale


def cut(vec: Vec, type: Type, places: int) -> Vec:
    """Exact numbers cut to 10 ** -places: a DECIMAL without what is behind that, tens as they are."""
    values, step = masked(vec), 10 ** (type.scale - places)
    if step >= LIMIT or largest(values) >= LIMIT:
        values = _widen(values)
    units = np.sign(values) * (np.abs(values) // step) * 10 ** max(-places, 0)
    return Vec(_narrowed(units), vec.valid)


def tens(vec: Vec, type: Type, places: int, call: Call) -> Vec:
    """Exact numbers rounded to 10 ** -places, half away from zero."""
    values, places = np.asarray(masked(vec)).astype(object), max(places, -40)  # NB: all are 0 from there on
    step = 10 ** (type.scale - places)
    tens = np.asarray(np.sign(values) * ((np.abs(values) + step // 2) // step) * 10**-places, object)
    if not is_word(tens) if call.type.is_integer else largest(tens) >= digits_bound(call.type):
        bound = digits_bound(call.type)
        raise overflow(call, call.type, _first_beyond(tens, -bound if call.type.is_integer else 1 - bound, bound))
    return Vec(tens.astype(np.int64) if is_word(tens) else tens, vec.valid)


def whole(call: Call, vec: Vec, type: Type, rows: int) -> Vec:
    """FLOOR and CEIL."""
    if type == DOUBLE:
        from squallpy.runtime.evaluate.casts import cast

        with np.errstate(all="ignore"):
            operate: Any = np.floor if call.name == "floor" else np.ceil
            return cast(Vec(operate(vec.values), vec.valid), DOUBLE, BIGINT, rows, call)
    values, step = masked(vec), 10**type.scale
    if step >= LIMIT or largest(values) >= LIMIT:
        values = _widen(values)
    return Vec(_narrowed(values // step if call.name == "floor" else -(-values // step)), vec.valid)
