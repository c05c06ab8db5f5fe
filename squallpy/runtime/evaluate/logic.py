"""Three-valued logic, CASE and IN."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.types import Kind, Type
from squallpy.runtime.evaluate.vectors import Vec, full

SEVERAL = "use MIN, MAX or another aggregate"


def conjunction(args: list[Vec]) -> Vec:
    """Evaluate AND: FALSE beats NULL beats TRUE."""
    if all(a.valid is None for a in args):
        return Vec(reduce(np.logical_and, (a.values for a in args)))
    true = reduce(np.logical_and, (is_true(a) for a in args))
    false = reduce(np.logical_or, (is_false(a) for a in args))
    return Vec(true, true | false)


def disjunction(args: list[Vec]) -> Vec:
    """Evaluate OR: TRUE beats NULL beats FALSE."""
    if all(a.valid is None for a in args):
        return Vec(reduce(np.logical_or, (a.values for a in args)))
    true = reduce(np.logical_or, (is_true(a) for a in args))
    false = reduce(np.logical_and, (is_false(a) for a in args))
    return Vec(true, true | false)


def is_true(vec: Vec) -> Any:
    return vec.values if vec.valid is None else np.logical_and(vec.values, vec.valid)


def is_false(vec: Vec) -> Any:
    inverse = np.logical_not(vec.values)
    return inverse if vec.valid is None else np.logical_and(inverse, vec.valid)


def is_null(arg: Vec, rows: int) -> Vec:
    if arg.valid is None:
        return Vec(np.zeros(rows, bool))
    return Vec(np.broadcast_to(np.logical_not(arg.valid), rows))


def same(equal: Vec, a: Vec, b: Vec, rows: int) -> Vec:
    """Evaluate a <=> b, given a = b: TRUE also where both are NULL."""
    return Vec(np.logical_or(is_true(equal), np.logical_and(is_null(a, rows).values, is_null(b, rows).values)))


def member(arg: Vec, listed: list[Any], has_null: bool, type: Type) -> Vec:
    """Evaluate x IN (…): NULL if x is, or if it is not found and the list has a NULL."""
    if type.kind is Kind.VARCHAR:
        values = np.asarray(pc.is_in(_array(arg.values), value_set=pa.array(listed, pa.string())))
        values = values if isinstance(arg.values, pa.Array | pa.ChunkedArray) else values[0]
    else:
        values = reduce(np.logical_or, (_equal(arg.values, v) for v in listed), np.zeros(np.shape(arg.values), bool))
    if not has_null:
        return Vec(values, arg.valid)
    return Vec(values, values if arg.valid is None else np.logical_and(values, arg.valid))


def _equal(values: Any, value: Any) -> Any:
    """Compare with a constant; NaN is itself."""
    return np.isnan(values) if value != value else np.equal(values, value).astype(bool)


def _array(values: Any) -> Any:
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array([values], pa.string())


def case(arms: list[tuple[Vec, Vec]], otherwise: Vec, type: Type, rows: int) -> Vec:
    """Evaluate CASE: the value of the first arm whose condition is TRUE."""
    out, valid = full(otherwise, type, rows)
    for condition, value in reversed(arms):
        chosen = np.broadcast_to(is_true(condition), rows)
        values, value_valid = full(value, type, rows)
        if isinstance(out, pa.Array | pa.ChunkedArray):
            out = pc.if_else(pa.array(chosen), values, out)
        else:
            out = np.where(chosen, values, out)
        if valid is not None or value_valid is not None:
            mine = True if value_valid is None else value_valid
            valid = np.where(chosen, mine, True if valid is None else valid)
    return Vec(out, valid)


def greatest_or_least(args: list[Vec], beats: Callable[[Vec, Vec], Vec], type: Type, rows: int) -> Vec:
    """Evaluate GREATEST or LEAST: the argument that beats all others, ignoring NULLs."""
    out, *others = args
    for other in others:
        better = np.logical_and(is_true(beats(other, out)), np.logical_not(is_null(other, rows).values))
        out = case([(Vec(np.logical_or(better, is_null(out, rows).values)), other)], out, type, rows)
    return out


def assert_single_row(value: Vec, rows: Vec, query: str) -> Vec:
    """Return the value of a scalar subquery; SQ5004 if it has several rows."""
    most = int(np.max(np.asarray(rows.values), initial=0))
    if most > 1:
        raise SquallError("SQ5004", f"a subquery has {most} rows where one is expected: {query}", hint=SEVERAL)
    return value
