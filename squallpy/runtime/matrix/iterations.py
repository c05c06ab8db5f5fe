"""Iterations until they converge: `iterate[100](x0)(x => A * x + b) until 1e-9`."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from squallpy.base.errors import SquallError
from squallpy.base.semirings import Semiring
from squallpy.maintain.matrix.matrix_expressions import Iterate

Value = TypeVar("Value")
Array = npt.NDArray[Any]


class UndefinedError(SquallError):
    """An operation that has no value; `reason` says so in statistics."""

    reason = ""


class DivergenceError(UndefinedError):
    """An iteration that has not converged."""

    reason = "an iteration did not converge"


def divergence(iteration: Iterate, written: str) -> DivergenceError:
    """Make SQ5016 of an iteration, as it is written in its program."""
    hint = "allow more steps or a larger bound"
    return DivergenceError("SQ5016", f"{written} still changes after {iteration.count:,} steps", hint=hint)


def iterate_until(
    iteration: Iterate, value: Value, step: Callable[[Value], Value], ends: Callable[[Value, Value, float], bool]
) -> Value:
    """Iterate until a step changes little; DivergenceError (SQ5016) after as many steps as there may be."""
    assert iteration.until is not None
    for _ in range(iteration.count):
        before, value = value, step(value)
        if ends(before, value, iteration.until.value):
            return value
    raise divergence(iteration, str(iteration))


def has_converged(before: Array, after: Array, bound: float, ring: Semiring) -> bool:
    """True if no entry has changed by more than a bound; where there is no subtraction, if none has changed."""
    if not ring.negates:
        return bool((before == after).all())
    with np.errstate(invalid="ignore"):  # NB: ∞ - ∞ of what diverges
        return bool((np.abs(after - before) <= bound).all())
