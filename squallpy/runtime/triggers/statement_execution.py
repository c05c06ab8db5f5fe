"""A statement at work: from the rows of a delta, through its steps, to what is added to its target.

ΔO(ck, ok) ⋈ M_C(ck) ⋈ M_L(ok)    →    rows of ΔO, probe M_C, probe M_L, multiply payloads, add to Q

Lookups by equality, comparisons of keys and products of payloads are a call of a kernel (`kernels/statement_steps.py`).
What else a statement asks for, ranges and what only expressions tell, is done between two of its calls.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from squallpy.base.rings import Cofactor, LaneRing, Payload, Ring
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column, Expr
from squallpy.physical.plan import Derive, FilterStep, Let, Lookup, Update
from squallpy.program.calculus import lifted
from squallpy.runtime.auxiliary.groups import RowsOf
from squallpy.runtime.auxiliary.maintainer import TouchTracker
from squallpy.runtime.compiled.functions import CompiledRun
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, full
from squallpy.runtime.joiners.joiner import ChangeTracker
from squallpy.runtime.kernels import statement_steps
from squallpy.runtime.kernels.content_hash import hash_columns
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_columns import fill_reals, pack
from squallpy.runtime.kernels.pool import Pool, as_pool
from squallpy.runtime.kernels.sorted_index import SortedIndex
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta, decode, encode
from squallpy.runtime.messages.grouping import as_doubles, number
from squallpy.runtime.triggers.duplicate_keys import KeyCheck
from squallpy.runtime.triggers.lifted_rows import LiftedRows
from squallpy.runtime.triggers.range_lookups import Bounds, Ranges, overlaid
from squallpy.runtime.triggers.statement_assembly import Assembly, StepProgram, assemble, computed_ring

CHUNK = 1 << 14  # rows of a delta joined at a time: what a step makes of them is to stay in the cache
Noted = TouchTracker | ChangeTracker | KeyCheck  # who is told what is added to a pool, before it is
Keeper = Callable[[Words], Words]  # from the keys of an outcome to the rows that are kept
PAIRS = 1 << 22  # pairs that a scan or a range makes at a time


class _Rows:
    """Intermediate rows of a join: a column for each register, and for each source the address of each row's payload.

    `kept` holds the memory of addresses outside of pools.
    """

    def __init__(self, columns: Words, places: Words, kept: tuple[Words, ...]) -> None:
        self.columns, self.places, self.kept = columns, places, kept

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def pick(self, chosen: Words) -> "_Rows":
        return _Rows(self.columns.take(chosen, axis=1), self.places.take(chosen, axis=1), self.kept)

    def hold(self, source: int, words: Words, rows: Words | None = None, offset: int = 0) -> None:
        """Take rows of a matrix (None: one row each), from word `offset` on, as the payloads of a source."""
        self.kept = (*self.kept, words)
        rows = np.arange(len(self)) if rows is None else rows
        self.places[source] = words.ctypes.data + 8 * offset + 8 * words.shape[1] * rows


class _TooManyPairs(Exception):
    """A range makes more pairs of the rows than fit in memory at a time."""


class RunnableStatement:
    """An update made runnable."""

    def __init__(
        self, update: Update, payloads: Mapping[str, Payload], auxiliary: Mapping[str, RowsOf] = MappingProxyType({})
    ) -> None:
        self.update, self.delta, self.target = update, update.delta, update.target
        self._code = assemble(update, payloads, {name: rows.plan for name, rows in auxiliary.items()})
        self._payload = payloads[update.delta]
        self._variables = {v.id: v for v in _variables(update)}
        self._functions: dict[int, VectorFunction] = {
            i: compile_expression(part.predicate if isinstance(part, FilterStep) else part.value)
            for i, part in enumerate(self._code.parts)
            if isinstance(part, FilterStep | Let)
        }
        self._counted = all(ring is Ring.COUNT for ring in self._payload.rings)
        lookups = [s for s in update.steps if isinstance(s, Lookup)]
        self._scanned = [s.source for s in lookups if s.method == "scan"]
        self._ranges = {step: Ranges(step) for step in lookups if step.range}
        self._auxiliary = auxiliary
        self._numbers = {id(step): n for n, step in enumerate(lookups, 1)}
        rings = payloads[update.target].rings
        computed = ((_value_of(factor), ring) for factor, ring in self._code.computed)
        self._computed = [(compile_expression(value), value, ring) for value, ring in computed]
        self._program: Words | None = None  # all there is to do, if it is one program
        if not self._code.parts and not self._computed:
            self._program = np.empty(0, np.int64)
        elif len(self._code.parts) == 1 and not self._computed and isinstance(self._code.parts[0], StepProgram):
            self._program = self._code.parts[0].program
        same = update.variables == update.keys and self._payload == payloads[update.target]
        whole = same and update.picks == tuple(range(len(rings)))
        self._between, self._added, self._searched, self._counts = 0, 0, 0, (0, 0)
        programs = [part for part in self._code.parts if isinstance(part, StepProgram) and part.frames]
        self._lookups = [(part.program.data, [at for at, _ in part.frames]) for part in programs]
        delta_keys = {v.id for v in update.variables}
        self._apart = {s for s in self._ranges if delta_keys <= {*s.live, *(v.id for _, v in s.bound_keys)}}
        self._lifted = LiftedRows.of(update, payloads)
        self._plain = whole and not update.steps and all(lane == () for lane in update.lanes)

    @property
    def whole_program(self) -> Assembly | None:
        """The statement as one program and an outcome; None if there is more to do than a kernel does with these."""
        if self._lifted or self._scanned or self.update.keep is not None or self._program is None:
            return None
        return None if any(part.noted for part in self._code.parts if isinstance(part, StepProgram)) else self._code

    @property
    def is_plain(self) -> bool:
        """True if it adds the rows of the delta as they are."""
        return self._plain and self.update.keep is None

    @property
    def work(self) -> int:
        """Records that its lookups have found so far, and rows that it has added: what its cost follows from."""
        return self._counted_in(statement_steps.FOUND) + self._between + self._added

    @property
    def count_compared(self) -> int:
        """Number of comparisons in lookups so far, with records or bounds.

        Each step of a search counts, each row that is hashed, and each record that is found, even if a later step drops
        it.
        """
        return self._counted_in(statement_steps.TRIED) + self._between + self._searched

    @property
    def pairs(self) -> int:
        """Rows that its lookups have made so far: those that it has added."""
        return self._added if self._numbers else 0

    def take_counts(self) -> tuple[int, int]:
        """Return how many comparisons and pairs came since the last call."""
        if not self._numbers:
            return 0, 0
        before, self._counts = self._counts, (self.count_compared, self.pairs)
        return self._counts[0] - before[0], self._counts[1] - before[1]

    def _counted_in(self, word: int) -> int:
        count, there = 0, word - statement_steps.FRAME
        for program, frames in self._lookups:
            for frame in frames:
                count += program[frame + there]
        return count

    def run(
        self,
        delta: Delta,
        pools: Mapping[str, Container],
        dictionary: Dictionary,
        touched: Noted | None = None,
        keep: Keeper | None = None,
    ) -> None:
        """Evaluate the statement for a delta, and add the outcome to its target.

        keep: selects the rows of the outcome that belong to this partition. touched: notes the groups of the target
        that change.
        """
        target = pools[self.target]
        if self._plain:
            self._added += len(delta.keys)
            _add(target, np.ascontiguousarray(delta.keys), np.ascontiguousarray(delta.words), touched, keep)
            return
        if self._lifted and isinstance(target, Pool) and not (touched or keep or target.slices or target.sorted):
            self._added += len(delta.keys)
            self._lifted.add(delta, target)
            return
        for part in self._code.parts:
            if isinstance(part, StepProgram):
                program = part.program.data  # NB: an array takes longer to be told one of its words
                for position, source in part.frames:
                    program[position] = as_pool(pools[source]).address
                for position, aux in part.noted:
                    part.program[position : position + 2] = self._auxiliary[aux].noted
        rows, chunk = len(delta.keys), CHUNK
        for source in self._scanned:  # every row of a chunk meets every record
            chunk = max(1, min(chunk, PAIRS // max(1, len(pools[source]))))
        start = 0
        if self._program is not None and rows <= chunk:
            outcome = self._run(np.ascontiguousarray(delta.keys), np.ascontiguousarray(delta.words), pools, dictionary)
            self._added += len(outcome[0])
            _add(target, *outcome, touched, keep)
            start = rows
        while start < rows:
            keys, words = (np.ascontiguousarray(m[start : start + chunk]) for m in (delta.keys, delta.words))
            try:
                outcome = self._run(keys, words, pools, dictionary)
            except _TooManyPairs:
                chunk = len(keys) // 2
                continue
            self._added += len(outcome[0])
            _add(target, *outcome, touched, keep)
            start += chunk

    def _run(self, keys: Words, words: Words, pools: Mapping[str, Container], names: Dictionary) -> tuple[Words, Words]:
        """Compute what rows of the delta add to the target."""
        code = self._code
        if self._program is not None:
            return statement_steps.run(self._program, code.outcome, keys, words, code.width, code.sources)
        rows = _Rows(*statement_steps.loaded(keys, words, code.width, code.sources), (words,))
        for i, part in enumerate(code.parts):
            match part:
                case StepProgram(program):
                    rows = _Rows(*statement_steps.joined(program, rows.columns, rows.places), rows.kept)
                case Lookup(row=None):
                    index, ranges = pools[part.source].sorted[part.index], self._ranges[part]
                    before = index.compared + ranges.count_tried
                    try:
                        rows = self._look_up(part, rows, index, names)
                    finally:  # NB: also what is to be done again, with fewer rows
                        self._searched += index.compared + ranges.count_tried - before
                    self._between += len(rows)
                case Lookup():
                    rows = self._look_through(part, rows, as_pool(pools[part.source]), names)
                    self._between += len(rows)
                case FilterStep():
                    true = np.broadcast_to(is_true(self._functions[i](self._frame(rows, names))), len(rows))
                    rows = rows if true.all() else rows.pick(np.flatnonzero(true))
                case Let(variable, expr):
                    value = self._functions[i](self._frame(rows, names))
                    rows.columns[code.registers[variable.id]] = encode(value, variable, len(rows), names, expr)
            if not len(rows):
                break
        frame, first = self._frame(rows, names), code.sources - len(self._computed)
        for source, (function, computed, ring) in enumerate(self._computed, first):
            rows.hold(source, _scalar(function(frame), computed, len(rows), ring))
        return statement_steps.emitted(code.outcome, rows.columns, rows.places)

    def _look_up(self, step: Lookup, rows: _Rows, index: SortedIndex, names: Dictionary) -> _Rows:
        """Join rows with the records of their ranges, the nearest or highest of those, or their sum."""
        ranges, keys, source = self._ranges[step], self._gather_bound(step, rows), self._numbers[id(step)]
        assert step.range is not None
        variable = step.range.variable

        def framed(words: Words | None, chosen: Words | None) -> VectorFrame:
            some = rows if chosen is None else rows.pick(chosen)
            return self._frame(some, names, {} if words is None else {variable.id: words})

        bounds = ranges.find(index, keys, framed, names)
        if step.method == "sum":
            sums = index.sum_ranges(keys, *bounds)
            found = np.flatnonzero(sums.any(axis=1))
            out = rows.pick(found)
            out.hold(source, sums, found)
            return out
        if step.method in ("nearest", "highest"):
            if step.method == "nearest":
                places = index.find_ends(keys, *bounds, greatest=step.range.rising is None)
            else:
                places = index.find_highest(keys, *bounds)
            found = np.flatnonzero(places >= 0)
            return self._join_places(step, rows.pick(found), index, places[found])
        others = ranges.find_unordered(index, keys)
        alike = source == 1 and self._counted and step not in self._apart  # may rows only differ in their ranges?
        if alike and len(rows) > 1 and not len(others[0]):
            rows, keys, bounds = self._overlay(step, rows, keys, bounds)
        firsts, counts = index.find_ranges(keys, *bounds)
        if len(rows) > 1 and counts.sum() > PAIRS:
            raise _TooManyPairs
        found, places = index.list_ranges(firsts, counts)
        if len(others[0]):
            true = ranges.test(framed(index.column(index.ranged, others[1]), others[0]))
            found, places = np.append(found, others[0][true]), np.append(places, others[1][true])
        return self._join_places(step, rows.pick(found), index, places)

    def _join_places(self, step: Lookup, rows: _Rows, index: SortedIndex, places: Words) -> _Rows:
        """Join rows with the records at places of an index, one each."""
        for position, v in step.binds:
            if v.id in step.live:
                rows.columns[self._code.registers[v.id]] = index.column(position, places)
        rows.hold(self._numbers[id(step)], index.entries, places, index.payload_at)
        return rows

    def _look_through(self, step: Lookup, rows: _Rows, pool: Pool, names: Dictionary) -> _Rows:
        """Extend rows by those that an auxiliary relation makes of the records that they name."""
        assert step.row is not None
        found, item = self._auxiliary[step.row.relation](
            pool, self._gather_bound(step, rows), step.row.is_before, names
        )
        out = rows if found.all() else rows.pick(np.flatnonzero(found))
        for title, v in step.row.fields:
            if v.id in step.live:
                words = encode(item(title), v, len(rows), names)
                out.columns[self._code.registers[v.id]] = words if out is rows else words[found]
        return out

    def _overlay(self, step: Lookup, rows: _Rows, keys: Words, bounds: Bounds) -> tuple[_Rows, Words, Bounds]:
        """Merge rows that only differ in their ranges to rows whose ranges do not overlap; rows that all differ
        otherwise stay."""
        registers = self._code.registers
        bound = {v.id for _, v in step.binds}
        live = sorted({registers[id] for id in step.live if id in registers and id not in bound})
        groups = np.concatenate([keys, rows.columns[live].T], axis=1)
        if _all_differ(groups):
            return rows, keys, bounds
        words = statement_steps.payloads(np.ascontiguousarray(rows.places[0]), self._payload.width)
        chosen, bounds, counts = overlaid(groups, bounds, words)
        out = rows.pick(chosen)
        out.hold(0, counts)
        return out, keys.take(chosen, axis=0), bounds

    def _gather_bound(self, step: Lookup, rows: _Rows) -> Words:
        """Gather the values by which a lookup looks, row by row."""
        return np.ascontiguousarray(rows.columns[[self._code.registers[v.id] for _, v in step.bound_keys]].T)

    def _frame(self, rows: _Rows, names: Dictionary, more: Mapping[int, Words] | None = None) -> VectorFrame:
        """Make a frame of the rows' variables, and of `more` of them."""

        def load(id: int) -> Vec:
            words = more[id] if more and id in more else rows.columns[self._code.registers[id]]
            return decode(np.ascontiguousarray(words), self._variables[id], names)

        return VectorFrame(len(rows), {}, load)


