"""A batch's changes as one table: `batch` and `op` in front, what went before what came.

batch  op  user  clicks
    7   -  ann        3
    7   +  ann        4
"""

import pyarrow as pa

DELETE, INSERT = "-", "+"
ADDED = 2  # columns in front


def change_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of the changes of a result."""
    return pa.schema([("batch", pa.int64()), ("op", pa.string()), *schema])


def change_table(batch: int, deletes: pa.Table, inserts: pa.Table) -> pa.Table:
    """Deletes, then inserts."""
    count = len(deletes) + len(inserts)
    ops = pa.array([DELETE] * len(deletes) + [INSERT] * len(inserts), pa.string())
    rows = pa.concat_tables([deletes, inserts])
    arrays = [pa.repeat(pa.scalar(batch, pa.int64()), count), ops, *rows.columns]
    return pa.Table.from_arrays(arrays, schema=change_schema(inserts.schema))
