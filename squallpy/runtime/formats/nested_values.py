"""Nested values of files as the text that is held: JSON without spaces, the fields of a STRUCT as they are declared.

[1, "2"] as ARRAY<BIGINT>   →   [1,2]            {"b": 1} as STRUCT<a: INT, b: DATE>   →   {"a":null,"b":…}: no DATE
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError, shorten
from squallpy.base.types import VARCHAR, Kind, Shape, Type
from squallpy.catalog.relation import Field
from squallpy.runtime.evaluate.casts import cast
from squallpy.runtime.evaluate.held_values import held_text
from squallpy.runtime.evaluate.scalar.json import write_json
from squallpy.runtime.evaluate.text_column_casts import column_type, is_read_exactly
from squallpy.runtime.evaluate.vectors import from_arrow, to_arrow
from squallpy.runtime.formats.json_lines import quoted_texts
from squallpy.runtime.formats.text_columns import cells, join

CastOf = Callable[[pa.DataType, Type], Callable[[pa.Array], pa.Array]]


def hold(values: pa.ChunkedArray, field: Field, cast_of: CastOf) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Write a column as it is held; NULL, and how it is shown, where a value is not of the type of the field.

    Args:
        cast_of: Chooses the cast from a file's type to a plain one.
    """
    try:
        written = [_written(chunk, field.type, cast_of) for chunk in values.chunks]
        given = zip(written, values.chunks, strict=True)
        nothing = pa.scalar(None, pa.string())
        return pa.chunked_array([pc.if_else(c.is_valid(), text, nothing) for text, c in given], pa.string()), {}
    except (pa.ArrowException, SquallError):
        return _each(values, field)


def _each(values: pa.ChunkedArray, field: Field) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Write values one by one."""
    texts, wrong = list[str | None](), dict[int, str]()
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else held_text(value, field.type))
        except (ValueError, RecursionError):
            texts.append(None)
            wrong[row] = shorten(str(value))
    return pa.chunked_array([pa.array(texts, pa.string())]), wrong


def _written(values: pa.Array, type: Type, cast_of: CastOf) -> pa.Array:
    """Write values as they are held, "null" for NULL; ArrowInvalid if one may not be of the type, and for MAPs."""
    types, nested = pa.types, type.nested
    if nested is None:
        return pc.fill_null(_written_plain(values, type, cast_of), "null")
    if nested.shape is Shape.ARRAY and types.is_list(values.type):
        inner = _written(values.flatten(), nested.types[0], cast_of)
        ends = np.concatenate([[0], np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(values), 0)))])
        lists = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), inner)
        text = join(pa.scalar("["), pc.binary_join(lists, ","), pa.scalar("]"))
    elif nested.shape is Shape.STRUCT and types.is_struct(values.type):
        parts = list[Any]()
        for name, inner_type in zip(nested.names, nested.types, strict=True):
            at = values.type.get_field_index(name)
            if at < 0:
                raise pa.ArrowInvalid("a field of another case, or none")
            parts += [pa.scalar(f"{',' if parts else '{'}{write_json(name)}:")]
            parts += [_written(pc.struct_field(values, at), inner_type, cast_of)]
        text = join(*parts, pa.scalar("}"))
    else:
        raise pa.ArrowInvalid("another shape")
    return pc.if_else(values.is_valid(), text, "null")


def _written_plain(values: pa.Array, type: Type, cast_of: CastOf) -> pa.Array:
    """Write values that have no parts; NULL stays NULL."""
    found = cast_of(values.type, type)(values)
    if found.null_count > values.null_count:
        raise pa.ArrowInvalid("a value of another type")
    if type.kind is Kind.DOUBLE and not pc.all(pc.is_finite(found)).as_py() and len(found) > found.null_count:
        raise pa.ArrowInvalid("a number that JSON has not")
    if type.kind is Kind.DECIMAL:
        return cells(found)
    text = to_arrow(cast(from_arrow(found, type), type, VARCHAR, len(values), type), VARCHAR, len(values))
    return text if type.is_numeric or type.kind is Kind.BOOLEAN else quoted_texts(text)


def arrow_of(type: Type) -> pa.DataType:
    """Choose the Arrow type to parse from JSON, times as text; ArrowInvalid for a MAP, and for what it may misread."""
    nested = type.nested
    if not is_read_exactly(type):
        raise pa.ArrowInvalid("a DECIMAL that may be another number")
    if nested is None:
        return pa.string() if type.is_temporal else pa.int32() if type.kind is Kind.INT else column_type(type)
    match nested.shape:
        case Shape.ARRAY:
            return pa.list_(arrow_of(nested.types[0]))
        case Shape.STRUCT:
            return pa.struct([(n, arrow_of(t)) for n, t in zip(nested.names, nested.types, strict=True)])
    raise pa.ArrowInvalid("a MAP")


def is_readable(source: pa.DataType, type: Type) -> bool:
    """True if a file's type has the shape of a nested type, or is a text, which may be JSON."""
    types, nested = pa.types, type.nested
    assert nested is not None
    match nested.shape:
        case Shape.ARRAY if types.is_list(source) or types.is_large_list(source) or types.is_fixed_size_list(source):
            return True
        case Shape.MAP if types.is_map(source):
            return True
        case Shape.STRUCT if types.is_struct(source):
            return True
    return bool(types.is_string(source) or types.is_large_string(source))


def inner_types(source: pa.DataType) -> Sequence[tuple[str, pa.DataType]]:
    """List what is in an Arrow type that has parts, with names in a struct; nothing for one that has none."""
    types = pa.types
    if types.is_list(source) or types.is_large_list(source) or types.is_fixed_size_list(source):
        return [("", source.value_type)]
    if types.is_map(source):
        return [("", source.key_type), ("", source.item_type)]
    return [(field.name, field.type) for field in source] if types.is_struct(source) else []
