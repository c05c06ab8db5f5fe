"""A micro-batch, end to end, as three pure functions, which both executors run.

Sender     a part of the batch's source rows  →  one message for each partition
Node       messages, state of a partition      →  for each stage one message: those for the next, or the result's change
Publisher  the partitions' messages, result    →  the printed rows that went and came
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.base.timing import SILENT, Trace
from squallpy.physical.plan import Plan, Stage
from squallpy.runtime.compiled.functions import CompiledPlan
from squallpy.runtime.formats.counted_table import concat_tables, one_batch
from squallpy.runtime.formats.file_rows import ReadStats
from squallpy.runtime.formats.skipped_rows import SkippedRows, skipped
from squallpy.runtime.ingest.explode import in_parts
from squallpy.runtime.ingest.feed import Feeder
from squallpy.runtime.ingest.resident_rows import ResidentRows
from squallpy.runtime.ingest.upserts import UpsertFeeds
from squallpy.runtime.joiners.band_positions import SAMPLED, SAMPLED_LATER, sample_positions
from squallpy.runtime.joiners.batch_plan import BatchPlan, decode_plan, hands_off, is_moving
from squallpy.runtime.joiners.joiner import Joiner
from squallpy.runtime.joiners.routing import cell_keys_of, keys_of, spread
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.messages.deltas import Delta, pack_deltas, pack_head, unpack_deltas, unpack_head
from squallpy.runtime.result.result import Changes, Results, Wanted
from squallpy.runtime.sources.input import Slices, row_counts
from squallpy.runtime.sources.protocol import Slice
from squallpy.runtime.state.state_store import Store, StoreLayout
from squallpy.runtime.time.watermark import clock_deltas, passage_deltas
from squallpy.runtime.triggers.stage_executor import StageExecutor

Stats = dict[str, Any]
BATCH_PLAN, _PRINTED = "batch plan", "printed"  # in the head of a message
UPSERTS = "upserts"  # in the head of a message that has rows: the relation


@dataclass(frozen=True)
class Computed:
    """The rows of a batch, by relation, that are computed from rows of other relations, and statistics."""

    tables: Mapping[str, pa.Table]
    stats: Mapping[str, Any]

    def split(self, split: int, splits: int) -> "Computed":
        """Cut out the rows that one of `splits` tasks reads; the first has the statistics."""
        tables = {}
        for name, table in self.tables.items():
            start, stop = len(table) * split // splits, len(table) * (split + 1) // splits
            tables[name] = table.slice(start, stop - start)
        return Computed(tables, {} if split else self.stats)


@dataclass
class AggregatedPart:
    """A part of a batch as its reader has aggregated it.

    It has deltas, by partition what goes to ledgers and clocks, statistics of what was read, and by relation upserts,
    which are not aggregated.
    """

    deltas: list[Delta]
    ledgers: list[tuple[int, Delta]]
    stats: Stats
    upserts: dict[str, pa.RecordBatch] = field(default_factory=dict)

    def count(self, name: str, slices: Sequence[Slice], tables: Sequence[pa.Table]) -> None:
        """Count the rows of a relation's slices, and those that were left out of the tables that they have read."""
        self.stats["read_rows"][name] = count = _rows_read(slices, tables)
        self.stats["tuples"] += count
        left_out = sum(map(skipped, tables), SkippedRows())
        self.stats["skipped"] += left_out.count
        if left_out.letters:
            self.stats.setdefault("dead_letters", {})[name] = list(left_out.letters)


