"""Batches of what has arrived: streams without end, read as far as they have come.

arrivals = Arrivals({"r": source}, batch_rows=100)
arrivals.spans(0)   →   {"r": ({"row": 0}, {"row": 60})}      sixty rows are there
arrivals.spans(1)   →   None                                  nothing has come since
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from squallpy.base.batch_trigger import AS_IT_COMES, BatchTrigger
from squallpy.runtime.sources.foreign_source import in_batch
from squallpy.runtime.sources.input import Span, whole
from squallpy.runtime.sources.protocol import Limit, Offset, Source

Spans = Mapping[str, Span]


def _forget(batch: int, spans: Spans) -> None:
    """Write no log: nothing is resumed."""


@dataclass(slots=True)
class Arrivals:
    """Batches of at most `batch_rows` rows of all streams; the first may be empty, so that there is an answer.

    Args:
        streams: The streams by name.
        decided: The last batch that was decided on, with its number; it stays as it is.
        log: Called with each batch before it is read.
        trigger: When a batch begins, and whether there is a last one.
        tables: What is read whole with the first batch, by name.
    """

    streams: Mapping[str, Source]
    batch_rows: int
    decided: tuple[int, Spans] | None = None
    log: Callable[[int, Spans], None] = _forget
    trigger: BatchTrigger = AS_IT_COMES
    clock: Callable[[], float] = monotonic
    tables: Mapping[str, Source] = field(default_factory=dict)
    batches: int | None = field(default=None, init=False)
    _begun: float | None = field(default=None, init=False)

    @property
    def example(self) -> int:
        """The number of the last batch that was decided on, or the first."""
        return self.decided[0] if self.decided else 0

    def spans(self, batch: int) -> Spans | None:
        """Decide on a batch, or return the decision; None if nothing has come."""
        if self.decided and self.decided[0] == batch:
            return self.decided[1]
        with in_batch(batch):
            return self._decide(batch)

    def _decide(self, batch: int) -> Spans | None:
        now = self.clock()
        if self._begun is not None and now < self._begun + self.trigger.seconds:
            return None
        before = {name: end for name, (_, end) in self.decided[1].items()} if self.decided else {}
        assert batch == (self.decided[0] + 1 if self.decided else 0), f"batch {batch} after {self.decided}"
        spans = self._arrived(
            {name: before[name] if name in before else source.initial() for name, source in self.streams.items()}
        )
        if batch and all(start == end for start, end in spans.values()):
            streams = self.streams.values()
            is_over = self.trigger.ends and not any(source.is_behind for source in streams)
            self.batches = batch if is_over or all(source.is_bounded for source in streams) else None
            return None
        spans |= {name: whole(source) for name, source in self.tables.items()} if batch == 0 else {}
        self.log(batch, spans)
        self.decided, self._begun = (batch, spans), now
        self.batches = batch + 1 if self.trigger.once else None
        return spans

    def _arrived(self, starts: Mapping[str, Offset]) -> dict[str, Span]:
        """Ask every stream for its part of the rows, then for what others have left."""
        if self.trigger.once:
            return {name: (start, self.streams[name].latest(start, Limit())) for name, start in starts.items()}
        ends, left, more = dict(starts), self.batch_rows, list(starts)
        for part in (-(-self.batch_rows // max(1, len(starts))), self.batch_rows):
            asked, more = more, []
            for name in asked:
                if left <= 0:
                    break
                source, start, limit = self.streams[name], ends[name], Limit(rows=min(left, part))
                ends[name] = end = source.latest(start, limit)
                is_counted = end != start and source.is_counted
                taken = sum(each.rows or 0 for each in source.split(start, end, 1)) if is_counted else 0
                left -= taken
                more += [name] if taken == limit.rows else []  # NB: who had less has no more
        return {name: (start, ends[name]) for name, start in starts.items()}
