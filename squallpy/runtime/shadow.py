"""The interpreter as a shadow of compiled code: now and then it does a batch again, on a copy of the state.

compiled     state, batch  →  state′, changes of results
interpreted  copy,  batch  →  state″, changes              the same rows, or the run goes on with these
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from squallpy.base.events import COMPILE, WARNING, log_event
from squallpy.base.rings import Cofactor, Payload, Ring
from squallpy.base.rings.cofactor import COUNT, HASH
from squallpy.runtime.batch.direct_batch import Changed
from squallpy.runtime.batch.micro_batch import Stats
from squallpy.runtime.kernels.content_hash import hash_columns
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.replan import renumbered
from squallpy.runtime.state.state_store import PoolLayout, Store

SHARE = 0.1  # of the time of compiled batches: so much more may pass in checks
Applied = tuple[Changed, Stats]


class Shadow:
    """A check of compiled batches as often as its share of their time allows, and of the first batch."""

    def __init__(self) -> None:
        self._batches = self._checks = 0.0

    def apply(
        self, store: Store, compiled: Callable[[], Applied], interpreted: Callable[[Store], Applied]
    ) -> tuple[Applied, Store]:
        """Apply a batch, both ways if a check is due; return what it did and the state: the interpreted if they
        differ."""
        begin = perf_counter()
        copy = store.copy() if self._checks <= SHARE * self._batches else None
        between = perf_counter()
        done = compiled()
        end = perf_counter()
        self._batches += end - between
        if copy is None:
            return done, store
        again = interpreted(copy)
        differing = _differing_views(copy, again[0], store, done[0])
        self._checks += between - begin + perf_counter() - end
        if not differing:
            return done, store
        log_event(COMPILE, WARNING, "compiled code differs", views=", ".join(differing))
        return again, copy


def _differing_views(ours: Store, changes: Changed, theirs: Store, others: Changed) -> list[str]:
    """List the views with other rows or, if they are results, other changes; sums of doubles are not compared."""
    return [
        layout.name
        for layout in ours.layout.pools
        if _digests(layout, ours, ours, changes) != _digests(layout, ours, theirs, others)
    ]


def _digests(layout: PoolLayout, store: Store, own: Store, changes: Changed) -> list[tuple[int, int]]:
    """Hash a view's rows in its own store, and its changes, with strings numbered as in `store`."""
    changed = Pool(layout.key_width, layout.payload)
    for change in (some for some in changes if isinstance(some, Delta) and some.name == layout.name):
        changed.upsert(np.ascontiguousarray(change.keys), np.ascontiguousarray(change.words))
    parts = own[layout.name].rows(), changed.rows()
    return [_digest(*renumbered(store, layout, *part, own.dictionary), layout.payload) for part in parts]


def _digest(keys: Words, words: Words, payload: Payload) -> tuple[int, int]:
    """Count rows, and add up their hashes: the same for the same rows in any order."""
    columns = list(keys.T)
    for ring, at in zip(payload.rings, payload.offsets, strict=True):
        if isinstance(ring, Cofactor):
            columns += [words[:, at + COUNT], words[:, at + HASH]]
        elif ring <= Ring.EXACT:
            columns += [words[:, at + i] for i in range(ring.words)]
    return len(keys), int(hash_columns(columns).sum()) if columns and len(keys) else 0
