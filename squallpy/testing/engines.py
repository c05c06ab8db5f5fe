"""Engines that run step tests: the executors, their rows from memory.

LocalEngine()                 in this process, its state in a checkpoint
VolatileEngine()              in this process, its state nowhere: a restart begins with the first batch again
PartitionedEngine(3)          three partitions in this process, every message sent as between processes
KilledEngine(3)               the functions of Spark's tasks and driver in this process, killed now and then in a batch
MovedEngine(3)                the same, but what goes on after a kill has another number of partitions
SparkEngine(cluster, 3)       on Spark, a few batches a run, which goes on where the one before ended

All take settings: with `optimizer=False` the query is planned as it was bound.
"""

import pickle
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.catalog.relation import Relation
from squallpy.catalog.window_spec import NOW
from squallpy.checkpoint_identity import fingerprint
from squallpy.compiler import CompiledQuery
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.micro_batch import (
    PartitionStages,
    Publisher,
    Sender,
    split_answer,
    unpack_changes,
    unpack_parcels,
)
from squallpy.runtime.checkpoint.checkpoint import CannotMove, CheckpointIdentity, MoveState, open_checkpoint
from squallpy.runtime.checkpoint.state_folders import Committed, StateLocation
from squallpy.runtime.compiled.functions import compile_plan, printed_code
from squallpy.runtime.joiners.batch_plan import encode_plan, hands_off, senders_to
from squallpy.runtime.joiners.hand_off_store import HandOffStore
from squallpy.runtime.joiners.migration_policy import MigrationPolicy, open_policy, rows_by_side
from squallpy.runtime.local_executor import DurableLocalExecutor, LocalExecutor, Printed
from squallpy.runtime.matrix.blocks.partition import BlockPartition
from squallpy.runtime.matrix.matrix_stage import compute, open_matrices
from squallpy.runtime.reshard import Reshard
from squallpy.runtime.result.result import result_layout
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.input import BatchSpans, Input, encode_slices
from squallpy.runtime.sources.protocol import Source
from squallpy.runtime.state.state_store import Store
from squallpy.runtime.triggers.stage_executor import store_layout
from squallpy.script_session import ScriptSession
from squallpy.testing.memory_source import MemorySource, PushedBatches, memory_input, with_mult

if TYPE_CHECKING:
    from squallpy.runtime.spark.coordinator import BatchCoordinator
    from squallpy.runtime.spark.spark_session import Cluster


