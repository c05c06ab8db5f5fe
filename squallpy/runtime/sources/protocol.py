"""Sources of rows, as a stranger implements them: offsets, and slices between two of them.

The shape is that of `pyspark.sql.datasource.DataSourceStreamReader`: the driver asks how far a source has come and cuts
what is new into slices; tasks read these.

source.initial()                                  →   {"row": 0}
source.latest({"row": 0}, Limit(rows=100))        →   {"row": 100}
source.split({"row": 0}, {"row": 100}, tasks=2)   →   two slices of 50 rows
slice.read(("k", "v"))                            →   an Arrow table
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

Offset = Mapping[str, Any]
"""A place in a source, as JSON that only the source understands."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a batch should have of a source; None: all there is."""

    rows: int | None = None
    bytes: int | None = None


class Slice(Protocol):
    """Rows that one task reads.

    A slice is plain data, which can be pickled. Reading it again gives the same rows in the same order.
    """

    @property
    def rows(self) -> int:
        """The number of rows, also of those that are left out as faulty."""
        ...

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        """Read some columns, and `__mult` (±1) of a change stream."""
        ...


class Source(Protocol):
    """A relation as the driver sees it."""

    def initial(self) -> Offset:
        """Return the place before the first row."""
        ...

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """Return how far a batch from `start` may read now: `start` itself if there is nothing new; never waits."""
        ...

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        """Cut what lies between two places into at most `tasks` slices, in order."""
        ...
