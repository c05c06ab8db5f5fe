"""Matrices as sources: the rows of the streams under them in, the cells of what a query reads of them out.

source = MatrixSource(plan, input, LocalKeeper(plan))
source.made(7)   →   Made({"p16.D": Table(i, j, value, __mult)}, figures)      batch by batch, and the last one again

State is kept by a keeper. What it is told of a batch are words: which cells of inputs and of readings went and came. So
what a query has been told is never computed twice: after a crash the views are made anew from the inputs, and may be
off from those before in the last bit, but the next changes begin at what had been told.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.physical.matrix.programs import MatrixPlan
from squallpy.runtime.batch.node import Input, Made
from squallpy.runtime.checkpoint.durable import open_durable
from squallpy.runtime.checkpoint.folders import Place
from squallpy.runtime.formats.file_rows import Sums
from squallpy.runtime.formats.skipped_rows import skipped
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.regions import Words
from squallpy.runtime.matrix.query_program import ProgramAtWork
from squallpy.runtime.matrix.rows import Rows, columns_of, rows_of
from squallpy.runtime.matrix.subscription import table_of
from squallpy.runtime.messages.deltas import Delta, pack_deltas, unpack_deltas
from squallpy.runtime.state.store import PoolLayout, Store, StoreLayout

INPUTS, SHOWN = "inputs", "shown"  # pools: (number, i, j, value) → how often
_EXTENT, _BATCH = -1, -2  # numbers that stand for no input: (_EXTENT, symbol, extent, 0), (_BATCH, batch, 0, 0)
PARTITION = "matrices"


class Keeper(Protocol):
    """Keeps words, by batch; `StatePartition` does."""

    def store(self) -> Store: ...

    def apply(self, batch: int, messages: list[bytes]) -> bytes: ...


def layout(plan: MatrixPlan) -> StoreLayout:
    """The pools of words; rows are looked up by their cells."""
    counted, slices = Payload((Ring.COUNT,)), ((0, 1, 2),) if plan.by_rows else ()
    return StoreLayout((PoolLayout(INPUTS, 4, counted, slices=slices), PoolLayout(SHOWN, 4, counted)))


def keep(store: Store, messages: list[bytes]) -> bytes:
    """Add words to the pools; the answer is the message."""
    (message,) = messages
    for delta in unpack_deltas(message, store.dictionary)[1]:
        store[delta.name].upsert(delta.keys, delta.words)
    return message


class LocalKeeper:
    """Keeps words in memory: only those of rows, if they are wanted."""

    def __init__(self, plan: MatrixPlan) -> None:
        self._store, self._by_rows = Store(layout(plan)), plan.by_rows

    def store(self) -> Store:
        return self._store

    def apply(self, batch: int, messages: list[bytes]) -> bytes:
        if not self._by_rows:
            return messages[0]
        return keep(self._store, messages)


@dataclass(frozen=True)
class Incoming:
    """The rows under the matrices of a query, batch by batch."""

    plan: MatrixPlan
    input: Input

    @property
    def symbols(self) -> list[str]:
        """The dimensions that are as large as the data need."""
        sizes = (size for m in self.plan.matrices.values() for size in (m.rows, m.cols))
        return sorted({size for size in sizes if isinstance(size, str)})

    def read(self, batch: int) -> tuple[dict[str, Rows], dict[str, Any]]:
        """The rows of a batch by matrix, all of them inside, and what is to be told of them."""
        shares, rows, left_out, sums = self.input.shares(batch, 0, 1), dict[str, Rows](), dict[str, int](), Sums()
        for name, matrix in self.plan.matrices.items():
            start, stop = shares.get(matrix.relation, (0, 0))
            if start < stop:
                table = self.input.sources[matrix.relation].read(start, stop, columns_of(matrix))
                rows[name] = rows_of(matrix, table)
                rows[name].within()
                left_out[matrix.relation] = skipped(table).count
                sums.add(under_matrices(matrix.relation), table)
        return rows, {"skipped": sum(left_out.values()), **sums.stats}


def under_matrices(relation: str) -> str:
    """What statistics call a relation as it is read for matrices; the same may be read for itself."""
    return f"{relation} under matrices"


def widened(sizes: Sizes, rows: Mapping[str, Rows]) -> dict[str, int]:
    """Dimensions large enough for more rows."""
    found = dict(sizes)
    for some in rows.values():
        for size, indices in ((some.matrix.rows, some.i), (some.matrix.cols, some.j)):
            if isinstance(size, str) and len(indices):
                found[size] = max(found[size], int(indices.max()) + 1)
    return found


@dataclass
class MatrixSource:
    """The matrices of a query. `input` has the streams and tables under them; `durable`: is the keeper?"""

    plan: MatrixPlan
    input: Input
    keeper: Keeper
    durable: bool = False
    _at: int = -1
    _made: bytes = b""
    _sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._incoming = Incoming(self.plan, self.input)
        self._symbols = self._incoming.symbols
        self._sizes = dict.fromkeys(self._symbols, 0)
        self._programs: list[ProgramAtWork] = []
        inputs = readings = 0
        for kept in self.plan.programs:
            program = ProgramAtWork(kept, self.plan.matrices, inputs, readings, self.plan.by_rows)
            inputs, readings = inputs + program.inputs, readings + len(kept.readings)
            self._programs.append(program)
        self._fresh = False

    def made(self, batch: int, split: int, splits: int) -> Made:
        """What a batch changes, a task's share of it."""
        return unpacked(self.plan, self.message(batch)).share(split, splits)

    def message(self, batch: int) -> bytes:
        """The same, packed."""
        if batch != self._at:
            if self.durable and not self._fresh:
                self._resume()
            if batch != self._at:
                assert batch == self._at + 1, f"batch {batch} of matrices that are at {self._at}"
                self._made = self.keeper.apply(batch, [self._message(batch)])
                self._at = batch
            else:
                self._made = self.keeper.apply(batch, [])
        return self._made

    def _message(self, batch: int) -> bytes:
        rows, figures = self._incoming.read(batch)
        known, self._sizes = self._sizes, widened(self._sizes, rows)
        pool = self.keeper.store().pool(INPUTS) if self.durable or self.plan.by_rows else None
        inputs, shown = [self._marks(batch, known)], [(np.empty((0, 4), np.int64), np.empty(0, np.int64))]
        told = {}
        for program in self._programs:
            changes, told[program.kept.name] = program.step(rows, self._sizes, pool)
            inputs += changes.inputs
            shown += changes.shown
        deltas = [(_delta(INPUTS, inputs), ()), (_delta(SHOWN, shown), ())]
        return pack_deltas(deltas, self.keeper.store().dictionary, figures | {"matrices": told})

    def _marks(self, batch: int, known: Mapping[str, int]) -> tuple[Words, Words]:
        """How far the words are: the batch, and the extents of dimensions."""
        marks = [(_BATCH, batch - 1, 0, 0, -1)] if batch else []
        marks.append((_BATCH, batch, 0, 0, 1))
        for number, symbol in enumerate(self._symbols):
            marks += [(_EXTENT, number, known[symbol], 0, -1)] if batch else []
            marks.append((_EXTENT, number, self._sizes[symbol], 0, 1))
        table = np.array(marks, np.int64)
        return table[:, :4], table[:, 4]

    def _resume(self) -> None:
        """Go on where the keeper is."""
        self._fresh = True
        store = self.keeper.store()
        keys, words = store[INPUTS].rows()
        if not len(keys):
            return
        for kind, number, extent, _ in keys[keys[:, 0] < 0].tolist():
            if kind == _BATCH:
                self._at = number
            else:
                self._sizes[self._symbols[number]] = extent
        for program in self._programs:
            program.restore(keys, words[:, 0], store[SHOWN].keys, self._sizes)


