"""Tables that keep their number of rows even without columns, as COUNT(*) reads them, where Arrow may lose it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def table_without_columns(rows: int) -> pa.Table:
    """Make a table of `rows` rows without columns."""
    return pa.table({"rows": pa.nulls(rows)}).select([])


def concat_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables, with the metadata of the first."""
    if len(tables) == 1:
        return tables[0]
    if not tables[0].num_columns:
        return table_without_columns(sum(table.num_rows for table in tables))
    return pa.concat_tables([table.replace_schema_metadata(tables[0].schema.metadata) for table in tables])


def one_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """Make a table one record batch."""
    if isinstance(table, pa.RecordBatch):
        return table
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def take_rows(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Select rows by position."""
    return table.take(pa.array(rows, pa.int64())) if table.num_columns else table_without_columns(len(rows))


def with_metadata(table: pa.Table, metadata: dict[bytes, bytes] | None) -> pa.Table:
    """Replace the metadata of a table."""
    if table.num_columns:
        return table.replace_schema_metadata(metadata)
    return pa.table({"rows": pa.nulls(table.num_rows)}).replace_schema_metadata(metadata).select([])
