"""Meta-information: what is known of a matrix before its entries are (§5.3.4, Fig. A.3–A.7), inferred from the leaves.

A symmetric, lower   →   A'·A symmetric;   A·A lower;   inv(A) symmetric and lower;   rank(u·v) ≤ 1
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.decompositions import Decomposition, FactorUpdate, MatrixFactor
from squallpy.maintain.matrix.dimensions import ONE_SIZE, ZERO, Size
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Entrywise,
    Fill,
    Inverse,
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
    shape,
    transpose,
)


@dataclass(frozen=True, slots=True)
class Properties:
    """Properties of a matrix that hold whatever its entries: structure, bound of its rank, and density; None means
    unknown."""

    symmetric: bool = False
    lower: bool = False
    upper: bool = False
    rank: Size | None = None
    density: float | None = None

    @property
    def diagonal(self) -> bool:
        return self.lower and self.upper

    def words(self) -> list[str]:
        """List the properties in the words of `explain` and CREATE MATRIX."""
        if self.diagonal:
            words = ["diagonal"]
        else:
            words = [w for w in ("symmetric", "lower", "upper") if getattr(self, w)]
        words += [f"rank {self.rank}"] if self.rank is not None else []
        return words + ([f"density {self.density:g}"] if self.density is not None else [])


NOTHING = Properties()
Facts = Mapping[str, Properties]  # names → what is known of them


def infer(matrix: Matrix, facts: Facts) -> Properties:
    """Infer the properties of an expression from those of the names in it."""
    match matrix:
        case Name(name):
            return _note_scalar(matrix, facts.get(name, NOTHING))
        case Diagonal(size, value):
            return Properties(True, True, True, Size(0) if value == ZERO else size)
        case Fill(rows, cols, value):
            zero = value == ZERO
            return Properties(rows == cols, zero, zero, Size(0) if zero else ONE_SIZE, 0.0 if zero else 1.0)
        case Transpose(of):
            known = infer(of, facts)
            return known if known.lower == known.upper else replace(known, lower=known.upper, upper=known.lower)
        case Inverse(of):
            known = infer(of, facts)
            return replace(known, rank=None, density=None)
        case Scale(_, of):
            return infer(of, facts)
        case Sum(terms):
            return _sum([infer(term, facts) for term in terms])
        case Product(factors):
            return _product(matrix, [infer(factor, facts) for factor in factors], facts)
        case Stack(parts):
            ranks = [infer(part, facts).rank for part in parts]
            return _note_scalar(matrix, Properties(rank=_total(ranks)))
        case Entrywise() | RowDot() | MainDiagonal():
            return _note_scalar(matrix, NOTHING)
        case Decomposition(factor):
            return _note_scalar(
                matrix, Properties(lower=factor is MatrixFactor.CHOLESKY, upper=factor is MatrixFactor.R)
            )
        case FactorUpdate(upper):
            return _note_scalar(matrix, Properties(lower=not upper, upper=upper))
        case Let(name, value, body):
            return infer(body, {**facts, name.name: infer(value, facts)})
        case Iterate(count, start, name, body):
            known = infer(start, facts)
            return known if count == 0 else _steady(known, infer(body, {**facts, name.name: known}))
    raise AssertionError(matrix)


def _note_scalar(matrix: Matrix, known: Properties) -> Properties:
    """Add that a 1 × 1 matrix is symmetric and diagonal."""
    return replace(known, symmetric=True, lower=True, upper=True) if shape(matrix) == (ONE_SIZE, ONE_SIZE) else known


def _steady(before: Properties, after: Properties) -> Properties:
    """Infer the properties that a step of an iteration preserves."""
    return Properties(before.symmetric and after.symmetric, before.lower and after.lower, before.upper and after.upper)


def _sum(terms: list[Properties]) -> Properties:
    return Properties(
        all(t.symmetric for t in terms),
        all(t.lower for t in terms),
        all(t.upper for t in terms),
        _total([t.rank for t in terms]),
    )


def _total(ranks: list[Size | None]) -> Size | None:
    """Infer the properties of a sum; ranks add up at most."""
    total = Size(0)
    for rank in ranks:
        if rank is None:
            return None
        total += rank
    return total


def _product(matrix: Product, factors: list[Properties], facts: Facts) -> Properties:
    ranks = [f.rank for f in factors if f.rank is not None] + [f.cols for f in matrix.factors[:-1]]
    fixed = [r for r in ranks if r.fixed]
    rank = (
        min(fixed, key=lambda r: r.constant) if fixed else next((f.rank for f in factors if f.rank is not None), None)
    )
    known = Properties(
        is_palindrome(matrix.factors, facts), all(f.lower for f in factors), all(f.upper for f in factors), rank
    )
    return _note_scalar(matrix, known)


def is_palindrome(factors: Sequence[Matrix], facts: Facts) -> bool:
    """True if a product is its own transpose as it is written: XᵀX, AᵀSA with S symmetric, powers of such."""
    ends = zip(factors, reversed(factors), strict=True)
    return factors[0].rows == factors[-1].cols and all(first == mirror(last, facts) for first, last in ends)


def mirror(matrix: Matrix, facts: Facts) -> Matrix:
    """Transpose with Transposes only at names that are not symmetric: (A·B)ᵀ → Bᵀ·Aᵀ."""
    match matrix:
        case Product(factors):
            return Product(tuple(mirror(factor, facts) for factor in reversed(factors)))
        case Sum(terms):
            return Sum(tuple(mirror(term, facts) for term in terms))
        case Scale(by, of):
            return Scale(by, mirror(of, facts))
        case Inverse(of):
            return Inverse(mirror(of, facts))
        case Fill(rows, cols, value):
            return Fill(cols, rows, value)
    return matrix if infer(matrix, facts).symmetric else transpose(matrix)