def unpacked(plan: MatrixPlan, message: bytes) -> Made:
    """What is made of a batch, from the words that tell of it."""
    stats, deltas = unpack_deltas(message, Dictionary())
    (shown,) = (delta for delta in deltas if delta.name == SHOWN)
    tables = {}
    for number, reading in enumerate(plan.readings):
        own = shown.keys[:, 0] == number
        tables[reading.relation.name] = table_of(reading, shown.keys[own, 1:], shown.words[own, 0])
    return Made(tables, stats)


@dataclass(frozen=True)
class HandedOver:
    """What the driver has made of a batch, where tasks find it: in the durable folder of the query."""

    plan: MatrixPlan
    durable: str

    def made(self, batch: int, split: int, splits: int) -> Made:
        return unpacked(self.plan, handed(self.durable, batch)).share(split, splits)


def handed_over(input: Input, place: Place) -> tuple[Input, Callable[[int], None] | None]:
    """The input for tasks elsewhere, and what is to be done here before they read a batch, if anything is."""
    maker = input.maker
    if not isinstance(maker, MatrixSource):
        return input, None
    given = replace(input, maker=HandedOver(maker.plan, place.durable))
    return given, lambda batch: hand_over(place, batch, maker.message(batch))


def hand_over(place: Place, batch: int, message: bytes) -> None:
    """Put what is made of a batch where its tasks find it."""
    folder = open_durable(place.durable, "driver")
    folder.create(_handed(batch), lambda sink: sink.write(message))
    folder.delete(_handed(batch - 2))  # NB: tasks of the batch before may still be tried again


def handed(durable: str, batch: int) -> bytes:
    """What was handed over of a batch."""
    message = open_durable(durable).read(_handed(batch))
    assert message is not None, f"nothing was made of batch {batch}"
    return message


def _handed(batch: int) -> str:
    return f"made/{batch}"


def _delta(name: str, parts: list[tuple[Words, Words]]) -> Delta:
    keys = np.vstack([keys for keys, _ in parts])
    return Delta(name, np.ascontiguousarray(keys, np.int64), np.concatenate([mult for _, mult in parts])[:, None])
