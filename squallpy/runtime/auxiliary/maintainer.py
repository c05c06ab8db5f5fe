"""Maintainers of auxiliary relations: what all kinds share.

M_LINEITEM changed for l_orderkey 7:  (7, 290)  →  (7, 310)      ΔN1 = {(7, 290): −1, (7, 310): +1}

Only the groups that a batch touched are looked at: the extracted domain of `dbtoaster-batch-ivm` §3.2.2.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from squallpy.base.rings import Payload, Ring
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan, Feed, PoolPlan
from squallpy.program.output_spec import OutputSpec
from squallpy.runtime.evaluate.vectors import Vec, full, take
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool, as_pool
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.messages.deltas import Delta, decode
from squallpy.runtime.messages.grouping import Grouping
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

TouchedGroups = tuple[Words, Words]  # keys, each once, and payloads before the batch
Mask = npt.NDArray[np.bool_]
Titles = Mapping[str, tuple[int, Column]]  # of fields: the place in a key, and what stands there
COUNT = Payload((Ring.COUNT,))
_FIRST_BATCH = PoolName(role=Role.FIRST_BATCH)
FIRST_BATCH_LAYOUT = PoolLayout(_FIRST_BATCH, 0, COUNT)  # NB: a relation without keys has a row even before it


class Maintainer(ABC):
    """A maintainer of the rows of one auxiliary relation."""

    @abstractmethod
    def __init__(self, feed: Feed, aux: AuxiliaryPlan) -> None: ...

    @staticmethod
    def layouts(feed: Feed, aux: AuxiliaryPlan) -> tuple[PoolLayout, ...]:
        """Return the pools that it keeps besides the view."""
        return ()

    @abstractmethod
    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        """Return the change of the rows, pre-aggregated.

        Args:
            touched: The groups that the batch touched; None if nobody noted them, as the view is looked at as a whole.
        """


def has_begun(store: Store) -> bool:
    """True if there was a batch before."""
    return bool(len(store[_FIRST_BATCH]))


def begin(store: Store) -> None:
    """Note that a batch is done."""
    if _FIRST_BATCH in store and not len(store[_FIRST_BATCH]):
        store[_FIRST_BATCH].upsert(np.empty((1, 0), np.int64), np.ones((1, 1), np.int64))


class TouchTracker:
    """The groups of a pool that a batch touched, and their payloads before it."""

    def __init__(self, source: PoolPlan) -> None:
        self.pool = Pool(len(source.keys), source.payload)
        """Payloads before the batch by key, also those that are 0."""

    def note(self, pool: Container, keys: Words, words: Words) -> None:
        """Note the payloads of `keys` before they change."""
        if not self.pool.key_width and len(self.pool):  # the one group is noted
            return
        done = 0
        while (done := self.pool.note_groups(as_pool(pool), keys, done)) < len(keys):
            self.pool.make_room()
        self.pool.tend()

    def groups(self) -> TouchedGroups:
        """Return keys, each once, and payloads."""
        return self.pool.rows()

    @property
    def addresses(self) -> tuple[int, int]:
        """Addresses of the pool of groups and of their payloads before the batch; 0 if there are none."""
        return (self.pool.address, self.pool.places[1]) if len(self.pool) else (0, 0)

    def take_back(self, keys: Words, words: Words) -> None:
        """Make payloads of these keys what they were before the batch."""
        if len(self.pool):
            slots = self.pool.probe(keys)
            noted = slots >= 0
            words[noted] = self.pool.words_of(slots[noted])

    def put(self, keys: Words, words: Words) -> None:
        """Let groups, and payloads before the batch, be these."""
        before = Pool(self.pool.key_width, self.pool.payload)
        before.upsert(keys, words)
        self.clear()
        self.note(before, keys, words)  # NB: also those that are 0

    def clear(self) -> None:
        self.pool.clear()


def titles(output: OutputSpec, columns: Iterable[Column]) -> Titles:
    """Map the fields of rows that are keys with these columns."""
    places = {column.id: position for position, column in enumerate(columns)}
    return {title: (places[expr.id], expr) for title, expr in output.items if isinstance(expr, Column)}


def came_or_went(pool: Pool, touched: TouchedGroups, count: int) -> tuple[Words, Mask]:
    """Return the groups that came with the batch or went, by the word that counts their rows, and which came."""
    keys, before = touched
    was, now = before[:, count] > 0, pool.get(keys)[:, count] > 0
    changed = np.flatnonzero(was != now)
    return keys[changed], now[changed]


def drop_repeated(keys: Words) -> Words:
    """Drop repeated keys, keeping the order in which they first come."""
    once = Pool(keys.shape[1], COUNT)
    once.upsert(np.ascontiguousarray(keys), np.ones((len(keys), 1), np.int64))
    return once.keys.copy()


class RowDeltas:
    """A converter from rows that went and came to pre-aggregated deltas."""

    def __init__(self, feed: Feed) -> None:
        self._groupings = [Grouping(delta, payload) for delta, payload in zip(feed.deltas, feed.payloads, strict=True)]

    def __call__(
        self,
        times: Words,
        field: Callable[[str], Vec],
        names: Dictionary,
        encoded: Callable[[str], Words] | None = None,
        distinct: int = 0,
    ) -> dict[str, Delta]:
        """Aggregate rows, given by their fields and how often each came or, below 0, went.

        Args:
            encoded: Gives fields as keys, for deltas that need nothing else.
            distinct: The number of fields, if no two rows agree on all of them and none came 0 times.
        """
        read, often = field, times
        if not distinct and np.count_nonzero(times) < len(times):
            chosen = np.flatnonzero(times)
            read, often = lambda name: take(field(name), chosen), times[chosen]
        out = {}
        for grouping in self._groupings:
            if encoded and grouping.is_of_fields:
                keys, words = grouping.of_keys(encoded, times, distinct)
            else:
                keys, words = grouping(len(often), read, often, names)
            if len(keys):
                out[grouping.name] = Delta(grouping.name, keys, words)
        return out

    def of_keys(
        self, rows: Words, times: Words, titles: Titles, names: Dictionary, is_distinct: bool = False
    ) -> dict[str, Delta]:
        """Return the deltas of rows that are keys.

        Args:
            is_distinct: No two rows are equal, and none came 0 times.
        """

        def field(title: str) -> Vec:
            position, column = titles[title]
            codes = decode(np.ascontiguousarray(rows[:, position]), column, names)
            return full(codes, column.type, len(rows))

        distinct = len(titles) if is_distinct else 0
        return self(times, field, names, lambda title: rows[:, titles[title][0]], distinct)


class ChangeMaintainer(Maintainer):
    """A maintainer of rows that follow from which groups of a view came and which went."""

    def __init__(self, feed: Feed, aux: AuxiliaryPlan, titles: Titles) -> None:
        self._source, self._order = aux.source.name, aux.order
        self._count = aux.source.payload.offsets[aux.output.count]
        self._titles, self._rows = titles, RowDeltas(feed)

    def deltas(self, store: Store, touched: TouchedGroups | None) -> dict[str, Delta]:
        assert touched is not None
        pool = store.pool(self._source)
        keys, came = came_or_went(pool, touched, self._count)
        if not len(keys):
            return {}
        went, come = self._find_changes(store, pool, keys, came)
        rows, times = np.concatenate([went, come]), np.repeat([-1, 1], [len(went), len(come)])
        return self._rows.of_keys(rows, times, self._titles, store.dictionary)

    @abstractmethod
    def _find_changes(self, store: Store, pool: Pool, keys: Words, came: Mask) -> tuple[Words, Words]:
        """Find the rows that go, and those that come, by the keys of the view that `came` or went."""
