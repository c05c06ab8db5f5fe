"""Rows of a relation → rows of its parts: a value is cut where it is read (`logical/bind/parts.py`).

line 'a b', 'c'   →   line 'a b', part 'a', position 0    line 'a b', part 'b', position 1    line 'c', part 'c', …
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.types import TIMESTAMP, YEARS, Kind
from squallpy.catalog.relation import Hops, Relation, Split
from squallpy.logical.expressions import Literal, columns
from squallpy.runtime.evaluate.compiled import compiled
from squallpy.runtime.evaluate.texts import matching
from squallpy.runtime.evaluate.vector import Frame, Vec, arrow_type, from_arrow, full
from squallpy.runtime.kernels.storage import Words

Mask = npt.NDArray[np.bool_]


def columns_of(relation: Relation, fields: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that are read for some fields of a relation."""
    if relation.parts is None:
        return fields
    base, values = relation.parts.of, {c.id for c in columns(relation.parts.value)}
    return columns_of(base, tuple(f.name for i, f in enumerate(base.fields) if i in values or f.name in fields))


def in_parts(rows: pa.RecordBatch, relation: Relation) -> pa.RecordBatch:
    """For each row of the relation that is read one for each part, of which two columns come last."""
    parts = relation.parts
    if parts is None:
        return rows
    rows, fields = in_parts(rows, parts.of), parts.of.fields

    def load(number: int) -> Vec:
        return from_arrow(rows.column(rows.schema.get_field_index(fields[number].name)), fields[number].type)

    value = full(compiled(parts.value)(Frame(len(rows), {}, load)), parts.value.type, len(rows))
    there = np.ones(len(rows), np.bool_) if value.valid is None else np.asarray(value.valid)
    match parts.made:
        case Split(separator, kept):
            at, *new = _cut(value.values, there, separator, kept)
        case Hops() as hops:
            at, *new = _windows(np.asarray(value.values), there, hops)
    out = rows.take(pa.array(at))
    for field, array in zip(relation.fields[-2:], new, strict=True):
        out = out.append_column(field.name, array)
    return out


def _cut(texts: pa.Array, there: Mask, separator: str, kept: bool) -> tuple[Words, pa.Array, pa.Array]:
    """Of each part of texts its row, itself, and its position."""
    of = np.flatnonzero(there)
    cut = matching(pc.split_pattern_regex, texts.take(pa.array(of)), separator)
    counts = np.asarray(pc.list_value_length(cut), np.int64)
    at = np.repeat(of, counts)
    positions = pa.array(np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts))
    parts = pc.list_flatten(cut)
    if kept and len(missing := np.flatnonzero(~there)):
        nothing = pa.nulls(len(missing))
        at = np.concatenate([at, missing])
        parts, positions = (pa.concat_arrays([a, nothing.cast(a.type)]) for a in (parts, positions))
    return at, parts, positions


def _windows(times: Words, there: Mask, hops: Hops) -> tuple[Words, pa.Array, pa.Array]:
    """Of each window that times are in its row, its start and its end."""
    of = np.flatnonzero(there)
    last = times[of] - (times[of] - hops.offset) % hops.slide
    starts = last[:, None] - hops.slide * np.arange(-(-hops.size // hops.slide))
    inside = starts + hops.size > times[of, None]
    found = starts[inside]
    least, most = YEARS[Kind.TIMESTAMP]
    outside = (found < least) | (found > most - hops.size)
    if outside.any():
        time = Literal(int(np.repeat(times[of], inside.sum(axis=1))[outside.argmax()]), TIMESTAMP)
        raise SquallError("SQ5001", f"a WINDOW of {time} begins or ends outside the years 1 to 9999")
    moments = (pa.array(bound).cast(arrow_type(TIMESTAMP)) for bound in (found, found + hops.size))
    return (np.repeat(of, inside.sum(axis=1)), *moments)
