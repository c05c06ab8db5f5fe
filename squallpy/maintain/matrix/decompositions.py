"""Decompositions into triangular factors, and updates of factors by rotations.

    L := cholesky(A)          L lower triangular, its diagonal positive, L * L' = A
    Q := qr_q(X)              its columns orthonormal
    R := qr_r(X)              upper triangular, its diagonal positive, Q * R = X and R' * R = X' * X

    A += u * v     →     L += cholupdate(L, u, v) - L

The change of a factor has no low rank, but it follows from the old factor by as many rotations of its columns as u · v
has rank, which cost n² operations each, where to decompose again costs n³/3 (Gill, Golub, Murray, Saunders, *Methods
for modifying matrix factorizations*, 1974).
"""

from enum import StrEnum
from typing import TYPE_CHECKING

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.semirings import Semiring
from squallpy.maintain.matrix.dimensions import Size

if TYPE_CHECKING:
    from squallpy.maintain.matrix.matrix_expressions import Matrix


class MatrixFactor(StrEnum):
    """The factors that a matrix is decomposed into, by the functions that return them."""

    CHOLESKY = "cholesky"
    Q = "qr_q"
    R = "qr_r"


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A factor of a matrix."""

    factor: MatrixFactor
    of: "Matrix"

    @property
    def rows(self) -> Size:
        return self.of.cols if self.factor is MatrixFactor.R else self.of.rows

    @property
    def cols(self) -> Size:
        return self.of.cols

    def __str__(self) -> str:
        return f"{self.factor}({self.of})"


@dataclass(frozen=True, slots=True)
class FactorUpdate:
    """The change of a triangular factor as what it is the factor of changes by u · v, a symmetric matrix.

    Args:
        upper: The factor is R of R' · R, else L of L · L'.
    """

    upper: bool
    of: "Matrix"
    u: "Matrix"
    v: "Matrix"

    @property
    def rows(self) -> Size:
        return self.of.rows

    @property
    def cols(self) -> Size:
        return self.of.cols

    def __str__(self) -> str:
        factor = f"{self.of}'" if self.upper else f"{self.of}"
        change = f"cholupdate({factor}, {self.u}, {self.v})"
        return f"{change}' - {self.of}" if self.upper else f"{change} - {self.of}"


def check_decomposition(factor: MatrixFactor, rows: Size, cols: Size, written: str, ring: Semiring) -> None:
    """Check that matrices of a shape have a factor; SQ2011, or SQ3002 if the semiring has none."""
    if not ring.divides:
        raise SquallError("SQ3002", f'the {ring} semiring has no "{factor}" of a matrix', hint="arithmetic has it")
    if factor is MatrixFactor.CHOLESKY and rows != cols:
        message = f"only a square matrix has a Cholesky factor, {written} ({rows} × {cols}) is none"
        raise SquallError("SQ2011", message, hint="write cholesky(X' * X), or qr_r(X)")
    if factor is not MatrixFactor.CHOLESKY and rows.fixed and cols.fixed and rows.constant < cols.constant:
        message = f"{written} ({rows} × {cols}) has fewer rows than columns, which cannot be independent"
        raise SquallError("SQ2011", message, hint=f"write {factor} of its transpose")
