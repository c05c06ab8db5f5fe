"""Rows that are in memory in one piece: a batch of them is part of a record batch that is exported once."""

from collections.abc import Sequence

import pyarrow as pa

from squallpy.physical.plan import Plan
from squallpy.runtime.evaluate.kernel_runner import ExportedBatch, ExportedRange
from squallpy.runtime.ingest.feed import Feeder
from squallpy.runtime.sources.protocol import Slice
from squallpy.runtime.sources.source import RowRange


class ResidentRows:
    """The rows of a plan's feeds, as far as nothing else is made of them than what the feed computes."""

    def __init__(self, plan: Plan) -> None:
        relations = [feed.relation for feed in plan.sources if not feed.relation.source.is_keyed]
        plain = {r.source.name for r in relations if r.parts is None and r.name not in plan.ledgers}
        self._plain = plain - {clock.relation for clock in plan.clocks.values()}
        self._exported = dict[Feeder, tuple[pa.RecordBatch, ExportedRange]]()

    def find(self, feeder: Feeder, slices: Sequence[Slice]) -> ExportedRange | None:
        """Find the rows of a slice, for the time until the next call; None if they have to be read."""
        if len(slices) != 1 or not isinstance(rows := slices[0], RowRange):
            return None
        if feeder.feed.relation.source.name not in self._plain:
            return None
        table = rows.source.resident(feeder.columns)
        if table is None:
            return None
        known = self._exported.get(feeder)
        if known is None or known[0] is not table:
            known = self._exported[feeder] = table, ExportedRange(ExportedBatch(table))
        known[1].move(rows.start, rows.rows)
        return known[1]