class MemoryEngine:
    """Base of the engines: the compiled script, its rows in memory, and the batches so far.

    Triggers are interpreted unless a test says otherwise: what the disk has compiled is not for chance to use.
    """

    def __init__(self, partitions: int = 1, **settings: int | str) -> None:
        self._partitions, self._settings = partitions, Settings(**{"compile": "off"} | settings)  # type: ignore[arg-type]

    def open_session(self, path: Path, settings: Settings) -> ScriptSession:
        """Open a session of the script; a test may put another one in its place."""
        return ScriptSession(path, settings)

    def start(self, script: str, checkpoint: Path, tables: dict[str, pa.Table]) -> None:
        path = checkpoint / "steps.sql"
        path.write_text(script)
        self._session = session = self.open_session(path, self._settings)
        self._folder = checkpoint
        self._sources = {r.name: MemorySource(r) for r in session.script.relations.values()}
        for name, rows in tables.items():
            self._sources[name].add(rows)
        for source in self._sources.values():
            if source.relation.is_implied:
                (field,) = source.relation.fields
                source.add(open_source(source.relation, checkpoint).read(0, 1, (field.name,)))
        self._batches = PushedBatches()
        self._sizes = {name: source.rows for name, source in self._sources.items()}
        self._compiled: CompiledQuery = self._compile(session)
        self._code = compile_plan(self._compiled.plan, self._settings.compile)
        self._open(memory_input(self._sources, self._batches))

    def _compile(self, session: ScriptSession) -> CompiledQuery:
        """Compile the queries of the script."""
        return session.compile(session.script.queries, self._partitions, self._sizes)

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The relations of the script."""
        return self._session.script.relations

    def expect(self, batches: Sequence[dict[str, pa.Table]]) -> None:
        pass

    def push(self, rows: dict[str, pa.Table]) -> pa.Table:
        (changes,) = self.push_all(rows)
        return changes

    def push_all(self, rows: dict[str, pa.Table]) -> list[pa.Table]:
        """Run a batch; return the changes of each query, with `__mult`."""
        self._add_batch(rows)
        changes = [some for some in self._step() if some]
        return [pa.concat_tables([with_mult(some.deletes, -1), with_mult(some.inserts, 1)]) for some in changes]

    def _add_batch(self, rows: dict[str, pa.Table]) -> None:
        """Append the rows of a batch to their sources, and record where it ends."""
        for name, some in rows.items():
            if name != NOW.relation:
                self._sources[name].add(some)
        given = rows[NOW.relation][NOW.field].cast(pa.int64())[0].as_py() if NOW.relation in rows else None
        self._batches.push({name: source.rows for name, source in self._sources.items()}, given)

    def restart(self) -> None:
        self._open(memory_input(self._sources, self._batches))

    def result(self) -> pa.Table:
        (rows,) = self.results()
        return rows

    def results(self) -> tuple[pa.Table, ...]:
        """Return the printed result of each query."""
        raise NotImplementedError

    def _open(self, input: Input) -> None:
        """Create the executor, ready for the batch after the last one."""
        raise NotImplementedError

    def _step(self) -> Printed:
        """Run the last batch."""
        raise NotImplementedError

    def _open_state(self, move: MoveState | None = None) -> StateLocation:
        made_for, folder = fingerprint(self._compiled, "pushed", {}), self._folder
        return open_checkpoint(
            str(folder / "state"), made_for, 1, str(folder / "local"), 1 << 20, repeat=_rows_are_gone, move=move
        )

    def _delete_local_state(self) -> None:
        """Delete the local folder, so that only the checkpoint survives."""
        shutil.rmtree(self._folder / "local", ignore_errors=True)


def _rows_are_gone(*_: object) -> int:
    raise CannotMove("rows that were pushed are gone")


class LocalEngine(MemoryEngine):
    """The local executor with a checkpoint."""

    def __init__(self, **settings: bool | str) -> None:
        super().__init__(1, **settings)

    def _open(self, input: Input) -> None:
        place = self._open_state()
        self._executor = DurableLocalExecutor(self._compiled.plan, input, place, compiled=self._code)

    def _step(self) -> Printed:
        changes, _ = self._executor.step()
        self._executor.commit()
        return changes

    def restart(self) -> None:
        del self._executor
        self._delete_local_state()
        super().restart()

    def results(self) -> tuple[pa.Table, ...]:
        return self._executor.final()


class VolatileEngine(MemoryEngine):
    """The local executor without a checkpoint."""

    def __init__(self, **settings: bool | str) -> None:
        super().__init__(1, **settings)

    def _open(self, input: Input) -> None:
        self._executor = LocalExecutor(self._compiled.plan, input, compiled=self._code)
        for _ in range(self._batches.batches):
            self._executor.step()

    def _step(self) -> Printed:
        changes, _ = self._executor.step()
        return changes

    def results(self) -> tuple[pa.Table, ...]:
        return self._executor.final()

    @property
    def state_bytes(self) -> int:
        """Size of all its state in bytes."""
        return sum(part["bytes"] for part in self._executor.store.usage().values())

    def row_counts(self) -> dict[str, int]:
        """Count the rows that each view holds."""
        return {name: len(pool) for name, pool in self._executor.store.items()}


class PartitionedEngine(MemoryEngine):
    """Plan of several partitions, its pieces called in turn; two senders, so that messages are merged too."""

    SPLITS = 2

    def _open(self, input: Input) -> None:
        plan, self._input = self._compiled.plan, input
        self._sender, self._publisher = Sender(plan), Publisher(plan)
        self._matrices = open_matrices(plan, input)
        self._blocks = Blocks(plan, input.sources) if plan.matrices and plan.matrices.parts else None
        self._nodes = [(PartitionStages(plan, p).runs, Store(store_layout(plan))) for p in range(plan.partitions)]
        self._result, self._hand_offs = Store(result_layout(plan)), HandOffStore(str(self._folder / "hand-offs"))
        self.policy = self._policy(plan)
        for batch in range(self._batches.batches):
            self._run(batch)

    def _run(self, batch: int) -> Printed:
        sent: list[list[bytes]] = [[] for _ in self._nodes]
        plan = self._compiled.plan
        step = self._input.step(batch)
        planned = self.policy and self.policy.plan_batch(rows_by_side(plan, self._input.row_counts(step)))
        stages, batch_plan = plan.stages_of_partitions, planned.plan if planned else None
        for target, message in self._read(step, encode_plan(batch_plan)):
            sent[target].append(message)
        for target, messages in enumerate(sent):
            messages += self._hand_offs.read(batch - 1, target, senders_to(batch_plan, target))
        outputs = [message for messages in sent for message in messages]
        for stage in range(stages):
            outputs = [runs[stage](store, messages) for (runs, store), messages in zip(self._nodes, sent, strict=True)]
            sent = [[] for _ in self._nodes]
            for output in outputs if stage < stages - 1 else ():
                for target, message in unpack_parcels(output):
                    sent[target].append(message)
        for sender, output in enumerate(outputs):
            hands = hands_off(batch_plan, sender)
            outputs[sender], _, handed = split_answer(plan, output, hands)
            if hands:
                self._hand_offs.write(batch, sender, handed)
        first = b"first" if batch == 0 else b""
        changes, self.stats = unpack_changes(self._publisher.run(self._result, [first, *outputs]))
        if planned:
            self.figures, self.policy = planned.figures(self.stats), planned.observe(self.stats)
        if self._matrices:
            self._matrices.end(self.stats["matrices"])
        return changes

    def _read(self, step: BatchSpans, encoded: str) -> Iterator[tuple[int, bytes]]:
        """Yield the messages of the readers in a batch, each with its target partition."""
        if self._matrices and self._blocks:
            encoded_slices = encode_slices(self._input.split(step, self._compiled.plan.partitions), self._input.sources)
            commands = self._matrices.begin(step, encoded, encoded_slices)
            yield from self._blocks.messages(commands, self._matrices.supersteps[1])
            return
        computed = compute(self._compiled.plan, self._matrices, step)
        for split, slices in enumerate(self._input.split(step, self.SPLITS)):
            own = computed.split(split, self.SPLITS) if computed else None
            yield from self._sender.messages(split, slices, encoded, computed=own)

    def _policy(self, plan: Plan) -> MigrationPolicy | None:
        """Open the policy of the join, if it may migrate."""
        return open_policy(plan)

    def _step(self) -> Printed:
        return self._run(self._batches.batches - 1)

    def results(self) -> tuple[pa.Table, ...]:
        return self._publisher.results.final(self._result)


class _Killed(Exception):
    """Simulated kill of a process."""


class DriverEngine(MemoryEngine):
    """Base of the engines with a driver like Spark's, which keeps the result in a checkpoint."""

    def _open_checkpoint(self, input: Input) -> None:
        """Open the driver's part of a checkpoint: the result, the committed batches, and the input."""
        plan, self._at = self._compiled.plan, self._open_state()
        self._publisher = Publisher(plan)
        self._result = self._at.partition("result", result_layout(plan), self._publisher.run)
        self._committed = Committed(self._at.durable)
        self._input = input


