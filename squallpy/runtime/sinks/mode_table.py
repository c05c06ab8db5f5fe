"""A batch's changes as one table in the mode of a sink: each change, one row for each key, or the rows that came."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from squallpy.catalog.sink_spec import APPEND, UPSERT
from squallpy.runtime.sinks.change_table import change_table
from squallpy.runtime.sinks.upsert_table import upsert_table


def table_maker(mode: str, names: Sequence[str], key: tuple[str, ...]) -> Callable[[int, pa.Table, pa.Table], pa.Table]:
    """Make the function that writes the deletes and inserts of a batch as a table, in one of the modes of sinks."""
    if mode == UPSERT:
        return upsert_table(names, key)
    return _added_rows if mode == APPEND else change_table


def _added_rows(batch: int, deletes: pa.Table, inserts: pa.Table) -> pa.Table:
    assert not len(deletes), "a query that only grows has taken rows back"
    return inserts
