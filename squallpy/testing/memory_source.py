"""Rows in memory in place of files, and batches as they were pushed in place of a replay's.

rows = MemorySource(relation); rows.add(table)        a source that grows; with `__mult` for a change stream
batches = PushedBatches(); batches.push({"r": 3})     batch 0: the first three rows of r

Both are plain data and can be sent to other processes; both go where a `FileSource` and a `Replay` go.
"""

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.catalog.relation import MULT, Relation
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.runtime.evaluate.text_column_casts import column_type
from squallpy.runtime.sources.input import Input, OffsetSpan
from squallpy.runtime.sources.replay import RowBatches, Sizes
from squallpy.runtime.sources.source import RowSource, numbered
from squallpy.runtime.sources.stream_times import Times, time_of_batch


@dataclass(slots=True)
class MemorySource(RowSource):
    """Rows of a relation so far."""

    relation: Relation
    table: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        fields = [(f.name, column_type(f.type)) for f in self.relation.fields]
        self.table = pa.schema([*fields, (MULT, pa.int64())]).empty_table()

    @property
    def rows(self) -> int:
        return len(self.table)

    def add(self, rows: pa.Table) -> None:
        """Append rows, as inserts unless they have `__mult`."""
        rows = with_mult(rows, 1) if MULT not in rows.column_names else rows
        rows, schema = rows.select(self.table.column_names), self.table.schema
        self.table = pa.concat_tables([self.table, rows if rows.schema.equals(schema) else rows.cast(schema)])

    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        names = [*(name for name in columns if name != ARRIVAL), *([MULT] if self.relation.is_signed else [])]
        return numbered(self.table.slice(start, stop - start).select(names), start, ARRIVAL in columns)


@dataclass(slots=True)
class PushedBatches(RowBatches):
    """Row count of each stream after each batch."""

    ends: list[dict[str, int]] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    last: int = -1

    def push(self, rows: Mapping[str, int], moment: int | None = None) -> None:
        """Add a batch that ends at these row counts of the streams; its time is that of the one before if it is
        None."""
        self.ends.append(dict(rows))
        self.moments.append(moment if moment is not None else self.moments[-1] if self.moments else 0)

    @property
    def times(self) -> Times:
        """The time of the batch whose rows were asked for last."""
        return time_of_batch(self.moments[self.last]) if self.moments else {}

    def spans(self, batch: int) -> dict[str, OffsetSpan]:
        """Find where a batch begins and ends in each stream."""
        self.last = batch
        return RowBatches.spans(self, batch)

    @property
    def batches(self) -> int:
        return len(self.ends)

    @property
    def sizes(self) -> dict[str, int]:
        return self.ends[-1] if self.ends else {}

    def bounds(self, batch: int) -> tuple[Sizes, Sizes]:
        ends = self.ends[batch]
        return dict.fromkeys(ends, 0) | (self.ends[batch - 1] if batch else {}), ends


def memory_input(sources: Mapping[str, MemorySource], batches: PushedBatches) -> Input:
    """Build the input of an executor from rows in memory."""
    keyed = (name for name, source in sources.items() if source.relation.is_keyed)
    return Input(sources, batches, frozenset(keyed))


def with_mult(rows: pa.Table, mult: int) -> pa.Table:
    """Append a column `__mult` with the same multiplicity in all rows."""
    return rows.append_column(MULT, pa.repeat(pa.scalar(mult, pa.int64()), len(rows)))
