"""A batch's changes as one table: `batch` and `op` in front, what went before what came.

batch  op  user  clicks
    7   -  ann        3
    7   +  ann        4
    7   =                  only where ends are marked: of a batch,
        =                  and of the query
"""

import pyarrow as pa

DELETE, INSERT, UPDATE, END = "-", "+", "u", "="
ADDED = 2  # columns in front


def change_schema(schema: pa.Schema) -> pa.Schema:
    """Make the schema of the changes of a result."""
    return pa.schema([("batch", pa.int64()), ("op", pa.string()), *schema])


def change_table(batch: int, deletes: pa.Table, inserts: pa.Table) -> pa.Table:
    """Concatenate deletes and inserts."""
    ops = pa.array([DELETE] * len(deletes) + [INSERT] * len(inserts), pa.string())
    return with_operations(batch, ops, pa.concat_tables([deletes, inserts]))


def end_mark(batch: int | None, schema: pa.Schema) -> pa.Table:
    """Make the row that marks the end of a batch, or without one of the query: only its op and the number."""
    nothing = pa.Table.from_arrays([pa.nulls(1, kind) for kind in schema.types], names=schema.names)
    return with_operations(batch, pa.array([END], pa.string()), nothing)


def with_operations(batch: int | None, ops: pa.Array, rows: pa.Table) -> pa.Table:
    """Put the batch and operations in front of rows."""
    numbers = pa.repeat(pa.scalar(batch, pa.int64()), len(ops))
    return pa.Table.from_arrays([numbers, ops, *rows.columns], schema=change_schema(rows.schema))
