"""Rows of a relation → rows of its parts: a text is cut where it is read (`logical/bind/parts.py`).

line 'a b', 'c'   →   line 'a b', part 'a', position 0    line 'a b', part 'b', position 1    line 'c', part 'c', …
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.types import VARCHAR
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import columns
from squallpy.runtime.evaluate.compiled import compiled
from squallpy.runtime.evaluate.texts import matching
from squallpy.runtime.evaluate.vector import Frame, Vec, from_arrow, full


def columns_of(relation: Relation, fields: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that are read for some fields of a relation."""
    if relation.parts is None:
        return fields
    base, texts = relation.parts.of, {c.id for c in columns(relation.parts.text)}
    return columns_of(base, tuple(f.name for i, f in enumerate(base.fields) if i in texts or f.name in fields))


def in_parts(rows: pa.RecordBatch, relation: Relation) -> pa.RecordBatch:
    """For each row of the relation that is read one for each part, which comes last, with its position."""
    parts = relation.parts
    if parts is None:
        return rows
    rows, fields = in_parts(rows, parts.of), parts.of.fields

    def load(number: int) -> Vec:
        return from_arrow(rows.column(rows.schema.get_field_index(fields[number].name)), fields[number].type)

    values, valid = full(compiled(parts.text)(Frame(len(rows), {}, load)), VARCHAR, len(rows))
    there = np.ones(len(rows), np.bool_) if valid is None else np.asarray(valid)
    of = np.flatnonzero(there)
    cut = matching(pc.split_pattern_regex, values.take(pa.array(of)), parts.separator)
    counts = np.asarray(pc.list_value_length(cut), np.int64)
    at = np.repeat(of, counts)
    positions = pa.array(np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts))
    texts = pc.list_flatten(cut)
    if parts.kept and len(missing := np.flatnonzero(~there)):
        nothing = pa.nulls(len(missing))
        at = np.concatenate([at, missing])
        texts, positions = (pa.concat_arrays([a, nothing.cast(a.type)]) for a in (texts, positions))
    part, position = relation.fields[-2:]
    return rows.take(pa.array(at)).append_column(part.name, texts).append_column(position.name, positions)
