"""The state of upserts: at most twice the bytes of the columns that are kept, thrice of a key and one INT."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, VARCHAR, Type
from squallpy.catalog.relation import MULT, Field, Relation
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.ingest.upserts import LatestRows
from squallpy.runtime.state.state_store import Store, StoreLayout

ROWS, BATCH = 60_000, 20_000
BYTES = {BIGINT: 8, INT: 4, DOUBLE: 8, DATE: 4, BOOLEAN: 0.125}


def column(type: Type, salt: int) -> pa.Array:
    numbers = np.arange(ROWS, dtype=np.int64) * 7919 % 1_000_003 + salt
    if type == VARCHAR:
        return pa.array([f"{number:056d}" for number in numbers.tolist()])
    if type == BOOLEAN:
        return pa.array(numbers % 2 == 0)
    return pa.array(numbers.astype(np.int32) if type == DATE else numbers).cast(column_type(type))


def rows_of(types: Sequence[Type]) -> tuple[LatestRows, pa.RecordBatch]:
    """A key and columns of these types, all of which are kept."""
    fields = (Field("id", BIGINT, False), *(Field(f"v{i}", type) for i, type in enumerate(types)))
    relation = Relation("p", fields, True, "csv", {"changelog": "upsert", "tombstone": "op"}, ("id",))
    columns = [pa.array(np.random.default_rng(1).permutation(ROWS)), *(column(type, i) for i, type in enumerate(types))]
    return LatestRows(relation, [f.name for f in fields]), pa.record_batch(columns, [f.name for f in fields])


@pytest.mark.parametrize(
    ("types", "most"),
    [
        ([INT], 3.0), ([BIGINT], 3.0), ([VARCHAR], 2.0), ([BIGINT] * 7, 2.0), ([DOUBLE] * 7, 2.0),
        ([INT, DATE, BOOLEAN] * 7, 2.0), ([VARCHAR, INT, DOUBLE], 2.0),
    ],
)  # fmt: skip
def test_bytes_of_state(types: list[Type], most: float) -> None:
    """Whatever was replaced or deleted before."""
    latest, rows = rows_of(types)
    store = Store(StoreLayout((latest.layout,)))
    for again in range(3):
        marks = np.where(np.arange(ROWS) % 3 == again, -1, 1) if again < 2 else np.ones(ROWS, np.int64)
        marked = rows.append_column(MULT, pa.array(marks))
        for start in range(0, ROWS, BATCH):
            latest.changes(store.pool(latest.name), marked.slice(start, BATCH), store.dictionary)
        store.renew()
    kept = 8 + sum(BYTES.get(type, 56) for type in types)
    taken = sum(part["bytes"] for part in store.usage().values()) / ROWS
    assert len(store.pool(latest.name)) == ROWS
    assert taken <= most * kept, (taken, kept, store.usage())


def test_equal_rows_change_nothing() -> None:
    latest, rows = rows_of([INT, VARCHAR, DOUBLE])
    store = Store(StoreLayout((latest.layout,)))
    pool, marked = store.pool(latest.name), rows.append_column(MULT, pa.array(np.ones(ROWS, np.int64)))
    assert len(latest.changes(pool, marked, store.dictionary)) == ROWS
    assert len(latest.changes(pool, marked.take(pa.array(np.arange(ROWS)[::-1])), store.dictionary)) == 0
    gone = rows.append_column(MULT, pa.array(np.full(ROWS, -1)))
    assert latest.changes(pool, gone, store.dictionary)[MULT].to_pylist() == [-1] * ROWS
    assert len(pool) == len(latest.changes(pool, gone, store.dictionary)) == 0
