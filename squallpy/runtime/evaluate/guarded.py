"""What only some rows reach, which is evaluated for those alone where it fails for all.

CASE WHEN s RLIKE '^[0-9]+$' THEN CAST(s AS INT) END   →   the CAST of the texts that are numbers
s RLIKE '^[0-9]+$' AND CAST(s AS INT) > 1              →   the same

Vectors of all rows are quicker, and hardly ever fail.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.types import BOOLEAN, Type
from squallpy.runtime.evaluate.logic import conjunction, disjunction, is_false, is_true
from squallpy.runtime.evaluate.vectors import Frame, Vec, full, take

Function = Callable[[Frame], Vec]


def guarded(at_once: Function, by_turns: Function) -> Function:
    """The first function, or the second where that fails."""

    def run(frame: Frame) -> Vec:
        try:
            return at_once(frame)
        except SquallError:
            return by_turns(frame)

    return run


def arm_by_arm(arms: Sequence[tuple[Function, Function]], otherwise: Function, type: Type) -> Function:
    """CASE: conditions of the rows that no arm before has taken, and values of those that it takes."""

    def run(frame: Frame) -> Vec:
        left, taken = np.arange(frame.rows), []
        for condition, value in arms:
            chosen = np.broadcast_to(is_true(condition(some(frame, left))), len(left))
            taken.append((left[chosen], value))
            left = left[~chosen]
        parts = [(rows, value) for rows, value in (*taken, (left, otherwise)) if len(rows)] or [(left, otherwise)]
        vecs = [full(value(some(frame, rows)), type, len(rows)) for rows, value in parts]
        return gathered(vecs, [rows for rows, _ in parts])

    return run


def one_by_one(args: Sequence[Function], is_and: bool) -> Function:
    """AND and OR: of rows that those before do not decide."""
    decided, together = (is_false, conjunction) if is_and else (is_true, disjunction)
    (first, *others) = args
    rest = one_by_one(others, is_and) if others else None

    def run(frame: Frame) -> Vec:
        found = full(first(frame), BOOLEAN, frame.rows)
        done = np.broadcast_to(decided(found), frame.rows)
        if rest is None or np.all(done):
            return found
        left = np.flatnonzero(~done)
        both = full(together([take(found, left), rest(some(frame, left))]), BOOLEAN, len(left))
        parts = [(np.flatnonzero(done), take(found, done)), (left, both)]
        return gathered([vec for rows, vec in parts if len(rows)], [rows for rows, _ in parts if len(rows)])

    return run


def some(frame: Frame, rows: Any) -> Frame:
    """Rows of a frame, by position."""
    return Frame(len(rows), {}, lambda id: take(frame[id], rows))


def gathered(parts: Sequence[Vec], places: Sequence[Any]) -> Vec:
    """Parts of a vector, which are whole ones of their own, put where they belong."""
    order = np.empty(sum(map(len, places)), np.int64)
    order[np.concatenate(places)] = np.arange(len(order))
    values, valid = [vec.values for vec in parts], None
    if any(vec.valid is not None for vec in parts):
        known = (
            np.ones(len(rows), bool) if v.valid is None else v.valid for v, rows in zip(parts, places, strict=True)
        )
        valid = np.concatenate(list(known))[order]
    if isinstance(values[0], pa.Array | pa.ChunkedArray):
        chunks = [chunk for each in values for chunk in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])]
        return Vec(pa.concat_arrays(chunks).take(pa.array(order)), valid)
    return Vec(np.concatenate(values)[order], valid)
