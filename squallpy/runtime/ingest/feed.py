"""Feeds: a batch of a relation's tuples → filtered, projected, pre-aggregated deltas (`dbtoaster-batch-ivm` §3.3).

lineitem rows  →  ΔLINEITEM(l_orderkey)⟨n, revenue⟩   of those that were shipped after the date
"""

from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.keys import NULL
from squallpy.base.types import Kind
from squallpy.catalog.relation import MULT
from squallpy.logical.expressions import Column
from squallpy.physical.plan import Feed
from squallpy.runtime.compiled.functions import CompiledPlan
from squallpy.runtime.evaluate.kernel_runner import ExportedBatch
from squallpy.runtime.evaluate.vectors import Vec, from_arrow
from squallpy.runtime.ingest.explode import columns_of
from squallpy.runtime.kernels.content_hash import from_zero, hash_columns
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_columns import pack_decimal128
from squallpy.runtime.messages.deltas import Delta, encode, rank_of
from squallpy.runtime.messages.grouping import Grouping
from squallpy.runtime.state.pool_names import PoolName, Role
from squallpy.runtime.time.unmatched_deletes import entries


class Feeder:
    """A feed made runnable. Not shared between threads: it reuses its scratch pools."""

    def __init__(self, feed: Feed, partitions: int, compiled: CompiledPlan | None = None) -> None:
        self.feed, self.ledger = feed, LedgerEntries(feed, partitions)
        self.columns = columns_of(feed.relation, feed.fields)
        self._types = {f.name: f.type for f in feed.relation.fields}
        deltas = zip(feed.deltas, feed.payloads, strict=True)
        self._groups = [
            Grouping(d, payload, d.name not in feed.row_deltas, compiled.group(d.name) if compiled else None)
            for d, payload in deltas
        ]

    def __call__(self, rows: pa.RecordBatch | ExportedBatch, dictionary: Dictionary) -> list[Delta]:
        """Compute the deltas of a batch that have rows, with strings numbered by `dictionary`."""
        batch = rows if isinstance(rows, ExportedBatch) else ExportedBatch(rows)
        mult = None if batch.schema.get_field_index(MULT) < 0 else _multiplicities(batch.table)

        def read(name: str) -> Vec:
            return from_arrow(batch.table.column(batch.schema.get_field_index(name)), self._types[name])

        found = [Delta(group.name, *group(batch.rows, read, mult, dictionary, batch)) for group in self._groups]
        return [delta for delta in found if len(delta.keys)]


class LedgerEntries:
    """The entries that batches of a change stream make in its ledger."""

    def __init__(self, feed: Feed, partitions: int) -> None:
        self._feed, self._partitions = feed, partitions
        self.name = PoolName(feed.relation.name, Role.LEDGER)
        self._types = {f.name: f.type for f in feed.relation.fields}

    def __call__(self, table: pa.RecordBatch) -> list[tuple[int, Delta]]:
        """List the inserts and deletes of a batch, each with the fixed partition of its row."""
        mult = _multiplicities(table)
        if not self._feed.relation.has_ledger or mult is None:
            return []
        keys, words = entries(self._hashes(table), mult)
        if self._partitions == 1:
            return [(0, Delta(self.name, keys, words))] if len(keys) else []
        place = keys[:, 0] % self._partitions
        parts = ((p, Delta(self.name, keys[place == p], words[place == p])) for p in range(self._partitions))
        return [(p, delta) for p, delta in parts if len(delta.keys)]

    def _hashes(self, table: pa.RecordBatch) -> Words:
        """Hash each tuple by a pure function of its contents, so that a retried batch is booked alike."""
        hashed: list[Any] = []
        for name in self._feed.fields:
            column, type = table.column(name), self._types[name]
            if type.kind is Kind.VARCHAR:
                hashed.append(column)
            elif type.is_wide:
                low, high = pack_decimal128(column).T
                word = low + _SPREAD * (high - (low >> 63))
                hashed.append(np.where(np.asarray(column.is_null()), NULL, word))
            elif type.is_integer:  # NB: the hole hashes as the value above it, so that it is only refused as a key
                values, valid = from_arrow(column, type)
                ranks = rank_of(values, 1)
                hashed.append(ranks if valid is None else np.where(valid, ranks, NULL))
            else:
                hashed.append(encode(from_arrow(column, type), Column(0, name, type), len(table), _NO_STRINGS))
        if not hashed:
            return np.zeros(len(table), np.int64)
        return from_zero(hash_columns(hashed))


_NO_STRINGS = Dictionary()
_SPREAD = 0x1D8E4E27C47D124F  # an odd constant: no two upper words of one lower word hash alike


def _multiplicities(table: pa.RecordBatch) -> Words | None:
    at = table.schema.get_field_index(MULT)
    return None if at < 0 else np.asarray(table.column(at), np.int64)
