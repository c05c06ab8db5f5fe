"""Guarded expressions, which SQL evaluates for some rows only: if they fail for all rows, they are evaluated for those.

CASE WHEN s RLIKE '^[0-9]+$' THEN CAST(s AS INT) END   →   CAST of the texts that are numbers
s RLIKE '^[0-9]+$' AND CAST(s AS INT) > 1              →   the same

Evaluation for all rows at once is tried first, as it is faster and hardly ever fails.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.types import BOOLEAN, Type
from squallpy.runtime.evaluate.logic import conjunction, disjunction, is_false, is_true
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, full, take


def with_fallback(for_all_rows: VectorFunction, row_by_row: VectorFunction) -> VectorFunction:
    """Try a function of all rows, and use the second where that fails."""

    def run(frame: VectorFrame) -> Vec:
        try:
            return for_all_rows(frame)
        except SquallError:
            return row_by_row(frame)

    return run


def case_by_arms(
    arms: Sequence[tuple[VectorFunction, VectorFunction]], otherwise: VectorFunction, type: Type
) -> VectorFunction:
    """Evaluate CASE arm by arm, each for the rows that no arm before has matched."""

    def run(frame: VectorFrame) -> Vec:
        left, taken = np.arange(frame.rows), []
        for condition, value in arms:
            chosen = np.broadcast_to(is_true(condition(take_rows(frame, left))), len(left))
            taken.append((left[chosen], value))
            left = left[~chosen]
        parts = [(rows, value) for rows, value in (*taken, (left, otherwise)) if len(rows)] or [(left, otherwise)]
        vecs = [full(value(take_rows(frame, rows)), type, len(rows)) for rows, value in parts]
        return scatter_parts(vecs, [rows for rows, _ in parts])

    return run


def short_circuit(args: Sequence[VectorFunction], is_and: bool) -> VectorFunction:
    """Evaluate AND or OR argument by argument, each for the rows that are not decided yet."""
    decided, together = (is_false, conjunction) if is_and else (is_true, disjunction)
    (first, *others) = args
    rest = short_circuit(others, is_and) if others else None

    def run(frame: VectorFrame) -> Vec:
        found = full(first(frame), BOOLEAN, frame.rows)
        done = np.broadcast_to(decided(found), frame.rows)
        if rest is None or np.all(done):
            return found
        left = np.flatnonzero(~done)
        both = full(together([take(found, left), rest(take_rows(frame, left))]), BOOLEAN, len(left))
        parts = [(np.flatnonzero(done), take(found, done)), (left, both)]
        return scatter_parts([vec for rows, vec in parts if len(rows)], [rows for rows, _ in parts if len(rows)])

    return run


def take_rows(frame: VectorFrame, rows: Any) -> VectorFrame:
    """Select rows of a frame by position."""
    return VectorFrame(len(rows), {}, lambda id: take(frame[id], rows))


def scatter_parts(parts: Sequence[Vec], places: Sequence[Any]) -> Vec:
    """Scatter parts of a vector to their positions."""
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
