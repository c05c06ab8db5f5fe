"""Frames: the rows of a partition that a window function reads for one row."""

from dataclasses import replace
from enum import Enum

from squallpy.base.records import dataclass
from squallpy.base.types import INT
from squallpy.logical.aggregate_calls import OverClause, SortKeys
from squallpy.logical.expressions import Expr, Literal, columns
from squallpy.logical.total_order import drop_redundant_keys
from squallpy.logical.window_frame import CURRENT_ROW, Bound, FrameUnit

PREVIOUS: Bound = (-1, Literal(1, INT))


class Extent(Enum):
    """Kind of a frame, by the rows of the partition that belong to it."""

    ALL = "all"
    UP_TO = "those up to a row and the rows that tie with it"
    BEFORE = "those before a row"
    VALUES_BEFORE = "one of each value of the order before that of a row"
    ROWS = "those some rows away"
    GROUPS = "those of the values some values away"
    RANGE = "those within a distance"

    @property
    def is_numbered(self) -> bool:
        """True if rows or values have to be numbered to find them."""
        return self in (Extent.ROWS, Extent.GROUPS)


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of one partition.

    Args:
        low: Where they begin, None for the partition's first row; of ROWS, GROUPS and RANGE.
        is_total: By an order in which no rows tie; it is extended where it is not one.
        is_reversed: What extends the order is descending.
        declared: A PRIMARY KEY is trusted to break all ties; the view of its rows has to be checked
            (`physical/unique_keys.py`).
    """

    partition: tuple[Expr, ...]
    order: SortKeys
    extent: Extent
    is_total: bool = False
    low: Bound | None = None
    high: Bound | None = None
    is_reversed: bool = False
    is_declared: bool = False

    @property
    def has_row(self) -> bool:
        """True if the row itself is always among them."""
        if self.extent.is_numbered or self.extent is Extent.RANGE:
            return (self.low is None or self.low[0] <= 0) and (self.high is None or self.high[0] >= 0)
        return self.extent in (Extent.ALL, Extent.UP_TO)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (*self.partition, *(expr for expr, _, _ in self.order))

    def backwards(self) -> "Frame":
        """Reverse the order, so that the frame goes from its end."""
        order = tuple((expr, not down, not nulls_first) for expr, down, nulls_first in self.order)
        return replace(self, order=order, is_reversed=self.is_total and not self.is_reversed)

    def number_frame(self) -> "Frame":
        """Describe it by the numbers of rows, or of values where some rows tie."""
        if self.extent.is_numbered:
            return self
        high = {Extent.UP_TO: CURRENT_ROW, Extent.BEFORE: PREVIOUS}.get(self.extent)
        return replace(self, extent=Extent.ROWS if self.is_total else Extent.GROUPS, high=high)

    def frame_before(self) -> "Frame":
        """Return the frame whose rows are counted to number the rows, or values, of this."""
        extent = Extent.BEFORE if self.extent is Extent.ROWS else Extent.VALUES_BEFORE
        return replace(self, extent=extent, low=None, high=None)

    def simplify(self) -> "Frame":
        """Drop keys that decide nothing, but for the one that distances are of."""
        partition = tuple(dict.fromkeys(expr for expr in self.partition if columns(expr)))
        is_range = self.extent is Extent.RANGE
        return replace(
            self, partition=partition, order=self.order if is_range else drop_redundant_keys(partition, self.order)
        )


def frame_of(over: OverClause) -> Frame:
    """Translate the frame of an OVER clause; one from the current row on is turned around.

    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW   →   UP_TO, by an order that is total
    """
    frame, order = over.frame, over.order
    is_total = frame.unit is FrameUnit.ROWS
    if (frame.start, frame.end) == (None, None) or (not order and not is_total and frame.is_open):
        return Frame(over.partition, order, Extent.ALL)
    found = Frame(over.partition, order, Extent[frame.unit.value], is_total, frame.start, frame.end)
    if frame.is_open:
        found = replace(found, extent=Extent.UP_TO, low=None, high=None)
        return found if frame.start is None else found.backwards()
    return found


def without_neighbours(frame: Frame) -> Frame:
    """Write a frame that ends one row, or value, before the current one as the rows before it."""
    if frame.extent.is_numbered and frame.low is None and _is_next(frame.high, -1):
        return replace(frame, extent=Extent.BEFORE, high=None)
    if frame.extent.is_numbered and frame.high is None and _is_next(frame.low, 1):
        return replace(frame, extent=Extent.BEFORE, low=None).backwards()
    return frame


def _is_next(bound: Bound | None, side: int) -> bool:
    """True if a bound is 1 PRECEDING, or 1 FOLLOWING."""
    return bound is not None and bound[0] == side and bound[1].value == 1
