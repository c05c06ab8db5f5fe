"""What expressions cost, in arithmetic operations (Fig. 5.9): a product of (n, m) and (m, p) is 2·n·m·p.

A chain of products costs what its cheapest order does (dynamic programming over its factors); a transpose is free,
for kernels read matrices either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from squallpy.maintain.matrix.meta import NOTHING, Facts, infer, is_palindrome
from squallpy.maintain.matrix.nodes import Inverse, Iterate, Let, Matrix, Product, Scale, Stack, Sum, children
from squallpy.maintain.matrix.sizes import Size, Sizes

GUESS = 1000  # for a dimension that nobody knows yet

Tree = Matrix | tuple["Tree", "Tree"]  # a chain of products with its parentheses


@dataclass(frozen=True, slots=True)
class Guess:
    """Numbers for dimensions: those that are known, and GUESS for the others."""

    known: Sizes

    def __call__(self, size: Size) -> int:
        return max(0, size.constant + sum(self.known.get(symbol, GUESS) * times for symbol, times in size.symbols))

    def cells(self, matrix: Matrix) -> int:
        return self(matrix.rows) * self(matrix.cols)


def chained(factors: Sequence[Matrix], guess: Guess, facts: Facts) -> tuple[float, Tree]:
    """The cost of the cheapest order of a chain, and that order; half for what is known to be symmetric.

    v', A, B of (1, n), (n, n), (n, n)   →   4n², ((v', A), B)
    """
    rows = [guess(factor.rows) for factor in factors]
    cols = [guess(factor.cols) for factor in factors]
    best: dict[tuple[int, int], tuple[float, Tree]] = {(i, i): (0.0, f) for i, f in enumerate(factors)}
    for length in range(1, len(factors)):
        for first in range(len(factors) - length):
            last = first + length
            whole = rows[first] * cols[last]
            each = 1.0 if is_palindrome(factors[first : last + 1], facts) else 2.0
            best[first, last] = min(
                (
                    (best[first, s][0] + best[s + 1, last][0] + each * whole * cols[s],
                     (best[first, s][1], best[s + 1, last][1]))
                    for s in range(first, last)
                ),
                key=lambda option: option[0],
            )  # fmt: skip
    return best[0, len(factors) - 1]


def cost(matrix: Matrix, guess: Guess, facts: Facts) -> float:
    """Operations to evaluate an expression from its leaves."""
    inner = sum(cost(child, guess, facts) for child in children(matrix))
    match matrix:
        case Product(factors):
            return inner + chained(factors, guess, facts)[0]
        case Sum(terms):
            return inner + guess.cells(matrix) * (len(terms) - 1)
        case Scale() | Stack():
            return inner + guess.cells(matrix)
        case Inverse(of):
            n = guess(of.rows)
            return inner + (1.0 if infer(of, facts).symmetric else 2.0) * n**3
        case Let(name, value, body):
            known = {**facts, name.name: infer(value, facts)}
            return cost(value, guess, facts) + cost(body, guess, known)
        case Iterate(count, start, name, body):
            return cost(start, guess, facts) + count * cost(body, guess, {**facts, name.name: NOTHING})
    return inner
