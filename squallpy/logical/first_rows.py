"""First rows in a logical plan: the first n of each group in an order, with their numbers.

ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 3   →   FirstRows 3 by k in order of x DESC (Aggregate by k, x)
"""

from squallpy.base.records import dataclass
from squallpy.logical.cached_properties import CachedProperty
from squallpy.logical.expressions import Column
from squallpy.logical.nodes import Aggregate, Node

ColumnOrder = tuple[tuple[Column, bool, bool], ...]  # columns, whether they descend, and whether NULLs come first


@dataclass(frozen=True, slots=True)
class FirstRows(Node):
    """The first rows of each group, each with its `number`, from 1.

    Rows alike in the order are in that of their other columns; equal ones have numbers one after the other.

    Args:
        child: The rows, each once, behind the columns that group them.
        grouping: The number of those columns.
        count: The number of rows of a group at most.
    """

    input_fields = ("child",)
    child: Aggregate
    grouping: int
    order: ColumnOrder
    count: int
    number: Column

    def __post_init__(self) -> None:
        assert not self.child.aggs and self.count > 0
        assert {c.id for c, _, _ in self.order} <= {c.id for c in self.child.output[self.grouping :]}

    @property
    def group(self) -> tuple[Column, ...]:
        return self.child.output[: self.grouping]

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return (*self.child.output, self.number)
