"""Pauses of a stream, for windows that show the rows since the last one: SESSION 5 MIN.

rows at 1, 3, 20, 22 and a gap of 5     →     the spans (1, 3) and (20, 22); at 30 both are over, at 24 the first is

A span is over when the watermark is more than the gap behind its last row: what comes then begins another. Spans are
those of all rows, inserted, deleted or rejected by WHERE, as it is with watermarks. Every partition has them: readers
send those of their part of a batch. Only the last one that is over is kept, and those that are open.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.rings import Payload, Ring
from squallpy.catalog.window_spec import UNBOUNDED, Clock
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout

Mask = npt.NDArray[np.bool_]


def span_layout(clock: Clock) -> PoolLayout:
    """Return the layout of the pool that holds the spans of a clock's rows: the first and the last time of each."""
    return PoolLayout(PoolName(clock.name, Role.ACTIVITY), 2, Payload((Ring.COUNT,)))


def span_delta(clock: Clock, times: pa.Array) -> Delta:
    """Return the spans of the rows of a part of a batch; the times are whole numbers."""
    every = np.unique(times.drop_null().to_numpy(zero_copy_only=False).astype(np.int64))
    spans = merge_spans(np.column_stack([every, every]), clock.gap)
    return Delta(PoolName(clock.name, Role.ACTIVITY), spans, np.ones((len(spans), 1), np.int64))


def merge_spans(spans: Words, gap: int) -> Words:
    """Merge spans that are at most a gap apart."""
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(spans[:, 1])
    begins = np.append(True, spans[1:, 0] - ends[:-1] > gap)[: len(spans)]
    last = np.append(begins[1:], True)[: len(spans)]
    return np.ascontiguousarray(np.column_stack([spans[begins, 0], ends[last]]))


def add_spans(pool: Container, clock: Clock, more: Words, latest: int) -> None:
    """Add the spans of a batch to those of a clock, and forget the ones before the last that is over."""
    before = pool.keys.copy()
    spans = merge_spans(np.concatenate([before, more]), clock.gap)
    over = np.flatnonzero(_are_over(spans, clock, latest))
    spans = spans[over[-1] :] if len(over) else spans
    pool.upsert(before, -pool.words)
    pool.upsert(np.ascontiguousarray(spans), np.ones((len(spans), 1), np.int64))


def last_pause(pool: Container, clock: Clock, latest: int) -> int:
    """Return the last time before the last pause, which rows have to exceed; UNBOUNDED if there was none."""
    spans = pool.keys
    return int(max(spans[_are_over(spans, clock, latest), 1], default=UNBOUNDED))


def _are_over(spans: Words, clock: Clock, latest: int) -> Mask:
    """Tell which spans are over at the greatest time of a stream, less its delay."""
    return spans[:, 1] + clock.gap < (latest * clock.unit - clock.delay) // clock.unit
