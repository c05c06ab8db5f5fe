"""Rows of an Arrow table as a source: those of a view, which a query reads once."""

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.runtime.sources.source import RowSource, numbered


@dataclass(frozen=True)
class TableSource(RowSource):
    """The rows of a table."""

    is_bounded = True
    table: pa.Table

    @property
    def rows(self) -> int:
        return len(self.table)

    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        names = [name for name in columns if name != ARRIVAL]
        return numbered(self.table.slice(start, stop - start).select(names), start, ARRIVAL in columns)
