"""The result: the top-level view on the driver, and the rows that are printed from it.

Each batch brings the change ΔQ of the view; the result answers with the printed rows that went and that came.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.rings import Ring
from squallpy.base.types import Kind, Type
from squallpy.maintain.program import RESULT, Finish, Measure
from squallpy.physical.plan import Plan, PoolPlan
from squallpy.runtime.deltas import Delta, decode
from squallpy.runtime.evaluate.compiled import compiled
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.numbers import LIMIT, largest
from squallpy.runtime.evaluate.vector import Frame, Vec, arrow_type, to_arrow
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.lanes import unpack
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.storage import Words
from squallpy.runtime.state.store import PoolLayout, Store, StoreLayout


@dataclass(frozen=True, slots=True)
class Changes:
    """Printed rows that a batch took away and added."""

    deletes: pa.Table
    inserts: pa.Table


def result_layout(plan: Plan) -> StoreLayout:
    return StoreLayout((PoolLayout(RESULT, len(plan.result.keys), plan.result.payload),))


class Result:
    """The printed rows of a plan's result view."""

    def __init__(self, plan: Plan) -> None:
        self._finish, self._pool = plan.finish, plan.result
        self._printer = _Printer(plan.finish, plan.result)
        self._scratch = Pool(len(plan.result.keys), plan.result.payload)
        self.schema = self._printer.schema

    def apply(self, store: Store, changes: Sequence[Delta], first: bool, wanted: bool = True) -> Changes | None:
        """Add changes, one from each partition, to the view; the printed rows that went and came, if `wanted`.

        `first`: nothing has been printed before this batch.
        """
        pool = store[RESULT]
        self._scratch.clear()
        for change in changes:  # a group may have changed in several partitions
            self._scratch.upsert(change.keys, change.words)
        keys, words = self._scratch.rows()
        if self._finish.single and not len(keys):
            keys, words = np.empty((1, 0), np.int64), np.zeros((1, self._pool.payload.width), np.int64)
        if not wanted:
            pool.upsert(keys, words)
            return None
        before = _payloads(pool.words, pool.probe(keys))
        top = self._finish.limit is not None or self._finish.offset
        shown = self.final(store) if top and not first else None
        pool.upsert(keys, words)
        if top:
            now = self.final(store)
            return _difference(now.slice(0, 0) if shown is None else shown, now)
        after = _payloads(pool.words, pool.probe(keys))
        return self._changes(keys, before, after, store.dictionary, first)

    def final(self, store: Store) -> pa.Table:
        """All printed rows, in order and cut to the limit."""
        keys, words = store[RESULT].rows()
        if self._finish.single and not len(keys):
            keys, words = np.empty((1, 0), np.int64), np.zeros((1, self._pool.payload.width), np.int64)
        frame = self._printer.frame(keys, words, store.dictionary)
        times = self._printer.times(frame, words)
        rows = np.repeat(np.arange(len(keys)), times)
        if self._finish.order:
            rows = rows[self._printer.order(frame, rows)]
        stop = None if self._finish.limit is None else self._finish.offset + self._finish.limit
        return self._printer.table(frame).take(pa.array(rows[self._finish.offset : stop]))

    def _changes(self, keys: Words, before: Words, after: Words, names: Dictionary, first: bool) -> Changes:
        old, new = self._printer.frame(keys, before, names), self._printer.frame(keys, after, names)
        gone, come = self._printer.times(old, before), self._printer.times(new, after)
        if first:
            gone = np.zeros_like(gone)
        old_rows, new_rows = self._printer.table(old), self._printer.table(new)
        same = _equal(old_rows, new_rows)
        kept = np.where(same, np.minimum(gone, come), 0)
        everyone = np.arange(len(keys))
        deletes = pa.array(np.repeat(everyone, gone - kept))
        inserts = pa.array(np.repeat(everyone, come - kept))
        return Changes(old_rows.take(deletes), new_rows.take(inserts))


def _payloads(words: Words, slots: Words) -> Words:
    """Payload rows at slots, zero where there is none."""
    out = np.zeros((len(slots), words.shape[1]), np.int64)
    found = slots >= 0
    out[found] = words[slots[found]]
    return out


def _equal(a: pa.Table, b: pa.Table) -> Any:
    """Rows that print alike, NULLs and NaNs included."""
    same = np.ones(len(a), bool)
    for x, y in zip(a.columns, b.columns, strict=True):
        equal = np.asarray(pc.fill_null(pc.equal(x, y), False))
        nulls = np.asarray(pc.and_(pc.is_null(x, nan_is_null=True), pc.is_null(y, nan_is_null=True)))
        same &= equal | nulls
    return same


