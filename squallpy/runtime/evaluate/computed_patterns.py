"""Functions with settings that are computed, such as the pattern of LIKE: once for all rows that have the same.

a LIKE b   →   for each value that b has in these rows: a LIKE that value, of the rows that have it
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.functions.registry import OPERATIONS
from squallpy.logical.expressions import Call, Column, Expr, Literal
from squallpy.runtime.evaluate.vectors import Frame, Vec, both, full, take

Function = Callable[[Frame], Vec]
GIVEN = -1  # the id of a column that no plan has


def varying(call: Call, compiled: Callable[[Expr], Function]) -> Function:
    """The function that evaluates a call whose settings read columns."""
    first = OPERATIONS[call.name].settings
    assert first is not None
    evaluated = [(compiled(arg), arg.type) for arg in call.args]
    given = [Column(GIVEN - n, "given", arg.type, arg.nullable) for n, arg in enumerate(call.args[:first])]

    def run(frame: Frame) -> Vec:
        vecs = [full(function(frame), type, frame.rows) for function, type in evaluated]
        valid = both(*(vec.valid for vec in vecs))
        there = np.arange(frame.rows) if valid is None else np.flatnonzero(valid)
        vecs = [take(Vec(vec.values), there) for vec in vecs]
        places, parts = alike(vecs[first:]), []
        for rows in places:
            settings = [Literal(value_at(vec, rows[0]), call.args[n].type) for n, vec in enumerate(vecs) if n >= first]
            function = compiled(replace(call, args=(*given, *settings)))
            part = Frame(len(rows), {c.id: take(vec, rows) for c, vec in zip(given, vecs, strict=False)})
            parts.append(full(function(part), call.type, len(rows)).values)
        order = there[np.concatenate(places)] if places else there
        return Vec(spread(parts, order, full(compiled(Literal(None, call.type))(frame), call.type, frame.rows)), valid)

    return run


def alike(settings: Sequence[Vec]) -> list[Any]:
    """The positions of the rows that have the same, for each of what they have."""
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


def spread(parts: list[Any], order: Any, out: Vec) -> Any:
    """Values put where they belong, those of `out` elsewhere."""
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
