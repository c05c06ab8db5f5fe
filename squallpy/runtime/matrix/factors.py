"""Triangular factors of matrices: decomposed, or updated as the matrix changes."""

import numpy as np

from squallpy.maintain.matrix.decompositions import Decomposition, FactorUpdate, MatrixFactor
from squallpy.runtime.kernels.matrix import triangular
from squallpy.runtime.matrix.iterations import UndefinedError
from squallpy.runtime.matrix.stored_views import Array

DEPENDENT = 1e-14  # the least diagonal entry of R, relative to the largest, down to which columns are independent
_WELL_CONDITIONED = 1e-4  # the same, down to which R is updated by rotations: their error is relative to its square


class NoFactorError(UndefinedError):
    """A matrix that has no such factor."""

    reason = "a matrix had no factor"


class DowndateError(UndefinedError):
    """A factor that cannot be updated without a loss of accuracy."""

    reason = "updating a factor would lose accuracy"


def no_factor(decomposition: Decomposition, written: str) -> NoFactorError:
    """Make SQ5011 of a decomposition, of a matrix as it is written in its program."""
    if decomposition.factor is MatrixFactor.CHOLESKY:
        return NoFactorError("SQ5011", f"{written} is not symmetric and positive definite: it has no Cholesky factor")
    return NoFactorError("SQ5011", f"the columns of {written} are not independent: it has no unique QR factors")


def decompose(values: Array, decomposition: Decomposition) -> Array:
    """Compute a factor of a matrix; NoFactorError (SQ5011) where it has none within the precision of 64-bit floats."""
    error = no_factor(decomposition, str(decomposition.of))
    if not np.isfinite(values).all():
        raise error
    if decomposition.factor is MatrixFactor.CHOLESKY:
        return _cholesky(values, error)
    if values.shape[0] < values.shape[1]:
        raise error
    if decomposition.factor is MatrixFactor.R:
        upper: Array = np.asarray(np.linalg.qr(values, "r"))
        return _signs(upper, error)[:, None] * upper
    Q, R = np.linalg.qr(values)
    return np.asarray(Q * _signs(R, error))


def _cholesky(values: Array, error: NoFactorError) -> Array:
    if not triangular.is_symmetric(values):
        raise error
    try:
        L = np.linalg.cholesky(values)
    except np.linalg.LinAlgError:
        raise error from None
    if not _spread(L) ** 2 > DEPENDENT:
        raise error
    return L


def _signs(R: Array, error: NoFactorError) -> Array:
    """Return the signs of the diagonal, by which it becomes positive."""
    if not _spread(R) > DEPENDENT:
        raise error
    signs: Array = np.sign(R.diagonal())
    return signs


def _spread(factor: Array) -> float:
    """Compute the least diagonal entry relative to the largest."""
    diagonal = np.abs(factor.diagonal())
    return float(diagonal.min() / diagonal.max()) if diagonal.size and diagonal.max() else float(not diagonal.size)


def change_of_factor(old: Array, u: Array, v: Array, update: FactorUpdate) -> Array:
    """Compute how a factor changes as its square does by u·v; DowndateError where rounding would show."""
    found = triangular.change(_lower(old, update), *_split(old, u, v, update))
    if found is None:
        raise _downdate_error()
    return found.T if update.upper else found


def rotate(factor: Array, u: Array, v: Array, update: FactorUpdate) -> None:
    """Update a factor in place; DowndateError where rounding would show, after which it is of no use."""
    if not triangular.update(_lower(factor, update), *_split(factor, u, v, update)):
        raise _downdate_error()


def _lower(factor: Array, update: FactorUpdate) -> Array:
    return factor.T if update.upper else factor


def _split(factor: Array, u: Array, v: Array, update: FactorUpdate) -> tuple[Array, Array]:
    parts = triangular.split(u, v)
    if parts is None or (update.upper and not _spread(factor) > _WELL_CONDITIONED):
        raise _downdate_error()
    return parts


def _downdate_error() -> DowndateError:
    return DowndateError("SQ5011", "a factor cannot be updated")
