"""Files of blocks with typed columns, as Parquet and Avro have them: what is known of one before rows are decoded."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.catalog.relation import Field
from squallpy.runtime.formats.arrow_rows import check_read, check_schema, fields_of
from squallpy.runtime.formats.relation_files import File


@dataclass(frozen=True)
class BlockedFile(ABC):
    """One file; block b holds the rows ends[b]..ends[b + 1]."""

    file: File
    ends: tuple[int, ...]

    @property
    @abstractmethod
    def _schema(self) -> pa.Schema:
        """The columns of the file, which is not empty."""

    @property
    def rows(self) -> int:
        return self.ends[-1]

    @property
    def seams(self) -> tuple[int, ...]:
        return self.ends

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._schema.names) if self.file.size else ()

    def fields(self) -> tuple[Field, ...]:
        """List the columns of the file; one without a SQL type is VARCHAR, and reading it raises an error."""
        return fields_of(self._schema)

    def check(self, fields: tuple[Field, ...], op: str | None) -> None:
        """Check that NOT NULL columns exist, and that types can become the declared ones; SQ4002."""
        if self.file.size:
            check_schema(self.file.display_name, self._schema, fields, op)

    def check_read(self, fields: Sequence[Field]) -> None:
        if self.file.size:
            check_read(self.file.display_name, self._schema, fields)

    def grown(self, file: File) -> None:
        """Return nothing: such a file is whole."""
        return

    def location(self, row: int) -> str:
        return f"{self.file.display_name}, row {row + 1}"

    def hint(self, row: int) -> str:
        return ""
