"""Rows of a relation → rows of its parts: a value is cut where it is read (`logical/bind/explode.py`).

line 'a b', 'c'   →   line 'a b', part 'a', position 0    line 'a b', part 'b', position 1    line 'c', part 'c', …
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.types import DATE, RANGES, TIMESTAMP, Kind, Type
from squallpy.catalog.relation import Cumulations, Elements, Hops, Relation, Series, Split
from squallpy.logical.expressions import Expr, Literal, children, columns
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.nested_elements import take_apart
from squallpy.runtime.evaluate.scalar.text import match_regex
from squallpy.runtime.evaluate.series import expand_series, positions_within
from squallpy.runtime.evaluate.text_column_casts import column_type, parse_texts
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, arrow_type, from_arrow, full
from squallpy.runtime.kernels.memory_regions import Words

Mask = npt.NDArray[np.bool_]


def columns_of(relation: Relation, fields: tuple[str, ...]) -> tuple[str, ...]:
    """List the source columns that are read for some fields of a relation."""
    if relation.parts is None:
        return fields
    base, values = relation.parts.of, {c.id for c in columns(relation.parts.value)}
    return columns_of(base, tuple(f.name for i, f in enumerate(base.fields) if i in values or f.name in fields))


def in_parts(rows: pa.RecordBatch, relation: Relation) -> pa.RecordBatch:
    """Make a row for each part of each source row; two columns of the part come last."""
    parts = relation.parts
    if parts is None:
        return rows
    rows, fields = in_parts(rows, parts.of), parts.of.fields

    def load(number: int) -> Vec:
        return from_arrow(rows.column(rows.schema.get_field_index(fields[number].name)), fields[number].type)

    frame = VectorFrame(len(rows), {}, load)

    def evaluated(expr: Expr) -> tuple[Any, Mask]:
        values, valid = full(compile_expression(expr)(frame), expr.type, len(rows))
        return values, np.ones(len(rows), np.bool_) if valid is None else np.asarray(valid)

    match parts.generator:
        case Split(separator, kept):
            at, *new = _cut(*evaluated(parts.value), separator, kept)
        case Elements() as made:
            types = [field.type for field in relation.fields[-2:]]
            at, *new = _elements(*evaluated(parts.value), types, made)
        case Hops() | Cumulations() as windows:
            values, there = evaluated(parts.value)
            at, *new = _windows(np.asarray(values), there, windows)
        case Series() as series:
            arguments, valids = zip(*map(evaluated, children(parts.value)), strict=True)
            there = np.logical_and.reduce(valids)
            at, *new = _spaced([np.asarray(a)[there] for a in arguments], there, series, parts.value.type)
    out = rows.take(pa.array(at))
    for field, array in zip(relation.fields[-2:], new, strict=True):
        out = out.append_column(field.name, array)
    return out


def _cut(texts: pa.Array, there: Mask, separator: str, kept: bool) -> tuple[Words, pa.Array, pa.Array]:
    """Split texts into parts: the row of each, the part itself and its position."""
    of = np.flatnonzero(there)
    cut = match_regex(pc.split_pattern_regex, texts.take(pa.array(of)), separator)
    counts = np.asarray(pc.list_value_length(cut), np.int64)
    at = np.repeat(of, counts)
    positions = pa.array(positions_within(counts))
    parts = pc.list_flatten(cut)
    if kept and len(missing := np.flatnonzero(~there)):
        nothing = pa.nulls(len(missing))
        at = np.concatenate([at, missing])
        parts, positions = (pa.concat_arrays([a, nothing.cast(a.type)]) for a in (parts, positions))
    return at, parts, positions


def _elements(texts: pa.Array, there: Mask, types: Sequence[Type], made: Elements) -> tuple[Words, pa.Array, pa.Array]:
    """Take nested values apart: the row of each element, the element or value, and its position or key."""
    flat = take_apart(texts, there, None if made.is_map else types[0])
    value = parse_texts(flat.values, types[0]).cast(column_type(types[0]))
    key = pa.array(flat.positions) if flat.keys is None else parse_texts(flat.keys, types[1])
    key = key.cast(column_type(types[1]))
    if made.kept and len(missing := np.flatnonzero(flat.counts == 0)):
        at = np.concatenate([flat.rows, missing])
        return at, *(pa.concat_arrays([some, pa.nulls(len(missing), some.type)]) for some in (value, key))
    return flat.rows, value, key


def _spaced(arguments: list[Words], there: Mask, series: Series, type: Type) -> tuple[Words, pa.Array, pa.Array]:
    """Expand series: the row of each value, the value and its position; arguments are those of the rows `there`."""
    counts, values = expand_series(arguments, series, type)
    of, positions = np.flatnonzero(there), positions_within(counts)
    at, found = np.repeat(of, counts), _array(values, type)
    if series.kept and len(missing := np.setdiff1d(np.arange(len(there)), of[counts > 0])):
        nothing = pa.nulls(len(missing))
        found = pa.concat_arrays([found, nothing.cast(found.type)])
        return np.concatenate([at, missing]), found, pa.concat_arrays([pa.array(positions), nothing.cast(pa.int64())])
    return at, found, pa.array(positions)


def _array(values: Words, type: Type) -> pa.Array:
    if type == DATE:
        return pa.array(values.astype(np.int32)).view(arrow_type(DATE))
    return pa.array(values).cast(arrow_type(TIMESTAMP)) if type == TIMESTAMP else pa.array(values)


def _windows(times: Words, there: Mask, windows: Hops | Cumulations) -> tuple[Words, pa.Array, pa.Array]:
    """Find the windows of times: the row of each, its start and its end."""
    of = np.flatnonzero(there)
    match windows:
        case Hops(size, slide, offset):
            starts = _since(times[of], slide, offset) - slide * np.arange(windows.most)
            ends = starts + size
        case Cumulations(size, step, offset):
            ends = _since(times[of], size, offset) + step * np.arange(1, windows.most + 1)
            starts = np.broadcast_to(_since(times[of], size, offset), ends.shape)
    inside = ends > times[of, None]
    starts, ends = starts[inside], ends[inside]
    least, most = RANGES[Kind.TIMESTAMP]
    outside = (starts < least) | (ends > most)
    if outside.any():
        time = Literal(int(np.repeat(times[of], inside.sum(axis=1))[outside.argmax()]), TIMESTAMP)
        raise SquallError("SQ5001", f"a window of {time} begins or ends outside the years 1 to 9999")
    moments = (pa.array(bound).cast(arrow_type(TIMESTAMP)) for bound in (starts, ends))
    return (np.repeat(of, inside.sum(axis=1)), *moments)


def _since(times: Words, length: int, offset: int) -> Words:
    """Return when the last window began that begins every so often from an offset on; one row each, in a column."""
    return (times - (times - offset) % length)[:, None]
