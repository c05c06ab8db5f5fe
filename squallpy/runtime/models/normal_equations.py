"""Normal equations of linear regressions: what their coefficients solve, and whether they determine these.

(X'X/n + λI)·w = X'y/n   →   A·u = b, where A has ones on its diagonal, and w = scale · u
"""

import numpy as np

from squallpy.base.records import dataclass
from squallpy.runtime.models.cofactor_matrix import Reals

SINGULAR = (
    1e-14  # relative error of the equations at best, so that conditions from 1e14 on are singular, as of matrices
)


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """A regular system A·u = b, A scaled to ones on its diagonal.

    Args:
        matrix, right: A, shape (k, k), and b, shape (k,).
        inverse_factor: L⁻¹, where A = L·L'.
        scale: What u is multiplied by, shape (k,).
    """

    matrix: Reals
    right: Reals
    inverse_factor: Reals
    scale: Reals

    def solve(self) -> Reals:
        """Compute u in closed form."""
        found: Reals = self.inverse_factor.T @ (self.inverse_factor @ self.right)
        return found


def normal_equations(moments: Reals, errors: Reals, ridge: float) -> NormalEquations | None:
    """Make the equations of a regression on all columns but the last, None if they are singular within rounding.

    They are so if columns are constant or collinear. The diagonal of A⁻¹ has their variance inflation factors
    1/(1 − R²), where R² tells how well the others determine a column; rounding errors are inflated likewise.

    Args:
        moments: Covariances, or Σxy/n for a model without intercept, shape (k + 1, k + 1).
        errors: Bounds of the rounding errors of its diagonal, shape (k + 1,).
        ridge: λ.
    """
    matrix, right = moments[:-1, :-1], moments[:-1, -1]
    errors = np.where(np.diagonal(matrix) > 0, errors[:-1], 0.0)
    matrix = matrix + ridge * np.eye(len(matrix))
    diagonal = np.diagonal(matrix)
    if not (diagonal > 0).all():
        return None
    scale = 1 / np.sqrt(diagonal)
    matrix = matrix * scale * scale[:, None]
    try:
        inverse_factor = np.linalg.inv(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None
    variance_inflation = (inverse_factor**2).sum(axis=0)
    if not variance_inflation @ (SINGULAR + errors / diagonal) < 1:
        return None
    return NormalEquations(matrix, right * scale, inverse_factor, scale)