class KilledEngine(DriverEngine):
    """Functions of Spark's tasks and driver, called in this process and killed at random.

    The state of the partitions and their hand-offs are in a checkpoint. Before and after each task a kill comes with
    probability `kills`; then the engine goes on here or on another host.
    """

    SPLITS = 2

    def __init__(self, partitions: int = 1, seed: int = 0, kills: float = 0.01, **settings: bool | str) -> None:
        super().__init__(partitions, **settings)
        self._random, self._kills = Random(seed), kills

    def _open(self, input: Input) -> None:
        self._open_checkpoint(input)
        self._coordinator: BatchCoordinator | None = None

    def _create_coordinator(self) -> "BatchCoordinator":
        """Create the driver's coordinator as a run does, with the row counts of the first batch."""
        from squallpy.runtime.spark.coordinator import BatchCoordinator

        first = self._input.row_counts(self._input.step(0))
        coordinator = BatchCoordinator(self._compiled.plan, self._input, self._at, self._committed.facts, first)
        self._feed, self._apply = coordinator.stages(self.SPLITS, code=printed_code(self._code))
        return coordinator

    def _step(self) -> Printed:
        while True:
            try:
                return self._run(self._batches.batches - 1)
            except _Killed:
                self.restart()

    def _run(self, batch: int) -> Printed:
        partitions = range(self._compiled.plan.partitions)
        coordinator = self._coordinator = self._coordinator or self._create_coordinator()
        coordinator.prepare(batch)
        told = coordinator.directives()
        sent: dict[int, list[bytes]] = {partition: [] for partition in partitions}
        for split in range(self.SPLITS):
            self._maybe_kill()
            for target, message in self._feed(batch, split, told.feed):
                sent[target].append(message)
        for stage in range(told.stages):
            arrived, sent = sent, {partition: [] for partition in partitions}
            for partition in partitions:
                self._maybe_kill()
                messages, _ = self._apply(batch, partition, stage, arrived[partition], told.apply)
                self._maybe_kill()
                for target, message in messages:
                    sent[target].append(message)
        outputs = [output for messages in sent.values() for output in messages]
        printed = self._result.apply(batch, [b"first" if batch == 0 else b"", *outputs])
        changes, stats = unpack_changes(printed)
        coordinator.complete(stats)
        self._maybe_kill()
        self._committed.commit(batch + 1, coordinator.facts)
        coordinator.drop_hand_offs(batch + 1)
        return changes

    def _maybe_kill(self) -> None:
        if self._random.random() < self._kills:
            raise _Killed

    def restart(self) -> None:
        if self._random.random() < 0.5:
            self._delete_local_state()
        super().restart()

    def results(self) -> tuple[pa.Table, ...]:
        return self._publisher.results.final(self._result.store())


