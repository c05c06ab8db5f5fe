"""The leaves of a fixpoint: what its rules read that is not recursive, each in a pool of its own.

All of them are terms of one view, whose groups have the number of their leaf.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from squallpy.physical.plan import AuxiliaryPlan
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.runtime.auxiliary.fixpoint_rules import AtomRows, DeltaPlan, RelationId, Stored, slices_of
from squallpy.runtime.auxiliary.maintainer import COUNT, TouchedGroups
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.fixpoint_steps import changed_rows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.messages.deltas import numbered
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout, Store

LEAF = "leaf"  # before the number of a leaf in the name of its pool; other pools have the number of a table there
_ANY_NUMBER = 2**63 - 1
Own = Callable[[int, Words, Dictionary], Words]
"""Function that lists which rows of a recursive table, given by its place, this partition derives of all that do."""


class FixpointLeaves:
    """The pools of leaves, and their changes.

    Args:
        name: The prefix of the pools.
        is_set: How often a row is there does not count.
    """

    def __init__(self, name: str, aux: AuxiliaryPlan, kind: Fixpoint, is_set: bool) -> None:
        self._names = [PoolName(f"{name} {LEAF} {at}", Role.FIXPOINT) for at in range(len(kind.leaves))]
        self._columns = [leaf.slots for leaf in kind.leaves]
        self._source, self._count = aux.source.name, aux.source.payload.offsets[aux.output.count]
        keys = aux.source.keys
        self._number, self._most = keys.index(kind.number), 1 if is_set else _ANY_NUMBER
        self._slots = [np.array([keys.index(slot) for slot in slots], np.int64) for slots in self._columns]

    def layouts(self, plans: Iterable[DeltaPlan]) -> Iterator[PoolLayout]:
        """Yield the pools, with the slices by which rules look rows up."""
        plans = [*plans]
        for at, (name, slots) in enumerate(zip(self._names, self._columns, strict=True)):
            slices = slices_of(plans, (False, at), len(slots))
            yield PoolLayout(name, len(slots), COUNT, slices=slices, numbered=numbered(slots))

    def stored(self, store: Store) -> dict[RelationId, Stored]:
        """Return the rows of all leaves, to be joined."""
        pools = (store.pool(name) for name in self._names)
        widths = map(len, self._columns)
        return {
            (False, at): Stored(pool, width, False, False, is_counted=True)
            for at, (pool, width) in enumerate(zip(pools, widths, strict=True))
        }

    def changes(
        self, store: Store, touched: TouchedGroups, stored: dict[RelationId, Stored]
    ) -> Iterator[tuple[RelationId, AtomRows]]:
        """Bring one leaf after the other up to date, and yield what changed in it."""
        keys, before = touched
        now = store.pool(self._source).get(keys)
        for at, slots in enumerate(self._slots):
            rows, times = changed_rows(keys, before, now, self._count, self._number, at, slots, self._most)
            if len(times):
                stored[False, at].pool.upsert(rows, times[:, None])
                yield (False, at), AtomRows(rows, np.zeros(len(times), np.int64), times)
