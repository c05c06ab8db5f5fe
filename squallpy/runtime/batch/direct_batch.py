"""A batch of a plan whose deltas are compiled, in one process: from Arrow to the changes of results, by one call.

At a step that is not compiled the driver waits until that is interpreted over the same pools, and goes on behind it.
What a plan may have besides, windows, upserts, matrices, is up to `Sender` and `StageExecutor`, and so is a batch for
which the functions of deltas have no answer: nothing was changed then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.codegen.statement_code import touched_name
from squallpy.physical.plan import Derive, Plan, Stage, Update
from squallpy.runtime.auxiliary.extremes import open_extremes
from squallpy.runtime.auxiliary.groups import RowsOf
from squallpy.runtime.auxiliary.maintainer import TouchTracker, begin
from squallpy.runtime.auxiliary.maintainer_registry import open_maintainer
from squallpy.runtime.auxiliary.model_rows import ModelMaintainer
from squallpy.runtime.batch.deferred_rows import DeferredRows, count_deferred
from squallpy.runtime.batch.deltas_by_row import deltas_by_row
from squallpy.runtime.batch.micro_batch import AggregatedPart, Stats, add_stats
from squallpy.runtime.batch.pieces import BatchCall, find_pieces
from squallpy.runtime.batch.result_changes import ResultRoom, find_copies
from squallpy.runtime.compiled.functions import (
    CompiledDerivation,
    CompiledGroup,
    CompiledPlan,
    CompiledRun,
    FunctionTable,
    Growable,
)
from squallpy.runtime.evaluate.kernel_runner import ExportedBatch
from squallpy.runtime.formats.counted_table import concat_tables, one_batch
from squallpy.runtime.formats.file_rows import ReadStats
from squallpy.runtime.ingest.feed import LedgerEntries
from squallpy.runtime.kernels import batch_driver as at
from squallpy.runtime.kernels.batch_driver import drive
from squallpy.runtime.kernels.key_marks import MARKS
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool, as_pool
from squallpy.runtime.kernels.sorted_steps import Extremes
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.result.noted_rows import NotedRows
from squallpy.runtime.sources.input import Input, Slices
from squallpy.runtime.sources.protocol import Slice
from squallpy.runtime.sources.replay import RowBatches, Sizes
from squallpy.runtime.sources.source import RowRange, RowSource
from squallpy.runtime.state.state_store import Store
from squallpy.runtime.time.unmatched_deletes import book_entries
from squallpy.runtime.triggers.duplicate_keys import KeyCheck
from squallpy.runtime.triggers.program_functions import ProgramPlan, ProgramRun
from squallpy.runtime.triggers.statement_execution import RunnableStatement, statements_of_checked

Changed = list[Delta | NotedRows]
Functions = CompiledPlan | ProgramPlan
_REPORTS = 256  # kept of batches that read the same numbers of rows


@dataclass(slots=True)
class _Feed:
    """A relation, the columns that are read, its groups, and where the driver finds its rows."""

    name: str
    columns: tuple[str, ...]
    groups: list[CompiledGroup]
    place: int
    ledger: LedgerEntries | None
    batch: ExportedBatch | None = None

    def use(self, batch: ExportedBatch) -> bool:
        """Take the rows of a batch; False if a group cannot read them."""
        self.batch = batch if all(group.fits(batch.schema) for group in self.groups) else None
        return self.batch is not None

    def entries(self, begin: int, count: int) -> list[Delta]:
        """List what rows of the batch change in the ledger, if there is one."""
        if self.ledger is None or self.batch is None or not count:
            return []
        return [delta for _, delta in self.ledger(self.batch.table.slice(begin, count))]


class DirectBatch:
    """The compiled functions of a plan, with the pools that they add deltas up in.

    Args:
        ways: How each result takes its change (`batch_driver`).
    """

    def __init__(self, plan: Plan, compiled: Functions, store: Store, ways: Sequence[int]) -> None:
        self._store, self._ways = store, ways
        self._sums = {
            d.name: Pool(len(d.keys), d.payload, d.slices, orders=d.orders, group=d.group) for d in plan.deltas
        }
        self._runs, self._derivations = compiled.runs(), compiled.derivations()
        self._copies = find_copies(plan, self._runs.values(), self._sums)
        self._changes = [
            self._sums[self._copies[result.name]]
            if result.name in self._copies
            else Pool(len(result.keys), result.payload)
            for result in plan.results
        ]
        self._names = [result.name for result in plan.results]
        self._auxiliary = {feed.relation.name: (feed, feed.auxiliary) for feed in plan.feeds if feed.auxiliary}
        grouped = [aux.source for _, aux in self._auxiliary.values() if aux.kind.has_groups]
        self._touched = {source.name: TouchTracker(source) for source in grouped}
        self._containers = {**store, **self._sums} | dict[str, Container](zip(self._names, self._changes, strict=True))
        pools = self._containers
        pools |= {touched_name(view): tracker.pool for view, tracker in self._touched.items()}
        columns, stage = {pool.name: pool.keys for pool in plan.pools}, plan.stages[0]
        changed = {step.target for step in stage.steps if isinstance(step, Update)} & columns.keys()
        self._unique = {
            u.view: KeyCheck(u, columns[u.view], self._touched.get(u.view)) for u in plan.unique if u.view in changed
        }
        self._maintainers = {name: open_maintainer(feed, aux) for name, (feed, aux) in self._auxiliary.items()}
        self._extremes = list[Extremes]()
        self._calls = [*self._list_calls(plan, stage)]
        self._programs = [call for call in self._calls if isinstance(call, ProgramRun)]
        fed = {name: feed for name, (feed, _) in self._auxiliary.items()}
        self._deferred = 0 if self._unique else count_deferred(self._calls, fed, self._copies, self._names, ways)
        self._later = DeferredRows(
            store, self._touched, {*ways} != {at.ADDED}, self._derive_deferred, self._put, self._apply_deferred
        )
        self._feeds = list[_Feed]()
        for number, feed in enumerate(plan.sources):
            made = [found for delta in feed.deltas if (found := compiled.group(delta.name))]
            for group in made:
                group.bind(self._sums[group.code.delta], store.dictionary)
            ledger = LedgerEntries(feed, 1) if feed.relation.name in plan.ledgers else None
            self._feeds.append(_Feed(feed.relation.name, feed.fields, made, at.ENTRIES + at.FEED * number, ledger))
        self._all_groups = [group for feed in self._feeds for group in feed.groups]
        self._of_texts = [group for group in self._all_groups if group.code.texts]
        targets = {name: pools[name] for run in self._runs.values() for name in run.code.targets if name in pools}
        grown = [as_pool(pool) for pool in (targets | self._sums).values()]
        grown += [pool for each in self._extremes for pool in (each.state, each.changed)]
        self._pools = [*grown, *(store.pool(name) for name in self._names)]
        self._by_row = deltas_by_row(plan, self._calls, self._sums, self._copies.values())
        self._lay_out()
        self._places = [(feed.name, feed.place) for feed in self._feeds]
        self._booked = [feed for feed in self._feeds if feed.ledger]
        self._watched = [
            (self._unique[view], self._sums[delta], run.repeats, number)
            for run in self._runs.values()
            for number, (view, delta) in enumerate(run.code.unique)
            if view in self._unique
        ]
        self._repeats = [(repeats, number) for *_, repeats, number in self._watched]
        self._edition = -1  # of the dictionary, whose numbers of texts groups have noted
        self._was_first: bool | None = None  # the batch before; None without one: a run may go on with others' state
        self._reports = dict[tuple[int, ...], BatchReport]()  # by the rows of each relation
        self._interpreted: Stats = {}  # lookups of the batch's interpreted statements, regressions without an answer

    def _list_calls(self, plan: Plan, stage: Stage) -> Iterator[BatchCall]:
        """List what a batch does behind its deltas, in this order."""
        payloads = {p.name: p.payload for p in (*plan.pools, *plan.deltas, *plan.results)}
        noted = {name: aux for name, (_, aux) in self._auxiliary.items() if aux.source.name in self._touched}
        rows = {name: RowsOf(aux, self._touched[aux.source.name]) for name, aux in noted.items()}
        behind = 0
        self._checked = statements_of_checked(self._runs.values(), stage.steps, payloads, rows)
        for number, step in enumerate(stage.steps):
            if run := self._runs.get(number):
                run.bind(self._containers)
                run.steps.use(self._store.dictionary)
                behind = run.code.stop
                if getattr(step, "target", None) not in self._copies:
                    yield run
            elif isinstance(step, Update):
                if number >= behind:
                    yield RunnableStatement(step, payloads, rows)
            else:
                yield from self._list_derivations(step)

    def _list_derivations(self, step: Derive) -> Iterator[BatchCall]:
        """List the functions that compute the deltas of a relation, or the step, if not each has one."""
        found, store = [each for each in self._derivations if each.code.relation == step.relation], self._store
        if len(found) < len(self._auxiliary[step.relation][0].deltas):
            yield step
            return
        for each in found:
            touched, sums, names = self._touched[each.code.source].pool, self._sums[each.code.delta], store.dictionary
            if each.code.is_extreme:
                if each is found[0]:  # NB: their state is brought up to date once a batch
                    self._extremes.append(open_extremes(store, *self._auxiliary[step.relation], touched))
                each.bind_extremes(self._extremes[-1], sums, names)
            else:
                domain = store.pool(each.code.domain) if each.code.domain else None
                each.bind(touched, store.pool(each.code.source), sums, names, domain)
            yield each

    def _lay_out(self) -> None:
        """Write the words for the driver."""
        self._steps, self._rooms = FunctionTable(), list[ResultRoom]()
        pieces = find_pieces(self._all_groups, self._calls, self._sums, self._copies.values())
        in_order = sorted(self._sums, key=lambda name: name not in pieces.sums)
        cleared = [self._sums[name] for name in in_order]
        cleared += [change for name, change in zip(self._names, self._changes, strict=True) if name not in self._copies]
        cleared += [tracker.pool for tracker in self._touched.values()]
        cleared += [each.changed for each in self._extremes]
        groups, calls, deltas = list[int](), list[int](), list[int]()
        for number, feed in enumerate(self._feeds):
            for group in feed.groups:
                appending = group.steps.appending if group.code.delta in self._by_row else 0
                entry = [group.entry, group.address, number, group.marks, group.steps.address, appending]
                groups += entry + [0] * (at.GROUP - len(entry))
        for call in self._calls:
            read = call.code.deltas if isinstance(call, CompiledRun) else ()
            if isinstance(call, RunnableStatement | Derive):
                calls += [0, 0, len(deltas), 0]
                continue
            calls += [call.entry, call.address, len(deltas), len(read)]
            deltas += [self._sums[name].address for name in read]
        head = [self._steps.address, 0, len(self._feeds), len(self._all_groups), len(cleared), len(self._calls)]
        self._marks = np.empty(MARKS if pieces.calls else 0, np.int64)
        head += [len(deltas), len(self._pools), 0, pieces.calls, len(pieces.sums), self._marks.ctypes.data]
        head += [len(self._calls), 0]
        head += [*[0] * at.FEED * len(self._feeds), *groups]
        head += [*(pool.address for pool in cleared), *calls, *deltas]
        self._pools_at = len(head)
        for pool in self._pools:
            head += [pool.address, 0]
        entries = len(head)
        for number, (name, change) in enumerate(zip(self._names, self._changes, strict=True)):
            head += [change.address, self._store.pool(name).address, self._ways[number], 0, 0, 2 * number, 0]
        self._array: Words = np.array(head, np.int64)
        grown = list[Growable]()
        for number, name in enumerate(self._names):
            self._rooms.append(ResultRoom(name, self._array, entries + at.RESULT * number + 3))
            self._rooms[number].noted.settle = self._later.settle if self._deferred else None
            grown += [self._store.pool(name), self._rooms[number]]
        self._steps.pools = grown
        self._noted: Changed = [room.noted for room in self._rooms]
        self._counted = [(room.noted, entries + at.RESULT * (1 + i) - 1) for i, room in enumerate(self._rooms)]
        self._words, self._address = self._array.data, self._array.ctypes.data
        self._look_ahead()

    @property
    def work(self) -> int:
        """Rows that interpreted statements have made so far (`Statement.work`)."""
        checked = [statement for statements in self._checked.values() for statement in statements]
        counted = [each for each in (*self._calls, *checked) if isinstance(each, RunnableStatement | ProgramRun)]
        return sum(each.work for each in counted)

    @staticmethod
    def of(plan: Plan, compiled: Functions | None, store: Store, ways: Sequence[int]) -> "DirectBatch | None":
        """Make it if the deltas of the plan's sources are compiled, and it has nothing that is done elsewhere."""
        if compiled is None or plan.matrices or plan.windows:
            return None
        relations, stage = [feed.relation for feed in plan.sources], plan.stages[0]
        plain = all(r.parts is None and not r.is_computed and not r.source.is_keyed for r in relations)
        alone = len(plan.sources) == len({r.source.name for r in relations}) and not (stage.keeps or stage.sends)
        read = all(compiled.group(delta.name) for feed in plan.sources for delta in feed.deltas)
        plain &= not any(delta.orders or delta.is_ordered for delta in plan.deltas)
        return DirectBatch(plan, compiled, store, ways) if plain and alone and read else None

    def __call__(self, slices: Slices, first: bool) -> tuple[Changed, Stats] | None:
        """Apply a batch; return the changes of results and statistics, or None if there is no answer.

        Args:
            first: Nothing was printed before.
        """
        part, sums = AggregatedPart([], [], {"tuples": 0, "skipped": 0, "read_rows": {}}), ReadStats()
        words, entries = self._words, list[Delta]()
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
                    batch = ExportedBatch(one_batch(concat_tables(tables)))
                    begin, count = 0, batch.rows
                    for table in tables:
                        sums.add(feed.name, table)
                    part.count(feed.name, some, tables)
                if batch is not feed.batch and not feed.use(batch):
                    return None
                words[feed.place], words[feed.place + 1], words[feed.place + 2] = batch.address, begin, count
                entries += feed.entries(begin, count)
        changed = self._drive(first)
        if changed is None:
            return None
        noted = {"unmatched": self._book(entries), "late": 0, "duplicates": self._check()}
        return changed, add_stats(part.stats, sums.stats) | noted | self._interpreted

    def _book(self, entries: Sequence[Delta]) -> int:
        """Book the rows of change streams, and count the deletes of rows that are not there."""
        return sum(book_entries(self._store.pool(each.name), each.keys, each.words) for each in entries)

    def resident_rows(self, input: Input) -> RowBatches | None:
        """Tell how batches are cut, if all that they read is in memory; then `over_rows` applies them."""
        for feed in self._feeds:
            source = input.sources[feed.name]
            rows = source.resident(feed.columns) if isinstance(source, RowSource) else None
            if rows is None or not feed.use(ExportedBatch(rows)):
                return None
            assert feed.batch
            self._words[feed.place] = feed.batch.address
        return input.batches if isinstance(input.batches, RowBatches) else None

    def over_rows(self, starts: Sizes, ends: Sizes) -> tuple[Changed, BatchReport] | None:
        """Apply a batch, not the first, of rows that are in memory, from and up to the given ones of each relation.

        NB: it takes a few microseconds, of which a generic type's call, `list[int]()`, would be one.
        """
        words, counts = self._words, []
        for name, place in self._places:
            if name in starts:
                begin = starts[name]
                words[place + 1] = begin
                words[place + 2] = count = ends[name] - begin
                counts.append(count)
            else:
                words[place + 2] = 0
                counts.append(0)
        booked = [feed.entries(words[feed.place + 1], words[feed.place + 2]) for feed in self._booked]
        changed = self._drive(False)
        if changed is None:
            return None
        rows = tuple(counts)
        report = self._reports[rows] if rows in self._reports else self._report(rows)
        is_checked = bool(booked or self._interpreted)
        for repeats, number in self._repeats:
            is_checked = is_checked or repeats[number] != 0
        if is_checked:
            duplicates, unmatched = self._check(), sum(map(self._book, booked))
            if duplicates or unmatched or self._interpreted:
                report = replace(report, duplicates=duplicates, unmatched=unmatched, **self._interpreted)
        return changed, report

    def _report(self, counts: tuple[int, ...]) -> BatchReport:
        """Make the report of batches that read so many rows of each relation."""
        if len(self._reports) >= _REPORTS:
            self._reports.clear()
        read = {name: rows for (name, _), rows in zip(self._places, counts, strict=True) if rows}
        report = self._reports[counts] = BatchReport(tuples=sum(counts), read_rows=read)
        return report

    def _drive(self, first: bool) -> Changed | None:
        words, names = self._words, self._store.dictionary
        if first != self._was_first:
            self._note_first(first)
        if self._of_texts and self._edition != names.edition:
            self._edition = names.edition
            for group in self._of_texts:
                group.note(names)
        if self._interpreted:
            self._interpreted = {}
        if self._deferred:
            words[at.KEPT] = len(self._touched) if self._later.begin_batch() else 0
            words[at.STOP], words[at.RESULTS] = len(self._calls) - (0 if first else self._deferred), 0
        if not self._call(0):
            return None
        if self._of_texts:
            names.tend()
        for run in self._programs:
            compared, pairs = run.take_counts()
            self._note({"compared": compared, "pairs": pairs})
        if first:
            begin(self._store)
        elif self._deferred:
            self._later.waits = True
        for noted, place in self._counted:
            noted.count = words[place]
        if first or at.SKIPPED in self._ways:
            every = zip(self._ways, self._changes, self._noted, strict=True)
            return [
                Delta(noted.name, *change.rows()) if first or way == at.SKIPPED else noted
                for way, change, noted in every
            ]
        return self._noted

    def _call(self, start: int) -> bool:
        """Let the driver make calls from one on, 0: with all before them; False if there is no answer."""
        self._words[at.START] = start
        answer = drive(self._address)
        while answer <= at.WAITS:
            self._serve(at.WAITS - answer)
            answer = drive(self._address)
        if answer == at.NO_MEMORY:
            self._fail()
        if answer == at.DUE:
            self._look_ahead()
        return answer != at.NO_ANSWER

    def settle(self) -> None:
        """Apply changes of results that wait until somebody reads them."""
        self._later.settle()

    def _apply_deferred(self) -> None:
        """Make the calls that wait, and add what they derive to the results."""
        self._words[at.STOP], self._words[at.RESULTS] = len(self._calls), len(self._rooms)
        self._call(len(self._calls) - self._deferred)
        for noted, place in self._counted:
            noted.count = self._words[place]

    def _derive_deferred(self) -> list[Delta]:
        """Make the calls that wait."""
        for change in self._changes:
            change.clear()
        self._words[at.STOP], self._words[at.RESULTS] = len(self._calls), 0
        self._call(len(self._calls) - self._deferred)
        return [Delta(name, *change.rows()) for name, change in zip(self._names, self._changes, strict=True)]

    def _put(self, number: int, count: int, words: Words) -> None:
        """Note a result's change."""
        self._rooms[number].put(count, words)

    def _note_first(self, first: bool) -> None:
        """Tell the driver and derivations whether the batch is the first, whose results somebody else changes."""
        self._was_first = first
        self._words[at.RESULTS] = 0 if first else len(self._rooms)
        for each in self._derivations:
            each.is_first = first

    def _serve(self, number: int) -> None:
        """Interpret a step that is not compiled, or has no answer, and let the driver go on behind it."""
        match self._calls[number]:
            case RunnableStatement() as statement:
                self._interpret(statement)
            case CompiledRun() as run:
                for statement in self._checked[run]:
                    self._interpret(statement)
            case CompiledDerivation(code=code) if code.is_extreme:  # NB: its state is brought up to date once
                self._derive(code.relation)
                while self._is_of(number + 1, code.relation):
                    number += 1
            case CompiledDerivation(code=code):
                self._derive(code.relation, code.delta)
            case Derive(relation):
                self._derive(relation)
        self._words[at.START] = number + 1

    def _is_of(self, number: int, relation: str) -> bool:
        """True if a call computes another delta of a relation."""
        call = self._calls[number] if number < len(self._calls) else None
        return isinstance(call, CompiledDerivation) and call.code.relation == relation

    def _interpret(self, statement: RunnableStatement) -> None:
        keys, words = self._containers[statement.delta].rows()
        if not len(keys):
            return
        noted = self._unique.get(statement.target) or self._touched.get(statement.target)
        statement.run(Delta(statement.delta, keys, words), self._containers, self._store.dictionary, noted)
        compared, pairs = statement.take_counts()
        self._note({"compared": compared, "pairs": pairs})

    def _note(self, stats: Stats) -> None:
        self._interpreted = add_stats(self._interpreted, stats)

    def _derive(self, relation: str, only: str | None = None) -> None:
        """Compute the deltas of an auxiliary relation, or one of them."""
        maintainer, tracker = self._maintainers[relation], self._touched.get(self._auxiliary[relation][1].source.name)
        changes = maintainer.deltas(self._store, tracker.groups() if tracker else None)
        if isinstance(maintainer, ModelMaintainer) and maintainer.singular:
            self._note({"singular": {maintainer.label: maintainer.singular}})
        for name, delta in changes.items():
            if only in (None, name):
                self._sums[name].clear()
                self._sums[name].upsert(np.ascontiguousarray(delta.keys), np.ascontiguousarray(delta.words))

    def _look_ahead(self) -> None:
        """Let pools look ahead that are due, and tell the driver when they will be."""
        for number, pool in enumerate(self._pools):
            pool.tend()
            self._array[self._pools_at + at.POOL * number + 1] = pool.ready

    def _fail(self) -> None:
        calls = [call for call in self._calls if isinstance(call, CompiledRun | CompiledDerivation)]
        every = [self._steps, *(group.steps for group in self._all_groups), *(call.steps for call in calls)]
        for steps in every:
            if steps.error:
                steps.check(at.NO_MEMORY)
        raise MemoryError

    def _find_resident(self, feed: _Feed, slices: Sequence[Slice]) -> ExportedBatch | None:
        """Find the rows of a slice that are in memory, all in one piece."""
        if len(slices) > 1 or not isinstance(rows := slices[0], RowRange):
            return None
        found: pa.RecordBatch | None = rows.source.resident(feed.columns)
        if found is None or (feed.batch and feed.batch.table is found):
            return feed.batch if found is not None else None
        return ExportedBatch(found)

    def _check(self) -> int:
        """Count the rows that break a PRIMARY KEY."""
        for check, added, repeats, number in self._watched:
            if repeats[number]:
                repeats[number] = 0  # NB: a run that has no answer leaves it as it is
                check.suspect(*added.rows())
        names, pools = self._store.dictionary, self._containers
        return sum(
            [check.duplicates(as_pool(pools[view]), names) for view, check in self._unique.items() if check.has_changes]
        )
