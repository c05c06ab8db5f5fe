"""Fewest rows and columns that together have all changed cells: the rank at which a change of cells is applied.

    cover_cells(rows, columns)     a vertex of a graph and its edges, both ways: one row and one column,
                                   where distinct rows, as well as distinct columns, are as many as it has neighbours

Rows and columns are the vertices of a bipartite graph whose edges are the cells. A largest matching is found by phases
of shortest augmenting paths (Hopcroft and Karp, 1973); as many vertices as it has edges cover all, and follow from it
(Kőnig, 1931).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from squallpy.runtime.kernels.kernel_compiler import kernel

Places = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.bool_]

_WORTH = 2  # times fewer than rows alone or columns alone: factors that pick rows or columns need no pass over a view
_NONE = -1


class CellCover(NamedTuple):
    """Distinct rows and columns of cells, which of them each cell has, and which of them cover all cells."""

    rows: Places
    row_of: Places
    columns: Places
    column_of: Places
    covering_rows: Chosen
    covering_columns: Chosen

    @property
    def size(self) -> int:
        return int(self.covering_rows.sum()) + int(self.covering_columns.sum())


def cover_cells(rows: Places, columns: Places) -> CellCover:
    """Cover cells by their rows, or their columns, or half as many of both as either of these would be."""
    some_rows, row_of = np.unique(rows, return_inverse=True)
    some_columns, column_of = np.unique(columns, return_inverse=True)
    by_rows = len(some_rows) <= len(some_columns)
    chosen = np.full(len(some_rows), by_rows), np.full(len(some_columns), not by_rows)
    alone = CellCover(some_rows, row_of, some_columns, column_of, *chosen)
    if alone.size <= _WORTH:
        return alone
    order = np.argsort(row_of, kind="stable")
    starts = np.zeros(len(some_rows) + 1, np.int64)
    np.cumsum(np.bincount(row_of, minlength=len(some_rows)), out=starts[1:])
    of_row, of_column = np.full(len(some_rows), _NONE), np.full(len(some_columns), _NONE)
    reached = np.zeros(len(some_columns), np.int64)
    distance, queue, following = (np.empty(len(some_rows), np.int64) for _ in range(3))
    size = _match(
        starts, column_of[order].astype(np.int64), of_row, of_column, distance, queue, following, reached,
        alone.size // _WORTH,
    )  # fmt: skip
    if size > alone.size // _WORTH:
        return alone
    return alone._replace(covering_rows=distance == _NONE, covering_columns=reached == 1)


_VECTOR = "int64[::1]"


@kernel(f"int64({', '.join([_VECTOR] * 8)}, int64)")
def _match(
    starts: Any, columns: Any, of_row: Any, of_column: Any, distance: Any, queue: Any, following: Any, reached: Any,
    most: int,
) -> int:  # fmt: skip
    """Match rows with columns, as many as can be or more than `most`; returns how many.

    In the end the rows without a `distance`, and the columns that are `reached`, are a cover.
    """
    n, size = len(of_row), 0
    for row in range(n):
        for at in range(starts[row], starts[row + 1]):
            if of_column[columns[at]] == _NONE:
                of_row[row], of_column[columns[at]] = columns[at], row
                size += 1
                break
    while size <= most:
        # rows by the number of matched pairs on the shortest alternating path from a row that has no column
        last = 0
        for row in range(n):
            distance[row] = _NONE
            following[row] = starts[row]
            if of_row[row] == _NONE:
                distance[row] = 0
                queue[last] = row
                last += 1
        reached[:] = 0
        first, found = 0, False
        while first < last:
            row = queue[first]
            first += 1
            for at in range(starts[row], starts[row + 1]):
                column = columns[at]
                reached[column] = 1
                other = of_column[column]
                if other == _NONE:
                    found = True
                elif distance[other] == _NONE:
                    distance[other] = distance[row] + 1
                    queue[last] = other
                    last += 1
        if not found:
            return size
        for free in range(n):
            if of_row[free] != _NONE:
                continue
            # a path: the rows on it are in the queue, which is free again; `following` is the next cell of each
            depth = 0
            queue[0] = free
            while depth >= 0:
                row = queue[depth]
                if following[row] == starts[row + 1]:
                    depth -= 1
                    continue
                column = columns[following[row]]
                following[row] += 1
                other = of_column[column]
                if other == _NONE:
                    size += 1
                    while depth >= 0:
                        row = queue[depth]
                        before = of_row[row]
                        of_row[row], of_column[column] = column, row
                        column = before
                        depth -= 1
                elif distance[other] == distance[row] + 1:
                    depth += 1
                    queue[depth] = other
    return size
