"""Arithmetic. Integers and scaled decimals are int64 where that is safe, else Python integers: always exact."""

from collections.abc import Callable
from typing import Any

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, Kind, Type
from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.vector import Vec, both

LIMIT = 2**63


def largest(values: Any) -> int:
    """The greatest magnitude among exact values."""
    if np.ndim(values) == 0:
        return abs(int(values))
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def masked(vec: Vec) -> Any:
    """Values with 0 where they are NULL: what stands there is arbitrary, and must not look like an overflow."""
    return vec.values if vec.valid is None else np.where(vec.valid, vec.values, 0)


def _widen(values: Any) -> Any:
    return values.astype(object) if np.ndim(values) else np.asarray(int(values), object)


def digits_bound(type: Type) -> int:
    """The greatest magnitude that a value of an exact type can have."""
    return {Kind.INT: 2**31, Kind.BIGINT: LIMIT}.get(type.kind) or int(10**type.precision)


def exact(
    operate: Callable[[Any, Any], Any], bound: Callable[[int, int], int], types: tuple[Type, Type], result: Type
) -> Callable[[Vec, Vec], Vec]:
    """`operate` on exact numbers, in int64 where `bound` of the operands' magnitudes allows it."""
    safe = bound(digits_bound(types[0]), digits_bound(types[1])) < LIMIT

    def wide(x: Any, y: Any) -> bool:
        m, n = largest(x), largest(y)
        return max(m, n, bound(m, n)) >= LIMIT  # NB: 0 times a wide constant fits, and the constant does not

    def run(a: Vec, b: Vec) -> Vec:
        x, y = a.values, b.values
        if not safe and wide(x, y):
            x, y = masked(a), masked(b)
        if not safe and wide(x, y):
            values = operate(_widen(x), _widen(y))
            if largest(values) < LIMIT:
                values = values.astype(np.int64) if np.ndim(values) else values
            elif result.kind is not Kind.DECIMAL:
                raise SquallError("SQ5001", f"a value does not fit {result}", hint="CAST to DECIMAL(38,0) first")
            elif largest(values) >= 10**38:
                raise SquallError("SQ5001", "a value does not fit 38 digits")
            return Vec(values, both(a.valid, b.valid))
        return Vec(operate(x, y), both(a.valid, b.valid))

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


def remainder(a: Vec, b: Vec) -> Vec:
    """Remainder with the sign of the dividend; NULL where the divisor is 0."""
    zero = np.equal(b.values, 0)
    with np.errstate(all="ignore"):
        divisor = np.where(zero, 1, b.values)
        if np.asarray(a.values).dtype == object or divisor.dtype == object:
            values = np.frompyfunc(lambda x, y: int(abs(x) % abs(y)) * (1 if x >= 0 else -1), 2, 1)(a.values, divisor)
        else:
            values = np.fmod(a.values, divisor)
        return Vec(values, both(a.valid, b.valid, ~zero))


def quotient(a: Vec, b: Vec) -> Vec:
    """Quotient of exact numbers, cut to a whole one; NULL where the divisor is 0."""
    zero = np.equal(b.values, 0)
    divisor = np.where(zero, 1, b.values)
    valid = both(a.valid, b.valid, ~zero)
    values = np.where(valid, a.values, 0)
    wide = values.dtype == object or divisor.dtype == object or bool(np.any(np.equal(values, -LIMIT)))
    if wide:
        values, divisor = values.astype(object), divisor.astype(object)
    whole = np.abs(values) // np.abs(divisor) * np.where((values < 0) != (divisor < 0), -1, 1)
    if wide and np.any((whole < -LIMIT) | (whole >= LIMIT)):
        raise SquallError("SQ5001", f"a value does not fit {BIGINT}", hint="use /")
    return Vec(whole.astype(np.int64), valid)


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
        raise SquallError("SQ5001", f"{call.args[0]} does not fit 38 digits")
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
    """Doubles, half away from zero."""
    if places > 308:  # a double has no digits there, and no larger power of ten
        return values
    if places < -308:
        return np.where(np.isfinite(values), np.copysign(0.0, values), values)
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * 10.0**places
        result = np.copysign(np.floor(scaled + 0.5) / 10.0**places, values)
        return np.where(np.isfinite(scaled), result, values)


def tens(vec: Vec, type: Type, places: int, result: Type) -> Vec:
    """Exact numbers rounded to 10 ** -places, half away from zero."""
    values, places = np.asarray(masked(vec)).astype(object), max(places, -40)  # NB: all are 0 from there on
    step = 10 ** (type.scale - places)
    tens = np.asarray(np.sign(values) * ((np.abs(values) + step // 2) // step) * 10**-places)
    if largest(tens) >= min(digits_bound(result), 10**38):
        raise SquallError("SQ5001", f"a value does not fit {result}", hint="CAST to DECIMAL(38,0) first")
    return Vec(tens.astype(np.int64) if largest(tens) < LIMIT else tens, vec.valid)


def whole(name: str, vec: Vec, type: Type, rows: int) -> Vec:
    """FLOOR and CEIL."""
    if type == DOUBLE:
        from squallpy.runtime.evaluate.casts import cast

        with np.errstate(all="ignore"):
            operate: Any = np.floor if name == "floor" else np.ceil
            return cast(Vec(operate(vec.values), vec.valid), DOUBLE, BIGINT, rows)
    step = 10**type.scale
    return Vec(vec.values // step if name == "floor" else -(-vec.values // step), vec.valid)
