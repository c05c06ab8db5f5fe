"""How a sorted index orders the records of a view."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heights:
    """How high values are: the higher the greater they are, or the smaller; NULL is the lowest. `real`: of doubles."""

    great: bool
    real: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The key columns in the order in which they are compared: those that a lookup equates, the ranged one, the others.

    `Order((2, 0, 1), 1)` finds, for a value of column 2, a range of column 0. `real`: the ranged column holds doubles;
    `down`: it descends; `extents`: the index also knows between which values its prefix sums are; `heights`: the column
    behind the ranged one has values of which it finds the highest in a range.
    """

    columns: tuple[int, ...]
    equal: int
    real: bool = False
    down: bool = False
    extents: bool = False
    heights: Heights | None = None
