"""The input of a session: its sources stay open and where they are while programs come and go.

input.open(relation)                      a source, from its first row on
input.arrivals(relations, columns, 7)     the batches of a program from number 7 on, from where the ones before came
input.history(relations, columns)         all that batches have read so far, for views that are new
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from time import monotonic

from squallpy.base.batch_trigger import AS_IT_COMES
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.timing import read_time
from squallpy.catalog.format_options import STORED
from squallpy.catalog.relation import Relation
from squallpy.physical.matrix.matrix_plan import under_matrices
from squallpy.runtime.checkpoint.spool import SpooledSource
from squallpy.runtime.query_input import keyed
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.arrivals import Arrivals, Decision
from squallpy.runtime.sources.foreign_source import ForeignSource
from squallpy.runtime.sources.input import BatchSpans, Input, OffsetSpan, whole
from squallpy.runtime.sources.protocol import Offset, Source
from squallpy.runtime.sources.pushed_rows import PushedRows
from squallpy.runtime.sources.source import RowSource
from squallpy.runtime.sources.stream_times import TimeLimits, Times, time_of_batch
from squallpy.runtime.sources.watched_files import WatchedFiles

HISTORY_ROWS = 200_000  # of a batch that fills views
OpenForeign = Callable[[Relation], ForeignSource]
Log = Callable[[Decision], None]


@dataclass
class SessionInput:
    """The sources of a session, by the names of their relations.

    Args:
        base: The folder from which relative paths start.
        open_foreign: Opens a source that is no file.
        folder: Where rows are kept that cannot be read twice; None: in memory.
    """

    base: Path
    open_foreign: OpenForeign
    folder: str | None = None
    clock: Callable[[], float] = monotonic
    read_time: Callable[[], int] = field(default=read_time)
    sources: dict[str, Source] = field(default_factory=dict, init=False)
    _held: Counter[str] = field(default_factory=Counter, init=False)
    _checked: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    positions: dict[str, Offset] = field(default_factory=dict, init=False)
    times: Times = field(default_factory=dict, init=False)
    """The processing times of streams at the last batch."""

    def open(self, relation: Relation) -> Source:
        """Open the source of a relation, unless it is; SQ4001, SQ4002."""
        if relation.name not in self.sources:
            self.sources[relation.name] = self._open(relation)
        return self.sources[relation.name]

    def _open(self, relation: Relation) -> Source:
        has_checksum = self.folder is not None
        if not relation.is_foreign:
            if not relation.is_watched:
                return open_source(relation, self.base, has_checksum)
            watched = WatchedFiles(relation, self.base, has_checksum)
            watched.begin(self.folder, False)
            return watched
        source = self.open_foreign(relation)
        source.begin(self.folder, False)
        if not source.is_replayable and not isinstance(source.inner, RowSource):
            columns = source.asked([field.name for field in relation.fields])
            source.inner = SpooledSource(
                source.inner, columns, self.folder, relation.name, relation.options.get(STORED) == "true"
            )
        return source

    def check(self, relations: Sequence[Relation], columns: Mapping[str, Sequence[str]]) -> dict[str, Source]:
        """Open the sources of relations, and check columns that have not been read so far; SQ4002."""
        read = {relation.name: self.open(relation) for relation in relations}
        for name in read:
            wanted = frozenset(columns.get(name, ())) | frozenset(columns.get(under_matrices(name), ()))
            known = self._checked.get(name, frozenset())
            if name not in self._checked or not wanted <= known:  # NB: files that were read may have gone
                read[name].check(sorted(known | wanted))
                self._checked[name] = known | wanted
        return read

    def pushed(self, relation: Relation) -> PushedRows | None:
        """Return the queue of a relation to which rows are pushed; None for others."""
        source = self.open(relation)
        inner = source.inner if isinstance(source, ForeignSource) else None
        inner = inner.source if isinstance(inner, SpooledSource) else inner
        return inner if isinstance(inner, PushedRows) else None

    def arrivals(
        self,
        relations: Sequence[Relation],
        columns: Mapping[str, Sequence[str]],
        number: int,
        rows: int,
        log: Log,
        decided: Decision | None = None,
        has_time: bool = False,
    ) -> Input:
        """Return the batches of a program, from a number above 0 on, of at most so many rows; tables have been read.

        Args:
            columns: Those that are read of each relation.
            log: Called with each batch before it is read.
            decided: The last batch that was decided on, by a run before; None: the one before has been applied.
            has_time: Batches have a time.
        """
        sources, read = self.check(relations, columns), self.read_time if has_time else None
        streams = {r.name: sources[r.name] for r in relations if r.stream}
        limits = {r.name: limit for r in relations if r.stream and (limit := TimeLimits.of(r))}
        decided = decided or Decision(number - 1, self.spans(relations), self.times)
        arrivals = Arrivals(streams, rows, decided, log, AS_IT_COMES, self.clock, limits=limits, read_time=read)
        return Input(sources, arrivals, keyed(relations))

    def spans(self, relations: Sequence[Relation]) -> Mapping[str, OffsetSpan]:
        """Return where streams have been read to, as batches that read nothing there."""
        read = {r.name: self.open(r) for r in relations if r.stream}
        places = {name: self.positions.get(name) or source.initial() for name, source in read.items()}
        return {name: (at, at) for name, at in places.items()}

    def position(self, name: str) -> Offset:
        """Return where a stream has been read to."""
        return self.positions.get(name) or self.sources[name].initial()

    def hold(self, names: Iterable[str]) -> None:
        """Let sources keep what is read from now on, as it is read again, until they are released."""
        self._held.update(names)

    def release(self, names: Iterable[str]) -> None:
        """Let sources forget again what batches have read."""
        self._held.subtract(names)

    def commit(self, input: Input, step: BatchSpans, open_rows: int) -> None:
        """Let sources forget what a batch has read, unless they are held."""
        input.batches.note(open_rows)
        for name, (_, end) in step.spans.items():
            if self._held[name] <= 0:
                self.sources[name].commit(end)

    def took(self, spans: Mapping[str, OffsetSpan], times: Times) -> None:
        """Take note of what a batch has read."""
        self.positions |= {name: end for name, (_, end) in spans.items()}
        self.times = times

    def history(self, relations: Sequence[Relation], columns: Mapping[str, Sequence[str]]) -> Input:
        """Return what batches have read of relations so far, in large batches; SQ6009 if some of it is gone."""
        read = self.check(relations, columns)
        starts: dict[str, OffsetSpan] = {r.name: (read[r.name].initial(),) * 2 for r in relations if r.stream}
        steps = [starts | {r.name: whole(read[r.name]) for r in relations if not r.stream}]
        parts = dict[str, list[OffsetSpan]]()
        for relation in (r for r in relations if r.stream):
            end = self.positions.get(relation.name)
            if end is not None and end != starts[relation.name][0]:
                read[relation.name], end = self._read_before(relation, end)
                parts[relation.name] = [*_parts(read[relation.name], end)]
        for number in range(max(map(len, parts.values()), default=0)):
            steps.append({name: some[number] for name, some in parts.items() if number < len(some)})
        times = {**self.times, **time_of_batch(self.read_time())}
        return Input(read, History(steps, times), keyed(relations))

    def _read_before(self, relation: Relation, end: Offset) -> tuple[Source, Offset]:
        """Return a source of what was read before a place, from its first row on, and where that ends."""
        source = self.sources[relation.name]
        inner = source.inner if isinstance(source, ForeignSource) else source
        if isinstance(inner, WatchedFiles):
            files = inner.history(end)
            return files, {"row": files.rows}
        if isinstance(inner, SpooledSource) and inner.first > 0:
            message = f"rows of {relation.name} that were read are gone, and a new view needs them"
            hint = "declare such a stream STORED, or create its views before rows come"
            raise SquallError("SQ6009", message, relation.span, hint)
        return source, end

    def forget(self, relations: Sequence[Relation]) -> None:
        """Forget what was read of watched files of which nothing is kept fresh any more: they are read anew one day."""
        names = {relation.name for relation in relations}
        for name, source in [*self.sources.items()]:
            if isinstance(source, WatchedFiles) and name not in names:
                self.drop(name)

    def drop(self, name: str) -> None:
        """Close the source of a relation, and forget what is kept of it."""
        source = self.sources.pop(name, None)
        self._checked.pop(name, None)
        if isinstance(source, ForeignSource) and isinstance(source.inner, SpooledSource):
            source.inner.delete()
        if source:
            source.close()
        self.positions.pop(name, None)

    def close(self) -> None:
        """Close all sources."""
        for source in self.sources.values():
            source.close()
        self.sources.clear()


def _parts(source: Source, end: Offset) -> Iterator[OffsetSpan]:
    """Cut what lies before a place into parts that fit into memory, where rows are numbered."""
    inner, start = source.inner if isinstance(source, ForeignSource) else source, source.initial()
    if isinstance(inner, RowSource):
        for first in range(start["row"], end["row"], HISTORY_ROWS):
            yield {"row": first}, {"row": min(end["row"], first + HISTORY_ROWS)}
    elif start != end:
        yield start, end


@dataclass
class History:
    """Batches that are all decided on."""

    steps: Sequence[Mapping[str, OffsetSpan]]
    times: Times
    example = 0

    @property
    def batches(self) -> int:
        return len(self.steps)

    def spans(self, batch: int) -> Mapping[str, OffsetSpan]:
        return self.steps[batch]

    def note(self, open_rows: int) -> None:
        """Do nothing: processing time has passed already."""
