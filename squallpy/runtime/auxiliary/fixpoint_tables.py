"""Recursive tables of a fixpoint: which rows a table has in which iteration, from how often each is derived in it.

A derivation happens in the iteration after that in which the last of its rows came, its *rank*. For each row and
iteration the number of its derivations is stored, so that both inserts and deletes are additions. Of these follows

    UNION       the iteration of a row's first derivation                   (3, 7): {2: 1, 5: 2}  →  rank 2
    UNION ALL   each iteration, as often as the row is derived in it
    MIN         each iteration that derives a value less than all before     3: {2: 9, 4: 6, 5: 8} → 9 at 2, 6 at 4

Iterations of a batch are done in order, so that a change of rank is known before the derivations that depend on it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from squallpy.base.keys import null_of
from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind
from squallpy.logical.expressions import Column
from squallpy.logical.recursion import Growth, RecursiveTable
from squallpy.runtime.auxiliary.fixpoint_rules import AtomRows, Stored
from squallpy.runtime.auxiliary.maintainer import COUNT
from squallpy.runtime.kernels.fixpoint_steps import COME, GONE, LATER, LOST, SOONER, add_up_rows, settle_rows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

_RANKED = Payload((Ring.COUNT, Ring.COUNT))
_WORST = 2**63 - 1
_NONE = np.empty(0, np.int64)
Scheduled = list[tuple[int, Words]]  # iterations, and the keys to look at again in them


@dataclass(frozen=True, slots=True)
class Change:
    """The rows of an iteration that went and came, and the iterations in which some have to be looked at again."""

    rows: AtomRows
    again: Scheduled


class TableState(ABC):
    """The rows of one recursive table.

    Args:
        name: The prefix of its pools.
        columns: Its columns.
        slices: The columns by which its rows are looked up.
    """

    def __init__(
        self, table: RecursiveTable, name: str, columns: tuple[Column, ...], slices: tuple[tuple[int, ...], ...]
    ) -> None:
        self.table, self.columns, self.width, self.slices = table, columns, len(columns), slices
        self._names = [PoolName(f"{name} {part}", Role.FIXPOINT) for part in ("rows", "derived", "best")]

    @abstractmethod
    def layouts(self) -> tuple[PoolLayout, ...]:
        """Return its pools."""

    @abstractmethod
    def stored(self, store: Store) -> Stored:
        """Return its rows, to be joined."""

    @abstractmethod
    def apply(self, store: Store, iteration: int, keys: Words, times: Words) -> Change:
        """Add derivations of an iteration, each key once.

        Args:
            times: How often each is derived; 0 for those to look at again.
        """

    def net(self, store: Store, changes: list[AtomRows]) -> tuple[Words, Words]:
        """Return the rows that went and came with a batch, and how often, from the changes of its iterations."""
        return add_up([(rows.keys, rows.times) for rows in changes])


def add_up(parts: list[tuple[Words, Words]]) -> tuple[Words, Words]:
    """Add up equal keys; those that cancel out are left out, but for those of which one is there 0 times."""
    keys, times = (np.concatenate(some) for some in zip(*parts, strict=True))
    return add_up_rows(keys, times)


class UnionTable(TableState):
    """A table of UNION: each row once, with the iteration of its first derivation and how often it is derived then."""

    def layouts(self) -> tuple[PoolLayout, ...]:
        """Return rows → (rank, derivations of that rank); and (row, later iteration) → derivations."""
        cells, n = numbered(self.columns), self.width
        return (
            PoolLayout(self._names[0], n, _RANKED, slices=self.slices, numbered=cells),
            PoolLayout(self._names[1], n + 1, COUNT, slices=(tuple(range(n)),), numbered=cells),
        )

    def stored(self, store: Store) -> Stored:
        return Stored(store.pool(self._names[0]), self.width, True, rank_in_keys=False, is_counted=False)

    def apply(self, store: Store, iteration: int, keys: Words, times: Words) -> Change:
        rows, later = store.pool(self._names[0]), store.pool(self._names[1])
        waiting = later.get(_with_iteration(keys, iteration))[:, 0] if len(later) else _NONE
        fates, slots, ranks, counts, totals = settle_rows(rows.frame, keys, times, waiting, iteration).T
        gone, come, sooner, lost = (np.flatnonzero(fates == fate) for fate in (GONE, COME, SOONER, LOST))
        rows.exchange(
            np.ascontiguousarray(slots[gone]),
            keys[come],
            np.column_stack([np.full(len(come), iteration), totals[come]]),
        )
        delayed = np.flatnonzero(fates == LATER)
        self._add_later(later, keys[delayed], iteration, times[delayed])
        if len(waiting):
            early = np.flatnonzero((ranks > iteration) & (waiting != 0))
            self._add_later(later, keys[early], iteration, -waiting[early])
        self._add_later(later, keys[sooner], ranks[sooner], counts[sooner])
        odd = gone[totals[gone] < 0]
        self._add_later(later, keys[odd], iteration, totals[odd])
        went, came = np.concatenate([gone, sooner]), np.concatenate([come, sooner])
        return Change(
            AtomRows(
                np.concatenate([keys[went], keys[came]]),
                np.concatenate([ranks[went], np.full(len(came), iteration)]),
                np.repeat([-1, 1], [len(went), len(came)]),
            ),
            self._next(later, keys[np.concatenate([gone, lost])], iteration),
        )

    def _add_later(self, later: Pool, keys: Words, iterations: Words | int, times: Words) -> None:
        if len(keys):
            later.upsert(_with_iteration(keys, iterations), np.ascontiguousarray(times)[:, None])

    def _next(self, later: Pool, keys: Words, iteration: int) -> Scheduled:
        """Find the next iteration in which each row is derived."""
        if not len(keys) or not len(later):
            return []
        rows, slots = later.slice(0, np.ascontiguousarray(keys))
        return schedule(keys, rows, later.keys[slots, self.width], iteration)


def _with_iteration(keys: Words, iterations: Words | int) -> Words:
    """Append iterations to keys."""
    return np.column_stack([keys, np.broadcast_to(np.asarray(iterations), len(keys))])


class UnionAllTable(TableState):
    """A table of UNION ALL: its rows with their iterations, and how often each is there."""

    def layouts(self) -> tuple[PoolLayout, ...]:
        """Return (row, iteration) → times."""
        cells = numbered(self.columns)
        return (PoolLayout(self._names[0], self.width + 1, COUNT, slices=self.slices, numbered=cells),)

    def stored(self, store: Store) -> Stored:
        return Stored(store.pool(self._names[0]), self.width, True, rank_in_keys=True, is_counted=True)

    def apply(self, store: Store, iteration: int, keys: Words, times: Words) -> Change:
        ranks = np.full(len(keys), iteration)
        store.pool(self._names[0]).upsert(_with_iteration(keys, ranks), np.ascontiguousarray(times)[:, None])
        return Change(AtomRows(keys, ranks, times), [])


class ExtremeTable(TableState):
    """A table of MIN or MAX: the values of each group that are better than those of all iterations before."""

    def __init__(
        self, table: RecursiveTable, name: str, columns: tuple[Column, ...], slices: tuple[tuple[int, ...], ...]
    ) -> None:
        super().__init__(table, name, columns, slices)
        self._group = tuple(at for at in range(self.width) if at != table.value)
        self._slices = tuple(dict.fromkeys((*slices, self._group)))

    def layouts(self) -> tuple[PoolLayout, ...]:
        """Return the improvements, (row, iteration); the derivations of each; and the rows with the best values."""
        cells, n = numbered(self.columns), self.width
        by_group = (self._group,) if self._group else ()
        return (
            PoolLayout(
                self._names[0], n + 1, COUNT, slices=self._slices if self._group else self.slices, numbered=cells
            ),
            PoolLayout(self._names[1], n + 1, COUNT, slices=by_group, numbered=cells),
            PoolLayout(self._names[2], n, COUNT, slices=by_group, numbered=cells),
        )

    def stored(self, store: Store) -> Stored:
        return Stored(store.pool(self._names[0]), self.width, True, rank_in_keys=True, is_counted=False)

    def apply(self, store: Store, iteration: int, keys: Words, times: Words) -> Change:
        rows, derived = store.pool(self._names[0]), store.pool(self._names[1])
        added = np.flatnonzero(times)
        column = np.full(len(added), iteration)
        derived.upsert(np.column_stack([keys[added], column]), np.ascontiguousarray(times[added])[:, None])
        groups = np.unique(keys[:, self._group], axis=0) if self._group else np.empty((1, 0), np.int64)
        of, known = self._find(rows, groups)
        ranks, values = known[:, self.width], self._order(known)
        before = np.full(len(groups), _WORST)
        np.minimum.at(before, of[ranks < iteration], values[ranks < iteration])
        has_before = np.zeros(len(groups), np.bool_)
        has_before[of[ranks < iteration]] = True
        old = known[ranks == iteration]
        of_derived, every = self._find(derived, groups)
        now = np.flatnonzero(every[:, self.width] == iteration)
        order = now[np.lexsort((self._order(every)[now], of_derived[now]))]
        first = order[np.append(True, of_derived[order][1:] != of_derived[order][:-1])[: len(order)]]
        better = (self._order(every)[first] < before[of_derived[first]]) | ~has_before[of_derived[first]]
        new = every[first[better]]
        changes, signs = add_up([(old, np.full(len(old), -1)), (new, np.ones(len(new), np.int64))])
        rows.upsert(changes, np.ascontiguousarray(signs)[:, None])
        later = np.concatenate([known[:, self.width], every[:, self.width]])
        again = schedule(groups, np.concatenate([of, of_derived]), later, iteration)
        return Change(
            AtomRows(changes[:, : self.width], changes[:, self.width], signs),
            [(at, self._with_values(some)) for at, some in again],
        )

    def net(self, store: Store, changes: list[AtomRows]) -> tuple[Words, Words]:
        keys = np.concatenate([rows.keys for rows in changes])
        groups = np.unique(keys[:, self._group], axis=0) if self._group else np.empty((1, 0), np.int64)
        of, known = self._find(store.pool(self._names[0]), groups)
        order = np.lexsort((self._order(known), of))
        new = known[order[np.append(True, of[order][1:] != of[order][:-1])[: len(order)]], : self.width]
        best = store.pool(self._names[2])
        _, old = self._find(best, groups)
        changed, signs = add_up([(old, np.full(len(old), -1)), (new, np.ones(len(new), np.int64))])
        best.upsert(changed, np.ascontiguousarray(signs)[:, None])
        return changed, signs

    def _find(self, pool: Pool, groups: Words) -> tuple[Words, Words]:
        """List the records of groups: the number of the group, and the key."""
        if not self._group:
            return np.zeros(len(pool), np.int64), pool.keys.copy()
        index = self._slices.index(self._group) if pool.slices == self._slices else 0
        of, slots = pool.slice(index, np.ascontiguousarray(groups))
        return of, pool.keys[slots]

    def _order(self, keys: Words) -> Words:
        """Rank values so that the best is the least; NULL is the worst."""
        codes, column = np.ascontiguousarray(keys[:, self.table.value]), self.columns[self.table.value]
        values = codes ^ ((codes >> 63) & _WORST) if column.type.kind is Kind.DOUBLE else codes
        ranked = values if self.table.growth is Growth.MIN else ~values
        return np.where(codes == null_of(column.type), _WORST, ranked)

    def _with_values(self, groups: Words) -> Words:
        """Make keys of groups, whose values do not matter."""
        keys = np.zeros((len(groups), self.width), np.int64)
        keys[:, self._group] = groups
        return keys


def schedule(keys: Words, of: Words, iterations: Words, iteration: int) -> Scheduled:
    """Find the next iteration of each key: `of` are places of keys, each with an iteration."""
    after = np.flatnonzero(iterations > iteration)
    if not len(after):
        return []
    following = np.full(len(keys), _WORST)
    np.minimum.at(following, of[after], iterations[after])
    return [(int(at), keys[following == at]) for at in np.unique(following[following < _WORST])]


def table_state(
    table: RecursiveTable, name: str, columns: tuple[Column, ...], slices: tuple[tuple[int, ...], ...]
) -> TableState:
    """Return the state of a table that grows in its way."""
    kind = {Growth.UNION: UnionTable, Growth.UNION_ALL: UnionAllTable}.get(table.growth, ExtremeTable)
    return kind(table, name, columns, slices)


def split_by_iteration(keys: Words, iterations: Words, times: Words) -> Iterator[tuple[int, Words, Words]]:
    """Split derivations by the iterations in which they happen."""
    low, high = int(iterations.min()), int(iterations.max())
    if low == high:
        yield low, keys, times
        return
    order = np.argsort(iterations, kind="stable")
    ordered = iterations[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    for start, stop in zip(starts, np.append(starts[1:], len(ordered)), strict=True):
        some = order[start:stop]
        yield int(ordered[start]), keys[some], times[some]
