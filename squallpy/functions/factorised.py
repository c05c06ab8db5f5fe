"""Table functions over a join: statistics, and models that are read off them.

SELECT * FROM cofactor(TABLE(SELECT x, y FROM fact NATURAL JOIN dim))
SELECT * FROM ols(TABLE(SELECT x, y FROM fact NATURAL JOIN dim), 'y', ridge => 0.1)
"""

from dataclasses import dataclass

from squallpy.base.types import DOUBLE, VARCHAR

CHOLESKY, DESCENT = SOLVERS = ("cholesky", "bgd")
"""Solvers of regressions."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Count, sums and sums of products: `a`, `b` are names of columns, '' is the constant 1."""

    columns = (("a", VARCHAR), ("b", VARCHAR), ("value", DOUBLE))
    keys = 2

    def __str__(self) -> str:
        return "COFACTOR"


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
CATEGORICAL = (MutualInformation, ChowLiu)
"""Models of pairs of values; the others are of sums."""
