"""Tables that keep their number of rows even without columns, as COUNT(*) reads them; Arrow forgets it now and then."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def of_length(rows: int) -> pa.Table:
    """A table of `rows` rows without columns."""
    return pa.table({"rows": pa.nulls(rows)}).select([])


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table after the other; metadata of the first."""
    if len(tables) == 1:
        return tables[0]
    if not tables[0].num_columns:
        return of_length(sum(table.num_rows for table in tables))
    return pa.concat_tables([table.replace_schema_metadata(tables[0].schema.metadata) for table in tables])


def taken(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Some of its rows."""
    return table.take(pa.array(rows, pa.int64())) if table.num_columns else of_length(len(rows))


def marked(table: pa.Table, metadata: dict[bytes, bytes] | None) -> pa.Table:
    """The table with other metadata."""
    if table.num_columns:
        return table.replace_schema_metadata(metadata)
    return pa.table({"rows": pa.nulls(table.num_rows)}).replace_schema_metadata(metadata).select([])