class Sender:
    """Reads, pre-aggregates, does what can be done where a batch is read, and routes."""

    def __init__(self, plan: Plan, trace: Trace = SILENT, compiled: CompiledPlan | None = None) -> None:
        self._plan, self._trace = plan, trace
        self.use(compiled)
        self._latest = UpsertFeeds(plan).latest
        self._clocks, self._ledgers = tuple(plan.clocks.values()), plan.ledgers
        self._reading = StageExecutor(plan, plan.reading, is_last=False, trace=trace)

    def use(self, compiled: CompiledPlan | None) -> None:
        """Aggregate by compiled functions from here on, as far as there are any."""
        feeds = [feed for feed in self._plan.sources if not feed.relation.source.is_keyed]
        self._feeders = [Feeder(feed, self._plan.partitions, compiled) for feed in feeds]
        self._resident = None if compiled else ResidentRows(self._plan)

    def read(self, slices: Slices, names: Dictionary, computed: Computed | None = None) -> AggregatedPart:
        """Read and pre-aggregate a part of the batch, with its part of the rows that the first stage has computed."""
        part = AggregatedPart([], [], {"tuples": 0, "skipped": 0, "read_rows": {}})
        counted, sums = set[str](), ReadStats()
        if computed:
            fed = {feed.relation.source.name for feed in self._plan.sources}
            part.stats["tuples"] += sum(rows for name, rows in row_counts(slices).items() if name not in fed)
            part.stats |= computed.stats
        for feeder in self._feeders:
            relation = feeder.feed.relation
            name = relation.source.name
            if self._resident and (found := self._resident.find(feeder, slices.get(name, ()))):
                with self._trace(f"feed {relation.name}"):
                    part.deltas += feeder(found, names)
                if name not in counted:
                    counted.add(name)
                    part.stats["read_rows"][name] = found.rows
                    part.stats["tuples"] += found.rows
                continue
            if name in slices or relation.is_computed:
                with self._trace(f"read {relation.name}"):
                    if relation.is_computed:
                        assert computed
                        tables = [computed.tables[relation.name]]
                    else:
                        tables = [each.read(feeder.columns) for each in slices[name]]
                    rows = one_batch(concat_tables(tables))
                if name not in counted:
                    counted.add(name)
                    part.count(name, slices.get(name, ()), tables)
                for table in () if relation.is_computed else tables:
                    sums.add(name, table)
                with self._trace(f"feed {relation.name}"):
                    fed = in_parts(rows, relation)
                    part.deltas += feeder(fed, names)
                    if relation.name in self._ledgers:
                        part.ledgers += feeder.ledger(fed)
                    for time in clock_deltas(self._clocks, name, rows):
                        part.ledgers += [(partition, time) for partition in range(self._plan.partitions)]
        for name in (name for name in self._latest if name in slices):
            with self._trace(f"read {name}"):
                tables = [each.read(self._latest[name].columns) for each in slices[name]]
                part.upserts[name] = rows = one_batch(concat_tables(tables))
            part.count(name, slices[name], tables)
            for table in tables:
                sums.add(name, table)
            for time in clock_deltas(self._clocks, name, rows):
                part.ledgers += [(partition, time) for partition in range(self._plan.partitions)]
        for passage in passage_deltas(self._clocks, slices.times):
            part.ledgers += [(partition, passage) for partition in range(self._plan.partitions)]
        part.stats = add_stats(part.stats, sums.stats)
        return part

    def sample_keys(self, slices: Slices, is_later: bool = False) -> Mapping[str, Mapping[str, int]]:
        """Report the frequent keys of a part of a batch (`keys_of`, `cell_keys_of`), or positions in a band join."""
        store, plan = Store(StoreLayout(())), self._plan
        _, sent = self._reading.apply(store, self.read(slices, store.dictionary).deltas)
        if plan.hypercube:
            columns = {pool.name: pool.keys for pool in plan.deltas}
            return cell_keys_of(plan.hypercube, columns, plan.reading.sends, sent, store.dictionary)
        if plan.band:
            names = SAMPLED_LATER if is_later else SAMPLED
            return sample_positions(plan, plan.reading.sends, sent, store.dictionary, names)
        found: Mapping[str, Mapping[str, int]] = keys_of(plan, plan.reading.sends, sent, store.dictionary).get(
            "keys", {}
        )
        return found

    def messages(
        self,
        split: int,
        slices: Slices,
        batch_plan: str = "",
        only: Collection[int] | None = None,
        computed: Computed | None = None,
    ) -> list[tuple[int, bytes]]:
        """Read the part of a batch with number `split`, and make a message for each partition that it concerns, or for
        `only` some of them.

        The first partition always gets a message, with the statistics; with the first part all get one, if there is a
        plan of the batch.
        """
        store, plan = Store(StoreLayout(())), self._plan
        part = self.read(slices, store.dictionary, computed)
        with self._trace("statements"):
            changes, sent = self._reading.apply(store, part.deltas)
        with self._trace("route and pack"):
            part.stats |= keys_of(plan, plan.reading.sends, sent, store.dictionary)
            out = ExchangeMessages(plan, store.dictionary, batch_plan, () if split else range(plan.partitions), only)
            for partition, delta in part.ledgers:
                out.put(partition, delta)
            out.add(sent, plan.reading, changes, split % plan.partitions)
            receivers = range(plan.partitions) if only is None else only
            return [*out.pack(part.stats, 0), *self._route_upserts(part, receivers)]

    def _route_upserts(self, part: AggregatedPart, only: Collection[int]) -> Iterator[tuple[int, bytes]]:
        """Make a message of the upserts for each of some partitions, by their keys."""
        for name, rows in part.upserts.items():
            for partition, some in self._latest[name].parts(rows, self._plan.partitions):
                if partition in only:
                    yield partition, _pack_upserts(name, some)


