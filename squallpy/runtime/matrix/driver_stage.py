"""Matrices on the driver: the rows of streams under them in, the changed cells of what a query reads out.

    stage = DriverMatrices(plan, input)
    stage.begin(step)   →  a message: {"p16.D": Table(i, j, value, __mult)} and statistics; the last one again if asked

A batch is stored as words: the cells of inputs and readings that went and came. So what has been reported to a query is
never computed twice: after a crash the views are evaluated from the inputs, and may be off from those before in the
last bit, but the next changes begin at what had been reported.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.physical.matrix.matrix_plan import MatrixPlan
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.matrix.batch_rows import RelationReader, grown_sizes, latest_rows_under
from squallpy.runtime.matrix.query_program import QueryProgram
from squallpy.runtime.matrix.reported_cells import SHOWN
from squallpy.runtime.messages.deltas import Delta, pack_deltas, unpack_deltas
from squallpy.runtime.sources.input import BatchSpans, Input
from squallpy.runtime.state.state_store import PoolLayout, Store, StoreLayout

INPUTS = "inputs"  # pool, as SHOWN: (number, i, j, value) → how often
_EXTENT, _BATCH = -1, -2  # numbers that stand for no input: (_EXTENT, symbol, extent, 0), (_BATCH, batch, 0, 0)
PARTITION = "matrices"


class CellStore(Protocol):
    """Storage of the changed cells of each batch; `StatePartition` is the durable one."""

    def store(self) -> Store: ...

    def apply(self, batch: int, messages: list[bytes]) -> bytes: ...


class VolatileCells:
    """Storage in memory, of the cells under matrices only if their rows are wanted, and of the last rows by key."""

    def __init__(self, plan: MatrixPlan) -> None:
        self._store = Store(layout(plan) if plan.by_rows else StoreLayout(_latest_rows(plan)))

    def store(self) -> Store:
        return self._store

    def apply(self, batch: int, messages: list[bytes]) -> bytes:
        return add_cells(self._store, messages)


def layout(plan: MatrixPlan) -> StoreLayout:
    """Lay out the pools of changed cells; rows are looked up by their cells."""
    counted, slices = Payload((Ring.COUNT,)), ((0, 1, 2),) if plan.by_rows else ()
    cells = PoolLayout(INPUTS, 4, counted, slices=slices), PoolLayout(SHOWN, 4, counted)
    return StoreLayout((*cells, *_latest_rows(plan)))


def _latest_rows(plan: MatrixPlan) -> tuple[PoolLayout, ...]:
    """Lay out the pools of the last rows by key."""
    return tuple(latest.layout for latest in latest_rows_under(plan).values())


def add_cells(store: Store, messages: list[bytes]) -> bytes:
    """Add the changed cells of a message to the pools that there are; returns the message."""
    (message,) = messages
    for delta in unpack_deltas(message, store.dictionary)[1] if store.layout.pools else ():
        if delta.name in store:
            store[delta.name].upsert(delta.keys, delta.words)
    return message


class DriverMatrices:
    """The matrices of a query in this process, with their cells in a partition of `place`, if there is one."""

    facts = None
    supersteps = (0, 0)

    def __init__(self, plan: MatrixPlan, input: Input, place: StateLocation | None = None) -> None:
        self._plan, self._reader, self._is_durable = plan, RelationReader(plan, input), place is not None
        self._cells: CellStore = place.partition(PARTITION, layout(plan), add_cells) if place else VolatileCells(plan)
        self._batch, self._message, self._has_resumed = -1, b"", False
        self._symbols = self._reader.symbols
        self._sizes = dict.fromkeys(self._symbols, 0)
        self._programs: list[QueryProgram] = []
        inputs = readings = 0
        for kept in plan.programs:
            program = QueryProgram(kept, plan.matrices, inputs, readings, plan.by_rows)
            inputs, readings = inputs + program.inputs, readings + len(kept.readings)
            self._programs.append(program)

    def go_on(self, input: Input, batch: int) -> None:
        """Read other batches from a number on, of the same streams."""
        self._reader, self._batch = RelationReader(self._plan, input), batch - 1

    def begin(self, step: BatchSpans, directive: str = "", slices: str = "") -> bytes:
        """Apply a batch, unless that was done, and return its changed cells as a message."""
        batch = step.number
        if batch != self._batch:
            if self._is_durable and not self._has_resumed:
                self._resume()
            if batch != self._batch:
                assert batch == self._batch + 1, f"batch {batch} of matrices that are at {self._batch}"
                self._message = self._cells.apply(batch, [self._applied(step)])
                self._batch = batch
            else:
                self._message = self._cells.apply(batch, [])
        return self._message

    def end(self, figures: Mapping[str, Mapping[str, Any]]) -> None:
        """Do nothing: what programs report of a batch was known when it began."""

    def _applied(self, step: BatchSpans) -> bytes:
        rows, figures, latest = self._reader.read(step, self._cells.store())
        before, self._sizes = self._sizes, grown_sizes(self._sizes, rows)
        pool = self._cells.store().pool(INPUTS) if self._is_durable or self._plan.by_rows else None
        inputs, outputs = [self._marks(step.number, before)], [(np.empty((0, 4), np.int64), np.empty(0, np.int64))]
        of_programs = {}
        for program in self._programs:
            changes, of_programs[program.plan.name] = program.step(rows, self._sizes, pool)
            inputs += changes.inputs
            outputs += changes.outputs
        deltas = [(_delta(INPUTS, inputs), ()), (_delta(SHOWN, outputs), ()), *latest]
        return pack_deltas(deltas, self._cells.store().dictionary, figures | {"matrices": of_programs})

    def _marks(self, batch: int, before: Mapping[str, int]) -> tuple[Words, Words]:
        """Write down the batch and the extents of dimensions as cells of no input."""
        marks = [(_BATCH, batch - 1, 0, 0, -1)] if batch else []
        marks.append((_BATCH, batch, 0, 0, 1))
        for number, symbol in enumerate(self._symbols):
            marks += [(_EXTENT, number, before[symbol], 0, -1)] if batch else []
            marks.append((_EXTENT, number, self._sizes[symbol], 0, 1))
        table = np.array(marks, np.int64)
        return table[:, :4], table[:, 4]

    def _resume(self) -> None:
        """Restore programs, dimensions and the batch from the stored cells."""
        self._has_resumed = True
        store = self._cells.store()
        keys, words = store[INPUTS].rows()
        if not len(keys):
            return
        for kind, number, extent, _ in keys[keys[:, 0] < 0].tolist():
            if kind == _BATCH:
                self._batch = number
            else:
                self._sizes[self._symbols[number]] = extent
        for program in self._programs:
            program.restore(keys, words[:, 0], store[SHOWN].keys, self._sizes)


def _delta(name: str, parts: list[tuple[Words, Words]]) -> Delta:
    keys = np.vstack([keys for keys, _ in parts])
    return Delta(name, np.ascontiguousarray(keys, np.int64), np.concatenate([mult for _, mult in parts])[:, None])
