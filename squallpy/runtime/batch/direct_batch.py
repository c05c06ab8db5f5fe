"""A batch of a plan that is compiled whole, in one process: from Arrow to the changes of results, by one call.

What a plan may have besides, ledgers, windows, upserts, matrices, auxiliary relations, is up to `Sender` and
`StageExecutor`, and so is a batch for which compiled code has no answer: nothing was changed then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from squallpy.physical.plan import Plan
from squallpy.runtime.batch.micro_batch import AggregatedPart, Stats, add_stats
from squallpy.runtime.compiled.functions import CompiledGroup, CompiledPlan, Growable, Steps
from squallpy.runtime.evaluate.kernel_runner import Batch
from squallpy.runtime.formats.counted_table import concat_tables, one_batch
from squallpy.runtime.formats.file_rows import ReadStats
from squallpy.runtime.kernels import batch_driver as at
from squallpy.runtime.kernels.batch_driver import drive
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool, as_pool
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.result.result import NotedRows
from squallpy.runtime.sources.input import Input, Slices
from squallpy.runtime.sources.protocol import Slice
from squallpy.runtime.sources.replay import RowBatches
from squallpy.runtime.sources.source import RowRange, RowSource
from squallpy.runtime.state.state_store import Store
from squallpy.runtime.triggers.duplicate_keys import KeyCheck

Changed = list[Delta | NotedRows]
_REPORTS = 256  # kept of batches that read the same numbers of rows


@dataclass(slots=True)
class _Feed:
    """A relation, the columns that are read, its groups, and where the driver finds its rows."""

    name: str
    columns: tuple[str, ...]
    groups: list[CompiledGroup]
    place: int
    batch: Batch | None = None

    def use(self, batch: Batch) -> bool:
        """Take the rows of a batch; False if a group cannot read them."""
        self.batch = batch if all(group.fits(batch.schema) for group in self.groups) else None
        return self.batch is not None


class _Room:
    """Memory for the keys of a result's groups that change, and their payloads before and after."""

    def __init__(self, words: Words, place: int) -> None:
        self._words, self._place = words, place
        self.rows: Words = np.empty(0, np.int64)
        self.make_room()

    def make_room(self) -> None:
        """Make it twice as large."""
        self.rows = np.empty(max(512, 2 * len(self.rows)), np.int64)
        self._words[self._place : self._place + 2] = self.rows.ctypes.data, len(self.rows)


