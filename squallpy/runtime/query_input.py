"""The relations of a query as a run reads them: files to their end, or rows as they come.

reading = open_reading(script.relations, folder, checkpoint)
reading.sizes                           the rows of each relation, by which the plan is placed
reading.select(relations, columns, 1000, "proportional")       those that the query reads, in which order
reading.begin(location)                 →   the batches, from where the state is
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from types import MappingProxyType

from squallpy.base.batch_trigger import AS_IT_COMES, BatchTrigger
from squallpy.base.events import QUERY, WARNING, log_event
from squallpy.base.local_paths import join_path
from squallpy.base.timing import read_time
from squallpy.catalog.relation import Relation
from squallpy.catalog.window_spec import ARRIVAL
from squallpy.physical.matrix.matrix_plan import under_matrices
from squallpy.runtime.checkpoint.checkpoint import CannotMove, RepeatBatch, recorded_sizes
from squallpy.runtime.checkpoint.checksummed_record import read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.checkpoint.input_files import Inputs
from squallpy.runtime.checkpoint.offset_log import OffsetLog
from squallpy.runtime.checkpoint.spool import SpooledSource
from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
from squallpy.runtime.sources import FileSource, open_source
from squallpy.runtime.sources.arrivals import Arrivals, Decision, Repeated
from squallpy.runtime.sources.foreign_source import ForeignSource
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Source
from squallpy.runtime.sources.replay import LEAP_ROWS, BackfillReplay, Replay
from squallpy.runtime.sources.source import RowSource, columns_of_files
from squallpy.runtime.sources.stream_times import TimeLimits, time_of_batch
from squallpy.runtime.sources.watched_files import ReadColumns, WatchedFiles

_TIME = "time"  # the record of a checkpoint that has the time of all batches
Columns = Mapping[str, Sequence[str]]
"""Columns that are read, by the names of relations in statistics."""


class Reading(ABC):
    """The relations of a query, and the order in which they are read."""

    batch_rows: int
    order: str
    sizes: Mapping[str, int]
    has_end = False
    """An end of all relations, so that `sizes` are all rows that will ever come."""

    @property
    @abstractmethod
    def batches(self) -> int | None:
        """The number of batches; None if there is no end."""

    @property
    @abstractmethod
    def inputs(self) -> Inputs | None:
        """The files that a checkpoint compares; None if there is none, or an offset log."""

    @property
    def repeat(self) -> RepeatBatch | None:
        """The way in which streams without end repeat what the state of another plan has read."""
        return None

    def keep_read(self) -> None:  # noqa: B027
        """Let sources keep what is read, as it may be read again without a checkpoint."""

    def find_lost(self) -> str:
        """Return why what was read cannot be read again; empty if it can."""
        return ""

    @property
    def rows_read(self) -> Mapping[str, int]:
        """Rows that were read of each relation, 0 where its source does not number them."""
        return self.sizes

    @abstractmethod
    def select(
        self, relations: Sequence[Relation], columns: Columns, batch_rows: int, order: str, has_time: bool = False
    ) -> None:
        """Choose the relations of a query and the columns that it reads, which are checked; SQ4002.

        Args:
            has_time: Batches have a time, which the query reads.
        """

    @abstractmethod
    def begin(self, location: StateLocation | None) -> Input:
        """Begin where the state at a location is."""

    @abstractmethod
    def number(self, batch: int) -> int | None:
        """Return the number under which a batch is reported; None if it only repeats earlier ones."""


class BoundedReading(Reading):
    """Files to their end: as many batches as their rows are, interleaved in an order."""

    has_end = True

    def __init__(self, sources: Mapping[str, FileSource], has_checkpoint: bool, read_time: Callable[[], int]) -> None:
        self._sources, self._has_checkpoint, self._read_time = sources, has_checkpoint, read_time
        self.sizes = {name: source.rows for name, source in sources.items()}
        self._columns: Columns = {}

    def select(
        self, relations: Sequence[Relation], columns: Columns, batch_rows: int, order: str, has_time: bool = False
    ) -> None:
        self._columns, self.batch_rows, self.order, self._has_time = columns, batch_rows, order, has_time
        self._read, self._keyed = {r.name: self._sources[r.name] for r in relations}, keyed(relations)
        self._replay = Replay({r.name: self.sizes[r.name] for r in relations if r.stream}, batch_rows, order)
        _check(self._sources, columns)

    @property
    def batches(self) -> int:
        return self._replay.batches

    @cached_property
    def inputs(self) -> Inputs | None:
        if not self._has_checkpoint:
            return None
        called = {name: source for r, source in self._sources.items() for name in (r, under_matrices(r))}
        read = {}
        for name, columns in self._columns.items():
            read[name] = called[name], columns_of_files(called[name].relation, columns)
        return Inputs(read, self._replay)

    def begin(self, location: StateLocation | None) -> Input:
        self._steps = BackfillReplay(self._replay)
        if location and location.batch_rows:
            self._replay = replace(self._replay, batch_rows=location.batch_rows, earlier=location.earlier)
            self._steps = BackfillReplay(self._replay, location.before, location.again)
        times = time_of_batch(_begun(location, self._read_time)) if self._has_time else {}
        return Input(self._read, self._steps, self._keyed, times=times)

    def number(self, batch: int) -> int | None:
        return self._steps.number(batch)


class EndlessReading(Reading):
    """Rows as they come, without end or until all streams have ended; other files are read to their end beside them."""

    batches = None
    inputs = None
    order = "arrival"
    batch_rows = 1  # NB: the limit of a batch is no part of what a checkpoint is of
    _before = _again = 0
    _arrivals: Arrivals | None = None

    def __init__(
        self,
        sources: Mapping[str, Source],
        checkpoint: str | None,
        trigger: BatchTrigger,
        clock: Callable[[], float],
        read_time: Callable[[], int],
    ) -> None:
        self._read_time = read_time
        self._sources, self._checkpoint, self._trigger, self._clock = sources, checkpoint, trigger, clock
        known = recorded_sizes(checkpoint) if checkpoint else None
        for source in sources.values() if known is None else ():
            if isinstance(source, WatchedFiles):
                source.latest(source.initial(), BatchLimit())
        self.sizes = known or {name: source.rows for name, source in sources.items()}

    def select(
        self, relations: Sequence[Relation], columns: Columns, batch_rows: int, order: str, has_time: bool = False
    ) -> None:
        self._read, self._limit = {r.name: self._sources[r.name] for r in relations}, batch_rows
        self._streams, self._columns, self._keyed = [r.name for r in relations if r.stream], columns, keyed(relations)
        limits = {r.name: TimeLimits.of(r) for r in relations if r.stream}
        self._limits = {name: each for name, each in limits.items() if each}
        self._has_time = has_time
        _check(self._sources, columns)

    @property
    def rows_read(self) -> Mapping[str, int]:
        decided = self._arrivals.decided if self._arrivals else None
        ends = {name: end for name, (_, end) in decided.spans.items()} if decided else {}
        return {name: ends[name].get("row", 0) if name in ends else self.sizes[name] for name in self._read}

    def keep_read(self) -> None:
        for source in self._watched.values() if self._checkpoint is None else ():
            source.keeps_pieces = True

    def begin(self, location: StateLocation | None) -> Input:
        if self._arrivals:
            return self._begin_again(self._arrivals)
        root = self._checkpoint or (location and location.durable)
        folder = join_path(root, "spool") if root else None
        for name, source in self._read.items():
            source.begin(folder if self._checkpoint or source.needs_folder else None, self._trigger.ends)
            if isinstance(source, ForeignSource) and self._is_spooled(name, source):
                columns = source.asked([field.name for field in source.relation.fields])
                source.inner = SpooledSource(source.inner, columns, folder, name)
        if location:
            self._before, self._again = location.before, location.again
        streams = {name: self._read[name] for name in self._streams}
        tables = {name: source for name, source in self._read.items() if name not in streams}
        arrivals = Arrivals(
            streams, self._limit, trigger=self._trigger, tables=tables, limits=self._limits, clock=self._clock,
            read_time=self._read_time if self._has_time else None,
        )  # fmt: skip
        self._arrivals = arrivals
        if location and self._checkpoint:
            log, done = OffsetLog(location.durable, self._watched), Committed(location.durable)
            arrivals.decided, arrivals.log = log.restore(), log.write
            if arrivals.decided:
                committed = max(done.batches, self._again)
                self._compare(arrivals.decided, committed, done)
                if done.batches < self._again:
                    return Input(self._read, Repeated(_repeated(arrivals.decided, committed), arrivals), self._keyed)
                for name, source in self._watched.items():
                    source.forget(arrivals.decided.spans[name][0])
                if arrivals.decided.batch >= done.batches:
                    log_event(QUERY, WARNING, "retry", batch=arrivals.decided.batch)
        return Input(self._read, arrivals, self._keyed)

    def _begin_again(self, arrivals: Arrivals) -> Input:
        """Repeat what was read, for the state of another plan, before what arrives from now on."""
        assert arrivals.decided
        last = arrivals.decided.batch
        replay, number = _repeated(arrivals.decided, last + 1), self.number(last)
        assert number is not None, "a plan is chosen behind what is repeated"
        self._before, self._again = number + 1, replay.batches
        arrivals.decided = arrivals.decided._replace(batch=replay.batches - 1)
        return Input(self._read, Repeated(replay, arrivals), self._keyed)

    def number(self, batch: int) -> int | None:
        return self._before + batch - self._again if batch >= self._again else None

    @property
    def repeat(self) -> RepeatBatch:
        return self._count_repeated

    def _count_repeated(self, location: StateLocation, done: Committed) -> int:
        """Count the batches in which all that a generation has read is read again; CannotMove if that is not there."""
        decided = OffsetLog(location.durable, self._watched).restore()
        if decided is None or not done.batches:
            return 0
        if reason := self.find_lost():
            raise CannotMove(reason)
        self._compare(decided, done.batches, done)
        return _repeated(decided, done.batches).batches

    def find_lost(self) -> str:
        if self._limits:
            return "processing time may have closed windows"
        for name, source in self._read.items():
            if not isinstance(source, WatchedFiles | FileSource):
                return f"rows of {name} cannot be read again"
            if isinstance(source, WatchedFiles) and (gone := source.find_missing()):
                return f"{gone}, which it has read, is gone"
        return ""

    @property
    def _watched(self) -> Mapping[str, WatchedFiles]:
        return {name: source for name in self._streams if isinstance(source := self._read[name], WatchedFiles)}

    def _is_spooled(self, name: str, source: ForeignSource) -> bool:
        """True if the rows of a source cannot be read twice, or have to be numbered or counted before they are read."""
        if isinstance(source.inner, RowSource):
            return False
        is_numbered = ARRIVAL in self._columns.get(name, ()) or under_matrices(name) in self._columns
        return not source.is_replayable or (is_numbered and source.relation.stream)

    def _compare(self, decided: Decision, batches: int, done: Committed) -> None:
        """Raise SQ6001 if files have changed in what a number of batches have read of them."""
        reached, sums = _reached(decided, batches), done.all_read_sums.sums
        for name, source in self._watched.items():
            for each in (name, under_matrices(name)):
                if each in self._columns:
                    columns = columns_of_files(source.relation, self._columns[each])
                    source.compare(ReadColumns(columns, sums.get(each, {})), reached[name], self._checkpoint or "")


def _begun(location: StateLocation | None, read_time: Callable[[], int]) -> int:
    """Return when a run over files to their end has begun, by its checkpoint if it goes on: the time of all batches."""
    if location is None:
        return read_time()
    folder = open_durable(location.durable, "driver")
    text = read_record(folder, _TIME, location.durable)
    if text is None:
        write_record(folder, _TIME, text := str(read_time()))
    return int(text)


def _reached(decided: Decision, batches: int) -> dict[str, Offset]:
    """Find where a number of batches have come to in each stream, of which the last was decided on, or one more."""
    return {name: start if decided.batch >= batches else end for name, (start, end) in decided.spans.items()}


def _repeated(decided: Decision, batches: int) -> Replay:
    """Return large batches of all that a number of batches have read."""
    return Replay({name: offset["row"] for name, offset in _reached(decided, batches).items()}, LEAP_ROWS)


def keyed(relations: Sequence[Relation]) -> frozenset[str]:
    """Name the relations whose rows replace each other, so that their order counts."""
    return frozenset(relation.name for relation in relations if relation.is_keyed)


def _check(sources: Mapping[str, Source], columns: Columns) -> None:
    """Check the columns that are read of each source, as rows and under matrices; SQ4002."""
    for name, source in sources.items():
        source.check([column for each in (name, under_matrices(name)) for column in columns.get(each, ())])


def open_reading(
    relations: Mapping[str, Relation],
    base: Path,
    checkpoint: str | None,
    trigger: BatchTrigger = AS_IT_COMES,
    foreign: Mapping[str, Source] = MappingProxyType({}),
    clock: Callable[[], float] = monotonic,
    read_time: Callable[[], int] = read_time,
) -> Reading:
    """Open the relations of a script, but those that are open; relative paths start at `base`. SQ4001, SQ4002.

    Args:
        clock: One that never jumps, by which batches begin and streams without rows are idle.
        read_time: Gives the time of day, in microseconds.
    """
    has_checksum, files = checkpoint is not None, [r for n, r in relations.items() if n not in foreign]
    read = {r.name: open_source(r, base, has_checksum) for r in files if not r.is_watched}
    watched = {r.name: WatchedFiles(r, base, has_checksum) for r in files if r.is_watched}
    if not watched and not foreign:
        return BoundedReading(read, has_checksum, read_time)
    return EndlessReading({**read, **watched, **foreign}, checkpoint, trigger, clock, read_time)
