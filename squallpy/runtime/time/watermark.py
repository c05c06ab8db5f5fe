"""Watermarks: a clock for each stream, the greatest event time that it has shown so far.

A clock is a pool of one record in every partition, and never goes back. Where a stream is timed, processing time, as
it was logged with the batch (`sources/stream_times.py`), moves its clock on or makes it idle. By the clocks of its
streams, each less its DELAY, the bound of a window moves (`catalog/window_spec.py`), and its rows expire (`expiry.py`).
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.rings import Payload, Ring
from squallpy.catalog.window_spec import NOW, Clock
from squallpy.physical.plan import Plan
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.sources.stream_times import Times
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store
from squallpy.runtime.time.pauses import add_spans, span_delta, span_layout


def clock_layouts(plan: Plan) -> tuple[PoolLayout, ...]:
    """Return the pools that hold clocks."""
    idle = (time_layout(PoolName(name, Role.IDLE)) for name, clock in plan.clocks.items() if clock.is_timed)
    spans = (span_layout(clock) for clock in plan.clocks.values() if clock.gap)
    return (*(time_layout(PoolName(name, Role.CLOCK)) for name in plan.clocks), *idle, *spans)


def time_layout(pool: str) -> PoolLayout:
    """Return the layout of a pool that holds a time: one record, whose key is the time, or none."""
    return PoolLayout(pool, 1, Payload((Ring.COUNT,)))


def clock_deltas(clocks: Iterable[Clock], relation: str, rows: pa.RecordBatch) -> Iterator[Delta]:
    """Return what a share of a batch tells the clocks of its stream: the greatest time, if it has any."""
    for clock in clocks:
        if clock.relation == relation and (message := _latest(clock, rows[clock.field])):
            yield message
            if clock.gap:
                yield span_delta(clock, _numbers(rows[clock.field]))


def passage_deltas(clocks: Iterable[Clock], times: Times) -> Iterator[Delta]:
    """Return what processing time tells the clocks of streams: whether they are idle, and how far they have gone on."""
    for clock in clocks:
        if time := times.get(clock.relation):
            keys = np.array([[time.is_idle, time.since, time.until]], np.int64)
            yield Delta(PoolName(clock.name, Role.PASSAGE), keys, np.ones((1, 1), np.int64))


def _latest(clock: Clock, times: pa.Array) -> Delta | None:
    latest = pc.max(_numbers(times)).as_py()
    if latest is None:
        return None
    return Delta(PoolName(clock.name, Role.CLOCK), np.array([[latest]], np.int64), np.ones((1, 1), np.int64))


def _numbers(times: pa.Array) -> pa.Array:
    return times.cast(_storage_type(times.type)).cast(pa.int64())


def _storage_type(type: pa.DataType) -> pa.DataType:
    """Choose the type of 64 or 32 bits to which whole numbers are cast as they are."""
    return pa.int32() if pa.types.is_date32(type) else pa.int64()


def tick(store: Store, clocks: Iterable[Clock], given: Mapping[str, Delta]) -> None:
    """Move the clocks to the latest times of a batch, and on with processing time."""
    for clock in clocks:
        name = PoolName(clock.name, Role.CLOCK)
        if message := given.get(name):
            latest, before = int(message.keys.max()), time_of(store[name])
            if before is None or before < latest:
                set_time(store[name], latest)
        if passage := given.get(PoolName(clock.name, Role.PASSAGE)):
            is_idle, since, until = passage.keys[0].tolist()
            steps, before = until // clock.unit - since // clock.unit, time_of(store[name])
            if clock == NOW and (before is None or before < until):
                set_time(store[name], until)
            elif clock != NOW and steps and before is not None:
                set_time(store[name], before + steps)
            set_time(store[PoolName(clock.name, Role.IDLE)], is_idle)
        if clock.gap and (message := given.get(spans := PoolName(clock.name, Role.ACTIVITY))):
            now = time_of(store[name])
            assert now is not None, "a span has rows, of which one is the latest"
            add_spans(store[spans], clock, message.keys, now)


def idle_clocks(store: Store, clocks: Iterable[Clock]) -> set[str]:
    """Name the clocks of streams that are idle."""
    return {clock.name for clock in clocks if clock.is_timed and time_of(store[PoolName(clock.name, Role.IDLE)])}


def read_watermarks(store: Store, clocks: Iterable[Clock], partition: str) -> dict[str, dict[str, int]]:
    """Read the watermark of each stream that has one, in microseconds since 1970, under the name of the partition."""
    found: dict[str, dict[str, int]] = {}
    for clock in clocks:
        pool = store.get(PoolName(clock.name, Role.CLOCK))
        latest = None if pool is None else time_of(pool)
        if latest is not None:
            before = found.get(clock.relation, {}).get(partition)
            now = latest * clock.unit - clock.delay
            found[clock.relation] = {partition: now if before is None else min(before, now)}
    return found


def time_of(pool: Container) -> int | None:
    """Return the time that a pool holds."""
    return int(pool.keys[0, 0]) if len(pool) else None


def set_time(pool: Container, time: int) -> None:
    """Make a pool hold another time."""
    pool.upsert(pool.keys.copy(), -pool.words)
    pool.upsert(np.array([[time]], np.int64), np.ones((1, 1), np.int64))
