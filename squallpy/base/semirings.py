"""Semirings: the entries of a matrix, with their sum and product (`squall-lago-thesis` Def. 5.3.1).

    min_plus   ⟨ℝ ∪ {∞}, min, +⟩, zero ∞, one 0       a product of matrices finds shortest paths

A user-defined semiring is two NumPy ufuncs and their identities:

    Semiring("log", np.logaddexp, np.add, zero=-math.inf, one=0.0)
"""

import math

import numpy as np

from squallpy.base.records import dataclass

Value = float | int | bool


@dataclass(frozen=True, slots=True)
class Semiring:
    """⟨add, multiply⟩ with identities; `zero` annihilates. `negates`: addition has an inverse; `divides`: so has
    multiplication, and matrices too. `idempotent`: x ⊕ x = x."""

    name: str
    add: np.ufunc
    multiply: np.ufunc
    zero: Value
    one: Value
    dtype: str = "float64"
    negates: bool = False
    divides: bool = False
    idempotent: bool = False
    commutes: bool = True

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> "tuple[object, ...] | str":
        known = SEMIRINGS.get(self.name)
        return (semiring, (self.name,)) if known is self else object.__reduce__(self)

    def times(self, count: int) -> Value:
        """Compute one ⊕ … ⊕ one, `count` times."""
        if count == 0 or self.idempotent:
            return self.one if count else self.zero
        if self.dtype == "int64":
            return count
        total = self.zero
        for _ in range(count):
            total = self.add(total, self.one)
        return float(total)


ARITHMETIC = Semiring("arithmetic", np.add, np.multiply, 0.0, 1.0, negates=True, divides=True)
COUNTING = Semiring("counting", np.add, np.multiply, 0, 1, "int64", negates=True)
BOOLEAN = Semiring("boolean", np.logical_or, np.logical_and, False, True, "bool", idempotent=True)
MIN_PLUS = Semiring("min_plus", np.minimum, np.add, math.inf, 0.0, idempotent=True)
MAX_PLUS = Semiring("max_plus", np.maximum, np.add, -math.inf, 0.0, idempotent=True)

SEMIRINGS = {s.name: s for s in (ARITHMETIC, COUNTING, BOOLEAN, MIN_PLUS, MAX_PLUS)} | {"tropical": MIN_PLUS}


def semiring(name: str) -> Semiring:
    """Look up one of SEMIRINGS by its name."""
    return SEMIRINGS[name]
