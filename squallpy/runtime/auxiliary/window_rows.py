"""Maintenance of window rows: the rows that enter and leave a window, as a delta for the statements that join them.

RANGE 10 SEC, the clock goes from 15 to 22:   ΔN1 = {(21, a): +1, (22, b): +1, (7, c): −1, (11, d): −1}

The view of a window's rows has a sorted index by time. What the bound has reached is found there (`time/expiry.py`) and
taken out of the view, so that it holds no more than the window does. A row that arrives below the bound as it was
before its batch is *late*: it never takes part, and is counted. So is one without a time. A delete of what has gone is
ignored.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from squallpy.catalog.window_spec import NowExtent
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.runtime.auxiliary.maintainer import Maintainer, RowDeltas, TouchedGroups
from squallpy.runtime.evaluate.vectors import Vec, full, take, to_arrow
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import Delta, decode
from squallpy.runtime.state.state_store import PoolLayout, Store
from squallpy.runtime.time.expiry import Expiry, bound_layouts


class WindowMaintainer(Maintainer):
    """A maintainer of the rows that a window shows. Of the last batch, how many rows were `late`, which, if that is
    reported, and how many deletes in the window were `unmatched`."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None:
        assert isinstance(aux.kind, WindowRows)
        window = aux.kind.window
        self._window, self._source = window, aux.source
        self._expiry = Expiry(window, feed.relation.name, aux.order, len(aux.source.keys))
        self._fields = {title: expr for title, expr in aux.output.items if isinstance(expr, Column)}
        self._time = aux.source.keys.index(self._fields[window.field])
        self._count = aux.source.payload.offsets[aux.output.count]
        self._rows = RowDeltas(feed)
        self._types = {f.name: f.type for f in feed.relation.fields}
        self.stream, self.late, self.unmatched = window.stream, 0, 0
        self._is_late = not isinstance(window.frame, NowExtent)  # a temporal filter is no reason to report a row
        self.late_rows: list[str] = []
        self.open_rows = 0
        """Rows in the window, if processing time may close it."""

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pools that hold the bounds of the window."""
        assert isinstance(aux.kind, WindowRows)
        return bound_layouts(aux.kind.window, feed.relation.name)

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        assert touched is not None
        pool, (keys, before) = store.pool(self._source.name), touched
        (old, new), (old_end, end) = self._expiry.advance(store), self._expiry.advance_end(store)
        touched_keys = keys
        keys = np.concatenate([keys, self._expiry.find_expired(pool, new, keys)])
        if end > old_end:  # NB: a row may enter a window and leave it in one batch
            entering = self._expiry.find_entering(pool, max(old_end, new), end)
            keys = np.concatenate([keys, self._expiry.without(entering, touched_keys)])
        now = pool.get(keys)
        was = np.concatenate([before, now[len(before) :]])[:, self._count]
        counts, times = now[:, self._count], keys[:, self._time]
        inside, is_shown = times > new, times <= end
        was_shown = np.where(times <= old_end, was, 0)
        debts = np.maximum(-counts, 0) - np.maximum(-was, 0)
        self.unmatched = int(np.maximum(debts[inside], 0).sum())
        late = np.flatnonzero((times <= old) & (counts > 0) & self._is_late)
        self.late = int(counts[late].sum())
        out = np.flatnonzero(~inside & (counts != 0))
        pool.upsert(np.ascontiguousarray(keys[out]), -now[out])
        self.open_rows = len(pool) if any(clock.is_timed for clock in self._window.clocks) else 0

        def field(name: str) -> Vec:
            column = self._fields[name]
            codes = np.ascontiguousarray(keys[:, self._source.keys.index(column)])
            return full(decode(codes, column, store.dictionary), column.type, len(codes))

        self.late_rows = self._spell(np.repeat(late, counts[late]), field) if self._window.report_late else []
        return self._rows(np.where(inside & is_shown, counts, 0) - was_shown, field, store.dictionary)

    def _spell(self, rows: Words, field: Callable[[str], Vec]) -> list[str]:
        """Write rows as JSON."""
        if not len(rows):
            return []
        columns = {name: to_arrow(take(field(name), rows), self._types[name], len(rows)) for name in self._fields}
        return b"".join(json_rows(pa.table(columns))).decode().split("\n")[:-1]
