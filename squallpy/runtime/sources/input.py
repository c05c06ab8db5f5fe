"""The input of a query: what each batch reads of each relation, and how tasks are told.

input.step(7)                       →   BatchSpans(7, {"r": ({"row": 700}, {"row": 800})})
slices = input.split(step, 2)       →   ({"r": (a slice,)}, {"r": (another,)})      one mapping for each task
text = encode_slices(slices, …)     →   decode_slices(text, …)[task]["r"][0].read(("k", "v"))
"""

import base64
import io
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.runtime.sources.foreign_source import ForeignSlice, SourceFault, name_batch
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Slice, Source
from squallpy.runtime.sources.stream_times import Times

OffsetSpan = tuple[Offset, Offset]


class Slices(dict[str, tuple[Slice, ...]]):
    """Slices that one task reads, by the names of relations; one task of a batch has the `times` of streams, too."""

    times: Times = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BatchSpans:
    """A batch: its number, where it begins and ends in each source, and the processing times of streams."""

    number: int
    spans: Mapping[str, OffsetSpan]
    times: Times = field(default_factory=dict)


class Batches(Protocol):
    """The order in which streams are read."""

    @property
    def batches(self) -> int | None:
        """The number of batches; None if there is no end yet."""
        ...

    @property
    def example(self) -> int:
        """The number of a batch by whose size others can be planned."""
        ...

    def spans(self, batch: int) -> Mapping[str, OffsetSpan] | None:
        """Find where a batch begins and ends in each stream; None if there is nothing to read yet."""
        ...

    @property
    def times(self) -> Times:
        """The processing times of streams at the batch that was decided on last."""
        ...

    def note(self, open_rows: int) -> None:
        """Take note that a batch is done, after which windows that processing time moves have so many rows."""
        ...


@dataclass(frozen=True)
class Input:
    """The source of each relation that a query reads, and the order in which streams are read.

    Args:
        in_order: Relations whose rows have to come from tasks in the order of these.
        on_idle: Called at each look at which there is nothing to read.
        tasks: The most tasks that read a relation, where they are not all.
        times: Processing times of all batches, beside those that each has.
    """

    sources: Mapping[str, Source]
    batches: Batches
    in_order: frozenset[str] = frozenset()
    on_idle: Callable[[], None] = lambda: None
    tasks: Mapping[str, int] = field(default_factory=dict)
    times: Times = field(default_factory=dict)

    def step(self, batch: int) -> BatchSpans:
        """Return what a batch reads, for which there is something to read."""
        step = self.next(batch)
        assert step, f"nothing to read for batch {batch}"
        return step

    def next(self, batch: int) -> BatchSpans | None:
        """Decide what a batch reads; None if there is nothing yet. Static tables come whole, with the first."""
        if (spans := self.batches.spans(batch)) is None:
            self.on_idle()
            return None
        tables = self.sources if batch == 0 else ()
        read = {name: whole(self.sources[name]) for name in tables if name not in spans} | dict(spans)
        return BatchSpans(batch, read, {**self.times, **self.batches.times})

    def split(self, step: BatchSpans, tasks: int) -> tuple[Slices, ...]:
        """Cut a batch into slices for some tasks, without those that are empty.

        Every other batch is dealt out from its end: who has read the last rows reads the next, and may have them
        decoded.
        """
        dealt = tuple(Slices() for _ in range(tasks))
        dealt[0].times = dict(step.times)
        for name in step.spans:
            most = min(tasks, self.tasks.get(name, tasks))
            for number, found in enumerate(self._slices(step, name, most)):
                if found.rows != 0:
                    is_turned = step.number % 2 and name not in self.in_order
                    task = dealt[most - 1 - number if is_turned else number]
                    task[name] = (*task.get(name, ()), found)
        return dealt

    def has(self, batch: int) -> bool:
        """True if there is such a batch, or may be one day."""
        return self.batches.batches is None or batch < self.batches.batches

    def is_ready(self, batch: int) -> bool:
        """True if a batch can be read."""
        return self.next(batch) is not None

    def whole(self, step: BatchSpans) -> Slices:
        """Return what a batch reads, for one task."""
        slices = {name: tuple(self._slices(step, name, 1)) for name in step.spans}
        found = Slices({name: some for name, some in slices.items() if some and some[0].rows != 0})
        found.times = dict(step.times)
        return found

    def _slices(self, step: BatchSpans, name: str, tasks: int) -> Sequence[Slice]:
        """Cut what a batch reads of one source; faults of it name the batch."""
        try:  # NB: a context manager of each batch and source would cost as much as a very small batch
            found = self.sources[name].split(*step.spans[name], tasks)
        except SourceFault as fault:
            raise name_batch(fault, step.number) from fault.__cause__
        return [replace(each, batch=step.number) if isinstance(each, ForeignSlice) else each for each in found]

    @property
    def is_counted(self) -> bool:
        """True if all rows are counted before they are read."""
        return all(source.is_counted for source in self.sources.values())

    def commit(self, step: BatchSpans, open_rows: int = 0) -> None:
        """Let sources forget what a batch has read, which is durable; `open_rows`: of windows that time may close."""
        self.batches.note(open_rows)
        for name, (_, end) in step.spans.items():
            self.sources[name].commit(end)

    def row_counts(self, step: BatchSpans) -> dict[str, int]:
        """Count the rows that a batch reads of each relation, as far as they are known before.

        NB: only sources that count are asked: others may have forgotten the rows of a batch that is durable.
        """
        counted = {name: span for name, span in step.spans.items() if self.sources[name].is_counted}
        return row_counts(self.whole(replace(step, spans=counted)))


