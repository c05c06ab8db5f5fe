"""The ring of matrix chains: a view tree over matrices as values adds up the products of those that are joined.

[1 2] · [3; 4]   →   {(0, 0): 11}

An element is a multiple of the identity and a matrix of any shape, as its cells; the shapes of factors follow each
other. Products do not commute: those of a view tree are in the order of its children.
"""

from collections.abc import Mapping, Sequence

from squallpy.testing.rings.abstract_ring import FormalSums

Cell = tuple[int, ...]
"""Row and column of a cell; the identity has neither."""


class MatrixChain(FormalSums[Cell]):
    """Matrices as sums of cells, and multiples of the identity."""

    @property
    def unit(self) -> Cell:
        return ()

    def product(self, a: Cell, b: Cell) -> Cell | None:
        if not a or not b:
            return a or b
        return (a[0], b[1]) if a[1] == b[0] else None

    def lift(self, variable: str, value: object) -> Mapping[Cell, float]:
        """Return a matrix, which is given as rows."""
        assert isinstance(value, Sequence)
        return {(i, j): x for i, row in enumerate(value) for j, x in enumerate(row) if x}
