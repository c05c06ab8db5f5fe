"""A batch's changes as one table: `batch` and `op` in front, what went before what came.

batch  op  user  clicks
    7   -  ann        3
    7   +  ann        4
    7   =                  only where ends are marked: of a batch,
        =                  and of the query
"""

import pyarrow as pa

DELETE, INSERT, UPDATE, END = "-", "+", "u", "="
ADDED = 2  # columns in front, without that of the query


def change_schema(schema: pa.Schema, query: int | None = None) -> pa.Schema:
    """Make the schema of the changes of a result; with `query`, its number in front."""
    lead = [] if query is None else [("query", pa.int64())]
    return pa.schema([*lead, ("batch", pa.int64()), ("op", pa.string()), *schema])


def change_table(batch: int, deletes: pa.Table, inserts: pa.Table, query: int | None = None) -> pa.Table:
    """Concatenate deletes and inserts."""
    ops = pa.array([DELETE] * len(deletes) + [INSERT] * len(inserts), pa.string())
    return with_operations(batch, ops, pa.concat_tables([deletes, inserts]), query)


def end_mark(batch: int | None, schema: pa.Schema, query: int | None = None) -> pa.Table:
    """Make the row that marks the end of a batch, or without one of the query: only its op and their numbers."""
    nothing = pa.Table.from_arrays([pa.nulls(1, kind) for kind in schema.types], names=schema.names)
    return with_operations(batch, pa.array([END], pa.string()), nothing, query)


def with_operations(batch: int | None, ops: pa.Array, rows: pa.Table, query: int | None = None) -> pa.Table:
    """Put the batch and operations in front of rows."""
    numbers = [batch] if query is None else [query, batch]
    lead = [pa.repeat(pa.scalar(number, pa.int64()), len(ops)) for number in numbers]
    return pa.Table.from_arrays([*lead, ops, *rows.columns], schema=change_schema(rows.schema, query))
