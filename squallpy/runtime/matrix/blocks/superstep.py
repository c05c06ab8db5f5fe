"""A superstep of a matrix program, on the blocks that a partition has of its views."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from squallpy.base.semirings import BOOLEAN
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.drift_probe import Look
from squallpy.maintain.matrix.materialise import MatrixUpdate
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Entrywise,
    Fill,
    MainDiagonal,
    Matrix,
    Name,
    Product,
    RowDot,
    Scale,
    Stack,
    Sum,
    Transpose,
    children,
    names,
)
from squallpy.maintain.matrix.matrix_program import Statement
from squallpy.physical.matrix.block_supersteps import (
    CompareDrift,
    CyclicPartition,
    Define,
    Fetch,
    Item,
    MatrixLayout,
    Phase,
    Superstep,
    Value,
    plan_blocks,
)
from squallpy.physical.matrix.matrix_plan import MatrixProgramPlan
from squallpy.physical.matrix.view_passes import ViewPass
from squallpy.runtime.kernels.matrix import boolean
from squallpy.runtime.matrix.affected_cells import touch
from squallpy.runtime.matrix.algebra import add_matrices, apply_operation, evaluate, product
from squallpy.runtime.matrix.blocks.commands import Arrays
from squallpy.runtime.matrix.blocks.superstep_state import Parts, SuperstepState
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.drift import DRIFT, largest_difference
from squallpy.runtime.matrix.errors import NamingOverflow, overflow, undefined
from squallpy.runtime.matrix.iterations import UndefinedError
from squallpy.runtime.matrix.memory_check import bytes_available, memory_error
from squallpy.runtime.matrix.packed_boolean import PackedMatrix
from squallpy.runtime.matrix.reported_cells import Read, ReportedCells, decode_rows, subscription_layouts
from squallpy.runtime.matrix.stored_views import Array, BitView, MatrixView, visit_view, wrap_view
from squallpy.runtime.state.matrix_blocks import BlockLayout
from squallpy.runtime.state.state_store import Store


class BlockProgram:
    """A program as one partition has it."""

    def __init__(self, kept: MatrixProgramPlan, part: CyclicPartition) -> None:
        self.plan, self.part = kept, part
        self.maintained, self.ring = kept.compiled.maintained, kept.program.ring
        self.blocks = plan_blocks(self.maintained)
        self.stored_names = [name.name for name in self.maintained.stored]

    def layouts(self) -> Iterator[BlockLayout]:
        """Yield the layouts of its blocks."""
        for name in self.stored_names:
            for form in self.forms(name):
                if self.ring is BOOLEAN:
                    yield BlockLayout(self.block(name, form), "uint64", dense=True)
                else:
                    yield BlockLayout(self.block(name, form), np.dtype(self.ring.dtype).name)
        for number in range(len(self.plan.readings)):
            yield from subscription_layouts(self.subscription_name(number), self.ring)

    def forms(self, name: str) -> tuple[MatrixLayout, ...]:
        """Return the forms in which it stores a view."""
        return (MatrixLayout.ROWS, MatrixLayout.COLUMNS) if name in self.blocks.by_columns else (MatrixLayout.ROWS,)

    def block(self, name: str, form: MatrixLayout) -> str:
        return f"{self.plan.name}.{name} {form}"

    def count_begun(self, stage: int, phases: Sequence[Phase]) -> int:
        """Count the phases that have begun when a superstep is done."""
        line = self.blocks.timeline(phases)
        return line[min(stage, len(line) - 1)][-1][0] + 1 if phases else 0

    def subscription_name(self, number: int) -> str:
        """Name the blocks of a reading."""
        return f"{self.plan.name} {number}"


class SuperstepExecutor:
    """A superstep of a program, on the blocks in a store."""

    def __init__(self, program: BlockProgram, store: Store, sizes: Sizes) -> None:
        self._program, self._store, self._sizes = program, store, dict(sizes)
        self._part, self._ring, self._maintained = program.part, program.ring, program.maintained
        self.state = SuperstepState()

    def run(self, stage: int, given: Sequence[tuple[Phase, Arrays]], parts: Parts) -> None:
        """Receive, work until the next exchange, and send; SQ5001 for an overflow."""
        try:
            self._run(stage, given, parts)
        except OverflowError as error:
            raise overflow(error) from error

    def _run(self, stage: int, given: Sequence[tuple[Phase, Arrays]], parts: Parts) -> None:
        phases = [phase for phase, _ in given]
        line = self._program.blocks.timeline(phases)
        here = line[stage] if stage < len(line) else []
        if here and stage:
            number, at = line[stage - 1][-1]
            if self._is_active(phases[number]):
                self._receive(self._program.blocks.supersteps(phases[number])[at], parts, phases[number].name)
        sends: tuple[Value, ...] = ()
        keeps: tuple[Value, ...] = ()
        for number, at in here:
            superstep = self._program.blocks.supersteps(phases[number])[at]
            if at == 0:
                self._begin(*given[number])
            if self._is_active(phases[number]):
                self._do(phases[number], superstep)
            sends, keeps = (superstep.sends, superstep.keeps) if self._is_active(phases[number]) else ((), ())
        self.state.sent = list(self._parts_to_send(sends))
        self.state.values = {value: self.state.values[value] for value in keeps if value in self.state.values}

    # blocks and values

    def resize(self) -> None:
        """Resize all blocks to the dimensions; SQ5013 if memory is short."""
        program, more = self._program, 0
        shapes = {
            (name, form): self._extent(name, form) for name in program.stored_names for form in program.forms(name)
        }
        for view, (rows, columns) in shapes.items():
            shapes[view] = rows, boolean.words(columns) if self._ring is BOOLEAN else columns
            before = self._store.blocks[program.block(*view)].shape
            more += shapes[view][0] * shapes[view][1] - before[0] * before[1]
        if 8 * more > (free := bytes_available()):
            raise memory_error(program.plan.name, 8 * more, free, self._sizes)
        for view, shape in shapes.items():
            self._store.blocks[program.block(*view)].resize(shape, 0 if self._ring is BOOLEAN else self._ring.zero)

    def _extent(self, name: str, form: MatrixLayout) -> tuple[int, int]:
        """Compute the shape of this partition's block of a matrix."""
        rows, columns = self._shape(name)
        return (self._part.extent(rows), columns) if form is MatrixLayout.ROWS else (rows, self._part.extent(columns))

    def _shape(self, name: str) -> tuple[int, int]:
        named = self._maintained.find_matrix(name)
        return named.rows.at(self._sizes), named.cols.at(self._sizes)

    def _view(self, name: str, form: MatrixLayout) -> MatrixView:
        values = self._store.blocks[self._program.block(name, form)].values
        return BitView(values, self._extent(name, form)[1]) if self._ring is BOOLEAN else wrap_view(values, self._ring)

    def _value(self, name: str, form: MatrixLayout) -> Array:
        """Return a value in a form, of this batch or else of a view."""
        found = self.state.values.get((name, form))
        return self._view(name, form).read(slice(None), slice(None)) if found is None else found

    def _evaluated(self, matrix: Matrix) -> Array:
        """Evaluate an expression over whole values."""
        return evaluate(matrix, lambda name: self.state.values[name, MatrixLayout.WHOLE], self._sizes, self._ring)

    # phases

    def _begin(self, phase: Phase, given: Arrays) -> None:
        """Begin a phase with its operands."""
        self.state.values, self.state.has_changed_input = {}, False
        if phase.do == "add":
            self._add(phase.name, Cells(given["rows"], given["cols"], given["values"]))
        elif phase.do == "fire":
            trigger = self._maintained.triggers[phase.name]
            self.state.values = {
                (trigger.u.name, MatrixLayout.WHOLE): given["u"],
                (trigger.v.name, MatrixLayout.WHOLE): given["v"],
            }
            if self.state.wants_evaluation:
                self._change_input(phase.name)
        elif phase.do == "look":
            self.state.values = {(name, MatrixLayout.WHOLE): vector for name, vector in given.items()}
        else:
            self.state.wants_evaluation |= not phase.is_optional

    def _is_active(self, phase: Phase) -> bool:
        """True if anything is done in the supersteps of a phase."""
        return phase.do in (("evaluate",) if self.state.wants_evaluation else ("fire", "look"))

    def _do(self, phase: Phase, superstep: Superstep) -> None:
        if phase.do == "fire":
            self._sizes[self._maintained.triggers[phase.name].u.cols.symbols[0][0]] = phase.rank
        self.state.touches_all |= phase.do == "evaluate"
        try:
            for item in superstep.work:
                self._execute(item, phase.name)
        except UndefinedError as error:
            # NB: all partitions find it, for all compute the same
            self.state.wants_evaluation, self.state.reason = True, error.reason
            if not self.state.has_changed_input:
                self._change_input(phase.name)

    def _compare_drift(self, looks: Sequence[Look]) -> None:
        """Evaluate the drift of views, and ask for an evaluation if it is large."""
        values = {name: value for (name, form), value in self.state.values.items() if form is MatrixLayout.WHOLE}
        self.state.drift = largest_difference(looks, values)
        if not self.state.drift < DRIFT:
            self.state.wants_evaluation, self.state.reason = True, "rounding had added up"

    def _execute(self, item: Item, changed: str) -> None:
        match item:
            case Statement(name, value):
                with NamingOverflow(self._maintained, self._last_changed(changed) or name.name):
                    self.state.values[name.name, MatrixLayout.WHOLE] = self._evaluated(value)
            case ViewPass(view, _, update):
                with NamingOverflow(self._maintained, view.name):
                    self._visit(item)
                self.state.has_changed_input |= view.name == changed and update is not None
            case Define():
                self._define(item)
            case CompareDrift(looks):
                self._compare_drift(looks)
            case Fetch(view, form):
                if view not in self.state.missing:
                    self._keep_arrived(view, form)

    def _last_changed(self, changed: str) -> str:
        """Return the last view that the trigger of an input changes."""
        return self._maintained.triggers[changed].updates[-1].view.name if changed else ""

    def _change_input(self, name: str) -> None:
        """Change an input as its trigger would."""
        trigger = self._maintained.triggers[name]
        self._visit(ViewPass(trigger.input, (), MatrixUpdate(trigger.input, trigger.u, trigger.v)))
        self.state.has_changed_input = True

    def _add(self, name: str, cells: Cells) -> None:
        """Add to cells, those of them that are here."""
        for form in self._program.forms(name):
            by_rows = form is MatrixLayout.ROWS
            own = self._part.owns(cells.rows if by_rows else cells.cols)
            rows, cols, values = cells.rows[own], cells.cols[own], cells.values[own]
            rows, cols = (self._part.local(rows), cols) if by_rows else (rows, self._part.local(cols))
            with NamingOverflow(self._maintained, name):
                self._view(name, form).add_at(rows, cols, values)

    def _visit(self, item: ViewPass) -> None:
        """Visit the rows and columns of a view that are in this partition."""
        view, update, own = item.view.name, item.update, self._part.own
        across = [read for read in item.reads if read.transposed and view not in self._program.blocks.layouts.symmetric]
        straight = [read for read in item.reads if read not in across]
        x, y = ([self._evaluated(read.factor) for read in reads] for reads in (straight, across))
        u, v = (self._evaluated(half) for half in (update.u, update.v)) if update else (None, None)
        mine, there = None if u is None else u[own], None if v is None else v[:, own]
        left, form = (update.left if update else None), MatrixLayout.ROWS
        prune = left is not None
        more: Sequence[Any] = []
        right: Any = None
        if view in self._program.blocks.layouts.tall:
            form = MatrixLayout.SUMMAND
            mine_y = [half[own] for half in y]
            found, more, rows, right = visit_view(self._view(view, MatrixLayout.ROWS), mine, v, x, mine_y, prune)
        else:
            found, _, rows, _ = visit_view(self._view(view, MatrixLayout.ROWS), mine, v, x, [], prune)
        if view in self._program.blocks.by_columns:
            _, more, _, right = visit_view(self._view(view, MatrixLayout.COLUMNS), u, there, [], y, prune)
        self.state.values |= {(r.name.name, MatrixLayout.ROWS): _plain(f) for r, f in zip(straight, found, strict=True)}
        self.state.values |= {(r.name.name, form): _plain(f) for r, f in zip(across, more, strict=True)}
        if left:
            self.state.values[left[0].name, MatrixLayout.ROWS] = _plain(rows)
            self.state.values[left[1].name, form] = _plain(right.T)
        if u is not None and v is not None:
            touch(self.state.touched, view, u[own], v, self._ring)

    def _define(self, item: Define) -> None:
        name, value = item.statement.name.name, item.statement.value
        if names(value) & self.state.missing:
            self.state.missing.add(name)
            return
        try:
            with NamingOverflow(self._maintained, name):
                rows = self._summand(value) if item.form is MatrixLayout.SUMMAND else self._rows(value)
        except UndefinedError:
            self.state.singular = self.state.singular or undefined(self._maintained, value).message
            self.state.missing.add(name)
            return
        if item.is_view and item.form is MatrixLayout.ROWS:
            self._assign(name, MatrixLayout.ROWS, rows)
        else:
            self.state.values[name, item.form] = rows

    def _summand(self, matrix: Matrix) -> Array:
        """Compute this partition's summand of a product, from its rows of both factors."""
        of, (_, right) = self._program.blocks.layouts.find_summed_rows(matrix), children(matrix)
        assert of
        return product(self._value(of.name, MatrixLayout.ROWS).T, self._rows(right), self._ring)

    def _keep_arrived(self, view: str, form: MatrixLayout) -> None:
        """Keep what has arrived of a view."""
        values, own = self.state.values[view, form], self._part.own
        if form is MatrixLayout.COLUMNS:
            self._assign(view, form, values)
            return
        for kept in self._program.forms(view):
            self._assign(view, kept, values[own] if kept is MatrixLayout.ROWS else values[:, own])

    def _assign(self, name: str, form: MatrixLayout, values: Array) -> None:
        plain = boolean.pack(np.ascontiguousarray(values)) if self._ring is BOOLEAN else values
        self._store.blocks[self._program.block(name, form)].assign(plain)

    def _rows(self, matrix: Matrix) -> Array:
        """Compute this partition's rows of a value, from those that `values_needed_for_rows` lists."""
        part, sizes, ring, layouts = self._part, self._sizes, self._ring, self._program.blocks.layouts
        match matrix:
            case Name(name) if name in layouts.summed:
                return self.state.values[name, MatrixLayout.WHOLE][part.own]
            case Transpose(Name(name)) if name in layouts.summed:
                return self.state.values[name, MatrixLayout.WHOLE].T[part.own]
            case Name(name):
                return self._value(name, MatrixLayout.ROWS)
            case Transpose(Name(name)):
                turned = name not in layouts.symmetric
                return self._value(name, MatrixLayout.COLUMNS).T if turned else self._value(name, MatrixLayout.ROWS)
            case Product((left, right)):
                return product(self._rows(left), self._evaluated(right), ring)
            case Sum() | Stack() | Scale() | Entrywise() | RowDot():
                return apply_operation(matrix, [self._rows(child) for child in children(matrix)], sizes, ring)
            case MainDiagonal(of):
                own = self._rows(of)
                return own[np.arange(len(own)), part.select_own(np.arange(own.shape[1]))][:, None]
            case Fill(rows, cols, value):
                return np.full((part.extent(rows.at(sizes)), cols.at(sizes)), value.at(sizes, ring), ring.dtype)
            case Diagonal(size, value):
                numbers = part.select_own(np.arange(size.at(sizes)))
                out = np.full((len(numbers), size.at(sizes)), ring.zero, ring.dtype)
                out[np.arange(len(numbers)), numbers] = value.at(sizes, ring)
                return out
        return self._evaluated(matrix)[part.own]

    # exchanges

    def _parts_to_send(self, sends: Iterable[Value]) -> Iterator[tuple[int, Value, Array]]:
        """Yield values to send: rows or summands to all, or to each partition its columns of the rows."""
        for name, form in sends:
            if name in self.state.missing:
                continue
            form = MatrixLayout.SUMMAND if (name, MatrixLayout.SUMMAND) in self.state.values else form
            rows = self._value(name, MatrixLayout.SUMMAND if form is MatrixLayout.SUMMAND else MatrixLayout.ROWS)
            for target in range(self._part.count):
                own = CyclicPartition(target, self._part.count).own
                yield target, (name, form), rows[:, own] if form is MatrixLayout.COLUMNS else rows

    def _receive(self, superstep: Superstep, parts: Parts, changed: str) -> None:
        """Put together what the partitions have sent after a superstep."""
        for name, form in superstep.sends:
            if name in self.state.missing:
                continue
            if shares := parts.get((name, MatrixLayout.SUMMAND)):
                with NamingOverflow(self._maintained, self._last_changed(changed) or name):
                    whole = add_matrices([shares[number] for number in sorted(shares)], self._ring)
            else:
                rows = parts[name, form]
                whole = np.empty((sum(map(len, rows.values())), rows[0].shape[1]), rows[0].dtype, order="F")
                for number, some in rows.items():
                    whole[CyclicPartition(number, self._part.count).own] = some
            self.state.values[name, form] = whole.T if name in superstep.transposed_views else whole

    # readings

    def update_subscriptions(self) -> None:
        """Compute the changed cells of readings in this partition's rows."""
        program, ring = self._program, self._ring
        for number, reading in enumerate(program.plan.readings):
            name, layouts = reading.output, subscription_layouts(program.subscription_name(number), ring)
            blocks = [self._store.blocks[layout.name] for layout in layouts]
            subscription = ReportedCells(reading, ring, self._part, blocks)
            subscription.resize(self._shape(name))
            keys, mult = np.empty((0, 3), np.int64), np.empty(0, np.int64)
            if self.state.touches_all or name in self.state.touched:
                keys, mult = subscription.change(self._reader(name), self._touched(name))
            self.state.changed.append((reading, decode_rows(reading, keys, mult)))
        self.state.nbytes = sum(self._store.blocks[layout.name].nbytes for layout in program.layouts())

    def _reader(self, name: str) -> Read | None:
        """Return a function that reads a view by global row numbers; None if it is zero."""
        if name in self.state.missing:
            return None
        view = self._view(name, MatrixLayout.ROWS)

        def read(rows: slice | Array, columns: slice | Array) -> Array:
            return view.read(rows if isinstance(rows, slice) else self._part.local(rows), columns)

        return read

    def _touched(self, name: str) -> tuple[Array, Array] | None:
        """Return the rows and columns, by global numbers, in which a view may have changed; None: any."""
        if self.state.touches_all:
            return None
        rows, columns = self.state.touched[name]
        whole = np.zeros(self._shape(name)[0], bool)
        whole[self._part.own] = rows
        return whole, columns


def _plain(factor: Array | PackedMatrix) -> Array:
    """Convert a factor to an array."""
    return factor if isinstance(factor, np.ndarray) else factor.plain()
