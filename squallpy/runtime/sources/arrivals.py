"""Batches of what has arrived: streams without end, read as far as they have come.

arrivals = Arrivals({"r": source}, batch_rows=100)
arrivals.spans(0)   →   {"r": ({"row": 0}, {"row": 60})}      sixty rows are there
arrivals.spans(1)   →   None                                  nothing has come since
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from time import monotonic
from types import MappingProxyType
from typing import NamedTuple

from squallpy.base.batch_trigger import AS_IT_COMES, BatchTrigger
from squallpy.base.records import dataclass
from squallpy.runtime.sources.foreign_source import in_batch
from squallpy.runtime.sources.input import OffsetSpan, whole
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Source
from squallpy.runtime.sources.replay import Replay
from squallpy.runtime.sources.stream_times import StreamTimes, TimeLimits, Times

Spans = Mapping[str, OffsetSpan]


class Decision(NamedTuple):
    """A batch as it is logged: its number, what it reads of each stream, and the processing times of streams."""

    batch: int
    spans: Spans
    times: Times = MappingProxyType({})


def _forget(decision: Decision) -> None:
    """Write no log: nothing is resumed."""


@dataclass(slots=True)
class Arrivals:
    """Batches of at most `batch_rows` rows of all streams; the first may be empty, so that there is an answer.

    Args:
        streams: The streams by name.
        decided: The last batch that was decided on; it stays as it is.
        log: Called with each batch before it is read.
        trigger: When a batch begins, and whether there is a last one.
        tables: What is read whole with the first batch, by name.
        limits: Those of the processing time of streams that have any.
        clock: A clock that never jumps, in seconds.
        read_time: Gives the time of day, in microseconds, if batches have one.
    """

    streams: Mapping[str, Source]
    batch_rows: int
    decided: Decision | None = None
    log: Callable[[Decision], None] = _forget
    trigger: BatchTrigger = AS_IT_COMES
    clock: Callable[[], float] = monotonic
    tables: Mapping[str, Source] = field(default_factory=dict)
    limits: Mapping[str, TimeLimits] = field(default_factory=dict)
    read_time: Callable[[], int] | None = None
    batches: int | None = field(default=None, init=False)
    _begun: float | None = field(default=None, init=False)
    _open_rows: int = field(default=1, init=False)  # NB: a run that goes on does not know them before its first batch
    _times: StreamTimes = field(init=False)

    def __post_init__(self) -> None:
        self._times = StreamTimes(self.limits, self.clock(), self.read_time)

    @property
    def times(self) -> Times:
        """The processing times of streams at the batch that was decided on last."""
        return self.decided.times if self.decided else {}

    def note(self, open_rows: int) -> None:
        """Take note of the rows in windows that processing time may close."""
        self._open_rows = open_rows

    @property
    def example(self) -> int:
        """The number of the last batch that was decided on, or the first."""
        return self.decided.batch if self.decided else 0

    def spans(self, batch: int) -> Spans | None:
        """Decide on a batch, or return the decision; None if nothing has come."""
        if self.decided and self.decided.batch == batch:
            return self.decided.spans
        with in_batch(batch):
            return self._decide(batch)

    def _decide(self, batch: int) -> Spans | None:
        now = self.clock()
        if self._begun is not None and now < self._begun + self.trigger.seconds:
            return None
        before = {name: end for name, (_, end) in self.decided.spans.items()} if self.decided else {}
        assert batch == (self.decided.batch + 1 if self.decided else 0), f"batch {batch} after {self.decided}"
        spans = self._arrived(
            {name: before[name] if name in before else source.initial() for name, source in self.streams.items()}, batch
        )
        came = {name for name, (start, end) in spans.items() if start != end}
        self._times.go_on(self.times)
        times = self._times.decide(now, came)
        if batch and not came:
            streams = self.streams.values()
            is_over = self.trigger.ends and not any(source.is_behind for source in streams)
            self.batches = batch if is_over or all(source.is_bounded for source in streams) else None
            if self.batches or self.trigger.ends or not (self._open_rows and self._times.is_due(times)):
                return None
        spans |= {name: whole(source) for name, source in self.tables.items()} if batch == 0 else {}
        decision = Decision(batch, spans, times)
        self.log(decision)
        self._times.note(times)
        self.decided, self._begun = decision, now
        self.batches = batch + 1 if self.trigger.once else None
        return spans

    def _arrived(self, starts: Mapping[str, Offset], batch: int) -> dict[str, OffsetSpan]:
        """Ask every stream for its part of the rows, then for what others have left; each batch begins with another."""
        names, first = list(starts), batch % max(1, len(starts))  # NB: or few rows would all be of the first streams
        groups = self._by_log([*names[first:], *names[:first]])
        if self.trigger.once:
            latest = {group: self.streams[group[0]].latest(starts[group[0]], BatchLimit()) for group in groups}
            return {name: (starts[name], end) for group, end in latest.items() for name in group}
        ends, left, more = dict(starts), self.batch_rows, groups
        for part in (-(-self.batch_rows // max(1, len(groups))), self.batch_rows):
            asked, more = more, []
            for group in asked:
                if left <= 0:
                    break
                start, limit = ends[group[0]], BatchLimit(rows=min(left, part))
                end = self.streams[group[0]].latest(start, limit)
                ends |= dict.fromkeys(group, end)
                taken = sum(self._count(name, start, end) for name in group)
                left -= taken
                more += [group] if taken == limit.rows else []  # NB: who had less has no more
        return {name: (start, ends[name]) for name, start in starts.items()}

    def _by_log(self, names: list[str]) -> list[tuple[str, ...]]:
        """Group streams that are read from one log."""
        found = dict[object, list[str]]()
        for name in names:
            log = self.streams[name].shared_log
            found.setdefault(name if log is None else log, []).append(name)
        return [tuple(group) for group in found.values()]

    def _count(self, name: str, start: Offset, end: Offset) -> int:
        """Count the rows between two places, as far as they are known."""
        source = self.streams[name]
        is_counted = end != start and source.is_counted
        return sum(each.rows or 0 for each in source.split(start, end, 1)) if is_counted else 0


@dataclass(frozen=True, slots=True)
class Repeated:
    """Batches that repeat what earlier ones have read, then those of what has arrived since.

    Repeated(Replay({"r": 3_000_000}, 1_000_000), arrivals).spans(3)   →   arrivals.spans(3), after three large ones
    """

    replay: Replay
    arrivals: Arrivals

    @property
    def batches(self) -> int | None:
        return self.arrivals.batches

    @property
    def example(self) -> int:
        return self.arrivals.example

    @property
    def times(self) -> Times:
        return self.arrivals.times

    def spans(self, batch: int) -> Spans | None:
        return self.replay.spans(batch) if batch < self.replay.batches else self.arrivals.spans(batch)

    def note(self, open_rows: int) -> None:
        self.arrivals.note(open_rows)
