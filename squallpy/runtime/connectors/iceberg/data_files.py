"""Data files of an Iceberg table, placed by its partitions.

task      IcebergDataFiles(location, schema, 7, …).write(rows, 7, 3)   →   [DataFile("…/data/00000-0-b07a….parquet", …)]
driver    append_files(transaction, files, summary)                        one snapshot of all
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata

from squallpy.base.local_paths import is_local
from squallpy.base.records import dataclass
from squallpy.runtime.connectors.data_files import DataFiles


@dataclass(frozen=True)
class IcebergDataFiles(DataFiles[DataFile]):
    """A writer of data files in tasks.

    Args:
        io: What opens files, with the secrets of the catalog.
    """

    metadata: TableMetadata
    io: FileIO

    @property
    def is_shared(self) -> bool:
        return not is_local(self.metadata.location)

    def _write(self, rows: pa.Table, partition: int) -> list[DataFile]:
        """Write rows to files.

        NB: the function is pyiceberg's own; its public ones commit what they have written.
        """
        return list(_dataframe_to_data_files(self.metadata, rows, self.io))


def append_files(work: Transaction, files: Sequence[DataFile], summary: Mapping[str, str]) -> None:
    """Append files to a table in a transaction."""
    with work.update_snapshot(snapshot_properties=dict(summary)).fast_append() as append:
        for file in files:
            append.append_data_file(file)