def statements_of_checked(
    runs: Iterable[CompiledRun],
    steps: Sequence[Update | Derive],
    payloads: Mapping[str, Payload],
    auxiliary: Mapping[str, RowsOf],
) -> dict[CompiledRun, list[RunnableStatement]]:
    """Make the statements of functions that may have no answer, which are interpreted then."""
    return {
        run: [
            RunnableStatement(s, payloads, auxiliary)
            for s in steps[run.code.first : run.code.stop]
            if isinstance(s, Update)
        ]
        for run in runs
        if run.code.is_checked
    }


def _all_differ(rows: Words) -> bool:
    """True if no two rows are equal; False also if two hashes are."""
    if not rows.shape[1]:
        return len(rows) < 2
    hashes = np.sort(hash_columns(list(rows.T)))
    return bool((hashes[1:] != hashes[:-1]).all())


def _add(target: Container, keys: Words, words: Words, touched: Noted | None, keep: Keeper | None) -> None:
    if keep is not None:
        mine = keep(keys)
        keys, words = keys.take(mine, axis=0), words.take(mine, axis=0)
    if not len(keys):
        return
    if touched is not None:
        touched.note(target, keys, words)
    target.upsert(keys, words)


def _value_of(factor: Expr) -> Expr:
    """Return what is computed for a factor: the value if it lifts one."""
    found = lifted(factor)
    return found[0] if found else factor


def _scalar(vec: Vec, expr: Expr, rows: int, target: LaneRing) -> Words:
    """Compute a factor as a lane of `computed_ring`, or a value to be lifted as a double."""
    if isinstance(target, Cofactor):
        return np.ascontiguousarray(as_doubles(vec, expr, rows)).view(np.int64).reshape(-1, 1)
    values, valid = full(vec, expr.type, rows)
    if expr.type.kind is Kind.DOUBLE:
        words = np.empty((rows, target.words), np.int64)
        fill_reals(words, 0, target, values, None if valid is None else valid.astype(np.int64))
        return words
    return pack(number(Vec(values, valid), expr.type, rows), computed_ring(expr.type, target))


def _variables(update: Update) -> list[Column]:
    found = list(update.variables)
    for step in update.steps:
        match step:
            case Lookup(_, _, _, _, binds, range=ranged, row=row):
                found += [v for _, v in (*binds, *(row.fields if row else ()))]
                found += [ranged.variable] if ranged else []
            case Let(variable):
                found.append(variable)
    return found
