"""Data files of a Delta table, with the statistics by which readers skip them.

task      DeltaDataFiles(location, schema, 7, …).write(rows, 7, 3)   →   [DataFile("part-00003-5f….parquet", 1821, …)]
driver    add_files(table, files, numbered(7))                           one commit of all
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from math import isfinite
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction

from squallpy.base.local_paths import is_local
from squallpy.base.records import dataclass
from squallpy.runtime.connectors.data_files import DataFiles

_KNOWN = frozenset({"appendOnly", "changeDataFeed", "invariants"})
_COLUMNS, _LETTERS = 32, 32  # of which statistics are kept, and of texts in them
_MILLISECOND = timedelta(milliseconds=1)


class DataFile(NamedTuple):
    """A file beside the log of a table, with its size in bytes and statistics as the log has them."""

    path: str
    size: int
    statistics: str


@dataclass(frozen=True)
class DeltaDataFiles(DataFiles[DataFile]):
    """A writer of data files in tasks.

    Args:
        storage: Options of the storage, with secrets.
    """

    path: str
    storage: Mapping[str, str] | None

    @property
    def is_shared(self) -> bool:
        return not is_local(self.path)

    def _write(self, rows: pa.Table, partition: int) -> list[DataFile]:
        files = pafs.PyFileSystem(DeltaStorageHandler(self.path, dict(self.storage) if self.storage else None))
        name = f"part-{partition:05}-{uuid4()}.snappy.parquet"
        with files.open_output_stream(name) as out:
            pq.write_table(rows, out, compression="snappy")
            return [DataFile(name, out.tell(), json.dumps(statistics(rows)))]


def takes_files(table: DeltaTable) -> bool:
    """True if rows can be added as files: nothing in the table has to check, compute or place them."""
    metadata = table.metadata()
    if metadata.partition_columns or any(name.startswith("delta.constraints.") for name in metadata.configuration):
        return False
    if not _KNOWN.issuperset(table.protocol().writer_features or ()):
        return False
    fields = table.schema().fields
    return all(field.nullable and not any(name.startswith("delta.") for name in field.metadata) for field in fields)


def add_files(table: DeltaTable, files: Sequence[DataFile], properties: CommitProperties) -> None:
    """Add files to a table in one commit."""
    now = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [
        AddAction(file.path, file.size, {}, now, True, file.statistics) for file in files
    ]
    table.create_write_transaction(actions, "append", table.schema(), commit_properties=properties)


def statistics(rows: pa.Table) -> dict[str, Any]:
    """Compute what readers skip files by: the number of rows and NULLs, and the ends of columns that have such."""
    names = rows.column_names[:_COLUMNS]
    ends = {name: found for name in names if (found := _ends(rows.column(name))) is not None}
    return {
        "numRecords": len(rows),
        "minValues": {name: low for name, (low, _) in ends.items()},
        "maxValues": {name: high for name, (_, high) in ends.items()},
        "nullCount": {name: rows.column(name).null_count for name in names if not pa.types.is_nested(rows[name].type)},
    }


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the least and greatest value as JSON has them; None where there is none, or it has no short form."""
    type = column.type
    if not (pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_string(type)) and not (
        pa.types.is_date(type) or pa.types.is_timestamp(type)
    ):
        return None
    if pa.types.is_floating(type) and pc.any(pc.is_nan(column)).as_py():
        return None
    found = pc.min_max(column).as_py()
    return None if found["min"] is None else _as_json(found["min"], found["max"])


def _as_json(low: Any, high: Any) -> tuple[Any, Any] | None:
    match low:
        case datetime():
            with suppress(OverflowError):
                return _milliseconds(low), _milliseconds(high + _MILLISECOND - timedelta(microseconds=1))
            return None
        case date():
            return low.isoformat(), high.isoformat()
        case str():
            return (low, high) if max(len(low), len(high)) <= _LETTERS else None
        case float():
            return (low, high) if isfinite(low) and isfinite(high) else None
    return low, high


def _milliseconds(moment: datetime) -> str:
    """Write a moment in UTC with its millisecond, which began before it or with it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
