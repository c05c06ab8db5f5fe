"""Rows of a batch under the matrices of a query."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.logical.expressions import Column
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.physical.matrix.matrix_plan import MatrixPlan, under_matrices
from squallpy.runtime.formats.counted_table import concat_tables, one_batch
from squallpy.runtime.formats.file_rows import ReadStats
from squallpy.runtime.formats.skipped_rows import SkippedRows, skipped
from squallpy.runtime.ingest.upserts import LatestRows
from squallpy.runtime.matrix.rows_to_cells import CellRows, columns_read, extract_rows
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.sources.input import BatchSpans, Input
from squallpy.runtime.state.state_store import Store

Packed = tuple[Delta, tuple[Column, ...]]
"""A delta, and the columns of its keys."""


@dataclass(frozen=True)
class RelationReader:
    """Reader of the relations under the matrices of a query."""

    plan: MatrixPlan
    input: Input

    @property
    def symbols(self) -> list[str]:
        """The dimensions that are as large as the data need, in order."""
        sizes = (size for m in self.plan.matrices.values() for size in (m.rows, m.cols))
        return sorted({size for size in sizes if isinstance(size, str)})

    @cached_property
    def latest(self) -> Mapping[str, LatestRows]:
        """The keepers of the last rows by key, of the relations that have upserts."""
        return latest_rows_under(self.plan)

    def read(self, step: BatchSpans, store: Store) -> tuple[dict[str, CellRows], dict[str, Any], list[Packed]]:
        """Read the rows of a batch by matrix, and statistics of them; SQ5010 for rows outside of their matrix.

        Rows that upserts replace are among them; the deltas are of pools of a store that has the last row of each key.
        """
        slices = self.input.whole(step)
        rows, left_out, sums = dict[str, CellRows](), dict[str, SkippedRows](), ReadStats()
        changes, deltas = dict[str, pa.Table](), list[Packed]()
        for name, matrix in self.plan.matrices.items():
            if matrix.relation not in slices:
                continue
            if (found := changes.get(matrix.relation)) is None:
                latest = self.latest.get(matrix.relation)
                columns = latest.columns if latest else columns_read(matrix)
                tables = [each.read(columns) for each in slices[matrix.relation]]
                found = concat_tables(tables)
                left_out[matrix.relation] = sum(map(skipped, tables), SkippedRows())
                for table in tables:
                    sums.add(under_matrices(matrix.relation), table)
                if latest:
                    pool = store.pool(latest.name)
                    changed, delta = latest.difference(pool, one_batch(found), store.dictionary)
                    changes[matrix.relation] = found = pa.Table.from_batches([changed])
                    deltas.append((delta, latest.keys))
            rows[name] = extract_rows(matrix, found)
            rows[name].check_indices()
        letters = {name: list(each.letters) for name, each in left_out.items() if each.letters}
        stats = {"skipped": sum(each.count for each in left_out.values()), **sums.stats}
        return rows, stats | ({"dead_letters": letters} if letters else {}), deltas


def latest_rows_under(plan: MatrixPlan) -> dict[str, LatestRows]:
    """Make the keepers of the last rows by key of the relations under matrices that have upserts."""
    found = {}
    for relation in plan.keyed:
        columns = [name for m in plan.matrices.values() if m.relation == relation.name for name in m.columns]
        found[relation.name] = LatestRows(relation, columns, (ARRIVAL,))
    return found


def grown_sizes(sizes: Sizes, rows: Mapping[str, CellRows]) -> dict[str, int]:
    """Grow dimensions as far as more rows need."""
    found = dict(sizes)
    for some in rows.values():
        for size, indices in ((some.matrix.rows, some.i), (some.matrix.cols, some.j)):
            if isinstance(size, str) and len(indices):
                found[size] = max(found[size], int(indices.max()) + 1)
    return found
