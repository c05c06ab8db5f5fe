"""Windows at work: rows that came into a window and rows that went out of it, as a delta for what joins them.

RANGE 10 SEC, the clock goes from 15 to 22:   ΔN1 = {(21, a): +1, (22, b): +1, (7, c): −1, (11, d): −1}

The view of a window's rows has a sorted index by time. What the bound has reached is found there and taken out of the
view, so that it holds no more than the window does. A row that arrives below the bound as it was before its batch is
*late*: it never takes part, and is counted. So is one without a time. A delete of what has gone is ignored.

A clock tells each partition the greatest time that a stream has shown so far; it never goes back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.rings import Payload, Ring
from squallpy.catalog.stream_window import UNBOUNDED, Clock
from squallpy.logical.expressions import Column
from squallpy.physical.plan import Feed, Nested, Plan
from squallpy.runtime.auxiliary.groups import Groups, RowDeltas
from squallpy.runtime.evaluate.vectors import Vec, full, take, to_arrow
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.regions import Words
from squallpy.runtime.messages.deltas import Delta, decode
from squallpy.runtime.state.store import PoolLayout, Store

_COUNT = Payload((Ring.COUNT,))
_NO_GROUP = np.empty((1, 0), np.int64)


def windows_layouts(plan: Plan) -> tuple[PoolLayout, ...]:
    """Make the pools of clocks and of window bounds: at most one record each, whose key is the value."""
    bounds = (_bound_of(feed) for feed in plan.feeds if feed.nested and feed.nested.window)
    return tuple(PoolLayout(name, 1, _COUNT) for name in (*map(clock_name, plan.clocks), *bounds))


def clock_name(clock: str) -> str:
    return f"clock {clock}"


def _bound_of(feed: Feed) -> str:
    return f"{feed.relation.name} bound"


def clock_deltas(clocks: Iterable[Clock], relation: str, rows: pa.RecordBatch) -> Iterator[Delta]:
    """Find the greatest time of a share of a batch, for each clock of its stream."""
    for clock in clocks:
        if clock.relation == relation and (told := _latest(clock, rows[clock.field])):
            yield told


def _latest(clock: Clock, times: pa.Array) -> Delta | None:
    latest = pc.max(times.cast(_held(times.type)).cast(pa.int64())).as_py()
    if latest is None:
        return None
    return Delta(clock_name(clock.name), np.array([[latest]], np.int64), np.ones((1, 1), np.int64))


def _held(type: pa.DataType) -> pa.DataType:
    """Choose the type of 64 or 32 bits to which whole numbers are cast unchanged."""
    return pa.int32() if pa.types.is_date32(type) else pa.int64()


def tick(store: Store, clocks: Iterable[str], given: Mapping[str, Delta]) -> None:
    """Move the clocks to the latest times of a batch."""
    for name in map(clock_name, clocks):
        if told := given.get(name):
            latest, before = int(told.keys.max()), known(store[name])
            if before is None or before < latest:
                keep(store[name], latest)


def known(pool: Pool) -> int | None:
    """Read the value of a pool with one record."""
    return int(pool.keys[0, 0]) if len(pool) else None


def keep(pool: Pool, value: int) -> None:
    """Hold another value."""
    pool.upsert(pool.keys.copy(), -pool.rows()[1])
    pool.upsert(np.array([[value]], np.int64), np.ones((1, 1), np.int64))


class Windows:
    """A window over a stream. Of the last batch, how many rows were `late`, which, if they are to be told, and how many
    deletes in the window were `unmatched`."""

    def __init__(self, feed: Feed, nested: Nested) -> None:
        assert nested.window is not None
        self._window, self._source, self._order = nested.window, nested.source, nested.order
        self._clocks, self._bound = [c.name for c in nested.window.clocks], _bound_of(feed)
        self._fields = {title: expr for title, expr in nested.finish.items if isinstance(expr, Column)}
        self._time = nested.source.keys.index(self._fields[nested.window.field])
        self._count = nested.source.payload.offsets[nested.finish.count]
        self._touched = Pool(len(nested.source.keys), _COUNT)
        self._rows = RowDeltas(feed)
        self._types = {f.name: f.type for f in feed.relation.fields}
        self.stream, self.late, self.unmatched = nested.window.stream, 0, 0
        self.late_rows: list[str] = []

    def deltas(self, store: Store, touched: Groups | None) -> dict[str, Delta]:
        assert touched is not None
        pool, (keys, before) = store[self._source.name], touched
        old, new = self._advance(store)
        gone = self._fallen(pool, new, keys)
        keys = np.concatenate([keys, gone])
        now = pool.get(keys)
        was = np.concatenate([before, now[len(before) :]])[:, self._count]
        counts, times = now[:, self._count], keys[:, self._time]
        inside = times > new
        debts = np.maximum(-counts, 0) - np.maximum(-was, 0)
        self.unmatched = int(np.maximum(debts[inside], 0).sum())
        late = np.flatnonzero((times <= old) & (counts > 0))
        self.late = int(counts[late].sum())
        out = np.flatnonzero(~inside & (counts != 0))
        pool.upsert(np.ascontiguousarray(keys[out]), -now[out])

        def field(name: str) -> Vec:
            column = self._fields[name]
            codes = np.ascontiguousarray(keys[:, self._source.keys.index(column)])
            return full(decode(codes, column, store.dictionary), column.type, len(codes))

        self.late_rows = self._spelled(np.repeat(late, counts[late]), field) if self._window.report_late else []
        return self._rows(np.where(inside, counts, 0) - was, field, store.dictionary)

    def _spelled(self, rows: Words, field: Callable[[str], Vec]) -> list[str]:
        """Write rows as JSON."""
        if not len(rows):
            return []
        columns = {name: to_arrow(take(field(name), rows), self._types[name], len(rows)) for name in self._fields}
        return b"".join(json_rows(pa.table(columns))).decode().split("\n")[:-1]

    def _advance(self, store: Store) -> tuple[int, int]:
        """Advance the bound, and return it as it was and as it is."""
        latest = {name: value for name in self._clocks if (value := known(store[clock_name(name)])) is not None}
        before = known(store[self._bound])
        old = UNBOUNDED if before is None else before
        new = self._window.bound(latest)
        if new > old:
            keep(store[self._bound], new)
        return old, max(old, new)

    def _fallen(self, pool: Pool, bound: int, keys: Words) -> Words:
        """Find the rows that the bound has reached, except `keys`; rows without a time never expire."""
        index = pool.sorted[self._order]
        _, places = index.below(_NO_GROUP, bound + 1)
        columns = [index.column(i, places) for i in range(pool.key_width)]
        found = np.ascontiguousarray(np.stack(columns, axis=1))
        self._touched.clear()
        self._touched.upsert(keys, np.ones((len(keys), 1), np.int64))
        return found[self._touched.probe(found) < 0]