class ExchangeMessages:
    """Messages from one stage to the partitions of the next.

    Args:
        batch_plan: The encoded plan of the batch.
        announce_to: Partitions that get a message with the plan in any case.
        only: Partitions for which messages are made; None: all.
    """

    def __init__(
        self,
        plan: Plan,
        names: Dictionary,
        batch_plan: str = "",
        announce_to: Collection[int] = (),
        only: Collection[int] | None = None,
    ) -> None:
        self._plan, self._names, self._batch_plan, self._encoded = plan, names, decode_plan(batch_plan), batch_plan
        self._columns = {p.name: p.keys for p in (*plan.pools, *plan.deltas, *plan.results)}
        self._announce_to, self._receivers = (
            announce_to if batch_plan else (),
            range(plan.partitions) if only is None else only,
        )
        self._parts: dict[int, list[Delta]] = {p: [] for p in self._announce_to if p in self._receivers}

    def put(self, partition: int, delta: Delta) -> None:
        if partition in self._receivers:
            self._parts.setdefault(partition, []).append(delta)

    def add(self, sent: Mapping[str, Delta], stage: Stage, changes: Sequence[Delta], here: int) -> None:
        """Add what a stage sends; what it keeps, and the changes of results, go to partition `here`."""
        for send in stage.sends:
            if send.name in sent:
                delta = sent[send.name]
                columns = self._columns[send.name]
                for partition, part in spread(delta, columns, send, self._plan, self._batch_plan, self._names):
                    self.put(partition, part)
        for delta in (*(sent[name] for name in stage.keeps if name in sent), *changes):
            if len(delta.keys):
                self.put(here, delta)

    @property
    def messages(self) -> list[tuple[int, bytes]]:
        """Messages for the partitions that there is anything for."""
        return [(p, self._message(p, {})) for p in sorted(self._parts)]

    def pack(self, stats: Stats, reporter: int) -> list[tuple[int, bytes]]:
        """Make a message for each partition that there is anything for; that to `reporter` has the statistics."""
        if reporter in self._receivers:
            self._parts.setdefault(reporter, [])
        return [(p, self._message(p, stats if p == reporter else {})) for p in sorted(self._parts)]

    def _message(self, partition: int, stats: Stats) -> bytes:
        columned = [(delta, self._columns.get(delta.name, ())) for delta in self._parts[partition]]
        head = stats | {BATCH_PLAN: self._encoded} if partition in self._announce_to else stats
        return pack_deltas(columned, self._names, head)


