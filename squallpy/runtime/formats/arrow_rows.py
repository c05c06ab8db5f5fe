"""Rows of an Arrow table in the types of a relation: how parquet and sources of other packages become columns.

decode_rows(table, fields, op)   →   their columns, `__mult` (±1) of a change stream, and the rows at fault
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import VARCHAR
from squallpy.catalog.relation import MULT, Field
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.formats.change_operations import columns_of_change, decode_op
from squallpy.runtime.formats.counted_table import table_without_columns
from squallpy.runtime.formats.nested_values import inner_types
from squallpy.runtime.formats.type_conversion import Problem, check_names, check_once, conform, is_convertible, sql_type


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows in the types of fields, with problems of some of them, and images of updates."""

    table: pa.Table
    wrong: dict[int, Problem]
    images: npt.NDArray[np.int64] | None


def decode_rows(raw: pa.Table, fields: tuple[Field, ...], op: str | None) -> DecodedRows:
    """Decode rows; a field that the table lacks is NULL."""
    by_name = {name.lower(): raw.column(i) for i, name in enumerate(raw.column_names)}
    told = [by_name[name.lower()] for name in columns_of_change(op) if name.lower() in by_name]
    return decode_columns(told, [_inside(by_name, f.path) for f in fields], len(raw), fields, op)


def decode_columns(
    told: Sequence[pa.ChunkedArray],
    columns: Sequence[pa.ChunkedArray | None],
    rows: int,
    fields: tuple[Field, ...],
    op: str | None,
) -> DecodedRows:
    """Decode the column of each field, which is NULL if there is none, and those in which `op` is told."""
    wrong, images, names = dict[int, Problem](), None, [f.name for f in fields]
    pairs = zip(columns, fields, strict=True)
    values = [c if c is not None else pa.chunked_array([pa.nulls(rows, column_type(f.type))]) for c, f in pairs]
    found = conform(pa.table(values, names), fields, wrong)
    if op:
        operations = decode_op(*told, name=op, wrong=wrong)
        found, names, images = [*found, operations.multiplicities], [*names, MULT], operations.images
    return DecodedRows(pa.table(found, names) if found else table_without_columns(rows), wrong, images)


def check_schema(where: str, schema: pa.Schema, fields: Sequence[Field], op: str | None) -> None:
    """Check that NOT NULL columns exist, and that types can become the declared ones; SQ4002."""
    ops = [Field(op, VARCHAR, False)] if op else []
    check_names(where, schema.names, [f.path[0] for f in (*fields, *ops) if not f.nullable])
    check_read(where, schema, ops)
    for f, type in _present_fields(schema, fields):
        if not is_convertible(type, f.type) and (sql_type(type) or f.type != VARCHAR):
            raise SquallError("SQ4002", f'{where}: column "{f.name}" is {type}, declared {f.type}')


def check_read(where: str, schema: pa.Schema, fields: Sequence[Field]) -> None:
    """Check that columns which are read exist once, and have a SQL type; SQ4002."""
    check_once(where, schema.names, (f.path[0] for f in fields))
    for f, type in _present_fields(schema, fields):
        found = sql_type(type)
        if not f.type.nested and (found is None or found.nested):
            text = f'{where}: column "{f.name}" is {type}, which has no SQL type'
            raise SquallError("SQ4002", text, hint="leave it out of the query")


def fields_of(schema: pa.Schema) -> tuple[Field, ...]:
    """List the columns of a schema; one without a SQL type is VARCHAR, and reading it raises an error."""
    return tuple(Field(c.name, sql_type(c.type) or VARCHAR, c.nullable) for c in schema)


def _present_fields(schema: pa.Schema, fields: Sequence[Field]) -> Iterator[tuple[Field, pa.DataType]]:
    """List the fields that a schema has, with their types there."""
    for f in fields:
        inside: Sequence[tuple[str, pa.DataType]] = list(zip(schema.names, schema.types, strict=True))
        type = None
        for name in f.path:
            type = next((type for each, type in inside if each.lower() == name.lower()), None)
            inside = inner_types(type) if type is not None and pa.types.is_struct(type) else ()
        if type is not None:
            yield f, type


def _inside(columns: Mapping[str, pa.ChunkedArray], path: Sequence[str]) -> pa.ChunkedArray | None:
    """Find the column at a path into structs, in any case; None if there is none."""
    found, *names = columns.get(path[0].lower()), *path[1:]
    for name in names:
        if found is None or not pa.types.is_struct(found.type):
            return None
        at = [field.name.lower() for field in found.type]
        found = pc.struct_field(found, at.index(name.lower())) if name.lower() in at else None
    return found
