"""CAST between types. Decimals round half away from zero; fractions are cut off on the way to integers, as in Spark."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError, shorten
from squallpy.base.types import INT, VARCHAR, Kind, Type
from squallpy.logical.expressions import Cast, Literal
from squallpy.runtime.evaluate.exact_arithmetic import LIMIT, digits_bound, first_chosen, largest_magnitude, masked
from squallpy.runtime.evaluate.interval_texts import interval_texts
from squallpy.runtime.evaluate.scalar.datetime import DAY
from squallpy.runtime.evaluate.text_column_casts import parse_texts
from squallpy.runtime.evaluate.vectors import Vec, from_arrow, full, take, to_arrow

TRY = "TRY_CAST returns NULL instead"


def cast(vec: Vec, source: Type, target: Type, rows: int, expr: object) -> Vec:
    """Convert values between types; SQ5002 names the expression whose value does not fit or parse."""
    if source == target or source.kind is target.kind is Kind.VARCHAR:
        return vec
    match source.kind, target.kind:
        case Kind.NULL, _:
            return full(Vec("" if target.kind is Kind.VARCHAR else 0, False), target, rows)
        case _, Kind.VARCHAR:
            return _to_text(vec, source, rows)
        case Kind.VARCHAR, _:
            return _from_text(vec, target, rows, expr)
        case ((Kind.INT | Kind.BIGINT | Kind.DECIMAL), Kind.DOUBLE):
            # NB: numpy returns no array for one wide number
            return Vec(np.asarray(np.true_divide(np.asarray(vec.values), 10**source.scale), np.float64), vec.valid)
        case Kind.DOUBLE, (Kind.INT | Kind.BIGINT | Kind.DECIMAL):
            return _from_double(vec, target, expr)
        case Kind.BOOLEAN, _ if target.is_numeric:
            return cast(Vec(np.asarray(vec.values, np.int64), vec.valid), INT, target, rows, expr)
        case _, Kind.BOOLEAN if source.is_numeric:
            return Vec(np.not_equal(vec.values, 0), vec.valid)
        case Kind.DATE, Kind.TIMESTAMP:
            return Vec(np.multiply(vec.values, DAY), vec.valid)
        case Kind.TIMESTAMP, Kind.DATE:
            return Vec(np.floor_divide(vec.values, DAY), vec.valid)
    if source.is_exact and target.is_exact:
        return _checked(vec, Vec(_rescale(masked(vec), source, target), vec.valid), source, target, expr)
    raise SquallError("SQ2005", f"cannot cast {source} to {target}")


def try_cast(vec: Vec, source: Type, target: Type, rows: int) -> Vec:
    """Convert values between types; NULL where that is an error."""
    if source.kind is Kind.VARCHAR:
        return from_arrow(parse_texts(_texts(vec, rows), target), target)
    vec = full(vec, source, rows)
    try:
        return cast(vec, source, target, rows, target)
    except SquallError:
        return _try_halves(vec, source, target, rows)


def _try_halves(vec: Vec, source: Type, target: Type, rows: int) -> Vec:
    """Convert halves on their own to find the failing rows, since most do not fail."""
    try:
        return full(cast(vec, source, target, rows, target), target, rows)
    except SquallError:
        if rows == 1:
            return full(Vec(0, False), target, 1)
    middle = rows // 2
    parts = [(np.arange(middle), middle), (np.arange(middle, rows), rows - middle)]
    found = [_try_halves(take(vec, chosen), source, target, count) for chosen, count in parts]
    valids = [np.ones(len(f.values), bool) if f.valid is None else f.valid for f in found]
    return Vec(np.concatenate([f.values for f in found]), np.concatenate(valids))


def _rescale(values: Any, source: Type, target: Type) -> Any:
    step = target.scale - source.scale
    if step == 0:
        return values
    factor: int = 10 ** abs(step)
    half = 0 if target.is_integer or step > 0 else factor // 2

    def widest(most: int) -> int:
        """Bound the intermediate results for values of a magnitude of `most`."""
        # NB: 0 times a wide factor fits, but the factor does not
        return max(1, most) * factor if step > 0 else max(factor, most + half)

    if widest(digits_bound(source)) >= LIMIT and widest(largest_magnitude(values)) >= LIMIT:
        values = np.asarray(values).astype(object)
    if step > 0:
        return values * factor
    return np.sign(values) * ((np.abs(values) + half) // factor)


def _checked(given: Vec, vec: Vec, source: Type, target: Type, expr: object) -> Vec:
    bound = digits_bound(target)
    up, down = max(0, target.scale - source.scale), max(0, source.scale - target.scale)
    if digits_bound(source) * 10**up > bound * 10**down and np.any(wrong := _is_out_of_range(masked(vec), target)):
        raise _misfit_error(expr, Literal(int(first_chosen(given.values, wrong)), source), target)
    return vec


def _misfit_error(expr: object, value: object, target: Type) -> SquallError:
    return SquallError("SQ5002", f"{expr}: {value} does not fit {target}", hint=TRY if isinstance(expr, Cast) else "")


def _is_out_of_range(values: Any, target: Type) -> Any:
    """Mark values out of range; integers reach one further below zero."""
    bound = digits_bound(target)
    least = -bound if target.is_integer else 1 - bound
    return np.less(values, least) | np.greater_equal(values, bound)


def _from_double(vec: Vec, target: Type, expr: object) -> Vec:
    with np.errstate(all="ignore"):
        scaled = np.asarray(vec.values, np.float64) * 10.0**target.scale
        rounded = np.trunc(scaled) if target.is_integer else np.trunc(scaled + np.copysign(0.5, scaled))
    valid = np.ones(np.shape(rounded), bool) if vec.valid is None else vec.valid
    if np.any(wrong := valid & (np.isnan(rounded) | _is_out_of_range(rounded, target))):
        raise _misfit_error(expr, float(first_chosen(vec.values, wrong)), target)
    rounded = np.where(np.isfinite(rounded), rounded, 0.0)
    if np.any(np.abs(rounded) >= float(LIMIT)):
        return Vec(np.frompyfunc(int, 1, 1)(rounded), vec.valid)
    return Vec(rounded.astype(np.int64), vec.valid)


def _to_text(vec: Vec, source: Type, rows: int) -> Vec:
    array = to_arrow(vec, source, rows)
    if source.kind is Kind.DOUBLE:
        text = pc.cast(array, pa.string())
        bare = pc.match_substring_regex(text, r"^-?\d+$")
        text = pc.if_else(bare, pc.binary_join_element_wise(text, ".0", ""), text)
    elif source.kind is Kind.DAY_TO_SECOND:
        text = interval_texts(array)
    elif source.kind is Kind.TIMESTAMP:
        text = pc.replace_substring_regex(pc.cast(array, pa.string()), r"\.?0+$", "")
        whole = pc.cast(pc.cast(array, pa.timestamp("s"), safe=False), pa.string())
        text = pc.if_else(
            pc.equal(pc.utf8_length(text), 0), text, pc.if_else(pc.match_substring(text, "."), text, whole)
        )
    else:
        text = pc.cast(array, pa.string())
    return Vec(text, None if vec.valid is None else full(vec, source, rows).valid)


def _from_text(vec: Vec, target: Type, rows: int, expr: object) -> Vec:
    texts = _texts(vec, rows)
    parsed = parse_texts(texts, target)
    if parsed.null_count > texts.null_count:
        failed = pc.and_(parsed.is_null(), texts.is_valid())
        text = shorten(repr(texts.filter(failed)[0].as_py()))
        raise SquallError("SQ5002", f"{expr}: {text} does not parse as {target}", hint=TRY)
    return from_arrow(parsed, target)


def _texts(vec: Vec, rows: int) -> pa.Array:
    """Convert to one Arrow string array with NULLs."""
    values, valid = full(vec, VARCHAR, rows)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values if valid is None else pc.if_else(pa.array(valid), values, pa.scalar(None, pa.string()))
