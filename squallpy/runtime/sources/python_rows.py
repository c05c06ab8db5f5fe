"""Rows of Python → Arrow: tuples, Rows of PySpark's and Arrow record batches, with Spark's conversions.

arrow_table("numbers.Source", iter([(1, "x")]), schema)   →   a table of the schema's columns

Anything else is a fault of the source, which is named.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from squallpy.base.errors import shorten
from squallpy.runtime.sources.foreign_source import SourceFault

ROWS = 10_000  # rows that become Arrow at once


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return a schema of Spark's as Arrow's."""
    return to_arrow_schema(schema, timezone="UTC")


def arrow_table(name: str, found: Any, schema: StructType) -> pa.Table:
    """Make rows, or record batches, a table of the columns of a schema."""
    if not isinstance(found, Iterable):
        raise SourceFault(name, f"read a {type(found).__name__}, not an iterator of rows")
    rows = iter(found)
    first = next(rows, None)
    if isinstance(first, pa.RecordBatch):
        return _joined(name, chain([first], rows), schema)
    columns = schema.fieldNames()
    converters = [LocalDataToArrowConversion._create_converter(f.dataType, f.nullable) for f in schema.fields]
    target, tables = arrow_schema(schema), list[pa.Table]()
    pending = list[Any]()
    for row in chain([] if first is None else [first], rows):
        pending.append(_values(name, row, columns))
        if len(pending) == ROWS:
            tables.append(_converted(name, pending, converters, target))
            pending = []
    return pa.concat_tables([*tables, _converted(name, pending, converters, target)])


def _joined(name: str, batches: Iterator[Any], schema: StructType) -> pa.Table:
    """Join record batches that have the columns of a schema."""
    columns, tables = schema.fieldNames(), list[pa.Table]()
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise SourceFault(name, f"read a {type(batch).__name__} among record batches")
        if missing := [column for column in columns if column not in batch.schema.names]:
            message = f'read a record batch without the column "{missing[0]}" of its schema'
            raise SourceFault(name, message)
        tables.append(pa.Table.from_batches([batch]).select(columns))
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid:
        types = next(str(t.schema.types) for t in tables if t.schema != tables[0].schema)
        raise SourceFault(name, f"read record batches of the types {tables[0].schema.types}, then {types}") from None


def _values(name: str, row: Any, columns: Sequence[str]) -> Sequence[Any]:
    """Return the values of a row in the order of columns."""
    if not isinstance(row, list | tuple):
        raise SourceFault(name, f"read a {type(row).__name__}, not a tuple, a Row or an Arrow record batch")
    if isinstance(row, Row) and hasattr(row, "__fields__") and set(row.__fields__) == set(columns):
        return [row[column] for column in columns]
    if len(row) != len(columns) or (isinstance(row, Row) and hasattr(row, "__fields__")):
        has = f"the columns {', '.join(row.__fields__)}" if hasattr(row, "__fields__") else f"{len(row)} values"
        raise SourceFault(name, f"read a row of {has}, and its schema has {', '.join(columns)}")
    return row


def _converted(name: str, rows: list[Any], converters: Sequence[Any], target: pa.Schema) -> pa.Table:
    """Convert rows column by column."""
    columns = list[pa.Array]()
    for number, field in enumerate(target):
        values = [row[number] for row in rows]
        try:
            columns.append(pa.array([converters[number](value) for value in values], field.type))
        except Exception:
            bad = next(value for value in values if not _is_valid(value, converters[number], field.type))
            message = f'read {shorten(repr(bad))} for the column "{field.name}", which is {field.type}'
            raise SourceFault(name, message) from None
    return pa.table(columns, schema=target)


def _is_valid(value: Any, converter: Any, type: pa.DataType) -> bool:
    try:
        pa.array([converter(value)], type)
    except Exception:
        return False
    return True
