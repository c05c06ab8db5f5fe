"""Rows of files with columns that tell where they are from: `_file`, `_offset`, `_partition`, `_timestamp`.

CREATE STREAM r (k INT, line BIGINT FROM '_offset') …   →   k is in the file, line the number of the row there, from 0
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.base.types import TIMESTAMP
from squallpy.catalog.relation import Field
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File

if TYPE_CHECKING:
    from squallpy.runtime.sources.source import SourceFile


@dataclass(frozen=True, slots=True)
class LocatedRows:
    """The rows of a file with columns that tell where they are from."""

    part: "SourceFile"

    @property
    def rows(self) -> int:
        return self.part.rows

    @property
    def seams(self) -> tuple[int, ...]:
        return self.part.seams

    @property
    def file(self) -> File:
        return self.part.file

    @property
    def columns(self) -> tuple[str, ...]:
        return self.part.columns

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        self.part.check(_of_rows(fields), op)

    def check_read(self, fields: Sequence[Field]) -> None:
        self.part.check_read(_of_rows(fields))

    def location(self, row: int) -> str:
        return self.part.location(row)

    def hint(self, row: int) -> str:
        return self.part.hint(row)

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        rows = self.part.read(start, stop, _of_rows(fields), op, with_checksum)
        values = {f.name: self._located(f.metadata, start, stop) for f in fields if f.metadata}
        told = [name for name in rows.table.column_names if name not in {f.name for f in fields}]
        names = [*(f.name for f in fields), *told]
        columns = [values[name] if name in values else rows.table.column(name) for name in names]
        return replace(rows, table=pa.table(columns, names) if names else rows.table)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        return self.part.checksum(rows, names)

    def grown(self, file: File) -> "LocatedRows | None":
        """Return the same file after more has been appended to it; None if nothing can be."""
        part = self.part.grown(file)
        return LocatedRows(part) if part else None

    def _located(self, name: str, start: int, stop: int) -> pa.Array | pa.ChunkedArray:
        """Tell where some rows are from."""
        match name:
            case "_file":
                return pa.repeat(pa.scalar(self.file.path, pa.string()), stop - start)
            case "_offset":
                return pa.array(np.arange(start, stop))
            case "_partition":
                return pa.array(np.zeros(stop - start, np.int64))
        moment = pa.scalar(self.file.changed // 1000, pa.int64()).cast(column_type(TIMESTAMP))
        return pa.repeat(moment, stop - start)


def _of_rows(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Leave out what is not in rows."""
    return tuple(field for field in fields if not field.metadata)