class PartitionStages:
    """A partition: each stage of the plan as a function from messages to a message."""

    def __init__(
        self, plan: Plan, partition: int = 0, trace: Trace = SILENT, compiled: CompiledPlan | None = None
    ) -> None:
        self._plan, self._partition, self._trace = plan, partition, trace
        self.use(compiled)
        self._joiner = Joiner(plan, partition) if plan.on_grid else None
        self._upserts = UpsertFeeds(plan)
        self._results = Results(plan, partitioned=True) if plan.partitioned else None
        self._reading = StageExecutor(plan, plan.reading, is_last=False, trace=trace)

    def use(self, compiled: CompiledPlan | None) -> None:
        """Run statements by compiled functions from here on, as far as there are any: all state is in the store."""
        plan, last = self._plan, len(self._plan.stages) - 1
        self._executors = [
            StageExecutor(plan, stage, self._partition, is_last=i == last, trace=self._trace, compiled=compiled)
            for i, stage in enumerate(plan.stages)
        ]

    @property
    def runs(self) -> tuple[Callable[[Store, list[bytes]], bytes], ...]:
        """Functions by stage, which apply a stage's part of a batch to the pools of a store; deterministic.

        The last returns the changes of results, followed by the printed ones of those that partitions keep, and by
        hand-offs if joiners migrate (`split_answer`); the others return messages for the next stage. Upserts have a
        stage of their own before those of the plan.
        """
        stages = (partial(self._run, number) for number in range(len(self._executors)))
        return (*((self._replace_rows,) if self._plan.upserts else ()), *stages)

    def _replace_rows(self, store: Store, messages: list[bytes]) -> bytes:
        """Apply the upserts of a batch, and feed what changes; other messages are passed on to the next stage."""
        rows, others, encoded = dict[str, list[pa.Table]](), list[tuple[int, bytes]](), ""
        with self._trace("unpack"):
            for message in messages:
                head, source = unpack_head(message)
                encoded = head.get(BATCH_PLAN) or encoded
                if UPSERTS in head:
                    with pa.ipc.open_stream(source) as reader:
                        rows.setdefault(head[UPSERTS], []).append(reader.read_all())
                else:
                    others.append((self._partition, message))
        with self._trace("upserts"):
            deltas = self._upserts.deltas(store, {name: one_batch(concat_tables(some)) for name, some in rows.items()})
        with self._trace("statements"):
            changes, sent = self._reading.apply(store, deltas)
        with self._trace("route and pack"):
            out = ExchangeMessages(self._plan, store.dictionary, encoded)
            out.add(sent, self._plan.reading, changes, self._partition)
            stats = keys_of(self._plan, self._plan.reading.sends, sent, store.dictionary)
            return pack_parcels([*others, *out.pack(dict(stats), self._partition)])

    def _run(self, number: int, store: Store, messages: list[bytes]) -> bytes:
        executor, stage = self._executors[number], self._plan.stages[number]
        if number == 0 and store.dictionary.is_due and not (self._joiner and _is_moving(messages)):
            store.renew()
        with self._trace("unpack"):
            deltas, total, encoded = _unpack(messages, store)
        batch_plan, is_last = decode_plan(encoded), number == len(self._executors) - 1
        rows = {str(number): {str(self._partition): sum(len(delta.keys) for delta in deltas)}}
        if self._joiner and batch_plan and number == 0:
            with self._trace("migrate"):
                deltas = self._joiner.begin(store, batch_plan, deltas)
        with self._trace("statements"):
            changes, sent = executor.apply(store, deltas, batch_plan)
        total = add_stats(total, executor.notes | {"received_bytes": sum(map(len, messages)), "received_rows": rows})
        handed = None
        if self._joiner and batch_plan:
            total = add_stats(total, self._joiner.count_arrivals(batch_plan, deltas, store.dictionary))
            total = add_stats(total, self._joiner.count_held(store, batch_plan) if is_last else {})
            if is_last and hands_off(batch_plan, self._partition):
                with self._trace("migrate"):
                    handed, copied = self._hand_offs(store, batch_plan)
                    total = add_stats(total, {"copied": copied})
        with self._trace("route and pack"):
            total = add_stats(total, keys_of(self._plan, stage.sends, sent, store.dictionary))
            if not is_last:
                out = ExchangeMessages(self._plan, store.dictionary, encoded, (self._partition,))
                out.add(sent, stage, changes, self._partition)
                return pack_parcels(out.pack(total, self._partition))
            beside = [] if handed is None else handed
            if self._results:
                changes, total, printed = self._print(self._results, store, changes, total)
                beside = [(self._partition, printed), *beside]
            answer = self._answer(store, [*changes, *sent.values()], total)
            return (
                answer if handed is None and not self._results else pack_parcels([(self._partition, answer), *beside])
            )

    def _print(
        self, results: Results, store: Store, changes: Sequence[Delta], total: Stats
    ) -> tuple[list[Delta], Stats, bytes]:
        """Print the changes of the results that partitions keep; the other changes are the driver's."""
        own = [change for change in changes if change.name in self._plan.partitioned]
        printed = pack_changes(results.apply(store, own, first=False), {})
        total = add_stats(total, {"duplicates": results.duplicates})
        return [change for change in changes if change.name not in self._plan.partitioned], total, printed

    def _hand_offs(self, store: Store, batch_plan: BatchPlan) -> tuple[list[tuple[int, bytes]], int]:
        """Pack the records that a joiner hands off after a batch; count the tuples that were copied."""
        assert self._joiner
        sent, copied = self._joiner.hand_off(store, batch_plan)
        out = ExchangeMessages(self._plan, store.dictionary)
        for partition, delta in sent:
            out.put(partition, delta)
        return out.messages, copied

    def _answer(self, store: Store, changes: Sequence[Delta], total: Stats) -> bytes:
        """Pack what the driver gets: the changes of results, and sums without keys."""
        keys = {result.name: result.keys for result in self._plan.results}
        packed = [(change, keys.get(change.name, ())) for change in changes if len(change.keys)]
        return pack_deltas(packed, store.dictionary, total | {"views": store.usage()})


def _rows_read(slices: Sequence[Slice], tables: Sequence[pa.Table]) -> int:
    """Count the rows of slices, also those that were left out; `tables` are what they have read."""
    counts = (len(table) + skipped(table).count for table in tables)
    return sum(count if each.rows is None else each.rows for each, count in zip(slices, counts, strict=False))


