"""Results: the top-level views of queries on the driver, and the rows that are printed of them, in one way or several.

Each batch brings the change ΔQ of a view; each of its outputs answers with the printed rows that went and that came.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.rings import Payload, Ring
from squallpy.logical.expressions import Column, Literal
from squallpy.physical.plan import Plan, PoolPlan
from squallpy.program.output_spec import OutputSpec
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.vectors import VectorFrame, full
from squallpy.runtime.kernels.batch_driver import ADDED, COMPARED, LISTED, SKIPPED
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import Delta, encode
from squallpy.runtime.output_rows import NO_TEXTS, Printer
from squallpy.runtime.result.noted_rows import NotedRows
from squallpy.runtime.result.result_scan import PIECE, CopiedRows, ResultScan, RowScan, Texts
from squallpy.runtime.result.top_n import FirstGroups, TopK
from squallpy.runtime.sinks.written_changes import WrittenChanges
from squallpy.runtime.state.state_store import Store, StoreLayout
from squallpy.runtime.triggers.duplicate_keys import KeyCheck
from squallpy.runtime.triggers.stage_executor import driver_layouts, result_layouts

Tables = tuple[pa.Table, pa.Table]


class Changes:
    """Printed rows that a batch took away and added, made when they are first read, which has to be before the next
    batch.

    Args:
        printed: The two tables, or how they are made.
        names: Names of their columns, if they are others.
    """

    def __init__(self, printed: Tables | Callable[[], Tables], names: Sequence[str] | None = None) -> None:
        self._printed, self._names = printed, names

    @cached_property
    def _tables(self) -> Tables:
        deletes, inserts = self._printed() if callable(self._printed) else self._printed
        return (
            (deletes, inserts) if self._names is None else (_named(deletes, self._names), _named(inserts, self._names))
        )

    @property
    def deletes(self) -> pa.Table:
        """Rows that are printed no more."""
        return self._tables[0]

    @property
    def inserts(self) -> pa.Table:
        """Rows that are printed now."""
        return self._tables[1]

    @property
    def rows(self) -> int:
        """The number of rows that went and came."""
        return len(self.deletes) + len(self.inserts)

    def renamed(self, names: Sequence[str]) -> "Changes":
        """Return the same rows, their columns under other names."""
        return Changes(lambda: self._tables, names)


BatchChanges = tuple[Changes | WrittenChanges | None, ...]
"""The changes of a batch by query; None where they are not wanted."""


def result_layout(plan: Plan) -> StoreLayout:
    """Lay out the pools of the driver: the results, and those of its stage."""
    return StoreLayout((*result_layouts(plan, partitioned=False), *driver_layouts(plan)))


Equal = Mapping[int, Literal]
NO_TESTS: Equal = MappingProxyType({})
Wanted = bool | Sequence[bool]
"""True if changes are wanted, of all queries or by each."""


class Results:
    """The printed rows of a plan's queries, of which several may have one output, and several outputs one result.

    Args:
        wanted: The changes of batches are wanted, not only the results.
        partitioned: Those that partitions keep, of which this is one; else only the others are kept.
    """

    def __init__(self, plan: Plan, wanted: Wanted = True, partitioned: bool = False) -> None:
        program = plan.program
        self._outputs = [
            Output(output, plan.results[of]) for output, of in zip(program.outputs, program.result_of, strict=True)
        ]
        own = {n for n, pool in enumerate(plan.results) if (pool.name in plan.partitioned) is partitioned}
        self._kept = {number for number, of in enumerate(program.result_of) if of in own}
        queries = plan.printed or [(n, tuple(each.schema.names)) for n, each in enumerate(self._outputs)]
        asked = [wanted] * len(queries) if isinstance(wanted, bool) else wanted
        printed = {n: self._outputs[n] for (n, _), yes in zip(queries, asked, strict=True) if yes and n in self._kept}
        for output in printed.values():
            output.is_followed = True
        self._wanted_tops = [output for output in printed.values() if output.is_cut]
        self._results = [
            Result(plan, number, {n: output for n, output in printed.items() if program.result_of[n] == number})
            for number in range(len(plan.results))
        ]
        self._result_of = [self._results[of] for of in program.result_of]
        self._own_results = [self._results[number] for number in sorted(own)]
        self._queries = queries
        self.schemas = tuple(_named(self._outputs[n].schema.empty_table(), names).schema for n, names in queries)
        self._shown = [(n, names, self._outputs[n].schema.names != [*names]) for n, names in queries]
        self._shows_all = [(n, renames) for n, _, renames in self._shown] == [
            (n, False) for n in range(len(self._outputs))
        ]
        every = range(len(self._results))  # of which each has one output, which is printed as it is
        self._is_plain = self._shows_all and [*program.result_of] == [*every] and [*printed] == [*every]

    def prepare(self, store: Store) -> None:
        """Look at what is printed before a batch that changes results by itself."""
        for output in self._wanted_tops:
            output.head(store)

    @property
    def ways(self) -> tuple[int, ...]:
        """Ways in which the driver of compiled batches may apply the change of each result."""
        return tuple(each.way for each in self._results)

    def apply(self, store: Store, changes: Sequence[Delta | NotedRows], first: bool) -> tuple[Changes | None, ...]:
        """Add changes, some from each partition, to the views; the printed rows of each query that went and came.

        `first`: nothing has been printed before this batch.
        """
        if self._is_plain and changes and isinstance(first_rows := changes[0], NotedRows):
            if len(changes) == 1:  # NB: of a batch of a few rows, each step of Python is a part
                return (self._results[0].noted(first_rows, store),)
            noted = zip(self._results, changes, strict=True)
            return tuple([each.noted(rows, store) for each, rows in noted if isinstance(rows, NotedRows)])
        found: dict[int, Changes] = {}
        for each in self._own_results:
            own = changes if len(self._results) == 1 else [change for change in changes if change.name == each.name]
            found |= each.apply(store, own, first)
        if self._shows_all:
            return tuple(map(found.get, range(len(self._outputs))))
        return tuple(
            (some := found.get(number)) and (some.renamed(names) if renames else some)
            for number, names, renames in self._shown
        )

    @property
    def duplicates(self) -> int:
        """Rows of the last batch that broke a PRIMARY KEY."""
        return sum(each.duplicates for each in self._results)

    def table(self, store: Store, query: int, equal: Equal = NO_TESTS) -> pa.Table:
        """List all printed rows of a query, in order and cut to its limit.

        Args:
            equal: Values that columns of the wanted rows have, by position; others may be left out.
        """
        number, names = self._queries[query]
        return _named(self._final(number, store, equal), names)

    def scan(self, store: Store, query: int, equal: Equal = NO_TESTS) -> RowScan:
        """Begin to list the rows of a query (`table`), so that batches may go on meanwhile where these are many."""
        number, names = self._queries[query]
        output, result = self._outputs[number], self._result_of[number]
        if equal or output.is_cut or number not in self._kept or len(store.pool(result.name)) <= PIECE:
            return CopiedRows(self.table(store, query, equal))
        return result.scan(store, output, names)

    def end_scans(self) -> None:
        """End all scans, whose rows cannot be had any more."""
        for each in self._results:
            each.end_scans()

    def _final(self, number: int, store: Store, equal: Equal = NO_TESTS) -> pa.Table:
        output = self._outputs[number]
        return output.final(store, equal) if number in self._kept else output.schema.empty_table()

    def final(self, store: Store) -> tuple[pa.Table, ...]:
        """List all printed rows of each query, in order and cut to its limit; none where partitions keep them."""
        found = [self._final(number, store) for number in range(len(self._outputs))]
        return tuple(_named(found[number], names) for number, names in self._queries)


def _named(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    return rows if rows.column_names == [*names] else rows.rename_columns([*names])


class Result:
    """One of a plan's results, of which some outputs are printed in each batch.

    Args:
        printed: Those outputs, by number.
    """

    def __init__(self, plan: Plan, number: int, printed: "Mapping[int, Output]") -> None:
        pool = plan.results[number]
        self.name, self._pool, self._keeps_results, self._printed = pool.name, pool, plan.keeps_results, printed
        self._only = [*printed.values()][:1]
        self._scratch = Pool(len(pool.keys), pool.payload)
        unique = next((view for view in plan.unique if view.view == self.name), None)
        self._check = KeyCheck(unique, pool.keys) if unique and plan.keeps_results else None
        self.duplicates = 0
        """Rows of the last batch that broke a PRIMARY KEY."""
        self._scans: list[ResultScan] = []

    @property
    def way(self) -> int:
        """The way in which the driver of compiled batches may apply changes (`batch_driver`)."""
        if self._check:
            return SKIPPED
        return ADDED if not self._printed else COMPARED if self._keeps_results else LISTED

    def apply(self, store: Store, changes: Sequence[Delta | NotedRows], first: bool) -> dict[int, Changes]:
        """Add changes, one from each partition, to the view; by output, the printed rows that went and came.

        `first`: nothing has been printed before this batch.
        """
        if changes and isinstance(rows := changes[0], NotedRows):
            self._note(store, rows)
            return {n: output.noted(rows, store, self._keeps_results) for n, output in self._printed.items()}
        return self._add([change for change in changes if isinstance(change, Delta)], store, first)

    def noted(self, rows: NotedRows, store: Store) -> Changes:
        """Print a change that is done, of a view with one output."""
        if self._scans:
            self._note(store, rows)
        return self._only[0].noted(rows, store, self._keeps_results)

    def scan(self, store: Store, output: "Output", names: Sequence[str]) -> RowScan:
        """Begin to list all rows that an output prints, under some names, while batches go on."""
        pool, dictionary = store.pool(self.name), store.dictionary

        def listed(keys: Words, words: Words, texts: Texts) -> pa.Table:
            return _named(output.listed(dictionary, keys, words, texts), names)

        def end(scan: ResultScan) -> None:
            self._scans = [each for each in self._scans if each is not scan]

        scan = ResultScan(self._pool.keys, pool, dictionary, listed, output.is_ordered, end)
        self._scans.append(scan)
        return scan

    def end_scans(self) -> None:
        """End all scans, whose rows cannot be had any more."""
        for scan in self._scans:
            scan.is_valid = False
        self._scans = []

    def _note(self, store: Store, rows: NotedRows) -> None:
        """Tell scans which groups have changed."""
        if not self._scans or not rows.settled().count:
            return
        if self.way != COMPARED:
            self.end_scans()
            return
        pool, (keys, words) = store.pool(self.name), rows.take(len(self._pool.keys), self._pool.payload.width, 2)
        for scan in self._scans:
            scan.note(pool, keys, words[: len(keys)], words[len(keys) :])

    def _add(self, changes: Sequence[Delta], store: Store, first: bool) -> dict[int, Changes]:
        pool = store.pool(self.name)
        keys, words = self._merge(changes)
        if not self._pool.keys and not len(keys):
            keys, words = _no_rows(self._pool)
        if self._check:
            self._check.note(pool, keys, words)
        printed = self._apply(store, keys, words, first)
        self.duplicates = self._check.duplicates(pool, store.dictionary) if self._check else 0
        return printed

    def _apply(self, store: Store, keys: Words, words: Words, first: bool) -> dict[int, Changes]:
        pool, printed = store.pool(self.name), self._printed
        if not printed and not self._scans:
            pool.upsert(keys, words)
            return {}
        if not len(keys) and not first:
            return {n: output.nothing for n, output in printed.items()}
        if not self._keeps_results:
            keys, words = keys.copy(), words.copy()  # NB: they stand in memory that the next batch uses
            return {n: output.grown(keys, words, store.dictionary) for n, output in printed.items()}
        olds = {n: None if first else output.head(store) for n, output in printed.items() if output.is_cut}
        before = pool.get(keys) if self._scans or len(olds) < len(printed) else None
        pool.upsert(keys, words)
        after = pool.get(keys)
        for scan in self._scans:
            assert before is not None
            scan.note(pool, keys, before, after)
        found = {n: printed[n].moved(store, old, keys, after) for n, old in olds.items()}
        if before is not None:
            keys, words = np.concatenate([keys, keys]), np.concatenate([before, after])
            others = {n: output for n, output in printed.items() if not output.is_cut}
            found |= {n: output.compared(keys, words, first, store.dictionary) for n, output in others.items()}
        return found

    def _merge(self, changes: Sequence[Delta]) -> tuple[Words, Words]:
        """Merge changes of a group from several partitions."""
        if len(changes) == 1:
            return changes[0].keys, changes[0].words
        self._scratch.clear()
        for change in changes:
            self._scratch.upsert(change.keys, change.words)
        return self._scratch.rows()


def _no_rows(pool: PoolPlan) -> tuple[Words, Words]:
    """Make the one group that a view without keys has, also over nothing."""
    return np.empty((1, 0), np.int64), np.zeros((1, pool.payload.width), np.int64)


class Output:
    """The printed rows of one output of a result."""

    def __init__(self, output: OutputSpec, pool: PoolPlan) -> None:
        self._output, self._pool = output, pool
        self._printer = Printer(output, pool)
        self._groups = Pool(len(pool.keys), Payload((Ring.COUNT,)))
        self.schema = self._printer.schema
        self.nothing = Changes((self.schema.empty_table(), self.schema.empty_table()))
        cut = (output.limit is not None or output.offset) and not output.single
        self.is_followed = False
        """True if it is told of each change, so that its first groups are known."""
        self._top = TopK(self._printer, pool, output.offset, output.limit) if cut else None

    @property
    def is_cut(self) -> bool:
        """True if only the first groups are printed."""
        return self._top is not None

    @property
    def is_ordered(self) -> bool:
        """True if rows are printed in one order."""
        return bool(self._output.order)

    def head(self, store: Store) -> FirstGroups:
        """Return the printed groups of one that is cut, before a batch."""
        assert self._top
        return self._top.before(store)

    def noted(self, rows: NotedRows, store: Store, with_old: bool) -> Changes:
        """Print a change that is done.

        Args:
            with_old: What groups were before has been noted, too.
        """
        if rows.settle is None:
            if not rows.count:
                return self.nothing
        elif self._top and not rows.settled().count:
            return self.nothing
        if self._top:
            old, count = self._top.before(store), rows.settled().count
            return self._new_head(store, old, self._top.after(store, rows.words, count, 2))
        return self._later(store.dictionary, self._pairs if with_old else self._singles, rows)

    def moved(self, store: Store, old: FirstGroups | None, keys: Words, words: Words) -> Changes:
        """Print the change of the first groups, when some groups have these payloads now."""
        assert self._top
        noted = np.concatenate([keys.ravel(), words.ravel()])
        return self._new_head(store, old, self._top.after(store, noted, len(keys), 1))

    def _new_head(self, store: Store, old: FirstGroups | None, new: FirstGroups) -> Changes:
        """Print the change from some first groups to others."""
        return self.nothing if new is old else self._moves(old, new, store.dictionary)

    def compared(self, keys: Words, words: Words, first: bool, names: Dictionary) -> Changes:
        """Print the change of groups, given as they were, then as they are."""
        return self._later(names, self._compared, keys, words, first)

    def grown(self, keys: Words, words: Words, names: Dictionary) -> Changes:
        """Print the new rows of a result that is not stored."""
        return self._later(names, self._come, keys, words)

    def _pairs(self, names: Dictionary, rows: NotedRows) -> Tables:
        keys, words = rows.take(len(self._pool.keys), self._pool.payload.width, 2)
        return self._compared(names, np.concatenate([keys, keys]), words, False)

    def _singles(self, names: Dictionary, rows: NotedRows) -> Tables:
        return self._come(names, *rows.take(len(self._pool.keys), self._pool.payload.width, 1))

    def _later(self, names: Dictionary, printed: Callable[..., Tables], *of: Any) -> Changes:
        """Let rows be printed when they are read, under the present numbers of strings."""
        return Changes(partial(_printed_as_of, names, names.edition, printed, of))

    def _compared(self, names: Dictionary, keys: Words, words: Words, first: bool) -> Tables:
        """List the printed changes of groups, given as they were, then as they are."""
        frame = self._printer.frame(keys, words, names)
        times, half = self._printer.times(frame, words), len(keys) // 2
        gone = np.zeros_like(times[:half]) if first else times[:half]
        return self._printer.changes(frame, gone, times[half:])

    def _come(self, names: Dictionary, keys: Words, words: Words) -> Tables:
        """List the printed changes of a result that is not stored: it only grows, so there is nothing to compare
        with."""
        frame = self._printer.frame(keys, words, names)
        times = self._printer.times(frame, words)
        if (times != 1).any():
            frame = frame.pick(np.repeat(np.arange(len(keys)), times))
        return self.nothing.deletes, self._printer.table(frame)

    def final(self, store: Store, equal: Equal = NO_TESTS) -> pa.Table:
        """List all printed rows, in order and cut to the limit; perhaps only those with some values."""
        if self._top and self.is_followed:
            head = self._top.before(store)
            frame = self._printer.frame(head.keys, head.words, store.dictionary)
            return self._printer.table(frame.pick(np.repeat(np.arange(len(head.keys)), head.times)))
        keys, words = store[self._pool.name].rows()
        if equal and (rows := self._find(store, equal)) is not None:
            keys, words = keys[rows], words[rows]
        else:
            keys, words = keys.copy(), words.copy()  # NB: what is printed may be their memory
        if self._output.single and not len(keys):
            keys, words = _no_rows(self._pool)
        return self.listed(store.dictionary, keys, words)

    def listed(self, names: Dictionary, keys: Words, words: Words, texts: Texts = NO_TEXTS) -> pa.Table:
        """Print groups in order, cut to the limit."""
        frame = self._printer.frame(keys, words, names, texts)
        times = self._printer.times(frame, words)
        if not self._output.order and not self._top and (times == 1).all():
            return self._printer.table(frame)
        rows = np.repeat(np.arange(len(keys)), times)
        if self._output.order or self._top:
            rows = self._printer.sort_rows(frame, rows)
        stop = None if self._output.limit is None else self._output.offset + self._output.limit
        rows = rows[self._output.offset : stop]
        return self._printer.table(frame.pick(rows))

    def _find(self, store: Store, equal: Equal) -> Words | None:
        """Find the records whose keys have some values; None where no key says which are wanted."""
        if self._output.limit is not None or self._output.offset or self._output.single:
            return None
        places = {key: place for place, key in enumerate(self._pool.keys)}
        wanted = dict[int, int]()
        for item, literal in equal.items():
            column = self._output.items[item][1]
            if isinstance(column, Column) and column in places and literal.type == column.type:
                value = full(compile_expression(literal)(VectorFrame(1, {})), column.type, 1)
                wanted[places[column]] = int(encode(value, column, 1, store.dictionary)[0])
        if not wanted:
            return None
        if len(wanted) == len(places):
            slots = store.pool(self._pool.name).probe(np.array([[wanted[place] for place in range(len(places))]]))
            return slots[slots >= 0]
        keys = store[self._pool.name].rows()[0]
        return np.flatnonzero(np.logical_and.reduce([keys[:, place] == value for place, value in wanted.items()]))

    def _moves(self, old: FirstGroups | None, new: FirstGroups, names: Dictionary) -> Changes:
        """List the changes between the first groups before and after the batch."""
        keys, words, times = self._align(old, new)
        moved = np.flatnonzero((words[0] != words[1]).any(axis=1) | (times[0] != times[1]))
        keys, printed, gone, come = np.tile(keys[moved], (2, 1)), np.concatenate(words[:, moved]), *times[:, moved]
        return self._later(names, self._moved_rows, keys, printed, gone, come)

    def _moved_rows(self, names: Dictionary, keys: Words, printed: Words, gone: Words, come: Words) -> Tables:
        return self._printer.changes(self._printer.frame(keys, printed, names), gone, come)

    def _align(self, old: FirstGroups | None, new: FirstGroups) -> tuple[Words, Words, Words]:
        """Align the groups of both, each once, with payloads and multiplicities before and after."""
        if old and np.array_equal(old.keys, new.keys):
            return new.keys, np.stack([old.words, new.words]), np.stack([old.times, new.times])
        heads = [(half, head) for half, head in enumerate((old, new)) if head]
        self._groups.clear()
        for _, head in heads:
            self._groups.upsert(head.keys, np.ones((len(head.keys), 1), np.int64))
        keys = self._groups.keys
        words = np.zeros((2, len(keys), self._pool.payload.width), np.int64)
        times = np.zeros((2, len(keys)), np.int64)
        for half, head in heads:
            at = self._groups.probe(head.keys)
            words[half, at], times[half, at] = head.words, head.times
        return keys, words, times


def _printed_as_of(names: Dictionary, edition: int, printed: Callable[..., Tables], of: Sequence[Any]) -> Tables:
    """Print rows while strings have the numbers of an edition."""
    assert names.edition == edition, "changes are read before the next batch"
    return printed(names, *of)
