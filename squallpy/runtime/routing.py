"""Where rows of deltas go: by the hash of what their keys stand for, hence the same on every node and each time.

spread(ΔORDERS, by o_custkey, over 2)   →   (0, rows of some customers), (1, those of the others)
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from squallpy.base.types import Kind
from squallpy.logical.expressions import Column
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Tickets
from squallpy.physical.plan import Send
from squallpy.runtime.deltas import NULL, Delta, spelled
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.routing import from_zero, hash_columns, hash_strings
from squallpy.runtime.kernels.storage import Words


def partitions_of(
    keys: Words, columns: Sequence[Column], by: Sequence[int], partitions: int, names: Dictionary
) -> Words:
    """The partition of each row by those of its key columns; of none: 0."""
    if not by or partitions == 1:
        return np.zeros(len(keys), np.int64)
    return from_zero(_hashes(keys, columns, by, names)) % partitions


def tickets_of(keys: Words, columns: Sequence[Column], by: Sequence[int], names: Dictionary) -> Tickets:
    """The ticket of each row in the join-matrix, by those of its key columns: a delete has that of its insert."""
    if not by:
        return np.zeros(len(keys), np.uint64)
    return _hashes(keys, columns, by, names).view(np.uint64)


def spread(
    delta: Delta, columns: Sequence[Column], send: Send, partitions: int, grid: Grid | None, names: Dictionary
) -> Iterator[tuple[int, Delta]]:
    """The rows for each partition, where there are any."""
    if not len(delta.keys):
        return
    if send.by is None:
        yield from ((partition, delta) for partition in range(partitions))
        return
    if send.side is None or grid is None:
        targets = partitions_of(delta.keys, columns, send.by, partitions, names)
        for partition in range(partitions):
            yield from _part(partition, delta, targets == partition)
        return
    tickets, joiners = tickets_of(delta.keys, columns, send.by, names), grid.numbers
    parts, homes = grid.part(send.side, tickets), grid.part_of(send.side, joiners)
    for part in range(grid.mapping.cuts(send.side)):
        for _, rows in _part(part, delta, parts == part):
            yield from ((joiner, rows) for joiner in joiners[homes == part].tolist())


def _part(partition: int, delta: Delta, chosen: Any) -> Iterator[tuple[int, Delta]]:
    rows = np.flatnonzero(chosen)
    if len(rows):
        yield partition, Delta(delta.name, delta.keys[rows], delta.words[rows])


def _hashes(keys: Words, columns: Sequence[Column], by: Sequence[int], names: Dictionary) -> Words:
    return hash_columns([_contents(np.ascontiguousarray(keys[:, i]), columns[i], names) for i in by])


def _contents(keys: Words, column: Column, names: Dictionary) -> Any:
    """A key column as what can be hashed anywhere: texts and long digits by their bytes."""
    if column.type.kind is Kind.VARCHAR:
        return names.strings(keys)
    if column.type.is_wide and (some := spelled(keys)).any():
        digits = hash_strings(names.strings(np.where(some, keys - NULL - 1, -1)))
        return np.where(some, digits, keys)
    return keys