def _pack_upserts(name: str, rows: pa.RecordBatch) -> bytes:
    """Pack rows of a relation into a message."""
    sink = pa.BufferOutputStream()
    sink.write(pack_head({UPSERTS: name}))
    with pa.ipc.new_stream(sink, rows.schema.remove_metadata()) as writer:
        writer.write_batch(rows.replace_schema_metadata())
    return bytes(sink.getvalue())


def split_answer(
    plan: Plan, output: bytes, hands_off: bool
) -> tuple[bytes, tuple[Changes | None, ...], list[tuple[int, bytes]]]:
    """Separate what the driver gets of a partition, changes that it has printed itself, and what it hands off."""
    if not (plan.partitioned or hands_off):
        return output, (), []
    (_, answer), *beside = unpack_parcels(output)
    printed = unpack_changes(beside.pop(0)[1])[0] if plan.partitioned else ()
    return answer, printed, beside


def pack_parcels(parcels: list[tuple[int, bytes]]) -> bytes:
    """Pack messages and their receivers into one."""
    head = {"parcels": [(partition, len(message)) for partition, message in parcels]}
    return pack_head(head) + b"".join(message for _, message in parcels)


def unpack_parcels(packed: bytes) -> list[tuple[int, bytes]]:
    """Unpack what `pack_parcels` has packed."""
    head, source = unpack_head(packed)
    return [(partition, source.read(size)) for partition, size in head["parcels"]]


class Publisher:
    """The driver's stage and the results: a function from the partitions' messages to the changes that are printed.

    Args:
        wanted: The queries whose changes are printed.
    """

    def __init__(self, plan: Plan, wanted: Wanted = True, trace: Trace = SILENT) -> None:
        self.results, self._trace = Results(plan, wanted), trace
        self._stage = StageExecutor(plan, plan.driver, trace=trace) if plan.driver else None

    def run(self, store: Store, messages: list[bytes]) -> bytes:
        """Merge the partitions' changes; the first message says whether anything was printed before."""
        first, *outputs = messages
        store.renew()
        with self._trace("unpack"):
            deltas, total, _ = _unpack(outputs, store)
        if self._stage:
            with self._trace("statements"):
                deltas = self._stage.apply(store, deltas)[0]
            total = add_stats(total, self._stage.notes)
        with self._trace("result"):
            changes = self.results.apply(store, deltas, first == b"first")
            total = add_stats(total, {"duplicates": self.results.duplicates})
        return pack_changes(changes, add_stats(total, {"views": store.usage()}))


def _is_moving(messages: list[bytes]) -> bool:
    """True if joiners migrate: then records are copied in the order of keys or hashes, which contain numbers of
    strings."""
    encoded = next(filter(None, (unpack_head(message)[0].get(BATCH_PLAN) for message in messages)), "")
    return is_moving(decode_plan(encoded))


def _unpack(messages: list[bytes], store: Store) -> tuple[list[Delta], Stats, str]:
    """Unpack all messages, and the encoded plan of the batch that one of them has."""
    deltas: list[Delta] = []
    total: Stats = {}
    batch_plan = ""
    for message in messages:
        stats, part = unpack_deltas(message, store.dictionary)
        batch_plan = stats.pop(BATCH_PLAN, "") or batch_plan
        deltas += part
        total = add_stats(total, stats)
    return deltas, total, batch_plan


def add_stats(total: Stats, more: Stats) -> Stats:
    """Add up numbers by name, also nested ones."""
    added = dict(total)
    for name, value in more.items():
        known = added.get(name)
        added[name] = value if known is None else add_stats(known, value) if isinstance(value, dict) else known + value
    return added


def pack_changes(changes: Sequence[Changes | None], stats: Stats) -> bytes:
    """Pack the printed changes of each query, and the statistics of their batch, into one message."""
    sink = pa.BufferOutputStream()
    sink.write(pack_head(stats | {_PRINTED: [some is not None for some in changes]}))
    for table in (table for some in changes if some for table in (some.deletes, some.inserts)):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return bytes(sink.getvalue())


def unpack_changes(message: bytes) -> tuple[tuple[Changes | None, ...], Stats]:
    """Unpack what `pack_changes` has packed."""
    stats, source = unpack_head(message)

    def read() -> pa.Table:
        with pa.ipc.open_stream(source) as reader:
            return reader.read_all()

    return tuple(Changes((read(), read())) if printed else None for printed in stats.pop(_PRINTED)), stats
