"""The rows of a stream as changes of the cells of a matrix; whatever is no cell is told by the number of its row."""

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.semirings import BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.catalog.matrices import Matrix
from squallpy.catalog.relation import MULT
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.runtime.kernels.matrix.integer_products import times
from squallpy.runtime.matrix.cells import Cells, Places
from squallpy.runtime.matrix.errors import overflow
from squallpy.runtime.matrix.stored_views import Array

DELETES = "matrix.deletes"  # the setting that says what becomes of deletes that have no inverse


@dataclass(frozen=True, slots=True)
class CellRows:
    """Rows of a batch under a matrix, as arrays.

    Args:
        values: The entry that each row adds; None: 1.
        mult: How often each came, negative if it went.
        numbers: The number of each row in its stream.
    """

    matrix: Matrix
    i: Places
    j: Places
    values: Array | None
    mult: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.i)

    def entries(self, ring: Semiring) -> Array:
        """Return the entries that rows add, in the numbers of a semiring; SQ5012 for others."""
        if self.values is None:
            return np.full(len(self), 1, ring.dtype)
        if ring is BOOLEAN:
            return np.not_equal(self.values, 0)
        if ring is COUNTING:
            return self.values.astype(np.int64)
        values = self.values.astype(np.float64)
        nothing = values == ring.zero if ring in (MIN_PLUS, MAX_PLUS) else False
        self._refuse(~np.isfinite(values) & ~np.asarray(nothing), values, "SQ5012", "no entry")
        return values

    def check_inserts(self, ring: Semiring) -> None:
        """Refuse rows that are taken away where a semiring cannot subtract; SQ3002."""
        taken = self.mult < 0
        if taken.any():
            message = (
                f"{self.describe(taken)} takes away from {self.matrix.name}, and the {ring} semiring has no subtraction"
            )
            raise SquallError("SQ3002", message, hint=f"--set {DELETES}=reevaluate evaluates the program anew")

    def check_indices(self) -> None:
        """Refuse indices outside of the matrix; SQ5010."""
        for indices, size, which in ((self.i, self.matrix.rows, "row"), (self.j, self.matrix.cols, "column")):
            wrong = (indices < 0) if isinstance(size, str) else (indices < 0) | (indices >= size)
            if wrong.any():
                first = int(indices[wrong][0])
                message = f"{self.describe(wrong)}: {self.matrix.name} has no {which} {first}"
                has = f"{size} of them, " if isinstance(size, int) else ""
                raise SquallError("SQ5010", message, hint=f"{has}numbered from 0")

    def describe(self, wrong: npt.NDArray[np.bool_]) -> str:
        """Describe the first of some rows, as in "row 7 of edges"."""
        return f"row {int(self.numbers[wrong][0]) + 1:,} of {self.matrix.relation}"

    def check_finite(self, values: Array) -> None:
        """Refuse values that are not finite; SQ5012."""
        self._refuse(~np.isfinite(values), values, "SQ5012", "no entry")

    def _refuse(self, wrong: Any, values: Array, code: str, what: str) -> None:
        if wrong.any():
            raise SquallError(code, f"{self.describe(wrong)}: {values[wrong][0]} is {what} of {self.matrix.name}")


def columns_read(matrix: Matrix) -> tuple[str, ...]:
    """List the columns of a relation that are read for its matrix."""
    return (*dict.fromkeys(matrix.columns), ARRIVAL)