class MovedEngine(KilledEngine):
    """A killed engine that goes on with another number of partitions, wherever state can move there."""

    MOST = 4
    moves = 0

    def __init__(self, partitions: int = 1, seed: int = 0, kills: float = 0.01, **settings: bool | str) -> None:
        super().__init__(partitions, seed, kills, **settings)
        self._moved_from: Plan | None = None

    def restart(self) -> None:
        before = self._compiled
        partitions = self._random.choice([n for n in range(1, self.MOST + 1) if n != before.plan.partitions])
        moved = self._session.compiler.place(before, partitions, self._sizes)
        self._compiled, self._moved_from = moved, before.plan
        try:
            super().restart()
            self.moves += 1
        except SquallError as refused:
            if "cannot move" not in str(refused):
                raise
            self._compiled, self._moved_from = before, None
            super().restart()

    def _open_state(self, move: MoveState | None = None) -> StateLocation:
        return super()._open_state(self._move if self._moved_from else None)

    def _move(self, was: CheckpointIdentity, before: StateLocation, after: StateLocation, done: Committed) -> Any:
        assert self._moved_from
        return Reshard(self._moved_from, self._compiled.plan, done.batches, done.facts or {}, {})(before, after)


class Blocks:
    """Matrices in blocks, their partitions called in turn, each with a plan as it comes to a worker."""

    def __init__(self, plan: Plan, sources: Mapping[str, Source]) -> None:
        sent = pickle.dumps(plan)
        self._parts = [BlockPartition(pickle.loads(sent), sources, number) for number in range(plan.partitions)]
        self._stores = [Store(part.layout) for part in self._parts]

    def messages(self, commands: bytes, count: int) -> Iterator[tuple[int, bytes]]:
        """Run `count` supersteps; yield what the last sends to the partitions of the plan."""
        sent = [[commands] for _ in self._parts]
        for stage in range(count):
            outputs = [
                unpack_parcels(part.runs[stage](store, messages))
                for part, store, messages in zip(self._parts, self._stores, sent, strict=True)
            ]
            sent = [[] for _ in self._parts]
            for target, message in (parcel for parcels in outputs for parcel in parcels):
                if stage < count - 1:
                    sent[target].append(message)
                else:
                    yield target, message


