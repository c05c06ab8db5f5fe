"""Functions that are applied entry by entry: how they are written, and what they need of a semiring.

    A .* B     A ./ B     A .^ 2     A > 0.5     abs(A)     max(A, B)

Where a function has no finite value, as 1 ./ 0 has none, the result has no cell, so that it is zero.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.semirings import Semiring

Operand = Any  # an array, or a number

TIMES = ".*"


class Needs(StrEnum):
    """The entries on which a function is defined."""

    MULTIPLICATION = "multiplication"  # of any semiring
    NUMBERS = "numbers"  # ordered, with a subtraction
    FRACTIONS = "fractions"


@dataclass(frozen=True, slots=True)
class EntrywiseFunction:
    """A function of one or two entries; `verb` says in errors what it does."""

    verb: str
    compute: Callable[..., Any]
    needs: Needs
    operands: int = 2
    is_operator: bool = False


FUNCTIONS: Mapping[str, EntrywiseFunction] = {
    TIMES: EntrywiseFunction("multiply", np.multiply, Needs.MULTIPLICATION, is_operator=True),
    "./": EntrywiseFunction("divide", np.divide, Needs.FRACTIONS, is_operator=True),
    ".^": EntrywiseFunction("raise", np.power, Needs.FRACTIONS, is_operator=True),
    "<": EntrywiseFunction("compare", np.less, Needs.NUMBERS, is_operator=True),
    "<=": EntrywiseFunction("compare", np.less_equal, Needs.NUMBERS, is_operator=True),
    ">": EntrywiseFunction("compare", np.greater, Needs.NUMBERS, is_operator=True),
    ">=": EntrywiseFunction("compare", np.greater_equal, Needs.NUMBERS, is_operator=True),
    "=": EntrywiseFunction("compare", np.equal, Needs.NUMBERS, is_operator=True),
    "<>": EntrywiseFunction("compare", np.not_equal, Needs.NUMBERS, is_operator=True),
    "min": EntrywiseFunction("compare", np.minimum, Needs.NUMBERS),
    "max": EntrywiseFunction("compare", np.maximum, Needs.NUMBERS),
    "abs": EntrywiseFunction("take the absolute value of", np.abs, Needs.NUMBERS, 1),
    "sign": EntrywiseFunction("take the sign of", np.sign, Needs.NUMBERS, 1),
    "sqrt": EntrywiseFunction("take the root of", np.sqrt, Needs.FRACTIONS, 1),
    "exp": EntrywiseFunction("exponentiate", np.exp, Needs.FRACTIONS, 1),
    "log": EntrywiseFunction("take the logarithm of", np.log, Needs.FRACTIONS, 1),
}
SPELLINGS = {"==": "=", "!=": "<>", "~=": "<>"}
"""Other ways to write an operator: those of Octave and of MATLAB."""


def check_semiring(function: str, ring: Semiring) -> None:
    """Check that a semiring has a function; SQ3002."""
    needs = FUNCTIONS[function].needs
    if needs is Needs.NUMBERS and not ring.negates:
        hint = "arithmetic and counting have it"
    elif needs is Needs.FRACTIONS and not ring.divides:
        hint = "arithmetic has it"
    else:
        return
    raise SquallError("SQ3002", f'the {ring} semiring has no "{function}" of entries', hint=hint)


def apply_entrywise(function: str, operands: "list[Operand]", ring: Semiring) -> npt.NDArray[Any]:
    """Apply a function to arrays and numbers; entries without a finite value are zero.

    Raises OverflowError where a count does not fit 64 bits.
    """
    if function == TIMES and ring.dtype != "int64":
        product: npt.NDArray[Any] = ring.multiply(*operands)
        return product
    if ring.dtype == "int64":
        return _count(function, operands)
    with np.errstate(all="ignore"):
        found = np.asarray(FUNCTIONS[function].compute(*operands), ring.dtype)
    return np.where(np.isfinite(found), found, ring.zero)


def _count(function: str, operands: "list[Operand]") -> npt.NDArray[Any]:
    """Apply a function of whole numbers; a product of large ones is computed with Python's integers."""
    if function == TIMES:
        reals = [np.abs(np.asarray(operand, float)) for operand in operands]
        if float(np.multiply(*reals).max(initial=0.0)) >= 2.0**62:
            exact = np.multiply(*(np.asarray(operand, object) for operand in operands))
            if any(not -(2**63) <= entry < 2**63 for entry in exact.flat):
                raise OverflowError("a product of entries is beyond BIGINT")
    return np.asarray(FUNCTIONS[function].compute(*operands), "int64")
