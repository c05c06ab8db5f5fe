"""Sources of rows, as a stranger implements them: offsets, and slices between two of them.

The shape is that of `pyspark.sql.datasource.DataSourceStreamReader`: the driver asks how far a source has come and cuts
what is new into slices; tasks read these. docs/sources.md has an example.

source.initial()                                  →   {"row": 0}
source.latest({"row": 0}, Limit(rows=100))        →   {"row": 100}
source.split({"row": 0}, {"row": 100}, tasks=2)   →   two slices of 50 rows
slice.read(("k", "v"))                            →   an Arrow table
source.commit({"row": 100})                           nothing before row 100 will be asked for again
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from squallpy.base.records import dataclass

Offset = Mapping[str, Any]
"""A place in a source, as JSON that only the source understands."""


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """The most that a batch should have of a source; None: all there is."""

    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Rows that are there and unread, as of the last look.

    Args:
        rows: Their number, as far as it is known.
        since: When the first of them was committed, in Unix time; None without any, and where that is not known.
    """

    rows: int
    since: float | None = None


class Slice(Protocol):
    """Rows that one task reads.

    A slice is plain data, which can be pickled. Reading it again gives the same rows in the same order.
    """

    @property
    def rows(self) -> int | None:
        """The number of rows, also of those that are left out as faulty; None if it is known only when they are
        read."""
        ...

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        """Read some columns, and `__mult` (±1) of a change stream."""
        ...


class Spool(Protocol):
    """A place where rows of a source that cannot be read twice are written."""

    @property
    def ahead(self) -> int:
        """The number of rows there that no batch has read."""
        ...

    def take(self) -> None:
        """Write down what the source has, at once; may be called by any thread."""
        ...


class Source(ABC):
    """A relation as the driver sees it. A class that derives from this one has to define three methods."""

    @property
    def is_bounded(self) -> bool:
        """True if it has an end: a run over nothing but such streams ends there."""
        return False

    @property
    def is_replayable(self) -> bool:
        """True if slices between two offsets can be read again, also by another process; else rows are spooled."""
        return True

    @property
    def is_counted(self) -> bool:
        """True if slices know their rows before they are read."""
        return True

    @property
    def rows(self) -> int:
        """The number of rows that a plan is placed by, about; 0 if nobody knows."""
        return 0

    @property
    def schema(self) -> pa.Schema | None:
        """Its columns, if it knows them before it is read."""
        return None

    @property
    def locates(self) -> Collection[str]:
        """The columns of METADATA that its slices tell if they are asked for them."""
        return ()

    @property
    def is_behind(self) -> bool:
        """True if rows that were there when the run began are still on their way."""
        return False

    @property
    def shared_log(self) -> object | None:
        """The log that other sources are read from, too: a batch reads all of them between the same two places."""
        return None

    @property
    def needs_folder(self) -> bool:
        """True if a run that nobody resumes needs a folder, too."""
        return False

    def begin(self, folder: str | None, ends: bool) -> None:
        """Begin a run.

        Args:
            folder: Where a source may keep what the next run has to know; None if there is no next run.
            ends: What is there now is enough.
        """
        return

    def attach(self, spool: Spool) -> None:
        """Begin to be spooled: a source to which rows are pushed may have them written before it is asked for more."""
        return

    def check(self, columns: Sequence[str]) -> None:
        """Check the columns that a query reads, before its first batch; raises SQ4002."""
        return

    @abstractmethod
    def initial(self) -> Offset:
        """Return the place before the first row."""
        ...

    @abstractmethod
    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        """Return how far a batch from `start` may read now: `start` itself if there is nothing new; never waits."""
        ...

    @abstractmethod
    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        """Cut what lies between two places into at most `tasks` slices, in order."""
        ...

    @property
    def waits_for(self) -> str:
        """The name of a place that is not there, from which rows may come later; empty if there is none."""
        return ""

    def backlog(self, end: Offset) -> Backlog | None:
        """Return what is behind a place and unread, for metrics; None if it is not known at little cost."""
        return None

    def committed(self, start: Offset, end: Offset) -> float | None:
        """Return when the first row between two places was committed, in Unix time; None if that is not known."""
        return None

    def commit(self, end: Offset) -> None:
        """Forget what lies before a place: batches up to there are durable, and nothing of them is read again."""
        return

    def close(self) -> None:
        """Release what the source holds, when the run ends."""
        return
