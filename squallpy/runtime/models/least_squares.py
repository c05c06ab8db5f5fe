"""Coefficients of linear regressions from a cofactor matrix: in closed form, or by gradient descent from those before.

y = 2x + 1 over rows x = 0, 1, 2   →   [1, 2], the intercept first

With an intercept X and y are centred by their means first, which eliminates it: it is not penalised, and large means
cost no accuracy.

Source: `fivm-on-flink` §2.4; step sizes: Barzilai and Borwein, IMA J. Numer. Anal. 8, 1988.
"""

from collections.abc import Callable, Sequence

import numpy as np

from squallpy.base.records import dataclass
from squallpy.runtime.models.cofactor_matrix import CofactorMatrix, Reals
from squallpy.runtime.models.normal_equations import NormalEquations, normal_equations

MOST_ITERATIONS = 10_000
CONVERGED = 1e-15  # length of the gradient, relative to that at 0
_REFINEMENTS = 2  # times that the gradient is computed anew where it has converged, as steps have rounded it
_SUFFICIENT = 1e-4  # least share of the decrease that the gradient promises (Armijo)


@dataclass(frozen=True, slots=True)
class LinearRegression:
    """A linear model y ≈ w·x, or w·x + intercept.

    Args:
        label: The column of y.
        features: The columns of x.
        ridge: λ ≥ 0, in the units of the squares of x; 0 for plain least squares.
    """

    label: int
    features: Sequence[int]
    intercept: bool = True
    ridge: float = 0.0

    def __post_init__(self) -> None:
        assert self.ridge >= 0 and len({self.label, *self.features}) == 1 + len(self.features)

    @property
    def unknowns(self) -> int:
        """Number of coefficients."""
        return len(self.features) + self.intercept


def least_squares(cofactors: CofactorMatrix, model: LinearRegression) -> Reals | None:
    """Solve (X'X/n + λI)·w = X'y/n by Cholesky's factors; the intercept is not penalised.

    Returns:
        The intercept, if the model has one, then w in the order of the features; all NaN if a sum is not finite.
        None if there are no rows, or features are constant or collinear and λ is 0, or too small to tell.
    """

    return _fit(cofactors, model, NormalEquations.solve)


def gradient_descent(cofactors: CofactorMatrix, model: LinearRegression, start: Reals | None = None) -> Reals | None:
    """Find what `least_squares` computes by batch gradient descent; None in the same cases.

    Where columns are almost collinear, so that it would take too many iterations, the closed form is computed.

    Args:
        start: Coefficients to begin with, as returned before rows came or went.
    """

    def solve(equations: NormalEquations) -> Reals:
        found, iterations = descend(equations.matrix, equations.right, begin_at(equations, start))
        return found if iterations < MOST_ITERATIONS else equations.solve()

    return _fit(cofactors, model, solve)


def begin_at(equations: NormalEquations, start: Reals | None) -> Reals:
    """Turn coefficients, of which the intercept may be the first, into a point to begin with; None is 0."""
    k = len(equations.scale)
    return np.zeros(k) if start is None else start[len(start) - k :] / equations.scale


def _fit(cofactors: CofactorMatrix, model: LinearRegression, solve: Callable[[NormalEquations], Reals]) -> Reals | None:
    if cofactors.count < max(1, 0 if model.ridge else model.unknowns):
        return None
    columns = cofactors.project((*model.features, model.label))
    with np.errstate(over="ignore", invalid="ignore"):
        moments = columns.covariances() if model.intercept else columns.moments()
        errors = columns.relative_error * np.diagonal(columns.moments())
    if not np.isfinite(moments).all():
        return np.full(model.unknowns, np.nan)
    equations = normal_equations(moments, errors, model.ridge)
    if equations is None:
        return None
    weights, means = equations.scale * solve(equations), columns.means()
    return np.append(means[-1] - means[:-1] @ weights, weights) if model.intercept else weights


def descend(matrix: Reals, right: Reals, start: Reals, iterations: int = MOST_ITERATIONS) -> tuple[Reals, int]:
    """Minimise ½u'Au − b'u, whose gradient is Au − b, for a positive definite A; u is returned with the iterations.

    Each step is along the gradient g, by (Δu·Δu)/(Δu·Δg) of the step before, which here is g·g/g·Ag; it is halved until
    the function decreases enough. A start that is worse than 0 is replaced by 0.

    Args:
        iterations: The most that are made; as many are returned if it has not converged.
    """
    refinements = _REFINEMENTS
    is_better = start @ (matrix @ start) / 2 < right @ start
    at = start if is_better else np.zeros_like(right)
    gradient, limit, step = matrix @ at - right, CONVERGED**2 * float(right @ right), 1.0
    for iteration in range(iterations):
        squared = float(gradient @ gradient)
        if squared <= limit and refinements:
            refinements -= 1
            gradient = matrix @ at - right
            squared = float(gradient @ gradient)
        if squared <= limit:
            return at, iteration
        change = matrix @ gradient
        curvature = float(gradient @ change)
        # the function decreases by step · squared − step²/2 · curvature, of which no digits cancel in this form
        while step * curvature > 2 * (1 - _SUFFICIENT) * squared:
            step /= 2
        at, gradient = at - step * gradient, gradient - step * change
        step = squared / curvature
    return at, iterations
