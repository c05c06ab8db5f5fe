"""One program of a query: its views, its inputs as streams add to them, and its readings as last reported.

    program.step(batch's rows, sizes)     every reading is as if the program were evaluated on all rows so far

A batch is one update of rank k for each input, k the fewer of distinct rows and columns that it has cells in. A program
whose views cannot grow in place is evaluated anew where a dimension has grown; so it is where rows are taken away that
a semiring cannot subtract.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC
from squallpy.catalog.matrices import Matrix
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.physical.matrix.matrix_plan import MatrixProgramPlan
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.matrix.cells import Cells, as_words, of_words
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.runtime.matrix.maintenance_choice import reason_to_rebuild, report_decision
from squallpy.runtime.matrix.memory_check import check_memory
from squallpy.runtime.matrix.normalised_rows import NormalisedRows
from squallpy.runtime.matrix.reported_cells import CANCELLED, ReportedCells
from squallpy.runtime.matrix.rows_to_cells import CellRows, check_declared, sum_rows
from squallpy.runtime.matrix.sparse_view import SparseView, has_few_cells
from squallpy.runtime.matrix.stored_views import Array


@dataclass
class ChangedCells:
    """Changed cells of a batch as words: keys and multiplicities."""

    inputs: list[tuple[Words, Words]] = field(default_factory=list)
    """(input, i, j, value): cells of inputs that went and came; rows, where these are stored or cells are shares."""
    outputs: list[tuple[Words, Words]] = field(default_factory=list)
    """(reading, i, j, value)"""


class QueryProgram:
    """State of a program. Inputs and readings are numbered over all programs of a query, from the given ones on."""

    def __init__(
        self,
        kept: MatrixProgramPlan,
        matrices: Mapping[str, Matrix],
        first_input: int,
        first_reading: int,
        by_rows: bool,
    ) -> None:
        self.plan, self._matrices, self._ring = kept, matrices, kept.program.ring
        self._inputs = dict(enumerate(kept.program.inputs, first_input))
        self.subscriptions = {n: ReportedCells(r, self._ring) for n, r in enumerate(kept.readings, first_reading)}
        self.by_rows = by_rows and not self._ring.negates
        self._normalised = {i.name.name: NormalisedRows() for i in kept.program.inputs if matrices[i.name.name].shares}
        self._program: MaintainedProgram | None = None

    @property
    def inputs(self) -> int:
        """Number of matrices that it reads."""
        return len(self._inputs)

    def step(
        self, rows: Mapping[str, CellRows], sizes: Sizes, pool: Pool | None
    ) -> tuple[ChangedCells, dict[str, Any]]:
        """Apply the rows of a batch; returns changes and figures. Changes of inputs are among them if there is a pool,
        which holds those until now."""
        mine = {symbol: sizes[symbol] for symbol in self.plan.program.symbols()}
        changes, more, other = ChangedCells(), dict[str, Cells](), dict[str, Cells]()
        for number, source in self._inputs.items():
            name = source.name.name
            if not len(rows.get(name, ())):
                continue
            grows = True
            if self.by_rows:
                assert pool is not None
                cells, grows = self._cells_left(number, rows[name], pool, changes)
            elif name in self._normalised:
                cells = self._normalised_change(number, rows[name], changes)
            else:
                cells = self._without_residue(name, sum_rows(rows[name], self._ring))
            check_declared(self._matrices[name], cells)
            (more if grows else other)[name] = cells
        recorded = pool is not None and not self.by_rows
        before = self._values_before({n: c for n, c in more.items() if n not in self._normalised}) if recorded else {}
        figures = self._apply(mine, more, other)
        for number, source in self._inputs.items():
            if source.name.name in before:
                self._record(number, more[source.name.name], before[source.name.name], changes)
        self._compare_outputs(changes)
        return changes, figures

    def _without_residue(self, name: str, cells: Cells) -> Cells:
        """Change cells so that those that would be zero but for rounding are zero, as programs may compare them."""
        if self._ring is not ARITHMETIC:
            return cells
        before = self._values(name, cells)
        gone = np.abs(before + cells.values) <= CANCELLED * np.abs(before)
        return replace(cells, values=np.where(gone, -before, cells.values))

    def _cells_left(self, number: int, rows: CellRows, pool: Pool, changes: ChangedCells) -> tuple[Cells, bool]:
        """Compute cells from the rows that are left, and whether adding to the present cells gives the same."""
        own = np.column_stack([np.full(len(rows), number), rows.i, rows.j, as_words(rows.entries(self._ring))])
        changes.inputs.append((own, rows.mult))
        places = np.unique(own[:, :3], axis=0)
        _, slots = pool.slice(0, places)
        old_keys, old_mult = pool.keys_of(slots), pool.words_of(slots)[:, 0]
        old = self._sum_rows_left(places, old_keys, old_mult)
        new = self._sum_rows_left(places, np.vstack([old_keys, own]), np.concatenate([old_mult, rows.mult]))
        grows = bool((self._ring.add(old, new) == new).all())
        return Cells(places[:, 1], places[:, 2], new), grows

    def _normalised_change(self, number: int, rows: CellRows, changes: ChangedCells) -> Cells:
        """Compute the change of shares in each row of the matrix that is touched; empty cells become exactly 0."""
        name = self._inputs[number].name.name
        cells, own, mult = self._normalised[name].add(rows)
        changes.inputs.append((np.column_stack([np.full(len(own), number), own]), mult))
        return Cells(cells.rows, cells.cols, cells.values - self._values(name, cells)).merged(self._ring)

    def _sum_rows_left(self, places: Words, keys: Words, mult: Words) -> Array:
        """Sum, by ⊕, the rows that are at each place, given as keys and how often each came and went."""
        some, where = np.unique(np.vstack([places, keys[:, :3]]), axis=0, return_inverse=True)
        assert len(some) == len(places)
        rows, row = np.unique(np.column_stack([where.ravel()[len(places) :], keys[:, 3]]), axis=0, return_inverse=True)
        count = np.bincount(row.ravel(), mult, len(rows))
        there = rows[count > 0]
        out = np.full(len(places), self._ring.zero, self._ring.dtype)
        self._ring.add.at(out, there[:, 0], of_words(there[:, 1], self._ring.dtype))
        return out

    def _apply(self, sizes: Sizes, more: Mapping[str, Cells], other: Mapping[str, Cells]) -> dict[str, Any]:
        rank = max((cells.rank for cells in (*more.values(), *other.values())), default=0)
        program, maintained = self._program, self.plan.compiled.maintained
        grown = {symbol for symbol, size in sizes.items() if program is None or size > program.views.sizes[symbol]}
        is_singular = program is not None and program.singular is not None
        why = reason_to_rebuild(maintained, grown, is_first=program is None, is_singular=is_singular)
        if program is None or why:
            self._program = program = self._restart(sizes, more, other)
            return self._figures(program, rank, why)
        if grown:
            self._check_memory(sizes, {name: view.count for name, view in program.views.sparse.items()})
            program.grow(sizes)
        if other:
            mixed = {n: Cells(c.rows, c.cols, self._ring.add(self._values(n, c), c.values)) for n, c in more.items()}
            why = program.replace({**mixed, **other})
        elif more:
            why = program.add(more)
        return self._figures(program, rank, why)

    def _figures(self, program: MaintainedProgram, rank: int, why: str) -> dict[str, Any]:
        figures = report_decision(rank, why) | {"bytes": program.views.nbytes, "drift": program.counts.drift}
        return figures | ({"singular": program.singular.message} if program.singular else {})

    def _restart(self, sizes: Sizes, more: Mapping[str, Cells], other: Mapping[str, Cells]) -> MaintainedProgram:
        """Evaluate the program over its inputs with the changes of a batch."""
        cells, sparse = dict[str, Cells](), self._program.views.sparse if self._program else {}
        for name in self._extents(sizes).keys() - set(other):
            if self._program is None or name in sparse:
                old = sparse[name].cells() if name in sparse else Cells.none(self._ring)
                cells[name] = old + more[name] if name in more else old
        return self._start(sizes, cells, lambda source: self._whole_input(source, sizes, more, other))

    def _whole_input(
        self, source: MatrixInput, sizes: Sizes, more: Mapping[str, Cells], other: Mapping[str, Cells]
    ) -> Array:
        """Compute an input as a whole, with the changes of a batch."""
        name, values = source.name.name, self._zeros(source, sizes)
        if self._program is not None:
            old = self._program.read(name)
            values[: old.shape[0], : old.shape[1]] = old
        if name in more:
            cells = more[name]
            values[cells.rows, cells.cols] = self._ring.add(values[cells.rows, cells.cols], cells.values)
        if name in other:
            values[other[name].rows, other[name].cols] = other[name].values
        return values

    def _start(
        self, sizes: Sizes, cells: Mapping[str, Cells], whole: Callable[[MatrixInput], Array]
    ) -> MaintainedProgram:
        """Start the program over sparse inputs as cells, others as a whole, which are computed if memory allows."""
        extents = self._extents(sizes)
        sparse = {name: some for name, some in cells.items() if has_few_cells(len(some), extents[name], self._ring)}
        self._check_memory(sizes, {name: len(some) for name, some in sparse.items()})
        inputs = dict[str, Array | SparseView]()
        for source in self._inputs.values():
            name = source.name.name
            inputs[name] = SparseView(sparse[name], extents[name], self._ring) if name in sparse else whole(source)
        program = MaintainedProgram(self.plan.compiled.maintained, inputs, self.plan.compiled.options.strategy)
        if self._program is not None:
            program.counts = self._program.counts
        return program

    def _check_memory(self, sizes: Sizes, cells: Mapping[str, int]) -> None:
        """Check that views and readings fit in memory, some inputs as so many cells; SQ5013."""
        shapes = {n.name: (n.rows.at(sizes), n.cols.at(sizes)) for n in self.plan.program.names()}
        more = sum(each.nbytes(shapes[each.reading.output]) for each in self.subscriptions.values())
        check_memory(self.plan.name, self.plan.compiled.maintained, sizes, more, cells)

    def _extents(self, sizes: Sizes) -> dict[str, tuple[int, int]]:
        """Compute the rows and columns of each input."""
        return {i.name.name: (i.name.rows.at(sizes), i.name.cols.at(sizes)) for i in self._inputs.values()}

    def _zeros(self, source: MatrixInput, sizes: Sizes) -> Array:
        return np.full((source.name.rows.at(sizes), source.name.cols.at(sizes)), self._ring.zero, self._ring.dtype)

    def _values_before(self, more: Mapping[str, Cells]) -> dict[str, Array]:
        return {name: self._values(name, cells) for name, cells in more.items()}

    def _values(self, name: str, cells: Cells) -> Array:
        """Return the entries of an input at places."""
        if self._program is None:
            return np.full(len(cells), self._ring.zero, self._ring.dtype)
        return self._program.views.at(name, cells.rows, cells.cols)

    def _record(self, number: int, cells: Cells, before: Array, changes: ChangedCells) -> None:
        after = self._values(self._inputs[number].name.name, cells)
        for values, mult in ((before, -1), (after, 1)):
            there = values != self._ring.zero
            columns = np.full(there.sum(), number), cells.rows[there], cells.cols[there], as_words(values[there])
            changes.inputs.append((np.column_stack(columns), np.full(len(columns[0]), mult)))

    def _compare_outputs(self, changes: ChangedCells) -> None:
        """Add the changed cells of readings to the changes."""
        assert self._program is not None
        touched = self._program.take_touched()
        for number, subscription in self.subscriptions.items():
            name = subscription.reading.output
            subscription.resize(self._program.views.shape(name))
            if touched is not None and name not in touched:
                continue
            read = partial(self._program.read, name) if name in self._program.views else None
            keys, mult = subscription.change(read, None if touched is None else touched[name])
            changes.outputs.append((np.column_stack([np.full(len(keys), number), keys]), mult))

    def restore(self, inputs: Words, mult: Words, shown: Words, sizes: Sizes) -> None:
        """Restore the state from words of inputs and of readings, keys that begin with their numbers."""
        mine = {symbol: sizes[symbol] for symbol in self.plan.program.symbols()}
        cells = {}
        for number, source in self._inputs.items():
            name, own = source.name.name, inputs[:, 0] == number
            if name in self._normalised:
                cells[name] = self._normalised[name].restore(inputs[own, 1:], mult[own])
                continue
            own &= mult > 0
            values = of_words(inputs[own, 3], self._ring.dtype)
            cells[name] = Cells(inputs[own, 1], inputs[own, 2], values).merged(self._ring)
        self._program = None
        self._program = self._start(mine, cells, lambda source: self._whole_input(source, mine, cells, {}))
        self._program.take_touched()  # NB: what is off in the last bit only is not told again
        for number, subscription in self.subscriptions.items():
            subscription.resize(self._program.views.shape(subscription.reading.output))
            subscription.restore(shown[shown[:, 0] == number, 1:])
