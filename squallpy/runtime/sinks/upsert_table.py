"""A batch's changes as one row for each key: the new row, or the old one where nothing came in its place.

− ann 3, + ann 4, + bob 1, − cid 9      batch  op  user  clicks
                                            7   u  ann        4
                                            7   +  bob        1
                                            7   -  cid        9
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.runtime.sinks.change_table import DELETE, INSERT, UPDATE, with_operations


def upsert_table(names: Sequence[str], key: Sequence[str]) -> Callable[[int, pa.Table, pa.Table], pa.Table]:
    """Make the function that writes a batch's changes by key, whose columns are among `names`."""
    places = [names.index(name) for name in key]

    def merge(batch: int, deletes: pa.Table, inserts: pa.Table) -> pa.Table:
        went = len(deletes)
        rows = pa.concat_tables([deletes, inserts])
        groups = number_rows(rows, places)
        old, new = groups[:went], groups[went:]
        for side, table in ((old, deletes), (new, inserts)):
            _check_unique(side, table, places, batch)
        updated, replaced = np.isin(new, old), np.isin(old, new)
        ops = np.concatenate([np.where(replaced, "", DELETE), np.where(updated, UPDATE, INSERT)])
        kept = np.flatnonzero(ops != "")
        return with_operations(batch, pa.array(ops[kept], pa.string()), rows.take(kept))

    return merge


def number_rows(rows: pa.Table, places: Sequence[int]) -> Any:
    """Number rows by their values in some columns, the same ones alike; NULL is equal to NULL."""
    codes = [pc.dictionary_encode(rows.column(at).combine_chunks(), null_encoding="encode") for at in places]
    if not codes:
        return np.zeros(len(rows), np.int64)
    columns = [
        np.asarray((code.combine_chunks() if isinstance(code, pa.ChunkedArray) else code).indices) for code in codes
    ]
    if len(columns) == 1:
        return columns[0].astype(np.int64)
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _check_unique(groups: Any, rows: pa.Table, places: Sequence[int], batch: int) -> None:
    """Raise SQ4007 for two rows of one key, which a declared key has excluded."""
    _, first, counts = np.unique(groups, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = rows.slice(int(first[counts > 1][0]), 1)
        key = ", ".join(f"{rows.column_names[at]} = {row.column(at)[0].as_py()}" for at in places)
        message = f"batch {batch:,} has two rows of the key {key}, which mode 'upsert' writes as one"
        raise SquallError("SQ4007", message, hint="name the columns that tell rows apart: key 'a, b'")