def extract_rows(matrix: Matrix, table: pa.Table) -> CellRows:
    """Extract the rows of a matrix from a table that has `columns_read` for it.

    A NULL is an SQ5012, but for outer products, to which a row with a NULL does not add.
    """
    if matrix.outer:
        table = table.filter(reduce(pc.and_, (pc.is_valid(table.column(name)) for name in matrix.columns)))
    numbers = table.column(ARRIVAL).to_numpy()
    for name in matrix.columns:
        column = table.column(name)
        if column.null_count:
            at = int(numbers[np.asarray(pc.is_null(column))][0]) + 1
            raise SquallError(
                "SQ5012", f"row {at:,} of {matrix.relation}: {name} is NULL, which is no cell of {matrix.name}"
            )
    if matrix.outer:
        return _sum_outer_products(matrix, matrix.outer, table, numbers)
    i, j = (np.asarray(table.column(name), np.int64) for name in matrix.columns[:2])
    values = None
    if len(matrix.columns) > 2:
        column = table.column(matrix.columns[2])
        values = np.asarray(column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column)
    return CellRows(matrix, i, j, values, _mult(table), numbers)


def _mult(table: pa.Table) -> npt.NDArray[np.int64]:
    return np.asarray(table.column(MULT), np.int64) if MULT in table.column_names else np.ones(len(table), np.int64)


def _sum_outer_products(
    matrix: Matrix, outer: tuple[tuple[str, ...], tuple[str, ...]], table: pa.Table, numbers: npt.NDArray[np.int64]
) -> CellRows:
    """Sum the outer products of rows, each cell once; SQ5012 for values that are not finite."""
    columns = {name: np.asarray(table.column(name).cast(pa.float64())) for name in matrix.columns}
    rows = CellRows(matrix, numbers, numbers, None, _mult(table), numbers)
    for values in columns.values():
        rows.check_finite(values)
    left, right = (np.array([columns.get(name, np.ones(len(table))) for name in names]) for names in outer)
    cells = (left * rows.mult) @ right.T
    if outer[0] == outer[1]:
        cells = (cells + cells.T) / 2  # NB: as SYMMETRIC as it is declared, to the last bit
    i, j = (places.ravel().astype(np.int64) for places in np.indices(cells.shape))
    ones = np.ones(cells.size, np.int64)
    return CellRows(matrix, i, j, cells.ravel(), ones, np.full(cells.size, numbers[0] if len(numbers) else 0))


def sum_rows(rows: CellRows, ring: Semiring) -> Cells:
    """Sum, by ⊕, what rows add to cells; SQ3002 for deletes without an inverse, SQ5001 for an overflow."""
    values = rows.entries(ring)
    if ring is COUNTING:
        try:
            return Cells(rows.i, rows.j, times(values, rows.mult)).merged(ring)
        except OverflowError as error:
            raise overflow(OverflowError(f"a count in {rows.matrix.name} is beyond BIGINT")) from error
    if ring.negates:
        return Cells(rows.i, rows.j, values * rows.mult.astype(values.dtype)).merged(ring)
    rows.check_inserts(ring)
    return Cells(rows.i, rows.j, values).merged(ring)


def check_declared(matrix: Matrix, cells: Cells) -> None:
    """Check that cells are as a matrix is declared, symmetric or triangular; SQ5014."""
    for word in matrix.known:
        wrong = _find_violation(word, cells)
        if wrong is not None:
            i, j = int(cells.rows[wrong]), int(cells.cols[wrong])
            hint = f"each batch has to add the same to ({j}, {i})" if word == "SYMMETRIC" else ""
            message = f"{matrix.name} is declared {word}, but a batch adds to ({i}, {j})"
            raise SquallError("SQ5014", message, hint=hint)


def _find_violation(word: str, cells: Cells) -> int | None:
    """Find the first cell that violates a declaration."""
    if word == "SYMMETRIC":
        order = np.lexsort((cells.rows, cells.cols))
        same = (cells.rows == cells.cols[order]) & (cells.cols == cells.rows[order])
        other = cells.values[order]
        alike = np.isclose(cells.values, other, rtol=1e-12) if other.dtype.kind == "f" else cells.values == other
        wrong = ~(same & alike)
    else:
        wrong = {"LOWER": cells.cols > cells.rows, "UPPER": cells.cols < cells.rows}.get(word, cells.rows != cells.cols)
    return int(np.flatnonzero(wrong)[0]) if wrong.any() else None