def whole(source: Source) -> OffsetSpan:
    """Find where all that a source has begins and ends."""
    start = source.initial()
    return start, source.latest(start, BatchLimit())


def row_counts(slices: Slices) -> dict[str, int]:
    """Count the rows of slices by relation, as far as they are known before they are read."""
    return {name: sum(each.rows or 0 for each in some) for name, some in slices.items()}


class _Pickler(pickle.Pickler):
    """A pickler that writes the names of known objects in place of them."""

    def __init__(self, sink: io.BytesIO, names: Mapping[int, str]) -> None:
        super().__init__(sink, pickle.HIGHEST_PROTOCOL)
        self._names = names

    def persistent_id(self, found: Any) -> str | None:
        return self._names.get(id(found))


class _Unpickler(pickle.Unpickler):
    """An unpickler that knows objects by name."""

    def __init__(self, source: io.BytesIO, known: Mapping[str, Any]) -> None:
        super().__init__(source)
        self._known = known

    def persistent_load(self, name: str) -> Any:
        return self._known[name]


_LARGE = 1 << 14  # bytes of slices that are worth compressing: each task is sent those of all


def encode_slices(slices: Sequence[Slices], sources: Mapping[str, Source]) -> str:
    """Encode the slices of all tasks; sources that the tasks have by name are not repeated."""
    sink = io.BytesIO()
    _Pickler(sink, {id(source): name for name, source in sources.items()}).dump(tuple(slices))
    data, size = sink.getvalue(), len(sink.getvalue())
    if size <= _LARGE:
        return f"0:{base64.b64encode(data).decode()}"
    return f"{size}:{base64.b64encode(pa.compress(data, 'zstd', asbytes=True)).decode()}"


def decode_slices(text: str, sources: Mapping[str, Source]) -> tuple[Slices, ...]:
    """Decode the slices of all tasks, over the same sources."""
    size, _, packed = text.partition(":")
    data = base64.b64decode(packed)
    if size != "0":
        data = pa.decompress(data, int(size), "zstd", asbytes=True)
    found: tuple[Slices, ...] = _Unpickler(io.BytesIO(data), sources).load()
    return found


POLL = 0.1  # seconds between two looks for something to read


def arriving(input: Input, first: int, stop: threading.Event) -> Iterator[BatchSpans | None]:
    """Yield every batch when it can be read, from the `first` on, and None after each wait for one.

    Ends after the last batch, or after one when `stop` is set.
    """
    batch = first
    while input.has(batch):
        step = input.next(batch)
        yield step
        if step:
            batch += 1
        elif input.has(batch):
            stop.wait(POLL)
        if stop.is_set():
            return
