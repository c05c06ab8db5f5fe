"""The local executor, each batch's printed changes made as `--mode changes` prints them."""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa

import squallpy
from bench.data.tables import Stream
from bench.measure.batches import Watch
from squallpy.base.records import dataclass
from squallpy.base.settings import parse_settings
from squallpy.catalog.relation import MULT
from squallpy.physical.plan import Plan
from squallpy.runtime.compiled.functions import compile_plan
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.result.result import Changes
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.protocol import Source
from squallpy.runtime.sources.replay import Replay, RowBatches, Sizes
from squallpy.runtime.sources.source import RowSource
from squallpy.script_session import ScriptSession

LEAP_ROWS = 100_000


class Decoded(RowSource):
    """A source whose rows are in memory, integers as the engine's sources hand them over: 64 bits wide."""

    def __init__(self, table: pa.RecordBatch) -> None:
        wide = [pa.field(f.name, pa.int64() if pa.types.is_integer(f.type) else f.type) for f in table.schema]
        self._table = table.cast(pa.schema(wide))
        self._selected = dict[tuple[str, ...], pa.RecordBatch]()

    @property
    def rows(self) -> int:
        return len(self._table)

    def read(self, start: int, stop: int, columns: Collection[str]) -> Any:
        return self.resident(tuple(columns)).slice(start, stop - start)

    def resident(self, columns: tuple[str, ...]) -> pa.RecordBatch:
        if columns not in self._selected:
            names = [name for name in self._table.schema.names if name in columns or name == MULT]
            self._selected[columns] = self._table.select(names)
        return self._selected[columns]


@dataclass(frozen=True)
class Leaps(RowBatches):
    """A replay in which what lies between the batches `chosen` comes in large ones, so that it is soon over.

    Leaps(replay, [3, 4]).steps   →   [(0, 3), (3, 4), (4, 5)]
    """

    replay: Replay
    chosen: list[int]

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """First and end batch of each step."""
        leap = max(1, LEAP_ROWS // self.replay.batch_rows)
        ends = {batch + 1 for batch in self.chosen}
        starts = [0, *sorted({*self.chosen, *ends})]
        out = []
        for first, stop in pairwise(starts):
            out += [(at, min(at + leap, stop)) for at in range(first, stop, leap)]
        return out

    @property
    def batches(self) -> int:
        return len(self.steps)

    def bounds(self, step: int) -> tuple[Sizes, Sizes]:
        first, stop = self.steps[step]
        return (
            self.replay.bounds(first)
            if stop == first + 1
            else (self.replay.bounds(first)[0], self.replay.bounds(stop)[0])
        )


@dataclass
class Done:
    """What batches did: how many records statements found and rows they added, and how many rows were printed."""

    counts: dict[int, tuple[int, int]] = field(default_factory=dict)
    _before: int = 0

    def note(self, batch: int, work: int, changes: Changes | None) -> None:
        """After a batch: all the work so far, and what was printed."""
        self.counts[batch] = work - self._before, len(changes.deletes) + len(changes.inserts) if changes else 0
        self._before = work

    def figures(self, watch: Watch, batches: int) -> dict[str, float]:
        """Means over the second and the last tenth of the stream."""
        out: dict[str, float] = {}
        for name, i in (("second_tenth", 1), ("last_tenth", 9)):
            some = [self.counts[batch] for batch in watch.tenth(i, batches) if batch in self.counts]
            for at, what in enumerate(("work", "printed")):
                out |= {f"{name}_{what}": mean(count[at] for count in some)} if some else {}
        return out


class Local:
    """Rows decoded beforehand: the engine alone."""

    version = f"squallpy {getattr(squallpy, '__version__', '')}".strip()

    changes = True
    compile = "off"
    reads = False
    """Changes are read in time, not behind it."""
    settings: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}

    def run(self, stream: Stream, watch: Watch) -> pa.Table | None:
        plan, leaps = plan_of(stream, 1, self.settings), Leaps(stream.replay, watch.plan(stream.batches))
        input = Input(self._sources(stream), leaps)
        executor = LocalExecutor(plan, input, with_changes=self.changes, compiled=compile_plan(plan, self.compile))
        chosen, done = set(leaps.chosen), Done()
        for first, _ in leaps.steps:
            start = watch.clock()
            (changes,), _ = executor.step()
            if self.reads and changes:
                changes.inserts  # noqa: B018  it is made when it is read
            seconds = watch.clock() - start
            done.note(first, executor.work, changes)
            if first in chosen and not watch.record(first, seconds):
                break
        if executor.next < leaps.batches or leaps.steps[-1][1] < stream.batches:
            return None
        views = {name: used["bytes"] for name, used in executor.store.usage().items()}
        fields = {feed.relation.name: feed.fields for feed in plan.sources}
        self.facts = {"views": views, "read_bytes": stream.nbytes(fields)} | done.figures(watch, stream.batches)
        (rows,) = executor.final()
        return rows

    def close(self) -> None: ...

    def _sources(self, stream: Stream) -> Mapping[str, Source]:
        return {name: Decoded(table) for name, table in stream.tables.items()}


class LocalCompiled(Local):
    """Triggers that are compiled before the first batch."""

    compile = "wait"


class LocalCompiledPlain(LocalCompiled):
    """Cofactor matrices of plain doubles."""

    settings = ("fivm.sums=plain",)


class LocalCompiledPlainFinal(LocalCompiledPlain):
    """The same, its rows printed once, after the last batch: what C++ by hand does."""

    changes = False


class LocalCompiledRead(LocalCompiled):
    """The same, and the changes of each batch are read."""

    reads = True


class LocalFinal(Local):
    """The views kept fresh as `--mode final` does; their rows are printed once, after the last batch."""

    changes = False


class LocalFiles(Local):
    """Parquet read as `squall run` reads it: the whole way of a tuple."""

    def _sources(self, stream: Stream) -> Mapping[str, Source]:
        return open_sources(stream)


def session_of(stream: Stream, settings: Sequence[str] = ()) -> ScriptSession:
    """The stream's query as a session of ours."""
    with tempfile.TemporaryDirectory() as room:
        script = Path(room) / f"{stream.query.name}.sql"
        script.write_text(stream.query.script(str(stream.folder.resolve())))
        return ScriptSession(script, parse_settings(settings))


def plan_of(stream: Stream, partitions: int, settings: Sequence[str] = ()) -> Plan:
    session = session_of(stream, settings)
    [query] = session.script.queries
    return session.compile(query, partitions, stream.sizes, bounded=True).plan


def open_sources(stream: Stream) -> dict[str, Any]:
    from squallpy.runtime.sources import open_source

    return {
        name: open_source(relation, stream.folder) for name, relation in session_of(stream).script.relations.items()
    }
