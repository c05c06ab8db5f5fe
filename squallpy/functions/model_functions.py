"""Table functions over a join: statistics, and models that are read off them.

SELECT * FROM cofactor(TABLE(SELECT x, y FROM fact NATURAL JOIN dim))
SELECT * FROM ols(TABLE(SELECT x, y FROM fact NATURAL JOIN dim), 'y', ridge => 0.1)
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations_with_replacement

from squallpy.base.records import dataclass
from squallpy.base.types import DOUBLE, VARCHAR

CHOLESKY, DESCENT = SOLVERS = ("cholesky", "bgd")
"""Solvers of regressions."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Count, sums and sums of products: `a`, `b` are names of features, '' is the constant 1.

    Args:
        degree: Features are the columns, and products of up to so many of them, such as x*x*y.
    """

    degree: int = 1
    columns = (("a", VARCHAR), ("b", VARCHAR), ("value", DOUBLE))
    keys = 2

    def __str__(self) -> str:
        return "COFACTOR" if self.degree == 1 else f"COFACTOR of degree {self.degree}"


def list_monomials(columns: int, degree: int) -> Iterator[tuple[int, ...]]:
    """List products of 1, 2, … columns by their numbers, in order: 0, 1, 0·0, 0·1, 1·1"""
    return chain.from_iterable(combinations_with_replacement(range(columns), t) for t in range(1, degree + 1))


def name_monomials(columns: Sequence[str], degree: int) -> list[str]:
    """Name products of columns: x, y, x*x, x*y, y*y"""
    return ["*".join(columns[i] for i in chosen) for chosen in list_monomials(len(columns), degree)]


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """Linear regression of a label, one of the columns, on all others.

    Args:
        ridge: The weight λ of the squared coefficients, the intercept's left out; None for plain least squares.
        solver: Cholesky's closed form, or batch gradient descent from the coefficients of before.
    """

    label: int
    intercept: bool = False
    ridge: float | None = None
    solver: str = CHOLESKY
    columns = (("feature", VARCHAR), ("coefficient", DOUBLE))
    keys = 1

    def __str__(self) -> str:
        intercept = ", intercept" if self.intercept else ""
        ridge = "" if self.ridge is None else f", ridge {self.ridge}"
        descent = ", by gradient descent" if self.solver == DESCENT else ""
        return f"OLS of column {self.label + 1}{intercept}{ridge}{descent}"


@dataclass(frozen=True, slots=True)
class MutualInformation:
    """Mutual information of each pair of columns, in nats; a stands before b in the SELECT list."""

    columns = (("a", VARCHAR), ("b", VARCHAR), ("value", DOUBLE))
    keys = 2

    def __str__(self) -> str:
        return "MUTUAL INFORMATION"


@dataclass(frozen=True, slots=True)
class ChowLiu:
    """The tree of columns with the largest sum of mutual information (Chow and Liu, 1968); ties by their order."""

    columns = (("a", VARCHAR), ("b", VARCHAR), ("value", DOUBLE))
    keys = 2

    def __str__(self) -> str:
        return "CHOW-LIU TREE"


Model = Statistics | LeastSquares | MutualInformation | ChowLiu
FUNCTIONS: dict[str, type[Model]] = {
    "cofactor": Statistics, "ols": LeastSquares, "mutual_information": MutualInformation, "chow_liu": ChowLiu,
}  # fmt: skip


def degree_of(model: Model) -> int:
    """Return the degree of the cofactor matrix that a model is read off."""
    return model.degree if isinstance(model, Statistics) else 1


CATEGORICAL = (MutualInformation, ChowLiu)
"""Models of pairs of values; the others are of sums."""
