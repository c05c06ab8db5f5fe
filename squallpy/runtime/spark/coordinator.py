"""The batch coordinator on Spark's driver: the grids of joiners, and the supersteps of matrices in blocks.

coordinator.prepare(7)          the driver's work before a batch
coordinator.directives()        →  its number of stages, and the directives for its tasks
coordinator.complete(stats)     read the reports of the batch, and plan the next one
coordinator.drop_hand_offs(8)   delete hand-offs that no batch needs when 8 are committed
coordinator.facts               driver state to be written with the commit, so that a crash loses none

Matrices in blocks come first: their supersteps are stages like those of a plan, in the same job. The last of them reads
the other inputs, and sends them to the first stage of the plan.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

from squallpy.base.json_codec import from_json, to_json
from squallpy.base.records import dataclass
from squallpy.base.timing import SILENT, Trace
from squallpy.codegen.program import PlanCode
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.micro_batch import PartitionStages, Sender, Stats, split_answer, unpack_parcels
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.runtime.checkpoint.state_partition import StatePartition, StepRange
from squallpy.runtime.compiled.functions import CompiledPlan
from squallpy.runtime.compiled.worker_code import WorkerCode
from squallpy.runtime.joiners.band_policy import BandPolicy
from squallpy.runtime.joiners.batch_plan import decode_plan, encode_plan, hands_off, senders_to
from squallpy.runtime.joiners.grid_migration_policy import GridPolicy
from squallpy.runtime.joiners.hand_off_store import HandOffStore
from squallpy.runtime.joiners.migration_policy import open_policy, rows_by_side
from squallpy.runtime.matrix.blocks.partition import BlockPartition
from squallpy.runtime.matrix.matrix_stage import hand_over, open_matrices, read_handed
from squallpy.runtime.matrix.reported_cells import decode_cells
from squallpy.runtime.result.result import Changes
from squallpy.runtime.sinks.part_writer import PartWriter
from squallpy.runtime.sinks.written_changes import WrittenPart
from squallpy.runtime.sources.input import Input, Slices, decode_slices, encode_slices
from squallpy.runtime.sources.protocol import Source
from squallpy.runtime.spark.worker_tasks import Directives, Reports
from squallpy.runtime.triggers.stage_executor import store_layout

SAMPLE = 4096  # rows of a relation that are sampled before the first batch
Parcels = list[tuple[int, bytes]]


class PlanFeed:
    """The feed stage. It is pickled without its sender, which each worker creates once and caches."""

    def __init__(
        self,
        plan: Plan,
        sources: Mapping[str, Source],
        durable: str,
        splits: int,
        trace: Trace = SILENT,
        code: WorkerCode | None = None,
    ) -> None:
        self._plan, self._sources, self._durable, self._splits, self._trace = plan, sources, durable, splits, trace
        self._code = code
        self._compiled: CompiledPlan | None = None
        self._sender: Sender | None = None
        self._told: tuple[str, tuple[Slices, ...]] = "", ()

    def __call__(
        self, batch: int, split: int, directive: str = "", only: Collection[int] | None = None
    ) -> Iterable[tuple[int, bytes]]:
        """Read a split, or send the driver's commands to all partitions, which read when their supersteps are done.

        Args:
            directive: The slices of all splits, encoded, then a blank and the plan of the batch.
        """
        matrices, computed = self._plan.matrices, None
        if matrices and matrices.parts:
            targets = range(self._plan.partitions) if only is None else only
            return [] if split else [(target, read_handed(self._durable, batch)) for target in targets]
        if matrices:
            computed = decode_cells(matrices, read_handed(self._durable, batch)).split(split, self._splits)
        begin, compiled = perf_counter(), self._code.compiled if self._code else None
        if self._sender is None:
            self._sender = Sender(self._plan, self._trace, compiled)
        elif compiled is not self._compiled:
            self._sender.use(compiled)
        self._compiled = compiled
        slices, _, batch_plan = directive.partition(" ")
        if self._told[0] != slices:  # NB: a task may read all splits
            self._told = slices, decode_slices(slices, self._sources)
        sent = self._sender.messages(split, self._told[1][split], batch_plan, only, computed)
        if self._code:
            self._code.note(perf_counter() - begin)
        return sent


@dataclass(frozen=True, slots=True)
class Supersteps:
    """The supersteps on blocks with which a batch begins, and the directive for the stages behind them.

    Args:
        first: The number of the first, counted over all batches.
    """

    first: int
    count: int
    rest: str


class PlanStages:
    """A plan's stages on partitions. It is pickled without the partitions, which each worker opens on first use."""

    def __init__(
        self,
        plan: Plan,
        sources: Mapping[str, Source],
        location: StateLocation,
        trace: Trace = SILENT,
        code: WorkerCode | None = None,
    ) -> None:
        self._plan, self._sources, self._location, self._trace = plan, sources, location, trace
        self._code = code
        self._compiled: CompiledPlan | None = None
        self._nodes = list[PartitionStages]()
        self.writers: Mapping[int, PartWriter] = {}
        """The writers of queries, by their places, of which partitions print the changes."""
        self._partitions: dict[int, tuple[StatePartition, HandOffStore]] = {}
        self._blocks: dict[int, StatePartition] = {}

    def __call__(
        self, batch: int, partition: int, stage: int, messages: list[bytes], directive: str = ""
    ) -> tuple[Parcels, Reports]:
        """Run a stage of a batch on a partition: supersteps on its blocks come before the stages of the plan."""
        if self._plan.matrices and self._plan.matrices.parts:
            supersteps = from_json(Supersteps, json.loads(directive))
            if stage < supersteps.count:
                blocks = self._open_blocks(partition)
                output = blocks.apply(batch, messages, stage, StepRange(supersteps.first, supersteps.count))
                return unpack_parcels(output), (blocks.report(partition),)
            stage, directive = stage - supersteps.count, supersteps.rest
        begin = perf_counter()
        self._use(self._code.compiled if self._code else None)
        (state, store), plan = self._open(partition), decode_plan(directive)
        if (senders := senders_to(plan, partition)) and stage == 0:
            with self._trace("hand-offs"):
                messages = messages + store.read(batch - 1, partition, senders)
        output = state.apply(batch, messages, stage)
        if self._code:
            self._code.note(perf_counter() - begin)
        if stage < self._plan.stages_of_partitions - 1:
            return unpack_parcels(output), (state.report(partition),)
        hands = hands_off(plan, partition)
        output, printed, hand_offs = split_answer(self._plan, output, hands)
        if hands:
            with self._trace("hand-offs"):
                store.write(batch, partition, hand_offs)
        return [(partition, output)], (state.report(partition), *self._write(batch, partition, printed))

    def _write(self, batch: int, partition: int, printed: Sequence[Changes | None]) -> Iterator[WrittenPart]:
        """Write the changes that a partition has printed to their sinks, unless they were before."""
        number = self._location.number(batch)
        for query, changes in enumerate(printed):
            if changes and number is not None:
                with self._trace("write"):
                    yield self.writers[query](number, partition, changes.deletes, changes.inserts)

    def _use(self, compiled: CompiledPlan | None) -> None:
        """Run statements by compiled functions from here on, as far as there are any."""
        for node in self._nodes if compiled is not self._compiled else ():
            node.use(compiled)
        self._compiled = compiled

    def _open(self, partition: int) -> tuple[StatePartition, HandOffStore]:
        """Open the state of a partition and its hand-off store."""
        if partition not in self._partitions:
            name, node = f"partition-{partition}", PartitionStages(self._plan, partition, self._trace, self._compiled)
            self._nodes.append(node)
            state = self._location.partition(name, store_layout(self._plan), *node.runs, trace=self._trace)
            self._partitions[partition] = state, HandOffStore(self._location.durable, name)
        return self._partitions[partition]

    def _open_blocks(self, partition: int) -> StatePartition:
        """Open the blocks of a partition."""
        if partition not in self._blocks:
            part = BlockPartition(self._plan, self._sources, partition)
            self._blocks[partition] = self._location.partition(f"matrices-{partition}", part.layout, *part.runs)
        return self._blocks[partition]


