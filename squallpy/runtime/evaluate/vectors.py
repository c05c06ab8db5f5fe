"""Vectors and frames: columns of values with validity.

A vector's values are a numpy array in the physical form of its type (`base/types.py`), an Arrow string array for
VARCHAR, or one Python scalar that stands for every row. `valid` is None (no NULL), or a boolean array or scalar. A
value that is not valid is arbitrary.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.types import Kind, Type


class Vec(NamedTuple):
    """Values and validity."""

    values: Any
    valid: Any = None


class VectorFrame:
    """Rows as a vector for each column id; `load` creates a column when it is first read."""

    def __init__(self, rows: int, columns: dict[int, Vec], load: Callable[[int], Vec] | None = None) -> None:
        self.rows, self._columns, self._load = rows, columns, load

    def __getitem__(self, id: int) -> Vec:
        found = self._columns.get(id)
        if found is None:
            assert self._load is not None, f"no column {id}"
            found = self._columns[id] = self._load(id)
        return found


VectorFunction = Callable[[VectorFrame], Vec]


def all_valid(*valids: Any) -> Any:
    """Combine validities: valid where all are."""
    out = None
    for valid in valids:
        if valid is not None:
            out = valid if out is None else out & valid
    return out


def from_arrow(array: pa.Array, type: Type) -> Vec:
    """Convert an Arrow array in a source's column type to a vector."""
    valid = None if array.null_count == 0 else np.asarray(array.is_valid())
    match type.kind:
        case Kind.VARCHAR:
            return Vec(array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array, valid)
        case Kind.DECIMAL:
            words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
            low, high = words[0::2], words[1::2]
            if type.is_wide and not np.array_equal(high, low >> 63):
                from squallpy.base.rings import Ring
                from squallpy.runtime.kernels.payload_columns import unpack

                # NB: not through Python's Decimal, whose context rounds to 28 digits
                wide = unpack(words.reshape(-1, 2), Ring.EXACT)
                return Vec(wide if valid is None else np.where(valid, wide, 0), valid)
            return Vec(np.ascontiguousarray(low), valid)
        case Kind.BOOLEAN:
            return Vec(np.asarray(array.fill_null(False) if valid is not None else array), valid)
        case Kind.DATE:
            return Vec(_buffer(array, np.int32).astype(np.int64), valid)
        case Kind.DOUBLE:
            return Vec(_buffer(array, np.float64), valid)
    return Vec(_buffer(array, np.int64), valid)


def _buffer(array: pa.Array, dtype: Any) -> Any:
    return (
        np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]
        if len(array)
        else np.empty(0, dtype)
    )


def arrow_type(type: Type) -> pa.DataType:
    """Return the Arrow type in which values of a SQL type enter and leave."""
    match type.kind:
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.INT:
            return pa.int32()
        case Kind.BIGINT:
            return pa.int64()
        case Kind.DECIMAL:
            return pa.decimal128(type.precision, type.scale)
        case Kind.DOUBLE:
            return pa.float64()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP:
            return pa.timestamp("us")
        case Kind.DAY_TO_SECOND:
            return pa.duration("us")
    return pa.string()


def to_arrow(vec: Vec, type: Type, rows: int) -> pa.Array:
    """Convert a vector to an Arrow array of `rows` rows."""
    values, valid = full(vec, type, rows)
    nulls = None if valid is None or valid.all() else ~valid
    kind = arrow_type(type)
    match type.kind:
        case Kind.VARCHAR:
            if nulls is None:
                return values if values.type == kind else values.cast(kind)
            return pa.compute.if_else(pa.array(valid), values, pa.scalar(None, values.type)).cast(kind)
        case Kind.DECIMAL:
            from squallpy.base.rings import Ring
            from squallpy.runtime.kernels.payload_columns import pack, to_decimal128

            return to_decimal128(pack(values, Ring.EXACT), type.precision, type.scale, nulls)
        case Kind.INT | Kind.DATE:
            narrow = np.asarray(values, np.int64).astype(np.int32)
            wrong = narrow != values if valid is None else (narrow != values) & valid
            if np.any(wrong):
                raise SquallError("SQ5001", f"{values[np.argmax(wrong)]} does not fit {type}")
            return pa.array(narrow, mask=nulls).view(kind)
        case Kind.NULL:
            return pa.nulls(rows, kind)
    array = pa.array(values, mask=nulls)
    return array if array.type == kind else array.cast(kind)


def full(vec: Vec, type: Type, rows: int) -> Vec:
    """Expand scalars: values become an array, and so does validity if there is a NULL."""
    values, valid = vec
    if valid is not None and np.ndim(valid) == 0:
        valid = None if valid else np.zeros(rows, bool)
    if type.kind is Kind.NULL:
        return Vec(pa.nulls(rows, pa.string()), np.zeros(rows, bool))
    if type.kind is Kind.VARCHAR:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return Vec(values, valid)
        return Vec(pa.array([values], pa.string()).take(pa.array(np.zeros(rows, np.int64))), valid)
    if np.ndim(values) == 0:
        dtype = {Kind.BOOLEAN: bool, Kind.DOUBLE: np.float64}.get(type.kind, np.int64)
        big = type.kind is Kind.DECIMAL and abs(int(values or 0)) >= 2**63
        values = np.full(rows, 0 if values is None else values, object if big else dtype)
    return Vec(values, valid)


def take(vec: Vec, chosen: Any) -> Vec:
    """Select rows by position or by boolean mask."""
    values, valid = vec
    if isinstance(values, pa.Array | pa.ChunkedArray):
        index = pa.array(chosen)
        values = values.filter(index) if chosen.dtype == bool else values.take(index)
    elif np.ndim(values):
        values = values[chosen]
    return Vec(values, valid[chosen] if np.ndim(valid) else valid)