def _difference(old: pa.Table, new: pa.Table) -> Changes:
    """Bag difference of two printed results."""
    names = old.column_names
    numbered = [f"c{i}" for i in range(len(names))]
    both = pa.concat_tables([old.rename_columns(numbered), new.rename_columns(numbered)])
    sign = pa.array(np.concatenate([np.full(len(old), -1), np.ones(len(new), np.int64)]))
    totals = both.append_column("n", sign).group_by(numbered).aggregate([("n", "sum")])
    counts = np.asarray(totals.column("n_sum"))
    rows = totals.select(numbered).rename_columns(names)
    everyone = np.arange(len(counts))
    return Changes(
        rows.take(pa.array(np.repeat(everyone, np.maximum(-counts, 0)))),
        rows.take(pa.array(np.repeat(everyone, np.maximum(counts, 0)))),
    )


class _Printer:
    """From keys and payloads to printed columns."""

    def __init__(self, finish: Finish, pool: PoolPlan) -> None:
        self._finish, self._keys, self._payload = finish, pool.keys, pool.payload
        self._having = None if finish.having is None else compiled(finish.having)
        self._items = [(compiled(e), e.type) for _, e in finish.items]
        self._order = [(compiled(e), e.type, down, nulls) for e, down, nulls in finish.order]
        self.schema = pa.schema([(name, arrow_type(e.type)) for name, e in finish.items])

    def frame(self, keys: Words, words: Words, names: Dictionary) -> Frame:
        """Key columns and measures."""
        places = {k.id: i for i, k in enumerate(self._keys)}
        measures = {m.column.id: m for m in self._finish.measures}

        def load(id: int) -> Vec:
            if id in places:
                return decode(np.ascontiguousarray(keys[:, places[id]]), self._keys[places[id]], names)
            return self._measure(measures[id], words)

        return Frame(len(keys), {}, load)

    def times(self, frame: Frame, words: Words) -> Words:
        """How often each row is printed: its multiplicity, or once where its group exists and HAVING is TRUE."""
        count = words[:, 0]  # lane 0 counts rows
        if self._finish.repeat:
            return np.maximum(count, 0)
        shown: Any = np.ones(len(count), bool) if self._finish.single else count != 0
        if self._having is not None:
            shown = np.logical_and(shown, is_true(self._having(frame)))
        return np.asarray(shown).astype(np.int64)

    def table(self, frame: Frame) -> pa.Table:
        columns = [to_arrow(f(frame), type, frame.rows) for f, type in self._items]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def order(self, frame: Frame, rows: Words) -> Any:
        """A stable permutation of `rows` by ORDER BY."""
        columns, keys = {}, []
        for i, (function, type, down, nulls) in enumerate(self._order):
            array = to_arrow(function(frame), type, frame.rows).take(pa.array(rows))
            columns[f"n{i}"] = pc.is_null(array).cast(pa.int8())  # NULLs are placed per key
            columns[f"k{i}"] = array
            keys += [
                (f"n{i}", "descending" if nulls else "ascending"),
                (f"k{i}", "descending" if down else "ascending"),
            ]
        return np.asarray(pc.sort_indices(pa.table(columns), sort_keys=keys))

    def _sum(self, terms: tuple[tuple[int, int], ...], words: Words) -> Any:
        """Σ coefficient · lane."""
        total: Any = None
        for coefficient, lane in terms:
            at, ring = self._payload.offsets[lane], self._payload.rings[lane]
            values: Any = unpack(words[:, at : at + ring.words], ring)
            if (
                values.dtype != object
                and ring is not Ring.REAL
                and largest(values) * (abs(coefficient) + 1) * len(terms) >= LIMIT
            ):
                values = values.astype(object)
            part = values if coefficient == 1 else values * coefficient
            total = part if total is None else total + part
        return np.zeros(len(words), np.int64) if total is None else total

    def _measure(self, measure: Measure, words: Words) -> Vec:
        type = measure.column.type
        count = self._sum(measure.present, words)
        if measure.function == "count":
            return Vec(count)
        total, valid = self._sum(measure.value, words), count != 0
        if measure.function == "avg":
            with np.errstate(all="ignore"):
                mean = np.asarray(total / np.where(valid, count, 1), np.float64) / 10.0**measure.scale
            return Vec(mean, valid)
        return Vec(_fitted(total, type), valid)


def _fitted(total: Any, type: Type) -> Any:
    """A sum in the range of its type."""
    if total.dtype != object:
        return total
    if type.kind is not Kind.DECIMAL and largest(total) >= LIMIT:
        raise SquallError("SQ5001", f"a SUM does not fit {type}", hint="CAST to DECIMAL(38,0) first")
    if largest(total) >= 10**38:
        raise SquallError("SQ5001", "a SUM does not fit 38 digits")
    return total if type.kind is Kind.DECIMAL else total.astype(np.int64)
