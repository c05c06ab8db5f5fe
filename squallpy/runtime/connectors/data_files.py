"""Data files of tables of open formats, which tasks write in parallel; their rows count when the driver commits them.

task      DataFiles(location, schema, 7, …).write(rows, 7, 3)   →   [the file, with its statistics]
driver    one commit that adds the files of all tasks

Files of a batch that failed stay, as those of any writer do, until the table is vacuumed: whether their commit failed
is not known.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.runtime.connectors.backoff import ask_again
from squallpy.runtime.connectors.table_location import TableLocation, one_line
from squallpy.runtime.connectors.table_writer import cast_rows, unwritten_error

AnyFile = TypeVar("AnyFile")


@dataclass(frozen=True)
class DataFiles(ABC, Generic[AnyFile]):
    """A writer of data files in tasks.

    Args:
        schema: The columns of a result in the types of the table.
        first: The batches before it are in the table.
    """

    location: TableLocation[Any]
    schema: pa.Schema
    first: int

    @property
    @abstractmethod
    def is_shared(self) -> bool: ...

    def write(self, rows: pa.Table, batch: int, partition: int) -> list[AnyFile]:
        """Write rows; nothing if their batch is in the table. SQ7006 where that fails."""
        if batch < self.first:
            return []
        try:
            own = cast_rows(rows, self.schema)
            return ask_again(lambda: self._write(own, partition), self.location.is_passing, self.location)
        except self.location.faults as error:
            raise unwritten_error(self.location, batch, one_line(error)) from None

    @abstractmethod
    def _write(self, rows: pa.Table, partition: int) -> list[AnyFile]:
        """Write rows to files."""
