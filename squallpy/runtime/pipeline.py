"""One micro-batch, end to end, as three pure pieces that both executors share.

Sender     a share of the batch's source rows  →  one message for each partition
Node       messages, state of a partition      →  one message with the change of the result
Publisher  the partitions' messages, result    →  the printed rows that went and came
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from squallpy.logical.expressions import Column
from squallpy.physical.plan import Plan
from squallpy.runtime.deltas import Delta, pack_deltas, pack_head, unpack_deltas, unpack_head
from squallpy.runtime.feed import Feeder
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.result import Changes, Result
from squallpy.runtime.sources import Source, skipped
from squallpy.runtime.sources.replay import Replay
from squallpy.runtime.state.store import Store
from squallpy.runtime.triggers import Machine

Stats = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """What a query reads: a source for each relation, and the order in which streams are replayed."""

    sources: Mapping[str, Source]
    replay: Replay

    def shares(self, batch: int, split: int, splits: int) -> dict[str, tuple[int, int]]:
        """The rows of each relation that one of `splits` tasks reads in a batch; static tables come with batch 0."""
        tables = {} if batch else {name: (0, source.rows) for name, source in self.sources.items()}
        return {
            name: (start + (stop - start) * split // splits, start + (stop - start) * (split + 1) // splits)
            for name, (start, stop) in (tables | self.replay.ranges(batch)).items()
        }


class Sender:
    """Reads, pre-aggregates and routes."""

    def __init__(self, plan: Plan, input: Input) -> None:
        self._plan, self._input = plan, input
        self._feeders = [Feeder(feed, plan.partitions) for feed in plan.sources]
        self._columns: dict[str, tuple[Column, ...]] = {d.name: d.keys for feed in plan.sources for d in feed.deltas}

    def deltas(
        self, batch: int, split: int, splits: int, names: Dictionary
    ) -> tuple[list[tuple[int | None, Delta]], Stats]:
        """The deltas of a share of the batch, and what was read."""
        out: list[tuple[int | None, Delta]] = []
        stats: Stats = {"tuples": 0, "skipped": 0}
        shares = self._input.shares(batch, split, splits)
        for feeder in self._feeders:
            relation = feeder.feed.relation
            start, stop = shares.get(relation.name, (0, 0))
            if start < stop:
                table = self._input.sources[relation.name].read(start, stop, feeder.feed.fields)
                stats["tuples"] += stop - start
                stats["skipped"] += skipped(table).count
                out += feeder(one_batch(table), names)
        return out, stats

    def messages(self, batch: int, split: int, splits: int) -> list[tuple[int, bytes]]:
        """One message for each partition that the share concerns; partition 0 always hears what was read."""
        names = Dictionary()
        deltas, stats = self.deltas(batch, split, splits, names)
        out = []
        for partition in range(self._plan.partitions):
            mine = [(d, self._columns.get(d.name, ())) for p, d in deltas if p is None or p == partition]
            if mine or partition == 0:
                out.append((partition, pack_deltas(mine, names, stats if partition == 0 else {})))
        return out


class Node:
    """The trigger program of a partition as a function from messages to a message."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._machine = plan, Machine(plan)

    def run(self, store: Store, messages: list[bytes]) -> bytes:
        """Apply a batch to the pools of `store`; deterministic."""
        deltas: list[Delta] = []
        total: Stats = {}
        for message in messages:
            stats, part = unpack_deltas(message, store.dictionary)
            total = add_stats(total, stats)
            deltas += part
        change = self._machine.apply(store, deltas)
        total |= {"views": store.usage(), "unmatched": self._machine.unmatched}
        return pack_deltas([(change, self._plan.result.keys)], store.dictionary, total)


class Publisher:
    """The result on the driver as a function from messages to printed changes, empty where none are `wanted`."""

    def __init__(self, plan: Plan, wanted: bool = True) -> None:
        self.result, self._wanted = Result(plan), wanted

    def run(self, store: Store, messages: list[bytes]) -> bytes:
        """Merge the partitions' changes; the first message says whether anything was printed before."""
        first, *outputs = messages
        total: Stats = {}
        deltas = []
        for message in outputs:
            stats, part = unpack_deltas(message, store.dictionary)
            total = add_stats(total, stats)
            deltas += part
        changes = self.result.apply(store, deltas, first == b"first", self._wanted)
        return pack_changes(changes, add_stats(total, {"views": store.usage()}))


def add_stats(total: Stats, more: Stats) -> Stats:
    """Numbers by name, added up; also those within."""
    added = dict(total)
    for name, value in more.items():
        known = added.get(name)
        added[name] = value if known is None else add_stats(known, value) if isinstance(value, dict) else known + value
    return added


def one_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """A table as one record batch."""
    if isinstance(table, pa.RecordBatch):
        return table
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def pack_changes(changes: Changes | None, stats: Stats) -> bytes:
    """Printed changes and the statistics of their batch as one message."""
    sink = pa.BufferOutputStream()
    sink.write(pack_head(stats))
    for table in (changes.deletes, changes.inserts) if changes else ():
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return bytes(sink.getvalue())


def unpack_changes(message: bytes) -> tuple[Changes | None, Stats]:
    """The reverse of `pack_changes`."""
    stats, source = unpack_head(message)
    tables = []
    while source.tell() < source.size():
        with pa.ipc.open_stream(source) as reader:
            tables.append(reader.read_all())
    return Changes(*tables) if tables else None, stats
