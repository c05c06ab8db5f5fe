"""Rows in memory as a slice, with columns that tell where they are from.

located(table, ("k", "_offset"), 0, 7)   →   the table and `_offset`: 7, 8, …
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class TableSlice:
    """Rows that were read before.

    Args:
        first: Number of the first among those of the batch.
    """

    table: pa.Table
    first: int = 0

    @property
    def rows(self) -> int:
        return len(self.table)

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        return located(self.table, columns, 0, self.first)


def located(table: pa.Table, columns: Sequence[str], partition: int, first: int = 0) -> pa.Table:
    """Add the columns that tell the partition of a batch in which rows are, and their numbers there, if asked for."""
    there = {name.lower() for name in table.column_names}
    numbers = {"_partition": np.full(len(table), partition), "_offset": np.arange(first, first + len(table))}
    for name, values in numbers.items():
        if name in columns and name not in there:
            table = table.append_column(name, pa.array(values))
    return table
