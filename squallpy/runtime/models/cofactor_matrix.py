"""Cofactor matrices: count, sums and sums of products of columns, all that a linear regression needs of its rows.

rows (x, y): (1, 4), (2, 6)   →   count 2, sums [3, 10], products [[5, 16], [16, 52]]

Source: `fivm-on-flink` §2.4 and §4.1.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from squallpy.base.records import dataclass

Reals = npt.NDArray[np.float64]
_SPLIT = 2.0**27 + 1  # halves a double's digits


@dataclass(frozen=True, slots=True)
class CofactorMatrix:
    """Count, sums and sums of products of m columns over n rows.

    A sum takes one word (added up in plain doubles) or two (compensated: a double, and what it lacks). With two, models
    stay accurate where means are far larger than deviations, as in columns of times.

    Args:
        count: n.
        sums: Σx, shape (words, m).
        products: Σxy, shape (words, m, m), symmetric.
    """

    count: int
    sums: Reals
    products: Reals

    def __post_init__(self) -> None:
        words, m = self.sums.shape
        assert words in (1, 2) and self.products.shape == (words, m, m)

    @classmethod
    def from_triangle(cls, count: int, sums: Reals, triangle: Reals) -> "CofactorMatrix":
        """Make a matrix of the lower triangle of its products, row by row, shape (words, m(m + 1)/2)."""
        words, m = sums.shape
        rows, columns = np.tril_indices(m)
        products = np.empty((words, m, m))
        products[:, rows, columns] = products[:, columns, rows] = triangle
        return cls(count, sums, products)

    def project(self, columns: Sequence[int]) -> "CofactorMatrix":
        """Keep some of the columns, in this order; a model of those needs nothing else."""
        kept = np.array(columns, np.intp)
        return CofactorMatrix(self.count, self.sums[:, kept], self.products[:, kept[:, None], kept])

    @property
    def relative_error(self) -> float:
        """Bound of a sum's rounding errors, relative to the sum of its terms' absolute values (Higham, 2002, §4.2)."""
        return self.count * (2.0**-52 if len(self.sums) == 1 else 2.0**-102)

    def means(self) -> Reals:
        """Compute x̄ = Σx/n, shape (m,)."""
        means: Reals = self.sums.sum(axis=0) / self.count
        return means

    def moments(self) -> Reals:
        """Compute Σxy/n, shape (m, m)."""
        moments: Reals = self.products.sum(axis=0) / self.count
        return moments

    def covariances(self) -> Reals:
        """Compute Σ(x − x̄)(y − ȳ)/n, shape (m, m); exactly 0 for columns that are constant within rounding."""
        n, high, low = float(self.count), self.sums[0], self.sums[1:].sum(axis=0)
        left, left_error = _two_product(n, self.products[0])
        right, right_error = _two_product(high[:, None], high)
        left_error = left_error + n * self.products[1:].sum(axis=0)
        right_error = right_error + (high[:, None] * low + low[:, None] * high)
        found: Reals = ((left - right) + (left_error - right_error)) / n / n
        constant = np.diagonal(found) <= self.relative_error * np.diagonal(self.moments())
        found[constant], found[:, constant] = 0.0, 0.0
        return found


def _two_product(a: float | Reals, b: Reals) -> tuple[Reals, Reals]:
    """Return a · b rounded, and the rounding error (Dekker, 1971)."""
    product = a * b
    a_high, b_high = _SPLIT * a - (_SPLIT * a - a), _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
