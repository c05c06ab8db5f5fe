"""Order of the records in the sorted index of a view."""

from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Heights:
    """Ranking of values for range-max queries (`great`) or range-min queries; NULL ranks lowest. `real`: doubles."""

    great: bool
    real: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The key columns in the order in which they are compared: those that a lookup equates, the ranged one, the others.

    `Order((2, 0, 1), 1)` finds, for a value of column 2, a range of column 0. `real`: the ranged column holds doubles;
    `descending`: it descends; `extents`: the index also knows between which values its prefix sums are; `heights`: the
    column after the ranged one holds values, whose highest in a range it finds.
    """

    columns: tuple[int, ...]
    equal: int
    real: bool = False
    descending: bool = False
    extents: bool = False
    heights: Heights | None = None
