"""Where rows of deltas go: by the hash of what their keys stand for, hence the same on every node and each time.

spread(ΔORDERS, by o_custkey, over 2)   →   (0, rows of some customers), (1, those of the others)
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from squallpy.base.types import Kind
from squallpy.logical.expressions import Column
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
    hashes = hash_columns([_contents(np.ascontiguousarray(keys[:, i]), columns[i], names) for i in by])
    return from_zero(hashes) % partitions


def spread(
    delta: Delta, columns: Sequence[Column], by: tuple[int, ...] | None, partitions: int, names: Dictionary
) -> Iterator[tuple[int, Delta]]:
    """The rows for each partition, where there are any; None: all rows for every partition."""
    if not len(delta.keys):
        return
    targets = None if by is None else partitions_of(delta.keys, columns, by, partitions, names)
    for partition in range(partitions):
        if targets is None:
            yield partition, delta
            continue
        mine = np.flatnonzero(targets == partition)
        if len(mine):
            yield partition, Delta(delta.name, delta.keys[mine], delta.words[mine])


def _contents(keys: Words, column: Column, names: Dictionary) -> Any:
    """A key column as what can be hashed anywhere: texts and long digits by their bytes."""
    if column.type.kind is Kind.VARCHAR:
        return names.strings(keys)
    if column.type.is_wide and (some := spelled(keys)).any():
        digits = hash_strings(names.strings(np.where(some, keys - NULL - 1, -1)))
        return np.where(some, digits, keys)
    return keys
