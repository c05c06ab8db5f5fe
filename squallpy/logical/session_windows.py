"""Session windows in a logical plan: rows that follow each other in time without a longer pause.

SESSION_WINDOW(at, '5 minutes') of clicks by user     →     SessionWindow start by user of at, 5 MIN (Scan clicks)
"""

from squallpy.base.records import dataclass
from squallpy.base.types import TIMESTAMP
from squallpy.logical.cached_properties import CachedProperty
from squallpy.logical.expressions import Column, Expr
from squallpy.logical.nodes import Aggregate, Node, check_all


@dataclass(frozen=True, slots=True)
class SessionWindow(Node):
    """Rows, each with the times of the first and the last row of its session, `start` and `last`.

    Args:
        partition: Rows in which these are equal have sessions of their own.
        time: The time of a row, which is not NULL.
        gap: Microseconds that rows of a session that follow each other are apart at most.
    """

    input_fields = ("child",)
    child: Node
    partition: tuple[Expr, ...]
    time: Expr
    gap: int
    start: Column
    last: Column

    def __post_init__(self) -> None:
        check_all((*self.partition, self.time), self.child)
        assert self.time.type == TIMESTAMP == self.start.type and self.gap > 0

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return (*self.child.output, self.start, self.last)


@dataclass(frozen=True, slots=True)
class SessionBounds(Node):
    """A row for each session of some times: its first and `last` time, and the `following` one at which another starts.

    Args:
        child: The times, each once, behind the keys that have sessions of their own.
        following: Later than all times where no other session starts.
    """

    input_fields = ("child",)
    child: Aggregate
    gap: int
    start: Column
    following: Column
    last: Column

    def __post_init__(self) -> None:
        assert not self.child.aggs and self.time.type == TIMESTAMP and self.gap > 0

    @property
    def partition(self) -> tuple[Column, ...]:
        return self.child.output[:-1]

    @property
    def time(self) -> Column:
        return self.child.output[-1]

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return (*self.partition, self.start, self.following, self.last)