class SparkEngine(DriverEngine):
    """Spark, in a session that many tests share.

    Expected batches run before they are pushed, `AHEAD` of them in one stream, because starting a stream takes longer
    than running them.
    """

    SPLITS, AHEAD = 2, 3

    def __init__(self, cluster: "Cluster", partitions: int = 1, **settings: bool | str) -> None:
        super().__init__(partitions, **settings)
        self._cluster = cluster
        self._expected, self._done = deque[dict[str, pa.Table]](), deque[tuple[Printed, tuple[pa.Table, ...]]]()

    def expect(self, batches: Sequence[dict[str, pa.Table]]) -> None:
        self._expected = deque(batches)

    def _add_batch(self, rows: dict[str, pa.Table]) -> None:
        if not self._done:
            for some in [self._expected.popleft() for _ in range(min(self.AHEAD, len(self._expected)))] or [rows]:
                super()._add_batch(some)

    def _open(self, input: Input) -> None:
        from squallpy.runtime.spark.coordinator import BatchCoordinator

        self._open_checkpoint(input)
        self._coordinator = BatchCoordinator(self._compiled.plan, self._input, self._at, self._committed.facts)

    @property
    def policy(self) -> MigrationPolicy | None:
        """Policy of the join, if it may migrate."""
        return self._coordinator.policy

    def _step(self) -> Printed:
        if not self._done:
            self._run()
        changes, self._shown = self._done.popleft()
        return changes

    def _run(self) -> None:
        """Run all batches that were taken in."""
        from squallpy.runtime.spark.micro_batch_loop import StreamJob, run

        plan, coordinator = self._compiled.plan, self._coordinator
        stages = coordinator.stages(self.SPLITS, code=printed_code(self._code))
        job = StreamJob(
            self._batches.batches, self.SPLITS, plan.partitions, *stages,
            str(self._folder / "state" / "spark"), plan.stages_of_partitions,
            directives=coordinator.directives, prepare=coordinator.prepare,
            skips_feed=coordinator.skips_feed(is_small=plan.partitions > 2),
        )  # fmt: skip

        def publish(batch: int, outputs: Iterable[bytes], _: Any) -> bool:
            printed = self._result.apply(batch, [b"first" if batch == 0 else b"", *outputs])
            changes, stats = unpack_changes(printed)
            coordinator.complete(stats)
            self._committed.commit(batch + 1, coordinator.facts)
            coordinator.drop_hand_offs(batch + 1)
            self._done.append((changes, self._publisher.results.final(self._result.store())))
            return True

        assert run(self._cluster.session, job, publish) == self._batches.batches - 1

    def restart(self) -> None:
        self._delete_local_state()
        super().restart()

    def results(self) -> tuple[pa.Table, ...]:
        return self._shown
