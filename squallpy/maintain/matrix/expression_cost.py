"""Costs of expressions in arithmetic operations (Fig. 5.9): a product of (n, m) and (m, p) is 2·n·m·p.

A chain of products costs what its cheapest order does (dynamic programming over its factors); a transpose is free,
for kernels read matrices either way.
"""

from collections.abc import Sequence

import numpy as np

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.decompositions import Decomposition, FactorUpdate, MatrixFactor
from squallpy.maintain.matrix.dimensions import Size, Sizes
from squallpy.maintain.matrix.matrix_expressions import (
    Entrywise,
    Inverse,
    Iterate,
    Let,
    Matrix,
    Product,
    RowDot,
    Scale,
    Stack,
    Sum,
    children,
)
from squallpy.maintain.matrix.meta_information import NOTHING, Facts, infer, mirror

GUESS = 1000  # for a dimension that nobody knows yet
ROTATION = 20.0  # to rotate a cell of a triangular factor, in operations of a product of large matrices, measured
DECOMPOSITION = 2.0  # an operation of a decomposition, in the same unit, measured
LONG = 24  # factors of a chain: for more, of equal dimensions, orders are not compared

Tree = Matrix | tuple["Tree", "Tree"]  # a chain of products with its parentheses


@dataclass(frozen=True, slots=True)
class Guess:
    """Numbers for dimensions: those that are known, and GUESS for the others."""

    sizes: Sizes

    def __call__(self, size: Size) -> int:
        return max(0, size.constant + sum(self.sizes.get(symbol, GUESS) * times for symbol, times in size.symbols))

    def cells(self, matrix: Matrix) -> int:
        return self(matrix.rows) * self(matrix.cols)


def cheapest_order(factors: Sequence[Matrix], guess: Guess, facts: Facts) -> tuple[float, Tree]:
    """Find the cheapest order of a chain of products, and its cost; half for products known to be symmetric.

    v', A, B of (1, n), (n, n), (n, n)   →   4n², ((v', A), B)

    The orders of more than LONG factors of equal dimensions cost the same: the one of powers of two is taken, whose
    equal parts are computed once.

    A, A, A, A, A of (n, n)   →   8n³, (((A, A), (A, A)), A)
    """
    count = len(factors)
    rows, cols = [guess(f.rows) for f in factors], np.array([guess(f.cols) for f in factors], float)
    if count > LONG and len({*rows, *cols}) == 1:
        return 2.0 * (count - 1) * cols[0] ** 3, _by_powers_of_two(factors)
    mirrors = [mirror(factor, facts) for factor in factors]
    best, cuts = np.zeros((count, count)), dict[tuple[int, int], int]()
    mirror_images = {(i, i) for i in range(count) if factors[i] == mirrors[i]} | {(i, i - 1) for i in range(count + 1)}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            ends = factors[first] == mirrors[last] and factors[last] == mirrors[first]
            if ends and (first + 1, last - 1) in mirror_images:
                mirror_images.add((first, last))
            is_symmetric = (first, last) in mirror_images and factors[first].rows == factors[last].cols
            each = (1.0 if is_symmetric else 2.0) * rows[first] * cols[last]
            costs = best[first, first:last] + best[first + 1 : last + 1, last] + each * cols[first:last]
            cut = int(costs.argmin())
            best[first, last], cuts[first, last] = costs[cut], first + cut

    def tree(first: int, last: int) -> Tree:
        if first == last:
            return factors[first]
        cut = cuts[first, last]
        return tree(first, cut), tree(cut + 1, last)

    return float(best[0, -1]), tree(0, count - 1)


def _by_powers_of_two(factors: Sequence[Matrix]) -> Tree:
    """Split a chain after the largest power of two of its factors, and so on."""
    if len(factors) == 1:
        return factors[0]
    half = 1 << (len(factors) - 1).bit_length() - 1
    return _by_powers_of_two(factors[:half]), _by_powers_of_two(factors[half:])


def cost(matrix: Matrix, guess: Guess, facts: Facts) -> float:
    """Count the operations that evaluate an expression from its leaves."""
    inner = sum(cost(child, guess, facts) for child in children(matrix))
    match matrix:
        case Product(factors):
            return inner + cheapest_order(factors, guess, facts)[0]
        case Sum(terms):
            return inner + guess.cells(matrix) * (len(terms) - 1)
        case Scale() | Stack() | Entrywise():
            return inner + guess.cells(matrix)
        case RowDot(left, _):
            return inner + 2.0 * guess.cells(left)
        case Inverse(of):
            n = guess(of.rows)
            return inner + (1.0 if infer(of, facts).symmetric else 2.0) * n**3
        case Decomposition(factor, of):
            m, n = guess(of.rows), guess(of.cols)
            done = n**3 / 3 if factor is MatrixFactor.CHOLESKY else (2 if factor is MatrixFactor.R else 4) * m * n**2
            return inner + DECOMPOSITION * done
        case FactorUpdate(_, of, u, _):
            return inner + ROTATION * guess(u.cols) * guess.cells(of)
        case Let(name, value, body):
            known = {**facts, name.name: infer(value, facts)}
            return cost(value, guess, facts) + cost(body, guess, known)
        case Iterate(count, start, name, body):
            return cost(start, guess, facts) + count * cost(body, guess, {**facts, name.name: NOTHING})
    return inner