def _sample_key_counts(plan: Plan, input: Input, first: Mapping[str, int]) -> Mapping[str, Mapping[str, int]] | None:
    """Count, in a sample of the first batch, the keys of a join that may be heavy, or what a band bounds."""
    if plan.matrices or (plan.grid and not plan.band) or not (plan.on_grid or plan.hypercube):
        return None
    rows = max([1, *first.values()])  # NB: it may be empty
    sample, *others = input.split(input.step(0), -(-rows // SAMPLE))
    later = Sender(plan).sample_keys(others[-1], is_later=True) if plan.band and others else {}
    return {**Sender(plan).sample_keys(sample), **later}


class BatchCoordinator:
    """The planner of each batch, from the reports of those before.

    `facts` are those of the last commit; `first` counts the rows of each relation in the first batch.
    """

    def __init__(
        self,
        plan: Plan,
        input: Input,
        location: StateLocation,
        facts: Mapping[str, Any] | None,
        first: Mapping[str, int] | None = None,
    ) -> None:
        facts = facts or {}
        self._plan, self._location = plan, location
        often = _sample_key_counts(plan, input, first) if first and not facts else None
        self.policy = open_policy(plan, facts.get("joins"), first, often)
        self._input = input
        self._matrices = open_matrices(plan, input, location, facts.get("matrices"))
        self._planned = self.policy  # including the plan of the running batch
        self._has_old_hand_offs = True  # NB: left by the previous run
        self._splits, self._slices = 1, ""

    def set_cores(self, cores: int) -> None:
        """Set the number of cores at which tasks run."""
        if isinstance(self.policy, GridPolicy | BandPolicy):
            self.policy = self.policy.with_cores(cores)

    def skips_feed(self, is_small: bool) -> bool:
        """True if tasks of the first stage read for themselves: the driver's commands, or batches that are small."""
        matrices = self._plan.matrices
        return matrices.parts > 0 if matrices else is_small

    def stages(self, splits: int, trace: Trace = SILENT, code: PlanCode | None = None) -> tuple[PlanFeed, PlanStages]:
        """Create the callables that feed and apply a batch.

        Args:
            code: The printed triggers, which workers take compiled from the disk.
        """
        self._splits, sources, shared = splits, self._input.sources, WorkerCode(code) if code else None
        feed = PlanFeed(self._plan, sources, self._location.durable, splits, trace, shared)
        return feed, PlanStages(self._plan, sources, self._location, trace, shared)

    def prepare(self, batch: int) -> None:
        """Prepare a batch; called again if the batch is repeated."""
        step, sources = self._input.step(batch), self._input.sources
        self._planned = self.policy and self.policy.plan_batch(rows_by_side(self._plan, self._input.row_counts(step)))
        in_blocks = self._plan.matrices and self._plan.matrices.parts
        self._slices = encode_slices(self._input.split(step, in_blocks or self._splits), sources)
        if self._matrices:
            hand_over(self._location.durable, batch, self._matrices.begin(step, self._encoded(), self._slices))

    def directives(self) -> Directives:
        """Return the number of stages of the batch, and the directives for its tasks."""
        count, directive = self._plan.stages_of_partitions, self._encoded()
        if self._matrices is None or not self._plan.matrices or not self._plan.matrices.parts:
            return Directives(count, f"{self._slices} {directive}", directive)
        supersteps = Supersteps(*self._matrices.supersteps, directive)
        return Directives(supersteps.count + count, "", json.dumps(to_json(supersteps)))

    def _encoded(self) -> str:
        """Encode the plan of the batch for tasks."""
        return encode_plan(self._planned.plan if self._planned else None)

    def complete(self, stats: Stats) -> Stats:
        """Plan the next batch from the reports of this one, and add the figures of migrations to its statistics."""
        if self._matrices:
            self._matrices.end(stats["matrices"])
        if self._planned:
            stats, self.policy = stats | self._planned.figures(stats), self._planned.observe(stats)
        return stats

    def drop_hand_offs(self, done: int) -> None:
        """Drop the hand-offs of batches before `done`, the number of batches committed."""
        if self._planned and (self._planned.plan.arriving or self._has_old_hand_offs):
            HandOffStore(self._location.durable).drop(done)
            self._has_old_hand_offs = False

    @property
    def facts(self) -> dict[str, Any] | None:
        """Driver state to be written with the commit, so that the next batch can be planned after a crash."""
        facts = {"joins": to_json(self.policy)} if self.policy else {}
        matrices = self._matrices.facts if self._matrices else None
        return facts | ({"matrices": matrices} if matrices else {}) or None
