"""Ledgers: which rows of a change stream are there, so that a delete of a row that never was can be counted.

A wrong delete does not stop a query: its answer is that of the multiset with a negative multiplicity, and is right
again when the insert comes. A ledger keeps a 64-bit hash of each row (of the fields that the query reads) with its
multiplicity; two rows of one hash could hide a wrong delete from the count, never change an answer. What is only seen
through windows needs none: a window has its rows, and forgets them.
"""

from collections.abc import Sequence

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.physical.plan import Plan
from squallpy.runtime.kernels.fixpoint_steps import add_up_rows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.state.state_store import PoolLayout

COUNTS = Payload((Ring.COUNT,))


def ledger_layouts(plan: Plan) -> tuple[PoolLayout, ...]:
    """Make the layout of a ledger for each change stream of a plan."""
    return tuple(
        PoolLayout(PoolName(f.relation.name, Role.LEDGER), 1, COUNTS)
        for f in plan.feeds
        if f.relation.name in plan.ledgers
    )


def entries(hashes: Words, mult: Words) -> tuple[Words, Words]:
    """List the changes of a batch for its ledger, without rows that cancel out."""
    keys, counts = add_up_rows(hashes.reshape(-1, 1), mult.reshape(-1))
    return keys, counts[:, None]


def sum_changes(changes: Sequence[tuple[Words, Words]]) -> tuple[Words, Words]:
    """Sum changes of counts, keys (n, K) and counts (n, 1) each, by key; those that cancel out are left out."""
    keys, counts = (np.concatenate(parts) for parts in zip(*changes, strict=True))
    keys, sums = add_up_rows(np.ascontiguousarray(keys), counts[:, 0])
    return keys, sums[:, None]


def book_entries(ledger: Pool, keys: Words, words: Words) -> int:
    """Book changes of distinct rows, and count the deletes of rows that are not there."""
    fewer = np.flatnonzero(words[:, 0] < 0)
    before = ledger.get(keys[fewer])[:, 0]
    after = before + words[fewer, 0]
    ledger.upsert(keys, words)
    wrong = np.flatnonzero(after < 0)
    return int((np.minimum(before[wrong], 0) - after[wrong]).sum()) if len(wrong) else 0
