"""Functions with computed settings, such as the pattern of LIKE: evaluated once for all rows with equal settings.

a LIKE b   →   for each value of b among the rows: a LIKE this value, for the rows that have it
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.functions.registry import OPERATIONS
from squallpy.logical.expressions import Call, Column, Expr, Literal
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid, full, take

FIRST_ID = -1  # plans have no columns with negative ids


def compile_with_computed_settings(call: Call, compile_expression: Callable[[Expr], VectorFunction]) -> VectorFunction:
    """Compile a call whose settings read columns."""
    first = OPERATIONS[call.name].settings
    assert first is not None
    evaluated = [(compile_expression(arg), arg.type) for arg in call.args]
    arguments = [Column(FIRST_ID - n, "given", arg.type, arg.nullable) for n, arg in enumerate(call.args[:first])]

    def run(frame: VectorFrame) -> Vec:
        vecs = [full(function(frame), type, frame.rows) for function, type in evaluated]
        valid = all_valid(*(vec.valid for vec in vecs))
        valid_rows = np.arange(frame.rows) if valid is None else np.flatnonzero(valid)
        vecs = [take(Vec(vec.values), valid_rows) for vec in vecs]
        places, parts = group_equal_rows(vecs[first:]), []
        for rows in places:
            settings = [Literal(value_at(vec, rows[0]), call.args[n].type) for n, vec in enumerate(vecs) if n >= first]
            function = compile_expression(replace(call, args=(*arguments, *settings)))
            part = VectorFrame(len(rows), {c.id: take(vec, rows) for c, vec in zip(arguments, vecs, strict=False)})
            parts.append(full(function(part), call.type, len(rows)).values)
        order = valid_rows[np.concatenate(places)] if places else valid_rows
        return Vec(
            scatter(parts, order, full(compile_expression(Literal(None, call.type))(frame), call.type, frame.rows)),
            valid,
        )

    return run


def group_equal_rows(settings: Sequence[Vec]) -> list[Any]:
    """List the positions of the rows that share their settings, for each combination of settings."""
    codes = np.zeros(len(settings[0].values), np.int64)
    for values, _ in settings:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            own = np.asarray(pc.rank(values, tiebreaker="dense")).astype(np.int64)
        else:
            own = np.unique(values, return_inverse=True)[1]
        codes = np.unique(codes * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else []


def value_at(vec: Vec, row: int) -> Any:
    value = vec.values[row]
    return value.as_py() if isinstance(value, pa.Scalar) else value.item()


def scatter(parts: list[Any], order: Any, out: Vec) -> Any:
    """Scatter parts to their rows, over the values of `out`."""
    if not parts:
        return out.values
    if isinstance(parts[0], pa.Array | pa.ChunkedArray):
        index = np.full(len(out.values), -1)
        index[order] = np.arange(len(order))
        chunks = [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
        return pa.concat_arrays(chunks).take(pa.array(index, mask=index < 0))
    values = np.array(out.values, dtype=np.result_type(*parts))
    values[order] = np.concatenate(parts)
    return values