class DirectBatch:
    """The compiled functions of a plan, with the pools that they add deltas up in.

    Args:
        ways: How each result takes its change (`batch_driver`).
    """

    def __init__(self, plan: Plan, compiled: CompiledPlan, store: Store, ways: Sequence[int]) -> None:
        (run,) = self._runs = [*compiled.runs().values()]
        self._store, self._code, self._ways = store, run.code, ways
        sums = {
            delta.name: Pool(len(delta.keys), payload)
            for feed in plan.sources
            for delta, payload in zip(feed.deltas, feed.payloads, strict=True)
        }
        self._changes = [Pool(len(result.keys), result.payload) for result in plan.results]
        self._names = names = [result.name for result in plan.results]
        pools = dict[str, Container](store) | dict(zip(names, self._changes, strict=True))
        self._pools = (
            [as_pool(pools[name]) for name in run.code.targets] + [*sums.values()] + [store.pool(n) for n in names]
        )
        run.bind(pools)
        run.steps.use(store.dictionary)
        self._sums = [sums.pop(name) for name in run.code.deltas]
        cleared = [*self._sums, *sums.values(), *self._changes]
        self._feeds, groups, self._fit = list[_Feed](), list[int](), True
        by_name = dict(zip(run.code.deltas, self._sums, strict=True)) | sums
        for number, feed in enumerate(plan.sources):
            made = list[CompiledGroup]()
            for delta in feed.deltas:
                group = compiled.group(delta.name)
                assert group, f"{delta.name} is not compiled"
                group.bind(by_name[delta.name], store.dictionary)
                groups += [group.entry, group.address, number]
                made.append(group)
            place = at.ENTRIES + at.FEED * number
            self._feeds.append(_Feed(feed.relation.name, feed.fields, made, place))
        self._all_groups = [group for feed in self._feeds for group in feed.groups]
        self._of_texts = [group for group in self._all_groups if group.code.texts]
        self._lay_out(groups, cleared, names)
        columns = {pool.name: pool.keys for pool in plan.pools}
        watched = {view for view, _ in run.code.unique} & columns.keys()
        self._unique = {u.view: KeyCheck(u, columns[u.view]) for u in plan.unique if u.view in watched}
        self._reports = dict[tuple[int, ...], BatchReport]()

    def _lay_out(self, groups: list[int], cleared: list[Pool], names: list[str]) -> None:
        """Write the words for the driver."""
        self._rooms = list[_Room]()
        self._steps = Steps()
        (run,) = self._runs
        counts = [len(self._feeds), len(self._all_groups), len(cleared), len(self._sums), len(self._pools), 0]
        head = [self._steps.address, run.entry, run.address, *counts, *[0] * at.FEED * len(self._feeds), *groups]
        head += [pool.address for pool in cleared]
        self._pools_at = len(head)
        for pool in self._pools:
            head += [pool.address, 0]
        self._results_at = entries = len(head)
        for number, (name, change) in enumerate(zip(names, self._changes, strict=True)):
            head += [change.address, self._store.pool(name).address, self._ways[number], 0, 0, 2 * number, 0]
        self._array: Words = np.array(head, np.int64)
        grown = list[Growable]()
        for number, name in enumerate(names):
            self._rooms.append(_Room(self._array, entries + at.RESULT * number + 3))
            grown += [self._store.pool(name), self._rooms[number]]
        self._steps.pools = grown
        self._words, self._address = self._array.data, self._array.ctypes.data
        self._look_ahead()

    @staticmethod
    def of(plan: Plan, compiled: CompiledPlan | None, store: Store, ways: Sequence[int]) -> "DirectBatch | None":
        """Make it if all that a batch of the plan needs is compiled."""
        if compiled is None or compiled.code.refused or len(compiled.code.runs) != 1 or plan.matrices or plan.clocks:
            return None
        (run,), relations = compiled.code.runs, [feed.relation for feed in plan.feeds]
        plain = all(r.parts is None and not r.is_computed and not r.source.is_keyed for r in relations)
        whole = (run.first, run.stop) == (0, len(plan.stages[0].steps)) and not plan.stages[0].keeps
        alone = len(plan.sources) == len(plan.feeds) == len({r.source.name for r in relations})
        return DirectBatch(plan, compiled, store, ways) if plain and whole and alone and not plan.ledgers else None

    def __call__(self, slices: Slices, first: bool) -> tuple[Changed, Stats] | None:
        """Apply a batch; return the changes of results and statistics, or None if there is no answer.

        Args:
            first: Nothing was printed before.
        """
        part, sums = AggregatedPart([], [], {"tuples": 0, "skipped": 0, "read_rows": {}}), ReadStats()
        words = self._words
        for feed in self._feeds:
            words[feed.place + 2] = 0
            if some := slices.get(feed.name):
                resident = self._find_resident(feed, some)
                if resident and isinstance(rows := some[0], RowRange):
                    batch, begin, count = resident, rows.start, rows.rows
                    part.stats["read_rows"][feed.name] = count
                    part.stats["tuples"] += count
                else:
                    tables = [each.read(feed.columns) for each in some]
                    batch = Batch(one_batch(concat_tables(tables)))
                    begin, count = 0, batch.rows
                    for table in tables:
                        sums.add(feed.name, table)
                    part.count(feed.name, some, tables)
                if batch is not feed.batch and not feed.use(batch):
                    return None
                words[feed.place], words[feed.place + 1], words[feed.place + 2] = batch.address, begin, count
        changed = self._drive(first)
        if changed is None:
            return None
        return changed, add_stats(part.stats, sums.stats) | {"unmatched": 0, "late": 0, "duplicates": self._check()}

    def resident_rows(self, input: Input) -> RowBatches | None:
        """Tell how batches are cut, if all that they read is in memory; then `over_rows` applies them."""
        for feed in self._feeds:
            source = input.sources[feed.name]
            rows = source.resident(feed.columns) if isinstance(source, RowSource) else None
            if rows is None or not feed.use(Batch(rows)):
                return None
            assert feed.batch
            self._words[feed.place] = feed.batch.address
        return input.batches if isinstance(input.batches, RowBatches) else None

    def over_rows(self, ranges: Mapping[str, tuple[int, int]]) -> tuple[Changed, BatchReport] | None:
        """Apply a batch, not the first, of rows that are in memory."""
        words, counts = self._words, list[int]()
        for feed in self._feeds:
            begin, stop = ranges.get(feed.name, (0, 0))
            words[feed.place + 1] = begin
            words[feed.place + 2] = count = stop - begin
            counts.append(count)
        changed = self._drive(False)
        if changed is None:
            return None
        counts.append(self._check())
        key = tuple(counts)
        if key not in self._reports:
            if len(self._reports) >= _REPORTS:
                self._reports.clear()
            read = {feed.name: rows for feed, rows in zip(self._feeds, counts, strict=False) if rows}
            self._reports[key] = BatchReport(tuples=sum(read.values()), read_rows=read, duplicates=counts[-1])
        return changed, self._reports[key]

    def _drive(self, first: bool) -> Changed | None:
        words = self._words
        words[at.RESULTS] = 0 if first else len(self._rooms)
        for group in self._of_texts:
            group.note(self._store.dictionary)
        answer = drive(self._address)
        if answer == at.NO_ANSWER:
            return None
        if answer == at.NO_MEMORY:
            self._fail()
        if answer == at.DUE:
            self._look_ahead()
        if self._of_texts:
            self._store.dictionary.tend(0)
        out, place = Changed(), self._results_at + at.RESULT - 1
        for number, name in enumerate(self._names):
            if first or self._ways[number] == at.SKIPPED:
                out.append(Delta(name, *self._changes[number].rows()))
            else:
                out.append(NotedRows(name, words[place], self._rooms[number].rows))
            place += at.RESULT
        return out

    def _look_ahead(self) -> None:
        """Let pools look ahead that are due, and tell the driver when they will be."""
        for number, pool in enumerate(self._pools):
            pool.tend(0)
            self._array[self._pools_at + at.POOL * number + 1] = pool.ready

    def _fail(self) -> None:
        every = [self._steps, *(group.steps for group in self._all_groups), *(run.steps for run in self._runs)]
        for steps in every:
            if steps.error:
                steps.check(at.NO_MEMORY)
        raise MemoryError

    def _find_resident(self, feed: _Feed, slices: Sequence[Slice]) -> Batch | None:
        """Find the rows of a slice that are in memory, all in one piece."""
        if len(slices) > 1 or not isinstance(rows := slices[0], RowRange):
            return None
        found: pa.RecordBatch | None = rows.source.resident(feed.columns)
        if found is None or (feed.batch and feed.batch.table is found):
            return feed.batch if found is not None else None
        return Batch(found)

    def _check(self) -> int:
        """Count the rows that break a PRIMARY KEY."""
        duplicates = 0
        if self._unique:
            (run,) = self._runs
            for (view, delta), repeats in zip(self._code.unique, run.repeats, strict=True):
                if repeats and (check := self._unique.get(view)):
                    check.suspect(*self._sums[self._code.deltas.index(delta)].rows())
                    duplicates += check.duplicates(self._store.pool(view), self._store.dictionary)
        return duplicates
