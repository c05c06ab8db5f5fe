"""Rows of a batch under the matrices of a query."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.physical.matrix.matrix_plan import MatrixPlan, under_matrices
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.formats.file_rows import ReadStats
from squallpy.runtime.formats.skipped_rows import SkippedRows, skipped
from squallpy.runtime.matrix.rows_to_cells import Rows, columns_read, extract_rows
from squallpy.runtime.sources.input import Input, Step


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

    def read(self, step: Step) -> tuple[dict[str, Rows], dict[str, Any]]:
        """Read the rows of a batch by matrix, and statistics of them; SQ5010 for rows outside of their matrix."""
        slices = self.input.whole(step)
        rows, left_out, sums = dict[str, Rows](), dict[str, SkippedRows](), ReadStats()
        for name, matrix in self.plan.matrices.items():
            if matrix.relation in slices:
                tables = [each.read(columns_read(matrix)) for each in slices[matrix.relation]]
                rows[name] = extract_rows(matrix, concat_tables(tables))
                rows[name].check_indices()
                left_out[matrix.relation] = sum(map(skipped, tables), SkippedRows())
                for table in tables:
                    sums.add(under_matrices(matrix.relation), table)
        letters = {name: list(each.letters) for name, each in left_out.items() if each.letters}
        stats = {"skipped": sum(each.count for each in left_out.values()), **sums.stats}
        return rows, stats | ({"dead_letters": letters} if letters else {})


def grown_sizes(sizes: Sizes, rows: Mapping[str, Rows]) -> dict[str, int]:
    """Grow dimensions as far as more rows need."""
    found = dict(sizes)
    for some in rows.values():
        for size, indices in ((some.matrix.rows, some.i), (some.matrix.cols, some.j)):
            if isinstance(size, str) and len(indices):
                found[size] = max(found[size], int(indices.max()) + 1)
    return found
