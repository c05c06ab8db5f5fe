"""Data files of an Iceberg table that tasks write in parallel; their rows count when the driver appends the files.

task      DataFiles(table.metadata, table.io, …).write(rows, 7, 3)   →   [DataFile("…/data/00000-0-b07a….parquet", …)]
driver    append_files(transaction, files, summary)                      one snapshot of all
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata

from squallpy.base.local_paths import is_local
from squallpy.base.records import dataclass
from squallpy.runtime.connectors.backoff import ask_again, is_store_away
from squallpy.runtime.connectors.iceberg.catalogs import one_line
from squallpy.runtime.connectors.table_writer import cast_rows, unwritten_error


@dataclass(frozen=True, slots=True)
class DataFiles:
    """A writer of data files in tasks, which places them by the table's partitions.

    Args:
        io: What opens files, with the secrets of the catalog.
        first: The batches before it are in the table.
    """

    name: str
    metadata: TableMetadata
    io: FileIO
    schema: pa.Schema
    first: int

    @property
    def is_shared(self) -> bool:
        return not is_local(self.metadata.location)

    def write(self, rows: pa.Table, batch: int, partition: int) -> list[DataFile]:
        """Write rows; nothing if their batch is in the table. SQ7006 where that fails.

        NB: the function is pyiceberg's own; its public ones commit what they have written.
        """
        if batch < self.first:
            return []

        def write_files() -> list[DataFile]:
            return list(_dataframe_to_data_files(self.metadata, cast_rows(rows, self.schema), self.io))

        try:
            return ask_again(write_files, is_store_away, self.name)
        except (OSError, ValueError, ValidationError, pa.ArrowInvalid) as error:
            raise unwritten_error(self.name, batch, one_line(error)) from None


def append_files(work: Transaction, files: Sequence[Sequence[DataFile]], summary: Mapping[str, str]) -> None:
    """Append files to a table in a transaction."""
    with work.update_snapshot(snapshot_properties=dict(summary)).fast_append() as append:
        for written in files:
            for file in written:
                append.append_data_file(file)
