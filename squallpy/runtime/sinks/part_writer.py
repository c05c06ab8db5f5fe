"""Changes that partitions print, on their way to a sink: written by tasks in parallel, committed by the driver.

task      writer(7, 3, deletes, inserts)   →   WrittenPart: what `write` has returned, or the rows, if they are few
driver    output.commit(7, parts)              one commit of all
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.runtime.sinks.mode_table import table_maker
from squallpy.runtime.sinks.output_folder import writing_to
from squallpy.runtime.sinks.protocol import TaskWriter
from squallpy.runtime.sinks.written_changes import WrittenPart


@dataclass(frozen=True, slots=True)
class PartWriter:
    """The writer of a query's changes in tasks, or only their sender to the driver, without a `writer`.

    Args:
        query: The place of the query.
        names: The columns of the query.
        least: So many rows are written by a task, fewer by the driver.
    """

    query: int
    spec: SinkSpec
    names: Sequence[str]
    writer: TaskWriter | None
    least: int

    def on_hosts(self, is_one: bool) -> "PartWriter":
        """Leave it to the driver to write what other hosts may not reach: folders of its own, and classes beside it."""
        return self if is_one or self.writer is None or self.writer.is_shared else replace(self, writer=None)

    def __call__(self, batch: int, partition: int, deletes: pa.Table, inserts: pa.Table) -> WrittenPart:
        """Write the rows that went and came at a partition; SQ7005 or SQ7006 if that fails."""
        count = len(deletes) + len(inserts)
        if self.writer is None or count < self.least:
            return WrittenPart(self.query, count, rows=(deletes, inserts))
        assert self.spec.mode
        rows = table_maker(self.spec.mode, self.names, self.spec.key or ())(batch, deletes, inserts)
        try:
            with writing_to(self.spec.target or self.spec.name, f"batch {batch:,} to "):
                return WrittenPart(self.query, count, self.writer.write(rows, batch, partition))
        except SquallError as error:
            raise error.at(self.spec.place("path")) from None
