"""Nests at work: the rows that a nested aggregate makes of its groups, as a delta for what joins them.

M_LINEITEM changed for l_orderkey 7:  (7, 290)  →  (7, 310)      ΔN1 = {(7, 290): −1, (7, 310): +1}

Only the groups that a batch touched are looked at: the extracted domain of `dbtoaster-batch-ivm` §3.2.2.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from squallpy.base.rings import Payload, Ring
from squallpy.logical.expressions import Column
from squallpy.physical.plan import Feed, Nested, Plan, PoolPlan
from squallpy.program.program import Finish
from squallpy.runtime.evaluate.vectors import Frame, Vec, full, take
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.regions import Words
from squallpy.runtime.messages.deltas import Delta, decode
from squallpy.runtime.messages.grouping import Grouping
from squallpy.runtime.output import Printer
from squallpy.runtime.state.store import PoolLayout, Store

Groups = tuple[Words, Words]  # keys, each once, and payloads
Mask = npt.NDArray[np.bool_]
Titles = Mapping[str, tuple[int, Column]]  # of fields: the place in a key, and what stands there
_COUNT = Payload((Ring.COUNT,))
_BEGUN = "begun"  # the pool that says whether there was a batch before: one record, or none


def begun_layouts(plan: Plan) -> tuple[PoolLayout, ...]:
    """What a store remembers besides: a nest without keys has a row even before anything is there."""
    return (PoolLayout(_BEGUN, 0, _COUNT),) if any(feed.nested for feed in plan.feeds) else ()


def begun(store: Store) -> bool:
    """Was there a batch before?"""
    return bool(len(store[_BEGUN]))


def begin(store: Store) -> None:
    """A batch is done."""
    if _BEGUN in store and not len(store[_BEGUN]):
        store[_BEGUN].upsert(np.empty((1, 0), np.int64), np.ones((1, 1), np.int64))


class Touched:
    """The groups of a pool that a batch touched, and their payloads before it."""

    def __init__(self, source: PoolPlan) -> None:
        self._seen = Pool(len(source.keys), _COUNT)
        self._before = np.empty((0, source.payload.width), np.int64)

    def note(self, pool: Pool, keys: Words, words: Words) -> None:
        """To be told before `keys` change."""
        known = len(self._seen)
        self._seen.upsert(keys, np.ones((len(keys), 1), np.int64))
        fresh = self._seen.keys[known:]
        self._before = np.concatenate([self._before, pool.get(fresh)])

    def groups(self) -> Groups:
        """Keys, each once, and payloads."""
        return self._seen.keys, self._before

    @property
    def addresses(self) -> tuple[int, int]:
        """Of the pool of groups and of their payloads before the batch; 0 if there are none."""
        return (self._seen.address, self._before.ctypes.data) if len(self._seen) else (0, 0)

    def take_back(self, keys: Words, words: Words) -> None:
        """Make payloads of these keys what they were before the batch."""
        if len(self._seen):
            slots = self._seen.probe(keys)
            noted = slots >= 0
            words[noted] = self._before[slots[noted]]

    def clear(self) -> None:
        self._seen.clear()
        self._before = self._before[:0]


class NestFeed(Protocol):
    """The feed of a nest, made runnable."""

    def deltas(self, store: Store, touched: Groups | None) -> dict[str, Delta]:
        """The change of the nest's rows, pre-aggregated, given the touched groups and their payloads before.

        None: nobody noted them, for all who ask for that view's rows look at it as a whole.
        """


class Aggregates:
    """A nest of sums: a row for each group of the view that it is made of."""

    def __init__(self, feed: Feed, nested: Nested) -> None:
        self._finish, self._source = nested.finish, nested.source.name
        self._printer = Printer(nested.finish, nested.source)
        self._rows = RowDeltas(feed)

    def deltas(self, store: Store, touched: Groups | None) -> dict[str, Delta]:
        assert touched is not None
        keys, before = touched
        if self._finish.single and not len(keys) and not begun(store):
            keys, before = np.empty((1, 0), np.int64), np.zeros((1, before.shape[1]), np.int64)
        if not len(keys):
            return {}
        words = np.concatenate([before, store[self._source].get(keys)])
        frame = self._printer.frame(np.concatenate([keys, keys]), words, store.dictionary)
        times = self._printer.times(frame, words)
        times[: len(keys)] *= 0 if self._finish.single and not begun(store) else -1
        if self._finish.number is not None:
            return self._numbered(times, frame, store.dictionary)
        return self._rows(times, lambda name: self._printer.item(name, frame), store.dictionary)

    def _numbered(self, times: Words, frame: Frame, names: Dictionary) -> dict[str, Delta]:
        """The rows of each group by themselves: as often as it is there."""
        title = next(title for title, expr in self._finish.items if expr == self._finish.number)
        counts = np.abs(times)
        rows = np.repeat(np.arange(len(times)), counts)
        numbers = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)

        def field(name: str) -> Vec:
            return Vec(numbers) if name == title else take(self._printer.item(name, frame), rows)

        return self._rows(np.sign(times)[rows], field, names)


class RowsOf:
    """The rows of a nest of sums, looked at through its view; `touched` knows what that was before the batch."""

    def __init__(self, nested: Nested, touched: Touched) -> None:
        self.nested, self._touched = nested, touched
        self._printer = Printer(nested.finish, nested.source)

    @property
    def noted(self) -> tuple[int, int]:
        """The addresses of the groups whose payloads were others before the batch, and of those; 0 if none were."""
        return self._touched.addresses

    def __call__(self, pool: Pool, keys: Words, before: bool, names: Dictionary) -> tuple[Mask, Callable[[str], Vec]]:
        """Which keys have a row, and the fields of all rows."""
        words = pool.get(keys)
        if before:
            self._touched.take_back(keys, words)
        frame = self._printer.frame(keys, words, names)
        return self._printer.times(frame, words) > 0, lambda title: self._printer.item(title, frame)


def titles(finish: Finish, columns: Iterable[Column]) -> Titles:
    """The fields of a nest's rows that are keys with these columns."""
    places = {column.id: place for place, column in enumerate(columns)}
    return {title: (places[expr.id], expr) for title, expr in finish.items if isinstance(expr, Column)}


def came_or_went(pool: Pool, touched: Groups, count: int) -> tuple[Words, Mask]:
    """The groups that are there since the batch or no more, by the word that counts their rows, and which came."""
    keys, before = touched
    was, now = before[:, count] > 0, pool.get(keys)[:, count] > 0
    changed = np.flatnonzero(was != now)
    return keys[changed], now[changed]


class RowDeltas:
    """From rows that went and came to pre-aggregated deltas."""

    def __init__(self, feed: Feed) -> None:
        self._groupings = [Grouping(delta, payload) for delta, payload in zip(feed.deltas, feed.payloads, strict=True)]

    def __call__(self, times: Words, field: Callable[[str], Vec], names: Dictionary) -> dict[str, Delta]:
        """How often each row came, or, below 0, went; `field` has its fields."""
        chosen = np.flatnonzero(times)
        out = {}
        for grouping in self._groupings:
            keys, words = grouping(len(chosen), lambda name: take(field(name), chosen), times[chosen], names)
            if len(keys):
                out[grouping.name] = Delta(grouping.name, keys, words)
        return out

    def of_keys(self, rows: Words, times: Words, titles: Titles, names: Dictionary) -> dict[str, Delta]:
        """The same of rows that are keys."""

        def field(title: str) -> Vec:
            place, column = titles[title]
            codes = decode(np.ascontiguousarray(rows[:, place]), column, names)
            return full(codes, column.type, len(rows))

        return self(times, field, names)
