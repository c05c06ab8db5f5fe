"""Changes of a batch that partitions have printed: written by their tasks, or as rows where they are few."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from squallpy.base.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A partition's changes of a query in a batch.

    Args:
        query: The place of the query.
        count: How many rows went and came.
        message: What was returned when they were written.
        rows: Those that went and came, if they are not written yet.
    """

    query: int
    count: int
    message: Any = None
    rows: "tuple[pa.Table, pa.Table] | None" = None


@dataclass(frozen=True, slots=True)
class WrittenChanges:
    """A batch's changes of a query that partitions have printed."""

    parts: Sequence[WrittenPart]

    @property
    def rows(self) -> int:
        """The number of rows that went and came."""
        return sum(part.count for part in self.parts)


class PartitionedOutput(Protocol):
    """A sink whose rows partitions have written."""

    def commit(self, number: int, parts: Sequence[WrittenPart]) -> None:
        """Let the rows of a batch count."""
