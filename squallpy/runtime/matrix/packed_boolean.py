"""Boolean factors as bits, and what steps of triggers do with them: packed once, where an update comes in.

PackedMatrix.of(u)        u (n, k), its columns packed: k rows of ⌈n/64⌉ words
PackedMatrix.of(u).T      the same words, read as (k, n)
evaluate(step, …)         products, sums and stacks of such, 64 cells at a time
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass
from squallpy.base.semirings import BOOLEAN
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Entrywise,
    Fill,
    Iterate,
    Let,
    MainDiagonal,
    Matrix,
    Name,
    Product,
    RowDot,
    Scale,
    Stack,
    Sum,
    Transpose,
    children,
)
from squallpy.runtime.kernels.matrix import boolean
from squallpy.runtime.kernels.matrix.boolean import Bits
from squallpy.runtime.matrix.iterations import iterate_until


@dataclass(slots=True)  # NB: frozen ones take four times as long to make, and a trigger makes dozens
class PackedMatrix:
    """A matrix of truth values as lines of `cells` each: its columns, or its rows where it is `is_transposed`."""

    lines: Bits
    cells: int
    is_transposed: bool = False

    @staticmethod
    def of(values: "npt.NDArray[Any] | PackedMatrix") -> "PackedMatrix":
        """Pack values along the longer of their dimensions."""
        if isinstance(values, PackedMatrix):
            return values
        rows, cols = values.shape
        truth = values.astype(bool, copy=False)
        return (
            PackedMatrix(boolean.pack(truth), cols, True) if rows < cols else PackedMatrix(boolean.pack(truth.T), rows)
        )

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.lines), self.cells) if self.is_transposed else (self.cells, len(self.lines))

    @property
    def T(self) -> "PackedMatrix":
        return PackedMatrix(self.lines, self.cells, not self.is_transposed)

    @property
    def columns(self) -> Bits:
        return boolean.transposed(self.lines, self.cells) if self.is_transposed else self.lines

    @property
    def rows(self) -> Bits:
        return self.T.columns

    def plain(self) -> "npt.NDArray[Any]":
        """Unpack to an array."""
        lines = boolean.unpack(self.lines, self.cells)
        return lines if self.is_transposed else lines.T

    def __matmul__(self, other: "PackedMatrix") -> "PackedMatrix":
        """Multiply self · other, in the layout that needs the fewest transpositions."""
        if not self.is_transposed and other.is_transposed:
            outer = self.lines.size <= other.lines.size
            return self._by_rows(other) if outer else (other.T._by_rows(self.T)).T
        if not self.is_transposed:
            return other.T._by_rows(self.T).T
        if other.is_transposed:
            return self._by_rows(other)
        return PackedMatrix(boolean.meeting(self.lines, other.lines), other.shape[1], True)

    def _by_rows(self, other: "PackedMatrix") -> "PackedMatrix":
        """Multiply row by row: each is the OR of the other's rows that it selects."""
        return PackedMatrix(boolean.product(self.rows, other.rows), other.shape[1], True)

    def __or__(self, other: "PackedMatrix") -> "PackedMatrix":
        mine = other.rows if self.is_transposed else other.columns
        return PackedMatrix(self.lines | mine, self.cells, self.is_transposed)

    def __and__(self, other: "PackedMatrix") -> "PackedMatrix":
        mine = other.rows if self.is_transposed else other.columns
        return PackedMatrix(self.lines & mine, self.cells, self.is_transposed)

    def equals(self, other: "PackedMatrix") -> bool:
        """True if all cells are the same."""
        return np.array_equal(self.lines, other.rows if self.is_transposed else other.columns)

    def occupied(self) -> npt.NDArray[np.bool_]:
        """Find the rows in which any cell is true."""
        if self.is_transposed:
            return np.asarray(self.lines.any(axis=1))
        some: Bits = np.bitwise_or.reduce(self.lines, axis=0, keepdims=True)
        return np.asarray(boolean.unpack(some, self.cells)[0])


def stack(parts: Sequence[PackedMatrix]) -> PackedMatrix:
    """Stack parts side by side."""
    return PackedMatrix(np.concatenate([part.columns for part in parts]), parts[0].shape[0])


def evaluate(matrix: Matrix, read: Callable[[str], PackedMatrix], sizes: Sizes) -> PackedMatrix:
    """Evaluate an expression whose names `read` gives."""
    match matrix:
        case Name(name):
            return read(name)
        case Transpose(of):
            return evaluate(of, read, sizes).T
        case Product((left, right)):
            return evaluate(left, read, sizes) @ evaluate(right, read, sizes)
        case Sum(terms):
            return reduce(PackedMatrix.__or__, (evaluate(term, read, sizes) for term in terms))
        case Scale(by, of):
            value = evaluate(of, read, sizes)
            return (
                value
                if by.at(sizes, BOOLEAN)
                else PackedMatrix(np.zeros_like(value.lines), value.cells, value.is_transposed)
            )
        case Stack(parts):
            return stack([evaluate(part, read, sizes) for part in parts])
        case Entrywise() | RowDot():
            one, other = (evaluate(child, read, sizes) for child in children(matrix))
            both = one & other
            return both if isinstance(matrix, Entrywise) else PackedMatrix.of(both.occupied()[:, None])
        case MainDiagonal(of):
            return PackedMatrix.of(evaluate(of, read, sizes).plain().diagonal()[:, None])
        case Let(bound, inner, body):
            found = evaluate(inner, read, sizes)
            return evaluate(body, lambda own: found if own == bound.name else read(own), sizes)
        case Iterate(_, start, bound, body):

            def step(passing: PackedMatrix) -> PackedMatrix:
                return evaluate(body, lambda own: passing if own == bound.name else read(own), sizes)

            return iterate_until(matrix, evaluate(start, read, sizes), step, lambda one, other, _: one.equals(other))
        case Fill(rows, cols, value):
            line = boolean.pack(np.full((1, cols.at(sizes)), bool(value.at(sizes, BOOLEAN))))
            return PackedMatrix(np.repeat(line, rows.at(sizes), axis=0), cols.at(sizes), True)
        case Diagonal(size, value):
            return _diagonal(size.at(sizes), bool(value.at(sizes, BOOLEAN)))
    raise AssertionError(matrix)


def _diagonal(size: int, value: bool) -> PackedMatrix:
    lines, places = np.zeros((size, boolean.words(size)), np.uint64), np.arange(size)
    lines[places, places // 64] = np.uint64(value) << (places % 64).astype(np.uint64)
    return PackedMatrix(lines, size, True)
